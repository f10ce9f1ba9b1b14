//! Moves of `rsp` that become moves by constants, and the choice among the copies
//! of a function that realigns it.

use iced_x86::{Code, Register};
use liveness::Reg;

use super::Emitter;
use super::address::at;
use crate::analyse::classify::{PART_OF_A_WORD, WORD};
use crate::asm::{Jump, Label, cc, r, ri, rr};
use crate::lift::InstIdx;
use crate::refusal::Hitch;

impl Emitter<'_> {
    /// The register that `rsp` is set to.
    pub fn frame_pointer(&self, i: InstIdx) -> Register {
        let iced = &self.lifted.inst(i).iced;
        match iced.code() {
            Code::Leaveq => Register::RBP,
            Code::Lea_r64_m => iced.memory_base(),
            _ => iced.op1_register(),
        }
    }

    /// `leave`, `mov %reg,%rsp`, `lea d(%reg),%rsp`, where `reg - rsp` is known
    /// to be `distance`:
    ///
    /// ```text
    ///     lea   distance+d(%rsp), %rsp
    ///     pop   %rbp                        for leave
    /// ```
    pub fn frame_pointer_to_stack(&mut self, i: InstIdx, distance: i64) -> Result<(), Hitch> {
        let iced = &self.lifted.inst(i).iced;
        let displacement = match iced.code() {
            Code::Lea_r64_m => iced.memory_displacement64() as i64,
            _ => 0,
        };
        if (distance + displacement) % WORD != 0 {
            let (code, reason) = PART_OF_A_WORD;
            return Err(Hitch::new(code, reason));
        }
        self.lea(at(Reg::RSP, distance + displacement), Reg::RSP);
        if iced.code() == Code::Leaveq {
            self.emit(&r(Code::Pop_r64, Register::RBP));
        }
        Ok(())
    }

    /// `and $-alignment,%rsp` where it is known how far that moves `rsp`, and
    /// the flags that it leaves:
    ///
    /// ```text
    ///     lea   -padding(%rsp), %rsp        unless that is none
    ///     test  %rsp, %rsp
    /// ```
    pub fn realign(&mut self, padding: i64) {
        if padding != 0 {
            self.lea(at(Reg::RSP, -padding), Reg::RSP);
        }
        self.emit(&rr(Code::Test_rm64_r64, Register::RSP, Register::RSP));
    }

    /// At the entry of a function that realigns its stack: on to the copy that
    /// is for what `rsp` is modulo `8 * copies`. The first one follows.
    ///
    /// ```text
    ///     test  $8, %esp
    ///     je    1f
    ///     test  $16, %esp ; jne copy 3 ; jmp copy 1
    /// 1:  test  $16, %esp ; jne copy 2
    /// ```
    pub fn choose_by_rsp(&mut self, copies: &[Label]) {
        self.choose(copies, 0, 1);
    }

    /// Of the copies whose number is `number` below `bit`.
    fn choose(&mut self, copies: &[Label], number: usize, bit: usize) {
        self.emit(&ri(Code::Test_rm32_imm32, Register::ESP, 8 * bit as i32));
        if 2 * bit == copies.len() {
            self.asm.branch(Jump::If(cc::NE), copies[number | bit]);
            if number != 0 {
                self.asm.branch(Jump::Always, copies[number]);
            }
            return;
        }
        let even = self.labels.fresh();
        self.asm.branch(Jump::If(cc::E), even);
        self.choose(copies, number | bit, 2 * bit);
        self.place(even);
        self.choose(copies, number, 2 * bit);
    }
}
