//! Loads, stores and read-modify-writes of one explicit operand; prefetches;
//! `push` and `pop` of memory; `xlat`.

use iced_x86::{Code, Instruction, Register};
use liveness::Reg;

use super::Emitter;
use super::address::{at, displacement_size, indexed};
use crate::analyse::class::Space;
use crate::asm::Address;
use crate::asm::{Field, mr, rm, rr};
use crate::lift::InstIdx;
use crate::plan::Plan;
use crate::plan::registers::moves_rsp;
use crate::refusal::Hitch;
use crate::registers::{reg32, reg64};

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
    pub fn memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        if let Some(reuse) = plan.reuse {
            return self.access_at(i, reuse.register, reuse.displacement.into());
        }
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        self.check(i, address, roles[0], &roles[1..]);
        self.restore_flags(plan);
        let spilled = plan.scratch.spilled().len() as i64;
        if spilled > 0 && moves_rsp(&self.lifted.inst(i).iced) {
            self.move_rsp(
                i,
                plan,
                roles[0],
                roles[1],
                self.skipped(plan) + 8 * spilled,
            );
            return Ok(());
        }
        self.access(i, roles[0])?;
        self.close(plan);
        Ok(())
    }

    /// A load or store of `rsp`, below which the sequence pushed. Code that loads it leaves
    /// its frame, and its red zone with it:
    ///
    /// ```text
    ///     lea   pushed(%rsp), %t          mov   (%v), %v
    ///     mov   %t, (%v)                  mov   %v, -16+pushed(%rsp)
    ///     <close>                         <close>
    ///                                     mov   -16(%rsp), %rsp
    /// ```
    fn move_rsp(&mut self, i: InstIdx, plan: &Plan, v: Reg, t: Reg, pushed: i64) {
        const SLOT: i64 = -16;
        let word = at(v, 0);
        if self.lifted.inst(i).iced.code() == Code::Mov_rm64_r64 {
            self.lea(at(Reg::RSP, pushed), t);
            self.emit(&mr(Code::Mov_rm64_r64, word, reg64(t)));
            return self.close(plan);
        }
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), word));
        self.emit(&mr(
            Code::Mov_rm64_r64,
            at(Reg::RSP, SLOT + pushed),
            reg64(v),
        ));
        self.close(plan);
        self.emit(&rm(Code::Mov_r64_rm64, Register::RSP, at(Reg::RSP, SLOT)));
    }

    /// A hint must not abort, so a miss skips it:
    ///
    /// ```text
    ///     <check, miss to skip> -> %v
    ///     prefetch (%v)
    /// skip:
    /// ```
    pub fn prefetch(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        let skip = self.labels.fresh();
        self.check_or_skip(&address, roles[0], &roles[1..], skip);
        self.access(i, roles[0])?;
        self.place(skip);
        self.restore_flags(plan);
        self.close(plan);
        Ok(())
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
    pub fn push_memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        let spills = plan.scratch.spilled().len();
        if spills == 0 {
            return self.memory(i, plan, space);
        }
        let roles = Self::roles(plan);
        let v = roles[0];
        self.lea(at(Reg::RSP, -8), Reg::RSP);
        self.pushed(1);
        self.open(plan);
        let address = self.address(i, space, spills + 1, &roles);
        self.check(i, address, v, &roles[1..]);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), at(v, 0)));
        self.emit(&mr(
            Code::Mov_rm64_r64,
            at(Reg::RSP, 8 * spills as i64 + self.skipped(plan)),
            reg64(v),
        ));
        self.restore_flags(plan);
        self.close(plan);
        Ok(())
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
    pub fn pop_memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
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
            at(Reg::RSP, 8 * spills as i64 + self.skipped(plan)),
        ));
        self.emit(&mr(Code::Mov_rm64_r64, at(v, 0), reg64(t)));
        self.close(plan);
        self.lea(at(Reg::RSP, 8), Reg::RSP);
        Ok(())
    }

    /// ```text
    ///     <open>
    ///     movzbl %al, %td
    ///     lea   (%rbx,%t), %t
    ///     <check of %t> -> %v <flags>
    ///     mov   (%v), %al
    ///     <close>
    /// ```
    pub fn xlat(&mut self, i: InstIdx, plan: &Plan) {
        let roles = Self::roles(plan);
        let t = roles[roles.len() - 1];
        self.open(plan);
        self.emit(&rr(Code::Movzx_r32_rm8, reg32(t), Register::AL));
        self.lea(indexed(Reg::RBX, t, 1), t);
        self.check(i, Address::Copy(t), roles[0], &roles[1..]);
        self.restore_flags(plan);
        self.emit(&rm(Code::Mov_r8_rm8, Register::AL, at(roles[0], 0)));
        self.close(plan);
    }

    /// The instruction itself with `(%v)` as its memory operand.
    pub(super) fn access(&mut self, i: InstIdx, v: Reg) -> Result<(), Hitch> {
        self.access_at(i, v, 0)
    }

    /// The instruction itself with `displacement(%v)` as its memory operand.
    fn access_at(&mut self, i: InstIdx, v: Reg, displacement: i64) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        let mut iced = inst.iced;
        if let Some(code) = without_moffs(iced.code()) {
            iced.set_code(code);
        }
        point_to(&mut iced, v, displacement);
        self.note_lock(i);
        let immediate = match inst.immediate {
            Some(value) => {
                let value = self.lifted.value(value);
                let field = (self.rules.field)(value.kind).filter(|f| *f == Field::Abs32S);
                let field = field.ok_or("its immediate holds an address of unexpected width")?;
                Some((field, self.referent(value)?))
            }
            None => None,
        };
        self.asm.inst_with(&iced, None, immediate)?;
        Ok(())
    }

    /// Records an access with a `lock` prefix, which `.smp_locks` has to name.
    pub(super) fn note_lock(&mut self, i: InstIdx) {
        if self.lifted.inst(i).iced.has_lock_prefix() {
            self.locked.push((i, self.asm.here()));
        }
    }
}

/// Replaces an instruction's memory operand by `displacement(%v)`.
pub(super) fn point_to(iced: &mut Instruction, v: Reg, displacement: i64) {
    iced.set_segment_prefix(Register::None);
    iced.set_memory_base(reg64(v));
    iced.set_memory_index(Register::None);
    iced.set_memory_index_scale(1);
    iced.set_memory_displacement64(displacement as u64);
    iced.set_memory_displ_size(displacement_size(displacement));
}

/// `mov` between `al/ax/eax/rax` and a 64-bit absolute address, as the form with
/// any address.
fn without_moffs(code: Code) -> Option<Code> {
    Some(match code {
        Code::Mov_AL_moffs8 => Code::Mov_r8_rm8,
        Code::Mov_AX_moffs16 => Code::Mov_r16_rm16,
        Code::Mov_EAX_moffs32 => Code::Mov_r32_rm32,
        Code::Mov_RAX_moffs64 => Code::Mov_r64_rm64,
        Code::Mov_moffs8_AL => Code::Mov_rm8_r8,
        Code::Mov_moffs16_AX => Code::Mov_rm16_r16,
        Code::Mov_moffs32_EAX => Code::Mov_rm32_r32,
        Code::Mov_moffs64_RAX => Code::Mov_rm64_r64,
        _ => return None,
    })
}
