//! Words of a frame that have a copy of the own stack pointer, on every path to a place. Compilers
//! keep other things in them elsewhere:
//!
//! ```text
//!     mov  %rcx, -16(%rbp)        a counter
//!     ...
//!     mov  %rsp, %r10             before an array of variable length
//!     mov  %r10, -16(%rbp)        it is spilled,
//!     ...
//!     mov  -16(%rbp), %r10        and is what it was
//!     mov  %r10, %rsp
//! ```
//!
//! A word is dropped where its register changes, or something may write it: an operand of the
//! frame that overlaps it or that counts from another register, a call, a `push`, and a store of
//! eight bytes or more by a pointer. Elements that are narrower are no addresses.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use liveness::LocSet;

use super::switched::{has, is_frames, stored};
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::registers::gpr;

/// Bytes of a word.
const WORD: u64 = 8;

/// So many are followed; copies of `rsp` are few.
const MOST: usize = 64;

/// A word: the register that reaches it, and the distance.
type Word = (Register, u64);

/// The words that have a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spilled(Vec<Word>);

impl Spilled {
    /// Those that have one on both paths.
    pub fn joined(&self, other: &Spilled) -> Spilled {
        let both = self.0.iter().filter(|word| other.0.contains(word));
        Spilled(both.copied().collect())
    }

    /// Whether the operand of an instruction is one of them.
    pub fn has_operand(&self, iced: &Instruction) -> bool {
        place(iced).is_some_and(|word| self.0.contains(&word))
    }

    /// Goes through an instruction, before which these registers lead to the own stack.
    pub fn pass(&mut self, iced: &Instruction, survey: &Survey, own: LocSet) {
        if enters_others(iced) {
            self.0.clear();
        } else if survey.memory == MemoryEffect::Written {
            self.write(iced);
        }
        let leads = stored(iced).is_some_and(|register| has(own, register));
        let word = place(iced).filter(|(base, _)| leads && has(own, *base));
        if let Some(word) = word.filter(|_| self.0.len() < MOST) {
            self.0.push(word);
        }
        self.0
            .retain(|(base, _)| gpr(*base).is_some_and(|base| !survey.writes(base)));
    }

    /// Drops what a store may write.
    fn write(&mut self, iced: &Instruction) {
        let bytes = iced.memory_size().size() as u64;
        if iced.op0_kind() != OpKind::Memory || bytes == 0 || reaches_on(iced) {
            self.0.clear();
        } else if let Some((base, at)) = place(iced) {
            self.0
                .retain(|word| word.0 == base && is_apart(word.1, at, bytes));
        } else if is_frames(iced.memory_base()) || bytes >= WORD {
            let is_named = iced.is_ip_rel_memory_operand();
            self.0.retain(|_| is_named);
        }
    }
}

/// Whether so many bytes at a distance are none of a word's.
fn is_apart(word: u64, at: u64, bytes: u64) -> bool {
    let (from_word, from_at) = (at.wrapping_sub(word), word.wrapping_sub(at));
    from_word >= WORD && from_at >= bytes
}

/// The place of the frame that an operand is.
fn place(iced: &Instruction) -> Option<Word> {
    let base = iced.memory_base();
    let plain = iced.memory_index() == Register::None
        && !matches!(iced.memory_segment(), Register::FS | Register::GS);
    (plain && is_frames(base)).then(|| (base, iced.memory_displacement64()))
}

/// Whether others run meanwhile, or it writes where `rsp` points.
fn enters_others(iced: &Instruction) -> bool {
    let goes_on = matches!(
        iced.flow_control(),
        FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
    );
    !goes_on || iced.is_stack_instruction()
}

/// Whether it may write elsewhere than in its operand's bytes.
fn reaches_on(iced: &Instruction) -> bool {
    let bit_string = matches!(
        iced.mnemonic(),
        Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    ) && iced.op1_kind() == OpKind::Register;
    bit_string || iced.is_vsib() || iced.is_string_instruction()
}
