//! `bt bts btr btc` with a register bit offset. The offset is signed and
//! reaches far beyond the operand: the instruction addresses the word
//! `operand + word_size * (offset >> log2(word bits))` (SDM volume 2, BT).

use iced_x86::Code;
use liveness::Reg;

use super::Emitter;
use crate::analyse::class::Space;
use crate::asm::{Address, Operand, ri, rr};
use crate::lift::InstIdx;
use crate::plan::InstPlan;
use crate::registers::{gpr, reg16, reg32, reg64};

impl Emitter<'_> {
    /// For `bts %off, ADDRESS` on 64-bit words:
    ///
    /// ```text
    ///     <open>
    ///     <address> -> %t
    ///     mov   %off, %m                    movslq, movswq for shorter words
    ///     sar   $6, %m
    ///     lea   (%t,%m,8), %t
    ///     <check of %t> -> %v
    ///     mov   %off, %m
    ///     and   $63, %md
    ///     <flags>
    ///     bts   %m, (%v)
    ///     <close>
    /// ```
    ///
    /// In a window of 32 bits two prefixes of the operand are the check: `%gs:(%et)`.
    pub fn bit_string(&mut self, i: InstIdx, plan: &InstPlan, space: Space) {
        let iced = self.lifted.inst(i).iced;
        let offset = iced.op1_register();
        let log2_bytes = iced.memory_size().size().trailing_zeros();
        let off = gpr(offset).expect("bt has a bit offset in a general register");
        let roles = Self::roles(plan);
        let (v, t, m) = (roles[0], roles[roles.len() - 1], roles[roles.len() - 2]);
        self.open(plan);
        match self.address(i, space, plan.scratch.spilled().len(), &roles) {
            // A segment-relative address is already there.
            Address::Copy(there) if there == t => {}
            address => address.emit(&mut self.asm, t),
        }
        let widen = match log2_bytes {
            1 => Code::Movsx_r64_rm16,
            2 => Code::Movsxd_r64_rm32,
            _ => Code::Mov_r64_rm64,
        };
        self.emit(&rr(widen, reg64(m), offset));
        self.emit(&ri(Code::Sar_rm64_imm8, reg64(m), log2_bytes as i32 + 3));
        self.lea(&Operand::indexed(t, m, log2_bytes as u8), t);
        let word = self.checked(i, t, v, &roles[1..roles.len() - 1]);
        self.mov(off, m);
        self.emit(&ri(Code::And_rm32_imm32, reg32(m), (8 << log2_bytes) - 1));
        self.restore_flags(plan);
        self.masked_access(i, word, m);
        self.close(plan);
    }

    /// The instruction itself, with the masked offset in `m`.
    fn masked_access(&mut self, i: InstIdx, word: Operand, m: Reg) {
        let mut iced = self.lifted.inst(i).iced;
        let masked = match iced.memory_size().size() {
            2 => reg16(m),
            4 => reg32(m),
            _ => reg64(m),
        };
        iced.set_op1_register(masked);
        word.replace_in(&mut iced);
        self.note_lock(i);
        self.asm.inst(&iced);
    }
}
