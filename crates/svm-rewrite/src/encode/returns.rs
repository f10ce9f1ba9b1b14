//! The return address: copied where a function begins, compared where control leaves it
//! ([`crate::plan::returns`] decides where that is needed).

use iced_x86::Code;
use liveness::Reg;
use twin_abi::stack;

use super::{Emitter, StubPlace};
use crate::asm::import::Service;
use crate::asm::{Jump, Operand, cc, mr, rm};
use crate::lift::InstIdx;
use crate::plan::returns::{Holder, Remedy, ReturnCheck};
use crate::registers::reg64;

/// The operands of the return address and its shadow, given the number of words pushed.
struct Words {
    word: Operand,
    shadow: Operand,
}

impl Words {
    fn below(pushed: i64) -> Words {
        Words {
            word: Operand::at(Reg::RSP, 8 * pushed),
            shadow: Operand::at(Reg::RSP, 8 * pushed - stack::SHADOW as i64),
        }
    }
}

impl Emitter<'_> {
    /// ```text
    ///     push  %s                          if it is live; then the words are
    ///     mov   (%rsp), %s                  8 bytes higher
    ///     mov   %s, -0x8000(%rsp)
    ///     pop   %s                          if it was pushed
    /// ```
    pub fn keep_return_word(&mut self, holder: Holder) {
        self.with(holder, |e, s, words| {
            e.emit(&rm(Code::Mov_r64_rm64, reg64(s), words.word));
            e.emit(&mr(Code::Mov_rm64_r64, words.shadow, reg64(s)));
        });
    }

    /// Before instruction `i`, at the depth of the function's beginning:
    ///
    /// ```text
    ///     push  %s                          if it is live
    ///     mov   -0x8000(%rsp), %s
    ///     cmp   %s, (%rsp)                  or mov %s, (%rsp)
    ///     pop   %s
    ///     jne   smashed                     after cmp
    /// ```
    pub fn check_return_word(&mut self, i: InstIdx, check: ReturnCheck) {
        let code = match check.remedy {
            Remedy::Compare => Code::Cmp_rm64_r64,
            Remedy::Restore => Code::Mov_rm64_r64,
        };
        self.with(check.holder, |e, s, words| {
            e.emit(&rm(Code::Mov_r64_rm64, reg64(s), words.shadow));
            e.emit(&mr(code, words.word, reg64(s)));
        });
        if check.remedy == Remedy::Compare {
            let smashed = self.labels.fresh();
            self.asm.branch(Jump::If(cc::NE), smashed);
            self.smashed.push((smashed, i));
        }
    }

    fn with(&mut self, holder: Holder, emit: impl FnOnce(&mut Self, Reg, Words)) {
        match holder {
            Holder::Dead(s) => emit(self, s, Words::below(0)),
            Holder::Spilled(s) => {
                self.push(s);
                emit(self, s, Words::below(1));
                self.pop(s);
            }
        }
    }

    /// Out of line, for each comparison:
    ///
    /// ```text
    /// smashed: call twin_smashed
    ///     ud2
    /// ```
    pub(super) fn finish_smashed(&mut self) -> Vec<StubPlace> {
        let places = std::mem::take(&mut self.smashed);
        for (label, _) in &places {
            self.place(*label);
            self.call_runtime(Jump::Call, Service::Smashed);
            self.stop();
        }
        places
    }
}
