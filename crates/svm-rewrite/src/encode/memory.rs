//! Loads, stores and read-modify-writes of one explicit operand; prefetches;
//! `push` and `pop` of memory; `xlat`.

use iced_x86::{Code, Instruction, Register};
use liveness::Reg;

use super::Emitter;
use crate::analyse::class::Space;
use crate::asm::{Address, Operand, mr, rm, rr};
use crate::lift::InstIdx;
use crate::plan::InstPlan;
use crate::plan::registers::{loads_rsp, names_rsp_as_data};
use crate::registers::{loaded_high, reg32, reg64, rename};

impl Emitter<'_> {
    /// ```text
    ///     <open> <address> <check> -> %v <flags>
    ///     op    (%v)
    ///     <close>
    /// ```
    ///
    /// Where an earlier translation serves:
    ///
    /// ```text
    ///     op    distance(%v)
    /// ```
    pub fn memory(&mut self, i: InstIdx, plan: &InstPlan, space: Space) {
        if let Some(reuse) = plan.reuse {
            let operand = self.translated(reuse.register, reuse.displacement.into());
            return self.access_at(i, &operand);
        }
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        self.check(i, address, roles[0], &roles[1..]);
        self.restore_flags(plan);
        let iced = &self.lifted.inst(i).iced;
        match !plan.scratch.spilled().is_empty() && names_rsp_as_data(iced) {
            true if loads_rsp(iced) => self.load_rsp(plan, roles[0]),
            true => {
                self.access_with_rsp(i, plan, roles[0], roles[1]);
                self.close(plan);
            }
            false => {
                self.access(i, roles[0]);
                self.close(plan);
            }
        }
    }

    /// Bytes between the original's `rsp` and `rsp` behind the spilled registers.
    fn lowered(&self, plan: &InstPlan) -> i64 {
        self.skipped(plan) + 8 * plan.scratch.spilled().len() as i64
    }

    /// An access that also reads `rsp`, below which the sequence pushed. `lea` changes no flag:
    ///
    /// ```text
    ///     lea   pushed(%rsp), %t
    ///     op    %t, (%v)
    /// ```
    fn access_with_rsp(&mut self, i: InstIdx, plan: &InstPlan, v: Reg, t: Reg) {
        self.lea(&Operand::at(Reg::RSP, self.lowered(plan)), t);
        let mut iced = self.lifted.inst(i).iced;
        rename(&mut iced, Reg::RSP, t);
        self.access_by(i, iced, &self.translated(v, 0));
    }

    /// A load of `rsp`, below which the sequence pushed. The code leaves its frame, and its red
    /// zone with it:
    ///
    /// ```text
    ///     mov   (%v), %v
    ///     mov   %v, -16+pushed(%rsp)
    ///     <close>
    ///     mov   -16(%rsp), %rsp
    /// ```
    fn load_rsp(&mut self, plan: &InstPlan, v: Reg) {
        const SLOT: i64 = -16;
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), Operand::at(v, 0)));
        self.emit(&mr(
            Code::Mov_rm64_r64,
            Operand::at(Reg::RSP, SLOT + self.lowered(plan)),
            reg64(v),
        ));
        self.close(plan);
        self.emit(&rm(
            Code::Mov_r64_rm64,
            Register::RSP,
            Operand::at(Reg::RSP, SLOT),
        ));
    }

    /// A hint must not abort, so a miss skips it:
    ///
    /// ```text
    ///     <check, miss to skip> -> %v
    ///     prefetch (%v)
    /// skip:
    /// ```
    pub fn prefetch(&mut self, i: InstIdx, plan: &InstPlan, space: Space) {
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        let skip = self.labels.fresh();
        self.check_or_skip(&address, roles[0], &roles[1..], skip);
        self.access(i, roles[0]);
        self.place(skip);
        self.restore_flags(plan);
        self.close(plan);
    }

    /// Without spills:
    ///
    /// ```text
    ///     <check> -> %v
    ///     push  (%v)
    /// ```
    ///
    /// With spills, the slot of the pushed value is made first; the spilled registers
    /// go below it:
    ///
    /// ```text
    ///     lea   -8(%rsp), %rsp
    ///     <open> <check> -> %v
    ///     mov   (%v), %v
    ///     mov   %v, 8*spills(%rsp)
    ///     <close>
    /// ```
    pub fn push_memory(&mut self, i: InstIdx, plan: &InstPlan, space: Space) {
        let spills = plan.scratch.spilled().len();
        if spills == 0 {
            return self.memory(i, plan, space);
        }
        let roles = Self::roles(plan);
        let v = roles[0];
        self.lea(&Operand::at(Reg::RSP, -8), Reg::RSP);
        self.pushed(1);
        self.open(plan);
        let address = self.address(i, space, spills + 1, &roles);
        self.check(i, address, v, &roles[1..]);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), Operand::at(v, 0)));
        self.emit(&mr(
            Code::Mov_rm64_r64,
            Operand::at(Reg::RSP, 8 * spills as i64 + self.skipped(plan)),
            reg64(v),
        ));
        self.restore_flags(plan);
        self.close(plan);
    }

    /// `pop` adds 8 to `rsp` before it computes its operand's address (SDM
    /// volume 2, POP), so an `rsp` in it counts 8 more.
    ///
    /// ```text
    ///     <check> -> %v
    ///     pop   (%v)
    /// ```
    ///
    /// With spills, through one of the check's registers:
    ///
    /// ```text
    ///     <open> <check> -> %v
    ///     mov   8*spills(%rsp), %i
    ///     mov   %i, (%v)
    ///     <close>
    ///     lea   8(%rsp), %rsp
    /// ```
    pub fn pop_memory(&mut self, i: InstIdx, plan: &InstPlan, space: Space) {
        let spills = plan.scratch.spilled().len();
        let roles = Self::roles(plan);
        let (v, t) = (roles[0], roles[1]);
        self.open(plan);
        let address = self.address(i, space, spills + 1, &roles);
        self.check(i, address, v, &roles[1..]);
        self.restore_flags(plan);
        if spills == 0 {
            return self.access(i, v);
        }
        self.emit(&rm(
            Code::Mov_r64_rm64,
            reg64(t),
            Operand::at(Reg::RSP, 8 * spills as i64 + self.skipped(plan)),
        ));
        self.emit(&mr(Code::Mov_rm64_r64, Operand::at(v, 0), reg64(t)));
        self.close(plan);
        self.lea(&Operand::at(Reg::RSP, 8), Reg::RSP);
    }

    /// ```text
    ///     <open>
    ///     movzbl %al, %td
    ///     lea   (%rbx,%t), %t
    ///     <check of %t> -> %v <flags>
    ///     mov   (%v), %al
    ///     <close>
    /// ```
    pub fn xlat(&mut self, i: InstIdx, plan: &InstPlan) {
        let roles = Self::roles(plan);
        let t = roles[roles.len() - 1];
        self.open(plan);
        self.emit(&rr(Code::Movzx_r32_rm8, reg32(t), Register::AL));
        self.lea(&Operand::indexed(Reg::RBX, t, 0), t);
        self.check(i, Address::Copy(t), roles[0], &roles[1..]);
        self.restore_flags(plan);
        self.emit(&rm(
            Code::Mov_r8_rm8,
            Register::AL,
            self.translated(roles[0], 0),
        ));
        self.close(plan);
    }

    /// The instruction itself with `(%v)` as its memory operand.
    pub(super) fn access(&mut self, i: InstIdx, v: Reg) {
        self.access_at(i, &self.translated(v, 0));
    }

    /// The instruction itself with another memory operand.
    pub(super) fn access_at(&mut self, i: InstIdx, operand: &Operand) {
        self.access_by(i, self.lifted.inst(i).iced, operand);
    }

    /// The same, of an instruction that has other registers already.
    fn access_by(&mut self, i: InstIdx, mut iced: Instruction, operand: &Operand) {
        operand.replace_in(&mut iced);
        if self.rules.loads_low_bytes
            && let Some((high, low)) = loaded_high(&iced)
        {
            return self.load_high(iced, high, low);
        }
        self.note_lock(i);
        let immediate = self
            .lifted
            .inst(i)
            .immediate
            .map(|value| self.references.get(value));
        let immediate = immediate.map(|reference| (reference.field, reference.referent));
        self.asm.inst_with(&iced, immediate);
    }

    /// The register's other bytes are kept:
    ///
    /// ```text
    ///     xchg  %al, %ah
    ///     mov   (%v), %al
    ///     xchg  %al, %ah
    /// ```
    ///
    /// Where they are dead, the register may have the translation itself:
    ///
    /// ```text
    ///     mov   (%rax), %al
    ///     mov   %al, %ah
    /// ```
    fn load_high(&mut self, mut iced: Instruction, high: Register, low: Register) {
        iced.set_op0_register(low);
        if iced.memory_base() == low.full_register() {
            self.emit(&iced);
            return self.emit(&rr(Code::Mov_rm8_r8, high, low));
        }
        let swap = rr(Code::Xchg_rm8_r8, high, low);
        self.emit(&swap);
        self.emit(&iced);
        self.emit(&swap);
    }

    /// Records an access with a `lock` prefix, which `.smp_locks` has to name.
    pub(super) fn note_lock(&mut self, i: InstIdx) {
        if self.lifted.inst(i).iced.has_lock_prefix() {
            self.locked.push((i, self.asm.here()));
        }
    }
}
