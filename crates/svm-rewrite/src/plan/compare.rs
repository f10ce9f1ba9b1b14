//! Flags that are live over a check: those of a `cmp` or `test` of registers can be
//! made again by repeating it.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use liveness::{Flag, LocSet, Reg};

use super::Planner;
use crate::analyse::class::{Class, Repeat};
use crate::lift::InstIdx;

impl Planner<'_> {
    /// The compare that is repeated to keep the flags over the sequence at `i`, if
    /// repeating it gives the same flags.
    pub(super) fn repeatable_compare(
        &self,
        i: InstIdx,
        class: Class,
        live: LocSet,
    ) -> Option<InstIdx> {
        // After the instruction, a register that it writes no longer holds the
        // compared value.
        let undone = |compare: &InstIdx| {
            restores_behind(class) && self.registers_of(*compare).intersects(self.writes(i))
        };
        self.compare_before(i, live).filter(|c| !undone(c))
    }

    /// The `cmp` or `test` of registers and immediates that made the flags live
    /// at `i`, if repeating it just before `i` gives the same flags.
    fn compare_before(&self, i: InstIdx, live: LocSet) -> Option<InstIdx> {
        let block = self.flow.blocks()[self.flow.block_of(i).0 as usize].clone();
        let compare = (block.start..i.0)
            .rev()
            .map(InstIdx)
            .find(|&c| self.writes_flags(c))?;
        let iced = &self.lifted.inst(compare).iced;
        let other_flags = LocSet::flags().minus(compare_sets(iced));
        let repeatable = matches!(iced.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)
            && (0..iced.op_count()).all(|op| iced.op_kind(op) != OpKind::Memory)
            && self.lifted.inst(compare).immediate.is_none()
            && !live.intersects(other_flags);
        let operands = self.registers_of(compare);
        let mut between = (compare.0 + 1..i.0).map(InstIdx);
        let unchanged = between
            .all(|k| !self.writes(k).intersects(operands) && self.keeps_operands(k, other_flags));
        (repeatable && unchanged && !operands.intersects(LocSet::reg(Reg::RSP))).then_some(compare)
    }

    /// Whether a sequence between compare and repetition leaves the operands alone, although
    /// they may be dead there. A check keeps flags that are live, so it repeats the same
    /// compare and spares its operands, unless a flag is live that the compare does not make:
    /// then it saves them all. Most sequences of a window change no flag, and may overwrite
    /// what is dead.
    fn keeps_operands(&self, i: InstIdx, other_flags: LocSet) -> bool {
        match self.scheme.has_checks() {
            true => !self.live(i).intersects(other_flags),
            false => matches!(self.class(i), Class::Plain | Class::Stack | Class::Drop),
        }
    }

    fn writes_flags(&self, i: InstIdx) -> bool {
        let iced = &self.lifted.inst(i).iced;
        iced.rflags_modified() != 0 || iced.flow_control() != FlowControl::Next
    }
}

/// Whether the flags are restored after the instruction and not right before it: its
/// sequence is a loop, whose own instructions change them.
fn restores_behind(class: Class) -> bool {
    match class {
        Class::String(_, _, repeat) => repeat != Repeat::Once,
        Class::PortString(..) => true,
        _ => false,
    }
}

/// `test` leaves AF undefined (SDM volume 2, TEST): repeating it does not restore AF.
fn compare_sets(iced: &Instruction) -> LocSet {
    match iced.mnemonic() {
        Mnemonic::Test => LocSet::flags().minus(LocSet::flag(Flag::Adjust)),
        _ => LocSet::flags(),
    }
}
