//! What was found out about an instruction holds for the next one with the same bytes.
//!
//! Most instructions of an object occur in it again and again. What the decoder's tables say
//! of one follows from its bytes alone. So does its class, unless something beside them counts
//! ([`bytes_tell_class`]):
//!
//! * a relocation: that of an operand, or of a branch, whose symbol has a name,
//! * its own place, where an operand is relative to it,
//! * where an indirect jump goes, and what a trap stands for,
//! * metadata, which names instructions by their places ([`super::Judge`] asks).
//!
//! Of a direct branch the distance is left out: where it goes is not looked at here.

use iced_x86::{FlowControl, Instruction, OpKind};

use super::class::Class;
use super::survey::Survey;
use crate::hash;
use crate::lift::{Destination, Inst};

/// What an instruction's bytes tell.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub survey: Survey,
    /// [`super::survey::may_change_facts`].
    pub changes_facts: bool,
    /// `None` where it is refused, or where they do not tell.
    pub class: Option<Class>,
}

/// The bytes of an instruction, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(u128);

impl Bytes {
    /// Those of an instruction of a section with these contents.
    pub fn of(inst: &Inst, section: &[u8]) -> Bytes {
        let iced = &inst.iced;
        let len = iced.len() - distance(iced).unwrap_or(0);
        let start = inst.offset() as usize;
        let bytes = match section[start..].first_chunk() {
            Some(bytes) => *bytes,
            None => {
                let mut bytes = [0; 16];
                bytes[..len].copy_from_slice(&section[start..][..len]);
                bytes
            }
        };
        // No instruction is longer than 15 bytes (SDM volume 2, 2.3.11): the last one is free.
        let own = u128::from_le_bytes(bytes) & ((1 << (8 * len)) - 1);
        Bytes(own | (len as u128) << 120)
    }
}

/// Whether the class of an instruction follows from its bytes, if no metadata names it.
pub fn bytes_tell_class(inst: &Inst) -> bool {
    let iced = &inst.iced;
    let is_relocated = inst.relocated_values().next().is_some();
    !is_relocated
        && match (iced.flow_control(), inst.target) {
            (FlowControl::Next, None) => !iced.is_ip_rel_memory_operand(),
            (_, Some(Destination::Inst(_))) => distance(iced).is_some(),
            _ => false,
        }
}

/// The bytes that the distance of a direct branch takes, at its end.
fn distance(iced: &Instruction) -> Option<usize> {
    if iced.op0_kind() != OpKind::NearBranch64 {
        None
    } else if iced.is_jcc_short() || iced.is_jmp_short() {
        Some(1)
    } else if iced.is_jcc_near() || iced.is_jmp_near() || iced.is_call_near() {
        Some(4)
    } else {
        None
    }
}

/// What the latest instructions were found to be, by [`Alike::place`].
pub struct Alike(Vec<Option<(Bytes, Known)>>);

/// Fewest judgements that are kept.
const FEWEST: usize = 1 << 10;
/// Most that are kept.
const MOST: usize = 1 << 13;
/// Instructions of an object for each of them.
const REPEATED: usize = 8;

impl Alike {
    /// For an object of that many instructions.
    pub fn new(instructions: usize) -> Alike {
        let places = (instructions / REPEATED).next_power_of_two();
        Alike(vec![None; places.clamp(FEWEST, MOST)])
    }

    /// What was found out about an instruction with these bytes.
    pub fn get(&self, bytes: Bytes) -> Option<&Known> {
        match &self.0[self.place(bytes)] {
            Some((found, known)) if *found == bytes => Some(known),
            _ => None,
        }
    }

    /// Keeps what was found out.
    pub fn keep(&mut self, bytes: Bytes, known: Known) {
        let place = self.place(bytes);
        self.0[place] = Some((bytes, known));
    }

    fn place(&self, Bytes(all): Bytes) -> usize {
        let mixed = (all >> 64) as u64;
        hash::place(mixed.rotate_left(29) ^ all as u64, self.0.len())
    }
}
