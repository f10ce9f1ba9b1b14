//! Port I/O, all through the runtime's port gate.

use iced_x86::{Code, Instruction, Register};
use liveness::Reg;

use super::Emitter;
use crate::analyse::class::{Direction, Port, Repeat};
use crate::asm::import::Service;
use crate::asm::{Jump, Operand, ShortOnly, mr, ri, rm};
use crate::lift::InstIdx;
use crate::plan::InstPlan;
use crate::schemes::Cut;

fn gate(port: Port) -> Service {
    match port.input {
        true => Service::In(port.log2),
        false => Service::Out(port.log2),
    }
}

impl Emitter<'_> {
    /// Port I/O goes through the runtime's policy (P3):
    ///
    /// ```text
    ///     call  twin_out32
    /// ```
    ///
    /// and with the port in the instruction:
    ///
    /// ```text
    ///     push  %rdx ; mov $port, %edx ; call twin_out32 ; pop %rdx
    /// ```
    pub fn port(&mut self, port: Port) {
        let gate = gate(port);
        match port.number {
            None => self.call_runtime(Jump::Call, gate),
            Some(number) => {
                self.push(Reg::RDX);
                self.emit(&ri(Code::Mov_r32_imm32, Register::EDX, i32::from(number)));
                self.call_runtime(Jump::Call, gate);
                self.pop(Reg::RDX);
            }
        }
    }

    /// `ins` and `outs` go through the same gate, element by element. As in the processor
    /// (SDM volume 2, INS), the memory is checked before the port is used. But the check
    /// covers only the first byte of an element, so an element across the end of mapped
    /// memory is found too late. `ins` with `rep`, 16 bits wide, forward, as the longest
    /// case:
    ///
    /// ```text
    ///     <open>
    ///     push  %rax                        for the gate, and perhaps the flags
    ///     jrcxz done
    /// again:
    ///     <check of %rdi> -> %v
    ///     call  twin_in16                   backward between cld and std
    ///     mov   %ax, (%v)                   outs: movzwl (%v),%eax ; call twin_out16
    ///     lea   2(%rdi), %rdi               backward -2
    ///     lea   -1(%rcx), %rcx
    ///     jrcxz done
    ///     jmp   again
    /// done:
    ///     pop   %rax
    ///     <flags> <close>
    /// ```
    pub fn port_string(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        port: Port,
        repeat: Repeat,
        direction: Direction,
    ) {
        self.open(plan);
        self.push(Reg::RAX);
        if repeat == Repeat::Once {
            self.port_element(i, plan, port, direction);
        } else {
            let done = self.labels.fresh();
            self.around(ShortOnly::JRCXZ, |e| e.asm.branch(Jump::Always, done));
            let again = self.fresh_here();
            self.port_element(i, plan, port, direction);
            self.lea(&Operand::at(Reg::RCX, -1), Reg::RCX);
            self.asm.branch_unless(ShortOnly::JRCXZ, again, done);
            self.place(done);
        }
        self.pop(Reg::RAX);
        self.restore_flags(plan);
        self.close(plan);
    }

    fn port_element(&mut self, i: InstIdx, plan: &InstPlan, port: Port, direction: Direction) {
        let pointer = match port.input {
            true => Reg::RDI,
            false => Reg::RSI,
        };
        let (gate, size) = (gate(port), 1 << port.log2);
        let element = self.port_memory(i, plan, pointer);
        if !port.input {
            self.emit(&load(port.log2, element));
        }
        // A callee must find DF clear (psABI 3.2.1).
        if direction == Direction::Backward {
            self.emit(&Instruction::with(Code::Cld));
        }
        self.call_runtime(Jump::Call, gate);
        if direction == Direction::Backward {
            self.emit(&Instruction::with(Code::Std));
        }
        if port.input {
            self.emit(&store(port.log2, element));
        }
        let step = match direction {
            Direction::Forward => size,
            Direction::Backward => -size,
        };
        self.lea(&Operand::at(pointer, step), pointer);
    }

    /// The element in memory: checked, or in the window.
    fn port_memory(&mut self, i: InstIdx, plan: &InstPlan, pointer: Reg) -> Operand {
        if self.scheme.cut == Some(Cut::Prefix) {
            return self.checked(i, pointer, pointer, &[]);
        }
        // The gate returns its result in rax, so the translation must not be there.
        let mut roles = Self::roles(plan);
        if roles[0] == Reg::RAX {
            roles.swap(0, 1);
        }
        self.checked(i, pointer, roles[0], &roles[1..])
    }
}

/// `mov %al, element`, `%ax`, `%eax`.
fn store(log2: u8, element: Operand) -> Instruction {
    match log2 {
        0 => mr(Code::Mov_rm8_r8, element, Register::AL),
        1 => mr(Code::Mov_rm16_r16, element, Register::AX),
        _ => mr(Code::Mov_rm32_r32, element, Register::EAX),
    }
}

/// `movzbl element, %eax`, `movzwl`, `mov`.
fn load(log2: u8, element: Operand) -> Instruction {
    let code = match log2 {
        0 => Code::Movzx_r32_rm8,
        1 => Code::Movzx_r32_rm16,
        _ => Code::Mov_r32_rm32,
    };
    rm(code, Register::EAX, element)
}
