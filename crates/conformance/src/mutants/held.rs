//! Whether a register still holds the translated address of an earlier check.

use std::collections::HashSet;

use elf_loader::{Object, Relocation};
use iced_x86::{FlowControl, InstructionInfoFactory, OpAccess, Register};
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

    /// Whether `register` has a translated address after the instruction; `None` if the
    /// instruction does not change that.
    fn leaves_translated(&self, piece: &Piece, register: Register) -> Option<bool> {
        let i = &piece.decoded;
        let adds_translation = |r: &Relocation| r.addend == stlb::XLATE as i64;
        if piece.relocations.iter().any(adds_translation) && i.op0_register() == register {
            return Some(true);
        }
        if i.flow_control() == FlowControl::Call {
            // The slow path changes the register it translates, and no other.
            let mut called = piece
                .relocations
                .iter()
                .map(|r| &self.object.symbol(r.symbol).name);
            let slow = called.find_map(|name| name.strip_prefix(names::SLOW_PREFIX));
            let translates = |name: &str| format!("{register:?}").eq_ignore_ascii_case(name);
            return slow.map_or(Some(false), |name| translates(name).then_some(true));
        }
        if i.flow_control() == FlowControl::IndirectCall {
            return Some(false);
        }
        let mut info = InstructionInfoFactory::new();
        let written = info.info(i).used_registers().iter().any(|used| {
            let kept = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            used.register().full_register() == register && !kept
        });
        written.then_some(false)
    }
}
