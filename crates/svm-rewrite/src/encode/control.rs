//! Calls, jumps, returns and traps.

use iced_x86::{Code, FlowControl, Instruction};
use liveness::{LocSet, Reg};

use super::address::at;
use super::{Emitter, Indirect};
use crate::analyse::class::{Callee, Space};
use crate::analyse::flow::Trap;
use crate::analyse::routines;
use crate::asm::import::{Import, Service};
use crate::asm::{JRCXZ, Jump, Label, Referent, r, rm};
use crate::lift::{CodeIdx, Destination, InstIdx};
use crate::plan::Plan;
use crate::refusal::Hitch;
use crate::registers::reg64;

/// The register in which `twin_stlb_call` takes the VM address. It is free at a call,
/// where the psABI leaves it to linkers.
const TARGET: Reg = Reg::R11;

impl Emitter<'_> {
    /// A direct branch or call. Inside the section it goes to a label, and layout chooses
    /// its length; out of the section it has a relocation, with r10 and r11 spilled if
    /// they are live.
    pub fn branch(&mut self, i: InstIdx, plan: &Plan) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        let iced = &inst.iced;
        if let (true, Some(Destination::Import(s))) = (self.rules.keeps_calls, inst.target) {
            return self.branch_to_kernel(i, s);
        }
        let jump = jump_of(iced)?;
        match inst.target {
            Some(Destination::Inst(to))
                if self.lifted.inst(to).section == CodeIdx(self.section) =>
            {
                let label = match jump {
                    Jump::Call => self.target(to),
                    _ => self.jump_target(i, to),
                };
                self.branch_near(jump, label);
            }
            Some(Destination::Inst(to)) => {
                self.branch_far(jump, Referent::Label(self.target(to)))?
            }
            Some(Destination::Import(s)) => {
                let ends =
                    jump == Jump::Call && routines::never_returns(self.lifted.symbol_name(s));
                self.open(plan);
                self.branch_far(jump, Referent::Import(Import::Routine(s), 0))?;
                self.close(plan);
                if ends {
                    self.stop();
                }
            }
            None => return Err("its destination is not known".into()),
        }
        Ok(())
    }

    /// A branch inside the section. `jrcxz` and `loop` have a short form only, and
    /// their target may be out of its reach:
    ///
    /// ```text
    ///     jrcxz 1f ; jmp 2f ; 1: jmp target ; 2:
    /// ```
    pub(super) fn branch_near(&mut self, jump: Jump, to: Label) {
        let Jump::ShortOnly(_) = jump else {
            return self.asm.branch(jump, to);
        };
        let (taken, go) = (self.labels.fresh(), self.labels.fresh());
        self.asm.branch(jump, taken);
        self.asm.branch(Jump::Always, go);
        self.place(taken);
        self.asm.branch(Jump::Always, to);
        self.place(go);
    }

    fn branch_far(&mut self, jump: Jump, to: Referent) -> Result<(), Hitch> {
        if matches!(jump, Jump::ShortOnly(_)) {
            return Err("this branch has no form that reaches another section".into());
        }
        self.asm.branch_out(jump, to);
        Ok(())
    }

    /// An indirect transfer through the runtime's table (paper, 5.1.2):
    ///
    /// ```text
    ///     mov   <target>, %r11
    ///     call  twin_stlb_call              jmp for a tail call
    /// ```
    ///
    /// A target in memory is loaded through a translation first. Registers that only this
    /// callee keeps are pushed before all of it and popped after the call.
    pub fn indirect(
        &mut self,
        i: InstIdx,
        plan: &Plan,
        callee: Callee,
        jump: Jump,
    ) -> Result<(), Hitch> {
        let across = [Reg::R10, Reg::R11];
        let across = across.map(|r| Some(r).filter(|r| plan.across.contains(LocSet::reg(*r))));
        for register in across.into_iter().flatten() {
            self.push(register);
        }
        match callee {
            Callee::Register(TARGET) => {}
            Callee::Register(r) => self.mov(r, TARGET),
            Callee::Memory(Space::Stack) => {
                let iced = &self.lifted.inst(i).iced;
                let slot = at(Reg::RSP, iced.memory_displacement64() as i64);
                self.emit(&rm(Code::Mov_r64_rm64, reg64(TARGET), slot));
            }
            Callee::Memory(space) => self.load_target(i, plan, space),
        }
        match self.rules.indirect {
            Indirect::Runtime => self.call_runtime(jump, Service::Call),
            Indirect::Register => self.through_register(jump),
        }
        for register in across.into_iter().flatten().rev() {
            self.pop(register);
        }
        Ok(())
    }

    /// A module of a stock kernel and a program may call any address:
    ///
    /// ```text
    ///     call  *%r11                       jmp for a tail call
    /// ```
    fn through_register(&mut self, jump: Jump) {
        let code = match jump {
            Jump::Call => Code::Call_rm64,
            _ => Code::Jmp_rm64,
        };
        self.emit(&r(code, reg64(TARGET)));
    }

    /// ```text
    ///     <open> <address> <check> -> %v
    ///     mov   (%v), %r11
    ///     <close>
    /// ```
    fn load_target(&mut self, i: InstIdx, plan: &Plan, space: Space) {
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        self.check(i, address, roles[0], &roles[1..]);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(TARGET), at(roles[0], 0)));
        self.close(plan);
    }

    /// ```text
    ///     ret
    ///     int3                              stops straight-line speculation
    /// ```
    pub fn ret(&mut self) {
        self.emit(&Instruction::with(Code::Retnq));
        self.emit(&Instruction::with(Code::Int3));
    }

    /// A `ud2` would fault in the hypervisor. Instead, a WARN is reported and control
    /// continues; a BUG aborts the invocation.
    pub fn trap(&mut self, trap: Trap) {
        match trap {
            Trap::Warn => self.call_runtime(Jump::Call, Service::Warn),
            Trap::Bug => {
                self.call_runtime(Jump::Call, Service::Bug);
                self.stop();
            }
        }
    }

    /// The code after this is not reached.
    pub fn stop(&mut self) {
        self.emit(&Instruction::with(Code::Ud2));
    }
}

pub(super) fn jump_of(iced: &Instruction) -> Result<Jump, Hitch> {
    Ok(match iced.flow_control() {
        FlowControl::Call => Jump::Call,
        FlowControl::UnconditionalBranch => Jump::Always,
        _ if iced.is_jcc_short_or_near() => Jump::If((iced.condition_code() as u8).wrapping_sub(1)),
        _ => Jump::ShortOnly(short_only(iced).ok_or("this branch is not known")?),
    })
}

fn short_only(iced: &Instruction) -> Option<u8> {
    Some(match iced.code() {
        Code::Jrcxz_rel8_64 => JRCXZ,
        Code::Loop_rel8_64_RCX => 0xe2,
        Code::Loope_rel8_64_RCX => 0xe1,
        Code::Loopne_rel8_64_RCX => 0xe0,
        _ => return None,
    })
}
