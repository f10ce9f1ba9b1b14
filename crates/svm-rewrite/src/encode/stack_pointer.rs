//! Moves of `rsp` that become moves by constants, and the code that chooses a variant of
//! a function that realigns its stack.

use iced_x86::{Code, Register};
use liveness::Reg;

use super::Emitter;
use crate::asm::{Jump, Label, Operand, cc, r, ri, rr};
use crate::lift::InstIdx;

impl Emitter<'_> {
    /// `leave`, `mov %reg,%rsp`, `lea d(%reg),%rsp`, where it is known that this moves
    /// `rsp` by `distance`:
    ///
    /// ```text
    ///     lea   distance(%rsp), %rsp
    ///     pop   %rbp                        for leave
    /// ```
    pub fn frame_pointer_to_stack(&mut self, i: InstIdx, distance: i64) {
        self.lea(&Operand::at(Reg::RSP, distance), Reg::RSP);
        if self.lifted.inst(i).iced.code() == Code::Leaveq {
            self.emit(&r(Code::Pop_r64, Register::RBP));
        }
    }

    /// `and $-alignment,%rsp` where the distance of the move is known, and the flags
    /// that it leaves:
    ///
    /// ```text
    ///     lea   -padding(%rsp), %rsp        unless it is 0
    ///     test  %rsp, %rsp
    /// ```
    pub fn realign(&mut self, padding: i64) {
        if padding != 0 {
            self.lea(&Operand::at(Reg::RSP, -padding), Reg::RSP);
        }
        self.emit(&rr(Code::Test_rm64_r64, Register::RSP, Register::RSP));
    }

    /// At the entry of a function that realigns its stack: jumps to the variant for `rsp`
    /// modulo `8 * variants`. The first variant follows.
    ///
    /// ```text
    ///     test  $8, %esp
    ///     je    1f
    ///     test  $16, %esp ; jne variant 3 ; jmp variant 1
    /// 1:  test  $16, %esp ; jne variant 2
    /// ```
    pub fn choose_by_rsp(&mut self, variants: &[Label]) {
        self.choose(variants, 0, 1);
    }

    /// Chooses among the variants whose number equals `number` in the bits below `bit`.
    fn choose(&mut self, variants: &[Label], number: usize, bit: usize) {
        self.emit(&ri(Code::Test_rm32_imm32, Register::ESP, 8 * bit as i32));
        if 2 * bit == variants.len() {
            self.asm.branch(Jump::If(cc::NE), variants[number | bit]);
            if number != 0 {
                self.asm.branch(Jump::Always, variants[number]);
            }
            return;
        }
        let even = self.labels.fresh();
        self.asm.branch(Jump::If(cc::E), even);
        self.choose(variants, number | bit, 2 * bit);
        self.place(even);
        self.choose(variants, number, 2 * bit);
    }
}
