//! Comparisons of pointers with dom0's first and last address ([`crate::plan::strict`] says
//! which), before the instruction that reaches memory by them.
//!
//! ```text
//!     cmp   twin_lowest(%rip), %base
//!     jb    wild
//!     cmp   twin_highest(%rip), %base
//!     ja    wild
//!     op    %gs:d(%base)
//!     -- out of line --
//! wild: push %base
//!     cld                               C code relies on it
//!     call  twin_wild
//!     ud2
//! ```

use iced_x86::{Code, Instruction, Register};
use liveness::Reg;

use super::Emitter;
use crate::asm::encode::Form;
use crate::asm::import::{Import, Service};
use crate::asm::{Jump, Label, Operand, Referent, cc, r, ri, rr};
use crate::encode::StubPlace;
use crate::lift::InstIdx;
use crate::plan::strict::{Pointer, PointerCheck};
use crate::registers::reg64;

/// Registers that a comparison may borrow ([`crate::plan::strict::BORROWED`]), besides `rax`: one
/// more than a sum has. None is the count's.
const CANDIDATES: [Reg; 3] = [Reg::RDX, Reg::RSI, Reg::RDI];

/// The out-of-line part of a comparison.
#[derive(Debug)]
pub struct Wild {
    label: Label,
    pointer: Reg,
    inst: InstIdx,
    /// Words pushed at the comparison.
    depth: i64,
}

impl Emitter<'_> {
    /// Compares the pointers that instruction `i` reaches memory by.
    ///
    /// ```text
    ///     push  %t
    ///     lea   (%base,%index), %t          or mov %rax, %t, before flags go there
    ///     push  %rax ; lahf ; seto %al      if flags are live
    ///     <compare %t, or the register itself>
    ///     add   $0x7f, %al ; sahf ; pop %rax
    ///     pop   %t
    /// ```
    pub(in crate::encode) fn check_pointers(&mut self, i: InstIdx, check: &PointerCheck) {
        for pointer in check.pointers.into_iter().flatten() {
            let copied = match pointer {
                Pointer::Register(Reg::RAX) => check.keeps_flags,
                Pointer::Register(_) => false,
                Pointer::Sum(..) => true,
            };
            let compared = match (pointer, copied) {
                (Pointer::Register(pointer), false) => pointer,
                _ => self.borrowed_copy(pointer),
            };
            if check.keeps_flags {
                self.push(Reg::RAX);
                self.emit(&Instruction::with(Code::Lahf));
                self.emit(&r(Code::Seto_rm8, Register::AL));
            }
            self.compare_with_bounds(i, compared, check);
            if check.keeps_flags {
                self.emit(&ri(Code::Add_rm8_imm8, Register::AL, 0x7f));
                self.emit(&Instruction::with(Code::Sahf));
                self.pop(Reg::RAX);
            }
            if copied {
                self.pop(compared);
            }
        }
    }

    /// The pointer in a register that is pushed.
    fn borrowed_copy(&mut self, pointer: Pointer) -> Reg {
        let named = match pointer {
            Pointer::Register(r) => [r, r],
            Pointer::Sum(a, b) => [a, b],
        };
        let free = CANDIDATES.into_iter().find(|r| !named.contains(r));
        let t = free.expect("there are more than a sum has");
        self.push(t);
        match pointer {
            Pointer::Register(from) => self.mov(from, t),
            Pointer::Sum(base, index) => self.lea(&Operand::indexed(base, index, 0), t),
        }
        t
    }

    /// ```text
    ///     test  %rcx, %rcx ; je 1f          if nothing is reached with rcx = 0
    ///     cmp   twin_lowest(%rip), %pointer ; jb wild
    ///     cmp   twin_highest(%rip), %pointer ; ja wild
    /// 1:
    /// ```
    fn compare_with_bounds(&mut self, i: InstIdx, pointer: Reg, check: &PointerCheck) {
        let over = check.is_counted.then(|| self.labels.fresh());
        if let Some(over) = over {
            let rcx = reg64(Reg::RCX);
            self.emit(&rr(Code::Test_rm64_r64, rcx, rcx));
            self.asm.branch(Jump::If(cc::E), over);
        }
        let label = self.labels.fresh();
        for (bound, beyond) in [(Import::Lowest, cc::B), (Import::Highest, cc::A)] {
            let bound = Referent::Import(bound, 0);
            self.asm.relative(Form::CMP, pointer, bound);
            self.asm.branch(Jump::If(beyond), label);
        }
        if let Some(over) = over {
            self.place(over);
        }
        self.wild.push(Wild {
            label,
            pointer,
            inst: i,
            depth: self.words,
        });
    }

    /// Out of line, for each comparison.
    pub(in crate::encode) fn finish_wild(&mut self) -> Vec<StubPlace> {
        let wild = std::mem::take(&mut self.wild);
        let mut places = Vec::with_capacity(wild.len());
        for Wild {
            label,
            pointer,
            inst,
            depth,
        } in wild
        {
            self.place(label);
            (self.current, self.words) = (inst, depth);
            self.push(pointer);
            self.emit(&Instruction::with(Code::Cld));
            self.call_runtime(Jump::Call, Service::Wild);
            self.stop();
            places.push((label, inst));
        }
        places
    }
}
