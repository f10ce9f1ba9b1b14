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
//! Two parts of an instruction are left out, since nothing here depends on them: the distance of
//! a direct branch, and the constants of most other instructions ([`constants`]). What says that an
//! instruction has some, and where, comes before them in the bytes and is not left out.

use std::ops::Range;

use iced_x86::{EncodingKind, FlowControl, Instruction, Mnemonic, OpKind, Register};
use liveness::Effect;

use super::class::Class;
use super::survey::Survey;
use crate::asm::LONGEST;
use crate::hash;
use crate::lift::{Destination, Inst};

/// What an instruction's bytes tell.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub survey: Survey,
    /// What it does to liveness by itself.
    pub effect: Effect,
    /// [`super::survey::may_change_facts`].
    pub changes_facts: bool,
    /// `None` where it is refused, or where they do not tell.
    pub class: Option<Class>,
}

/// The bytes of an instruction without those that are left out, and how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(u128);

impl Bytes {
    /// Those of an instruction of a section with these contents.
    pub fn of(inst: &Inst, section: &[u8]) -> Bytes {
        let iced = &inst.iced;
        let len = iced.len();
        let start = inst.offset() as usize;
        let bytes = match section[start..].first_chunk() {
            Some(bytes) => *bytes,
            None => {
                let mut bytes = [0; 16];
                bytes[..len].copy_from_slice(&section[start..][..len]);
                bytes
            }
        };
        let left_out = distance(iced).or_else(|| constants(iced));
        let left_out = left_out.map_or(0, |fields| FIRST[fields.end] ^ FIRST[fields.start]);
        // No instruction is longer than 15 bytes (SDM volume 2, 2.3.11): the last one is free.
        let own = u128::from_le_bytes(bytes) & FIRST[len] & !left_out;
        Bytes(own | (len as u128) << 120)
    }
}

/// Masks of the first so many bytes.
const FIRST: [u128; LONGEST + 1] = {
    let mut masks = [0; LONGEST + 1];
    let mut bytes = 1;
    while bytes <= LONGEST {
        masks[bytes] = masks[bytes - 1] << 8 | 0xff;
        bytes += 1;
    }
    masks
};

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
fn distance(iced: &Instruction) -> Option<Range<usize>> {
    if iced.op0_kind() != OpKind::NearBranch64 {
        None
    } else if iced.is_jcc_short() || iced.is_jmp_short() {
        Some(iced.len() - 1..iced.len())
    } else if iced.is_jcc_near() || iced.is_jmp_near() || iced.is_call_near() {
        Some(iced.len() - 4..iced.len())
    } else {
        None
    }
}

/// The bytes of a displacement and an immediate, at the end of an instruction, on which neither
/// class nor survey depends: what is added to another register than `rsp`, to reach memory or for
/// an address that is not the next `rsp`, and what is moved to, combined or compared with
/// something else than `rsp`.
fn constants(iced: &Instruction) -> Option<Range<usize>> {
    let displacement = match (iced.memory_displ_size(), iced.memory_base()) {
        (0, Register::None) => 0,
        (_, Register::None | Register::RSP | Register::ESP) => return None,
        (size @ (0 | 1), _) => size as usize,
        // The decoder says how wide the address is; the field has four bytes (SDM volume 2, table
        // 2-2).
        _ => 4,
    };
    // In other encodings a register may be behind them.
    let is_last = iced.code().encoding() == EncodingKind::Legacy;
    let names_rsp = iced.op0_register() == Register::RSP;
    let constants = displacement + immediate(iced)?;
    (is_last && !names_rsp && constants > 0).then(|| iced.len() - constants..iced.len())
}

/// The bytes of the immediate; `None` if something depends on it, as flags do on the count of a
/// shift. That of a shift by one is in no byte.
fn immediate(iced: &Instruction) -> Option<usize> {
    use Mnemonic as M;
    let kinds = [iced.op0_kind(), iced.op1_kind(), iced.op2_kind()];
    let is_shown = |kind: &OpKind| matches!(kind, OpKind::Register | OpKind::Memory);
    if kinds.iter().all(is_shown) {
        return Some(0);
    }
    let is_number = matches!(
        iced.mnemonic(),
        M::Mov | M::Add | M::Sub | M::And | M::Or | M::Xor | M::Cmp | M::Test
    );
    match kinds {
        _ if !is_number => None,
        [OpKind::Register | OpKind::Memory, kind, _] => match kind {
            OpKind::Immediate8
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64 => Some(1),
            OpKind::Immediate16 => Some(2),
            OpKind::Immediate32 | OpKind::Immediate32to64 => Some(4),
            OpKind::Immediate64 => Some(8),
            _ => None,
        },
        _ => None,
    }
}

/// What the latest instructions were found to be, by [`Alike::place`].
pub struct Alike(Vec<Option<(Bytes, Known)>>);

/// Fewest judgements that are kept.
const FEWEST: usize = 1 << 10;
/// Most that are kept.
const MOST: usize = 1 << 14;
/// Instructions of an object for each of them.
const REPEATED: usize = 4;

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

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    /// Of all opcodes of one and two bytes, with prefixes, registers and displacements of both
    /// sizes.
    #[test]
    fn constants_are_where_the_decoder_finds_them() {
        let prefixes: [&[u8]; 5] = [&[], &[0x48], &[0x66], &[0x67, 0x49], &[0xf3, 0x65]];
        // %rbx, (%rbx), disp8(%rbx), disp32(%rbx), disp8(%rbx,%rcx,4), disp32(%rbx,%rcx,4)
        let operands: [&[u8]; 6] = [
            &[0xc3],
            &[0x03],
            &[0x43],
            &[0x83],
            &[0x44, 0x8b],
            &[0x84, 0x8b],
        ];
        let (mut displacements, mut immediates) = (0, 0);
        for (prefix, operand) in prefixes.iter().flat_map(|p| operands.map(|o| (p, o))) {
            for (map, opcode, reg) in (0..2 * 256 * 8).map(|n| (n / 2048, n / 8 % 256, n % 8)) {
                let map: &[u8] = if map == 0 { &[] } else { &[0x0f] };
                let opcode = [opcode as u8, operand[0] | (reg as u8) << 3];
                let bytes = [prefix, map, &opcode, &operand[1..], &[1; 12]].concat();
                let mut decoder = Decoder::new(64, &bytes, DecoderOptions::NONE);
                let iced = decoder.decode();
                let fields = decoder.get_constant_offsets(&iced);
                let Some(found) = constants(&iced) else {
                    continue;
                };
                let all = [
                    (fields.displacement_offset(), fields.displacement_size()),
                    (fields.immediate_offset(), fields.immediate_size()),
                ];
                let all: Vec<_> = all.into_iter().filter(|(_, size)| *size > 0).collect();
                let start = all.iter().map(|(at, _)| *at).min().expect("it has some");
                let size: usize = all.iter().map(|(_, size)| size).sum();
                assert_eq!(found, start..start + size, "{bytes:02x?}");
                assert_eq!(found.end, iced.len(), "{bytes:02x?}");
                displacements += usize::from(fields.has_displacement());
                immediates += usize::from(fields.has_immediate());
            }
        }
        assert!(displacements > 10_000, "{displacements}");
        assert!(immediates > 500, "{immediates}");
    }

    #[test]
    fn constants_that_count_are_not_left_out() {
        // mov 8(%rsp),%rax; lea 8(%rbp),%rsp; sub $8,%rsp; lock addl $0,-4(%rsp);
        // shl $3,8(%rbx); in $8,%al; mov 0x8,%eax
        let counts: [&[u8]; 7] = [
            &[0x48, 0x8b, 0x44, 0x24, 0x08],
            &[0x48, 0x8d, 0x65, 0x08],
            &[0x48, 0x83, 0xec, 0x08],
            &[0xf0, 0x83, 0x44, 0x24, 0xfc, 0x00],
            &[0xc0, 0x63, 0x08, 0x03],
            &[0xe4, 0x08],
            &[0x8b, 0x04, 0x25, 0x08, 0, 0, 0],
        ];
        for bytes in counts {
            let iced = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
            assert_eq!(constants(&iced), None, "{bytes:02x?}");
        }
    }
}
