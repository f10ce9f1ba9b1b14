//! Which registers a sequence gets: dead ones first, then others that are spilled.

use iced_x86::{Code, Instruction, OpKind, Register};
use liveness::{LocSet, Reg};

use super::{Flags, InstPlan, Planner, Scratch};
use crate::analyse::class::Class;
use crate::lift::InstIdx;
use crate::refusal::{self, Refusal};
use crate::registers::{register_operands, uses_high_byte};

/// Order of preference: short encodings first, and `rax` first because it can
/// hold the flags.
const PREFERENCE: [Reg; 15] = [
    Reg::RAX,
    Reg::RCX,
    Reg::RDX,
    Reg::RSI,
    Reg::RDI,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::RBX,
    Reg::RBP,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

impl Planner<'_> {
    /// Chooses scratch registers and what happens to the flags, for a sequence that
    /// needs `registers` registers where `live` is live. `result_registers` are those
    /// that could carry its translation to later accesses.
    ///
    /// # Errors
    /// There are not enough, and too few can be spilled.
    pub(super) fn choose(
        &self,
        i: InstIdx,
        registers: usize,
        live: LocSet,
        keeps_flags: bool,
        result_registers: LocSet,
        plan: &mut InstPlan,
    ) -> Result<(), Refusal> {
        let inst = self.lifted.inst(i);
        let mut taken = self.registers_of(i);
        let mut recompute = None;
        if keeps_flags {
            recompute = self.repeatable_compare(i, plan.class, live);
            if let Some(compare) = recompute {
                let operands = self.registers_of(compare);
                taken = taken.union(operands);
                plan.live = plan.live.union(operands);
            }
        }
        let wanted = registers + usize::from(keeps_flags && recompute.is_none());
        let legacy_only = uses_high_byte(&inst.iced);
        let usable = |r: Reg| self.may_overwrite(r) && (!legacy_only || r.number() < 8);
        // A register that the instruction only writes is dead before it and may hold
        // the address (one that it reads is live). A string instruction's own
        // registers must not: its pointers are recovered after it ran. Nor must the
        // registers of a compare that is repeated.
        let is_string = matches!(plan.class, Class::String(..) | Class::PortString(..));
        let kept = if is_string || recompute.is_some() {
            taken
        } else {
            LocSet::empty()
        };
        let is_dead = |r: &Reg| {
            let r = LocSet::reg(*r);
            !live.intersects(r) && !kept.intersects(r)
        };
        // The result goes to a register that can carry it, if there is one.
        let carrier = PREFERENCE
            .into_iter()
            .find(|r| result_registers.contains(LocSet::reg(*r)) && usable(*r) && is_dead(r));
        let others = PREFERENCE
            .into_iter()
            .filter(|r| Some(*r) != carrier && usable(*r) && is_dead(r));
        for r in carrier.into_iter().chain(others).take(wanted) {
            plan.scratch.push(r, false);
        }
        let missing = wanted - plan.scratch.all().len();
        if missing > 0 {
            let spilled = self.spill(i, missing, usable, taken, live, plan);
            match spilled {
                Err(_) if legacy_only => self.choose_with_one_legacy(i, wanted, taken, plan)?,
                spilled => spilled?,
            }
        }
        if keeps_flags {
            plan.flags = match recompute {
                Some(compare) => Flags::Recompute(compare),
                None => Flags::Save(plan.scratch.choose_holder()),
            };
        }
        Ok(())
    }

    fn may_overwrite(&self, r: Reg) -> bool {
        !self.rules.reserved.intersects(LocSet::reg(r))
    }

    /// Chooses registers for an instruction that names `ah`, `bh`, `ch` or `dh`, where too few can be
    /// encoded beside these: the translation is in one that can, the others may be any. All are pushed.
    ///
    /// # Errors
    /// There is none.
    fn choose_with_one_legacy(
        &self,
        i: InstIdx,
        wanted: usize,
        taken: LocSet,
        plan: &mut InstPlan,
    ) -> Result<(), Refusal> {
        let taken = taken.union(self.available.registers());
        let free = |r: &Reg| self.may_overwrite(*r) && !taken.intersects(LocSet::reg(*r));
        let (first, others): (Vec<Reg>, Vec<Reg>) = PREFERENCE
            .into_iter()
            .filter(free)
            .partition(|r| r.number() < 8);
        plan.scratch = Scratch::EMPTY;
        for r in first.iter().chain(&others).take(wanted) {
            plan.scratch.push(*r, true);
        }
        match first.is_empty() || plan.scratch.all().len() < wanted {
            true => Err(self.too_few(i)),
            false => Ok(()),
        }
    }

    fn too_few(&self, i: InstIdx) -> Refusal {
        let reason = "too few registers are free or can be spilled";
        self.lifted
            .refusal(refusal::RefusalCode::NoScratch, i, reason)
    }

    /// Whether the instruction has a sequence that pushes, although `rsp` is an operand. In a
    /// window, `rsp` is on another stack than the data.
    fn has_rsp_sequence(&self, i: InstIdx, class: Class) -> bool {
        let loads = loads_rsp(&self.lifted.inst(i).iced);
        let reads = !self.writes(i).intersects(LocSet::reg(Reg::RSP));
        let accesses = matches!(class, Class::Memory(_)) && self.scheme.has_checks();
        accesses && (reads || loads && self.rules.loads_rsp)
    }

    /// Adds registers that are live, to be pushed before and popped after.
    fn spill(
        &self,
        i: InstIdx,
        missing: usize,
        usable: impl Fn(Reg) -> bool,
        taken: LocSet,
        live: LocSet,
        plan: &mut InstPlan,
    ) -> Result<(), Refusal> {
        if names_rsp_as_data(&self.lifted.inst(i).iced) && !self.has_rsp_sequence(i, plan.class) {
            return Err(self.lifted.refusal(
                refusal::RefusalCode::NoScratch,
                i,
                "too few registers are dead, and spilling would change the rsp that it reads",
            ));
        }
        let taken = taken.union(self.available.registers());
        let mut order = PREFERENCE;
        if !self.rules.spares_callee_saved {
            order.reverse();
        }
        let victims = order.into_iter().filter(|&r| {
            usable(r) && live.intersects(LocSet::reg(r)) && !taken.intersects(LocSet::reg(r))
        });
        for r in victims.take(missing) {
            plan.scratch.push(r, true);
        }
        if plan.scratch.spilled().len() < missing {
            return Err(self.too_few(i));
        }
        Ok(())
    }
}

/// Whether this is `mov M,%rsp`, which has a sequence that pushes.
pub fn loads_rsp(iced: &Instruction) -> bool {
    iced.code() == Code::Mov_r64_rm64
        && iced.op0_register() == Register::RSP
        && iced.op1_kind() == OpKind::Memory
}

/// Whether `rsp`, or a part of it, is an operand.
pub fn names_rsp_as_data(iced: &Instruction) -> bool {
    register_operands(iced).any(|r| r.full_register() == Register::RSP)
}
