//! Where addresses are cut in registers: in which one, and by which instruction.
//!
//! What a cut costs is not the instruction but its delay: code that follows pointers waits
//! for it at each of them. So it is `and`, of one cycle, where the address has just been
//! loaded or computed, and where that takes no further instruction; else `pext`. Processors
//! without BMI2 have `and` alone, so flags that are live are kept around it, as around a check.

use liveness::{LocSet, Reg};
use twin_abi::Processor;

use super::reuse::Access;
use super::{CutBy, Flags, InstPlan, Planner, numbers};
use crate::analyse::class::{Callee, Class, Space};
use crate::lift::InstIdx;
use crate::schemes::Cut;

/// An address that was made so many instructions before is likely to be awaited.
const AWAITED: u32 = 12;

impl Planner<'_> {
    /// Its base holds the place instead of the address from here on, unless that is needed
    /// or another register can keep the place for longer.
    pub(super) fn cut_in_place(&self, i: InstIdx, operand: &Access) -> Option<InstPlan> {
        let needed = self.needed.get(i.0 as usize)?;
        let base = numbers::base_alone(self.lifted.inst(i), self.class(i), self.scheme)?;
        let own = LocSet::reg(base);
        let spoils = self.scheme.cut == Some(Cut::Register(Processor::Any))
            && self.live(i).intersects(LocSet::flags());
        if spoils || needed.intersects(own) || self.rules.reserved.contains(own) {
            return None;
        }
        let carriers = self.result_registers(i, &self.held(*operand), own);
        if !carriers.is_empty() && !carriers.contains(own) && self.has_free(i, carriers) {
            return None;
        }
        let mut plan = self.untouched(i);
        plan.scratch.push(base, false);
        Some(plan)
    }

    /// Whether one of these registers is free.
    fn has_free(&self, i: InstIdx, registers: LocSet) -> bool {
        let taken = self.live(i).union(self.available.registers());
        !registers.minus(taken).minus(self.rules.reserved).is_empty()
    }

    /// By what the sequence of an instruction cuts its address.
    pub(super) fn cut_by(&self, i: InstIdx, plan: &InstPlan) -> CutBy {
        match self.scheme.cut {
            Some(Cut::Register(Processor::Bmi2)) => self.pext_or_and(i, plan),
            Some(Cut::Register(Processor::Any)) if spoils_flags(plan) => CutBy::AndKeepingFlags,
            Some(Cut::Register(Processor::Any)) => CutBy::And,
            Some(Cut::Prefix) | None => CutBy::Pext,
        }
    }

    fn pext_or_and(&self, i: InstIdx, plan: &InstPlan) -> CutBy {
        let cuts = matches!(
            plan.class,
            Class::Memory(Space::Heap) | Class::Prefetch(Space::Heap)
        );
        if !cuts || plan.reuse.is_some() || plan.live.intersects(LocSet::flags()) {
            return CutBy::Pext;
        }
        let base = self.lifted.inst(i).operand().simple().map(|(base, _)| base);
        // Without a base of its own the sum is in the register that is cut.
        let apart = base.filter(|base| plan.roles().next() != Some(*base));
        match apart {
            Some(base) if !self.is_awaited(i, base) => CutBy::Pext,
            Some(_) | None => CutBy::And,
        }
    }

    /// Whether a register is likely to be waited for: it was written a few instructions
    /// before, and not with a word of the frame.
    fn is_awaited(&self, i: InstIdx, register: Reg) -> bool {
        let mut before = (i.0.saturating_sub(AWAITED)..i.0).rev().map(InstIdx);
        let written = before.find(|k| self.writes(*k).intersects(LocSet::reg(register)));
        written.is_some_and(|k| self.class(k) != Class::Stack)
    }
}

/// Whether the sequence may cut an address by `and` where flags are live that the plan saves
/// nowhere.
fn spoils_flags(plan: &InstPlan) -> bool {
    let may_cut = match plan.class {
        Class::PushMemory(_) | Class::PopMemory(_) | Class::String(..) => true,
        Class::Switch(callee) | Class::CallIndirect(callee) | Class::JumpIndirect(callee) => {
            matches!(callee, Callee::Memory(_))
        }
        // With two relocations.
        Class::Memory(_) | Class::Stack => plan.borrowed.is_some(),
        _ => false,
    };
    may_cut && plan.flags == Flags::Dead && plan.live.intersects(LocSet::flags())
}
