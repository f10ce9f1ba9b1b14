//! Mutants with another prefix: one more before an instruction or behind its REX, which then
//! means nothing, and REX with each bit changed or put there.
//!
//! A prefix that the instruction ignores is harmless (`ignored.rs`). So are, as in the module
//! [`super`]:
//!
//! * any before an instruction that says which address is translated, but `lock`, and other
//!   registers in it, but one that something relies on; the register that a copied address came
//!   from, and one that holds the address when an entry is chosen;
//! * REX.W of the instructions that compute an index: the index has no bits above 32.
//!
//! The access behind the check keeps its operand in memory, and what the check covers, with
//! these:
//!
//! * 66, REX.W, f2 and f3 of vector instructions, `lock`, and REX.R where it names what is
//!   stored, or REX that makes `%spl` of a stored `%ah`: no more than 64 bytes are reached, and
//!   what is loaded is a number, of any width;
//! * 66 that makes a constant shorter, where the rest of it is an instruction that keeps to the
//!   same operand, too;
//! * REX.B, where the other register holds the translated address of an earlier check, or
//!   one of the own frame, and the operand stays in that (`registers.rs`);
//! * in a module 65: by `%gs:` it may reach anything (docs/proof/linux.md, P1);
//! * where stores alone are confined, any with which it only loads, and not into `rsp`.
//!
//! REX.R of an access that loads is left out, but where it makes `rsp` of the register: what
//! another register may be overwritten with is no matter of this check.

use elf_loader::Relocation;
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use process_lab::random::Random;
use svm_verify::{Accesses, Target};
use twin_abi::stlb;

use super::check::by_other_rex;
use super::held::{only_reads, writes};
use super::ignored::{self, LEGACY, REX, Rex};
use super::splice::New;
use super::{Check, Mutant, MutantKind, Piece};

/// Of an instruction's mutants, one in so many, where not all are made.
const ONE_IN: usize = 4;
/// What an access reaches at most.
const WIDEST: i64 = 64;

/// What an instruction is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It says which address is translated.
    Address,
    /// It chooses the entry, by any register.
    Choice,
    /// It computes an index of less than 32 bits.
    Index,
    /// Another one of the check.
    Other,
    /// The access behind it.
    Access,
}

impl Check {
    /// Those of each instruction of the check, of its out-of-line part, and of the access
    /// behind it; all of them if `everywhere`.
    pub(super) fn prefixed(&self, everywhere: bool, random: &mut Random) -> Vec<Mutant> {
        let last = self.pieces.len() - 1;
        let check = self.pieces[..last].iter().enumerate();
        let check = check.map(|(n, piece)| (self.role(n), piece));
        let access = self
            .is_accessed()
            .then_some((Role::Access, &self.pieces[last]));
        let slow = self.slow.iter().map(|piece| (Role::Other, piece));
        check
            .chain(access)
            .chain(slow)
            .flat_map(|(role, piece)| {
                let made = self.prefixes_of(role, piece);
                let (first, step) = match everywhere {
                    true => (0, 1),
                    false => (random.below(ONE_IN as u64) as usize, ONE_IN),
                };
                made.into_iter().skip(first).step_by(step)
            })
            .collect()
    }

    fn role(&self, n: usize) -> Role {
        let is_stlb = self.pieces.len() == 9;
        let piece = &self.pieces[n];
        let in_registers =
            piece.decoded.mnemonic() == Mnemonic::Lea || piece.decoded.op1_kind() != OpKind::Memory;
        match n {
            _ if n == 0 && in_registers || self.is_redundant(piece) => Role::Address,
            1 if is_stlb => Role::Choice,
            2 | 3 if is_stlb => Role::Index,
            4 | 5 if !is_stlb => Role::Index,
            _ => Role::Other,
        }
    }

    fn prefixes_of(&self, role: Role, piece: &Piece) -> Vec<Mutant> {
        let rex = ignored::rex_of(&piece.bytes);
        let more = LEGACY.into_iter().map(|byte| {
            let mutant = self.with_byte(piece, 0, byte);
            let is_harmless = ignored::is_ignored(piece, byte)
                || self.is_spare(role, piece, byte)
                || role == Role::Access && self.is_spare_access(piece, &mutant);
            mutant.harmless_if(is_harmless)
        });
        let behind = rex.into_iter().flat_map(|at| {
            LEGACY.map(|byte| {
                let mutant = self.with_byte(piece, at + 1, byte);
                let is_harmless = role == Role::Access && self.only_loads_still(&mutant);
                mutant.harmless_if(is_harmless)
            })
        });
        let changed = Rex::ALL
            .into_iter()
            .filter(|bit| {
                role != Role::Access || *bit != Rex::R || !loads(piece) || names_r12(piece)
            })
            .map(|bit| {
                let mutant = self.with_bit(piece, bit);
                let is_spare =
                    ignored::bits(piece).contains(&bit) || self.is_spare_bit(role, piece, bit);
                let is_stored = role == Role::Access && keeps_its_place(piece) && !loads(piece);
                let is_harmless = is_spare && (is_stored || !ignored::names_high_byte(piece))
                    || role == Role::Access && self.only_loads_still(&mutant);
                mutant.harmless_if(is_harmless)
            });
        more.chain(behind).chain(changed).collect()
    }

    /// Whether a prefix that matters does no harm here.
    fn is_spare(&self, role: Role, piece: &Piece, byte: u8) -> bool {
        match (role, byte) {
            (Role::Address, byte) => byte != 0xf0 && self.facts.counted.is_empty(),
            // An access that can be locked: else the processor does not execute it.
            (Role::Access, 0xf0) => keeps_its_place(piece),
            // Of what begins with 0f these say the kind of vector instruction.
            (Role::Access, 0xf2 | 0xf3) => keeps_its_place(piece) && ignored::is_long(piece),
            (Role::Access, 0x65) => self.target == Target::Linux,
            (Role::Access, 0x66) => keeps_its_place(piece) && !ignored::has_wide_immediate(piece),
            _ => false,
        }
    }

    /// Whether what the access became does no harm.
    fn is_spare_access(&self, access: &Piece, mutant: &Mutant) -> bool {
        self.only_loads_still(mutant) || self.keeps_to_the_operand(access, mutant)
    }

    /// Whether loads may read anything, and the access became one, into another register than
    /// `rsp`.
    fn only_loads_still(&self, mutant: &Mutant) -> bool {
        self.may_read_anything()
            && matches!(&mutant.instructions()[..], [one] if {
                one.flow_control() == FlowControl::Next
                    && !one.is_stack_instruction()
                    && only_reads(one)
                    && !writes(one, Register::RSP)
            })
    }

    /// Whether the access became several, each of the same operand or of none, which keep the
    /// translated address and `rsp`.
    fn keeps_to_the_operand(&self, access: &Piece, mutant: &Mutant) -> bool {
        let same_operand = |i: &Instruction| {
            i.memory_base() == self.translated()
                && i.memory_index() == Register::None
                && i.memory_displacement64() == access.decoded.memory_displacement64()
                && i.memory_size().size() <= access.decoded.memory_size().size()
        };
        let parts = mutant.instructions();
        keeps_its_place(access)
            && !parts.is_empty()
            && parts.iter().all(|i| {
                let in_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
                i.flow_control() == FlowControl::Next
                    && !i.is_stack_instruction()
                    && !i.is_string_instruction()
                    && (!in_memory || same_operand(i))
                    && ![self.translated(), Register::RSP]
                        .iter()
                        .any(|r| writes(i, *r))
            })
    }

    /// Whether only stores are confined.
    pub(super) fn may_read_anything(&self) -> bool {
        self.accesses == Accesses::Stores
    }

    /// Whether a bit of REX that matters does no harm here.
    fn is_spare_bit(&self, role: Role, piece: &Piece, bit: Rex) -> bool {
        match (role, bit) {
            _ if self.reads_the_source(piece, bit) => true,
            (Role::Address, bit) => {
                let written = by_other_rex(piece.decoded.op0_register().full_register());
                let keeps = bit != ignored::written(piece) || self.may_overwrite(piece, written);
                keeps && self.facts.counted.is_empty()
            }
            (Role::Choice, Rex::W) | (Role::Index, Rex::W) => true,
            (Role::Choice, bit) => {
                let read = by_other_rex(piece.decoded.op1_register().full_register());
                bit == ignored::read(piece) && self.facts.alike.contains(&read)
            }
            (Role::Access, Rex::W) => keeps_its_place(piece),
            (Role::Access, Rex::R) => keeps_its_place(piece) && !loads(piece),
            (Role::Access, Rex::B) => {
                self.facts.other_held || self.facts.other_in_frame && keeps_its_place(piece)
            }
            _ => false,
        }
    }

    /// Whether the bit makes a copy of the address one from the register that it came from.
    fn reads_the_source(&self, piece: &Piece, bit: Rex) -> bool {
        let i = &piece.decoded;
        let is_copy = i.mnemonic() == Mnemonic::Mov && i.op1_kind() == OpKind::Register;
        is_copy
            && bit == ignored::read(piece)
            && self.source() == Some(by_other_rex(i.op1_register().full_register()))
    }

    /// Whether the instruction behind the check reaches memory by the translated address
    /// alone.
    pub(super) fn is_accessed(&self) -> bool {
        let access = &self.pieces[self.pieces.len() - 1].decoded;
        access.memory_base() == self.translated()
            && access.memory_index() == Register::None
            && access.mnemonic() != Mnemonic::Lea
            && (0..access.op_count()).any(|n| access.op_kind(n) == OpKind::Memory)
    }

    /// The register that it translates into.
    fn translated(&self) -> Register {
        self.pieces[self.pieces.len() - 2].decoded.op0_register()
    }

    /// The instruction with a byte put before its byte `at`.
    fn with_byte(&self, piece: &Piece, at: usize, byte: u8) -> Mutant {
        let mut new = New::copy(piece);
        new.bytes.insert(at, byte);
        let shifted = |r: &Relocation| Relocation {
            offset: r.offset + 1,
            ..*r
        };
        new.relocations = piece.relocations.iter().map(shifted).collect();
        let how = format!("`{}` with {byte:02x} before its byte {at}", piece.decoded);
        let length = piece.bytes.len();
        self.splice(MutantKind::Prefix, piece.at, length, vec![new], &how)
    }

    /// The instruction with a bit of its REX changed, or with a REX of this bit.
    fn with_bit(&self, piece: &Piece, bit: Rex) -> Mutant {
        let Some(at) = ignored::rex_of(&piece.bytes) else {
            let at = ignored::legacy_of(&piece.bytes);
            return self.with_byte(piece, at, REX | bit as u8);
        };
        let mut bytes = piece.bytes.clone();
        bytes[at] ^= bit as u8;
        let how = format!("with REX {:02x}", bytes[at]);
        let relocations = piece.relocations.clone();
        self.mutant(MutantKind::Prefix, piece, bytes, relocations, &how)
    }
}

/// Whether an access reaches the same place with operands of another width: it moves no stack
/// pointer, goes nowhere, and no register counts bits from its place.
fn keeps_its_place(access: &Piece) -> bool {
    let i = &access.decoded;
    let counts_bits = matches!(
        i.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    ) && i.op1_kind() == OpKind::Register;
    let displacement = i.memory_displacement64() as i64;
    let covered = -(stlb::BELOW as i64)..=stlb::COVERED as i64 - WIDEST;
    let small = (1..=WIDEST as usize / 2).contains(&i.memory_size().size());
    i.flow_control() == FlowControl::Next
        && !i.is_stack_instruction()
        && !counts_bits
        && small
        && covered.contains(&displacement)
}

/// Whether it writes a register that an operand names.
fn loads(access: &Piece) -> bool {
    let mut info = InstructionInfoFactory::new();
    let info = info.info(&access.decoded);
    (0..access.decoded.op_count()).any(|n| {
        access.decoded.op_kind(n) == OpKind::Register && info.op_access(n) != OpAccess::Read
    })
}

/// Whether a bit of REX makes `rsp` of a register that it names.
fn names_r12(piece: &Piece) -> bool {
    let i = &piece.decoded;
    (0..i.op_count()).any(|n| {
        i.op_kind(n) == OpKind::Register && i.op_register(n).full_register() == Register::R12
    })
}
