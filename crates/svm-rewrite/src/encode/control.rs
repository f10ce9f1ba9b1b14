//! Calls, jumps, returns and traps.

use iced_x86::{Code, Instruction};
use liveness::{LocSet, Reg};

use super::keep::entry;
use super::switch::EQUAL;
use super::{Emitter, Indirect};
use crate::analyse::class::{Callee, Space};
use crate::analyse::flow::Trap;
use crate::asm::encode::ImmediateForm;
use crate::asm::import::{Import, Service};
use crate::asm::{Branch, Jump, Operand, Referent, ShortOnly, m, mi, mr, r, rm};
use crate::lift::{Destination, InstIdx};
use crate::plan::InstPlan;
use crate::registers::{gpr, reg64};

/// The register in which `twin_stlb_call` takes the VM address. It is free at a call,
/// where the psABI leaves it to linkers.
const TARGET: Reg = Reg::R11;

/// Bytes behind a return of one byte that make it as long as a jump.
pub const PADDING: usize = 4;

/// Where the red zone has the destination of an indirect transfer, counted from `rsp`. The
/// word above it is for the return address.
const SLOT: i64 = -16;

/// Where no branch behind a section is.
pub const BEHIND: &str = "a program's branches stay as they are";

fn through(jump: Jump) -> Code {
    match jump {
        Jump::Call => Code::Call_rm64,
        _ => Code::Jmp_rm64,
    }
}

impl Emitter<'_> {
    /// A direct branch or call. Inside the section it goes to a label, and layout chooses
    /// its length; out of the section it has a relocation, with r10 and r11 spilled if
    /// they are live.
    pub fn branch(&mut self, i: InstIdx, plan: &InstPlan, branch: Branch) {
        match (branch, self.lifted.destination(i)) {
            (Branch::Jump(_), Destination::Import(s)) if self.rules.keeps_calls => {
                self.raw_branch(i, Referent::Import(Import::Routine(s), 0));
            }
            (Branch::Jump(_), Destination::Hypercall(page, offset)) if self.rules.keeps_calls => {
                self.raw_branch(i, entry(page, offset));
            }
            (Branch::Jump(jump), destination) => self.jump(i, plan, jump, destination),
            (Branch::ShortOnly(by), destination) => self.around(by, |e| {
                e.jump(i, plan, Jump::Always, destination);
            }),
        }
    }

    fn jump(&mut self, i: InstIdx, plan: &InstPlan, jump: Jump, destination: Destination) {
        match destination {
            Destination::Inst(to) if self.is_near(to) => {
                let label = match jump {
                    Jump::Call => self.target(to),
                    Jump::Always | Jump::If(_) => self.jump_target(i, to),
                };
                self.asm.branch(jump, label);
            }
            Destination::Inst(to) => {
                self.asm.branch_out(jump, Referent::Label(self.target(to)));
            }
            Destination::Import(s) => {
                self.open(plan);
                self.asm
                    .branch_out(jump, Referent::Import(Import::Routine(s), 0));
                self.close(plan);
            }
            Destination::Hypercall(..) => {
                unreachable!("only a module for a stock kernel may call Xen's page")
            }
            Destination::Behind(_) => unreachable!("{BEHIND}"),
        }
    }

    /// `jrcxz` and `loop` have a short form only, and their target may be out of its
    /// reach:
    ///
    /// ```text
    ///     jrcxz 1f ; jmp 2f ; 1: <jump> ; 2:
    /// ```
    pub(super) fn around(&mut self, by: ShortOnly, jump: impl FnOnce(&mut Self)) {
        let (taken, go) = (self.labels.fresh(), self.labels.fresh());
        self.asm.branch_unless(by, go, taken);
        self.place(taken);
        jump(self);
        self.place(go);
    }

    /// An indirect transfer through the runtime's table (paper, 5.1.2):
    ///
    /// ```text
    ///     mov   <target>, %r11
    ///     call  twin_stlb_call              jmp for a tail call
    /// ```
    ///
    /// A module of a stock kernel and a program may call any address:
    ///
    /// ```text
    ///     call  *%r11
    ///     call  *-16(%rsp)                  in a program
    /// ```
    ///
    /// A target in memory is loaded through a translation first. Registers that only this
    /// callee keeps are pushed before all of it and popped after the call.
    pub fn indirect(&mut self, i: InstIdx, plan: &InstPlan, callee: Callee, jump: Jump) {
        self.across(plan, |e| {
            match callee {
                Callee::Register(TARGET) => {}
                Callee::Register(r) => e.mov(r, TARGET),
                Callee::Memory(Space::Stack) => {
                    let slot = e.lifted.inst(i).operand();
                    e.emit(&rm(Code::Mov_r64_rm64, reg64(TARGET), slot));
                }
                Callee::Memory(space) => e.load_target(i, plan, space),
            }
            e.transfer(jump);
        });
    }

    /// Keeps the registers over a transfer that only this callee keeps.
    pub(super) fn across(&mut self, plan: &InstPlan, transfer: impl FnOnce(&mut Self)) {
        let across = [Reg::R10, Reg::R11];
        let across = across.map(|r| Some(r).filter(|r| plan.across.contains(LocSet::reg(*r))));
        for register in across.into_iter().flatten() {
            self.push(register);
        }
        transfer(self);
        for register in across.into_iter().flatten().rev() {
            self.pop(register);
        }
    }

    /// The transfer to the address that was loaded.
    pub(super) fn transfer(&mut self, jump: Jump) {
        match self.rules.indirect {
            Indirect::Runtime => self.call_runtime(jump, Service::Call),
            Indirect::Register => self.emit(&r(through(jump), reg64(TARGET))),
            Indirect::RedZone => self.emit(&m(through(jump), Operand::at(Reg::RSP, SLOT))),
        }
    }

    /// ```text
    ///     <open> <address> <check> -> %v
    ///     mov   (%v), %r11
    ///     <close>
    /// ```
    ///
    /// Where `r11` may hold an argument:
    ///
    /// ```text
    ///     <open> <address> <check> -> %v
    ///     mov   (%v), %v
    ///     mov   %v, -16+pushed(%rsp)
    ///     <close>
    /// ```
    fn load_target(&mut self, i: InstIdx, plan: &InstPlan, space: Space) {
        let roles = Self::roles(plan);
        let spilled = plan.scratch.spilled().len();
        self.open(plan);
        let address = self.address(i, space, spilled, &roles);
        self.check(i, address, roles[0], &roles[1..]);
        let (v, word) = (reg64(roles[0]), Operand::at(roles[0], 0));
        match self.rules.indirect {
            Indirect::Runtime | Indirect::Register => {
                self.emit(&rm(Code::Mov_r64_rm64, reg64(TARGET), word));
            }
            Indirect::RedZone => {
                let slot = SLOT + self.skipped(plan) + 8 * spilled as i64;
                self.emit(&rm(Code::Mov_r64_rm64, v, word));
                self.emit(&mr(Code::Mov_rm64_r64, Operand::at(Reg::RSP, slot), v));
            }
        }
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

    /// No code of the object sets the direction flag, and it is clear where others call it (psABI
    /// 3.2.1). Saved flags that have it all the same end here:
    ///
    /// ```text
    ///     testb $4, 1(%rsp)                 DF is bit 10
    ///     je    .L1
    ///     ud2
    /// .L1: popf
    ///     cld                               so that it can be proved
    /// ```
    pub fn pop_flags(&mut self, i: InstIdx) {
        let clear = self.labels.fresh();
        self.emit(&mi(Code::Test_rm8_imm8, Operand::at(Reg::RSP, 1), 4));
        self.asm.branch(EQUAL, clear);
        self.stop();
        self.place(clear);
        self.copy_inst(i);
        self.pushed(-1);
        self.emit(&Instruction::with(Code::Cld));
        self.pushed(1);
    }

    /// kCFI's check of a type, where the call table decides which functions are called:
    ///
    /// ```text
    ///     add   $hash, %r10d                as if it was read before the function
    /// ```
    pub fn type_hash(&mut self, i: InstIdx, hash: i32) {
        let sum = gpr(self.lifted.inst(i).iced.op0_register());
        let sum = sum.expect("a check adds to a register");
        self.asm.immediate32(ImmediateForm::ADD32, sum, hash);
    }

    /// Whether what returns at once is padded.
    pub fn pads_returns(&self) -> bool {
        self.rules.pads_returns
    }

    /// Whether what belongs to a function, before it, stays there.
    pub fn keeps_prefixes(&self) -> bool {
        self.rules.keeps_prefixes
    }

    /// Parts padding that the kernel counts as such from what is before, whose last bytes may look
    /// like padding, too (`jmp .-110` ends with 0x90).
    pub fn part(&mut self) {
        if self.asm.here().offset() != 0 {
            self.emit(&Instruction::with(Code::Int3));
        }
    }

    /// Padding that no control reaches: with a return before it, the five bytes of a jump.
    pub fn pad(&mut self) {
        for _ in 0..PADDING {
            self.emit(&Instruction::with(Code::Int3));
        }
    }

    /// The code after this is not reached.
    pub fn stop(&mut self) {
        self.part_trap();
        self.emit(&Instruction::with(Code::Ud2));
    }

    /// Before a `ud2` that the kernel may take for another one by what is before it:
    ///
    /// ```text
    ///     nopw 0(%rax,%rax,1)               nine bytes
    ///     nopw 0(%rax,%rax,1)
    ///     nop
    /// ```
    pub fn part_trap(&mut self) {
        const NOP9: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        if self.parts_traps {
            self.asm.raw(&NOP9);
            self.asm.raw(&NOP9);
            self.asm.raw(&[0x90]);
        }
    }
}
