//! Whether a register still holds the translated address of an earlier check, and what
//! the address of this one is used for.

use std::collections::HashSet;

use elf_loader::{Object, Relocation};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};
use twin_abi::{names, stlb};

use super::Piece;
use crate::mutants::reach::{Place, Reached};

/// An object and the paths through it.
pub(super) struct Paths<'o> {
    pub object: &'o Object<'o>,
    pub reached: &'o Reached,
}

impl Paths<'_> {
    /// Whether `register` has a translated address at `place` on every path to it: then
    /// skipping a whole check there accesses that window, as far as it covers.
    pub fn hold(&self, register: Register, place: Place) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![place];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            if self.reached.is_entry(at) {
                return false;
            }
            for before in self.reached.before(at) {
                let piece = Piece::at(self.object, before);
                match self.leaves_translated(&piece, register) {
                    Some(true) => {}
                    Some(false) => return false,
                    None => open.push(before),
                }
            }
        }
        true
    }

    /// Whether nothing but loads uses what `register` has at `place`, on every path from it:
    /// by operands that it is the base of.
    pub fn only_loads(&self, register: Register, place: Place) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![place];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let piece = Piece::at(self.object, at);
            match self.use_of(&piece, register) {
                Use::Other => return false,
                Use::Lost => {}
                Use::Load | Use::None => open.extend(self.reached.after(at)),
            }
        }
        true
    }

    /// Whether `register` has a translated address after the instruction; `None` if the
    /// instruction does not change that.
    fn leaves_translated(&self, piece: &Piece, register: Register) -> Option<bool> {
        let i = &piece.decoded;
        let adds_translation = |r: &Relocation| r.addend == stlb::XLATE as i64;
        if piece.relocations.iter().any(adds_translation) && i.op0_register() == register {
            return Some(true);
        }
        if i.flow_control() == FlowControl::Call {
            return match self.called(piece, register) {
                Called::Translates => Some(true),
                Called::Keeps => None,
                Called::Any => Some(false),
            };
        }
        if i.flow_control() == FlowControl::IndirectCall {
            return Some(false);
        }
        writes(i, register).then_some(false)
    }

    /// What a call does with a register. The slow path changes the one that it translates,
    /// and no other.
    fn called(&self, call: &Piece, register: Register) -> Called {
        let symbols = call
            .relocations
            .iter()
            .map(|r| self.object.symbol(r.symbol));
        let mut called = symbols.map(|symbol| &symbol.name);
        match called.find_map(|name| name.strip_prefix(names::SLOW_PREFIX)) {
            Some(name) if format!("{register:?}").eq_ignore_ascii_case(name) => Called::Translates,
            Some(_) => Called::Keeps,
            None => Called::Any,
        }
    }

    /// What an instruction does with a register that holds an address. A call and a return
    /// lose it: no check relies on a register over either.
    fn use_of(&self, piece: &Piece, register: Register) -> Use {
        let i = &piece.decoded;
        match i.flow_control() {
            FlowControl::Call => match self.called(piece, register) {
                Called::Keeps => Use::None,
                Called::Translates | Called::Any => Use::Lost,
            },
            FlowControl::Return => Use::Lost,
            _ if !names(i, register) => match i.flow_control() {
                FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch => Use::None,
                _ => Use::Other,
            },
            FlowControl::Next if loads_by(i, register) => match writes(i, register) {
                true => Use::Lost,
                false => Use::Load,
            },
            FlowControl::Next if is_set(i, register) => Use::Lost,
            _ => Use::Other,
        }
    }
}

/// What a call does with a register.
enum Called {
    /// It is the slow path that translates it.
    Translates,
    /// It is the slow path of another one.
    Keeps,
    /// It is not known.
    Any,
}

/// What an instruction does with a register that holds an address.
enum Use {
    /// Nothing.
    None,
    /// It loads by it.
    Load,
    /// It does not use it, and nothing can afterwards.
    Lost,
    /// Anything else.
    Other,
}

fn names(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let mut used = info.info(i).used_registers().iter();
    used.any(|u| u.register().full_register() == register)
}

/// Whether the register is the base of an operand in memory that is only read, and is read
/// for nothing else.
fn loads_by(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let info = info.info(i);
    let is_itself = |n| {
        let is_register = i.op_kind(n) == OpKind::Register;
        is_register && i.op_register(n).full_register() == register
    };
    let mut operands = 0..i.op_count();
    i.memory_base() == register
        && i.memory_index() != register
        && only_reads(i)
        && operands.all(|n| !is_itself(n) || info.op_access(n) == OpAccess::Write)
}

/// Whether the instruction writes all of the register and reads nothing of it.
fn is_set(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let mut used = info.info(i).used_registers().iter();
    used.all(|u| u.register().full_register() != register || u.access() == OpAccess::Write)
}

/// Whether an instruction writes no memory.
pub(super) fn only_reads(i: &Instruction) -> bool {
    let mut info = InstructionInfoFactory::new();
    let info = info.info(i);
    let memory = info.used_memory().iter();
    let reads = |access| matches!(access, OpAccess::Read | OpAccess::CondRead);
    memory.into_iter().all(|m| reads(m.access()))
}

/// Whether an instruction writes any part of the register.
pub(super) fn writes(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    info.info(i).used_registers().iter().any(|used| {
        let kept = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        used.register().full_register() == register && !kept
    })
}
