//! P2: a function returns to where it was called from (target `hypervisor`).
//!
//! ```text
//!         mov  (%rsp), %s               # where it begins: a register with the
//!         mov  %s, -SHADOW(%rsp)        # address, and its shadow
//!         ...
//!         mov  -SHADOW(%rsp), %s        # where it is left: the address again,
//!         cmp  %s, (%rsp)               # and the word compared with it
//!         jne  .Lsmashed
//!         ret
//! ```
//!
//! or `mov %s, (%rsp)` instead of the comparison. Here `rsp` means the stack pointer at
//! entry, however an instruction names the place. No other instruction may touch the
//! shadow, not even to read it.
//!
//! In a scheme with a window there is no shadow: the word is above `rsp` from the entry to
//! the return (P4), and below `rsp` is all that `push` and `call` write. Memory operands do
//! not reach the stack that it is on.

use twin_abi::stack;

use super::{Broken, Step, broken};
use crate::domain::{Flags, Form, State};
use crate::findings::ViolationCode;
use crate::insn::{Condition, Gpr, MemoryOperand, Op};
use crate::targets::ReturnWords;

//      jne .Lsmashed
//
/// Adds the facts after a conditional branch that is not taken.
pub fn fell_through(condition: Condition, state: &mut State) {
    if (condition, state.flags) == (Condition::NotEqual, Flags::ReturnWord) {
        state.returns.intact = true;
    }
}

/// One of the two places that hold the return address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReturnPlace {
    /// Where `call` pushed it.
    Word,
    /// Where the function keeps a copy of it.
    Shadow,
}

impl Step<'_> {
    /// Which of the two the eight bytes of a memory operand are.
    fn place_of_return_word(&self, m: &MemoryOperand) -> Option<ReturnPlace> {
        if self.laws.rules.return_words != ReturnWords::Shadowed || m.size != 8 {
            return None;
        }
        match self.state.frame_place(m)? {
            Form::Stack(0) => Some(ReturnPlace::Word),
            Form::Stack(at) if i64::from(at) == -(stack::SHADOW as i64) => {
                Some(ReturnPlace::Shadow)
            }
            _ => None,
        }
    }

    /// Judges an access to the shadow, and a store of the return address to its own
    /// place. `None`: it is neither, so the rules of P1 judge it.
    pub(super) fn return_word(&self, m: &MemoryOperand) -> Option<Result<(), Broken>> {
        let known = |r| self.state.get(r).form == Form::ReturnWord;
        match (self.place_of_return_word(m)?, self.insn.op) {
            (ReturnPlace::Shadow, Op::Load { .. }) if self.state.returns.kept => Some(Ok(())),
            (ReturnPlace::Shadow | ReturnPlace::Word, Op::Store { s }) if known(s) => Some(Ok(())),
            (ReturnPlace::Shadow, _) => Some(broken(
                ViolationCode::ReturnWord,
                "the shadow may only be loaded while it holds the return address, or be written with it",
            )),
            (ReturnPlace::Word, _) => None,
        }
    }

    //      mov (%rsp), %s
    //      mov -SHADOW(%rsp), %s
    pub(super) fn load_return_word(&self) -> Option<Form> {
        let returns = self.state.returns;
        let holds = match self.place_of_return_word(&self.insn.memory)? {
            ReturnPlace::Word => returns.intact,
            ReturnPlace::Shadow => returns.kept,
        };
        holds.then_some(Form::ReturnWord)
    }

    //      mov %s, -SHADOW(%rsp)
    //      mov %s, (%rsp)
    pub(super) fn store_return_word(&mut self, s: Gpr) {
        if self.state.get(s).form != Form::ReturnWord {
            return;
        }
        match self.place_of_return_word(&self.insn.memory) {
            Some(ReturnPlace::Word) => self.state.returns.intact = true,
            Some(ReturnPlace::Shadow) => self.state.returns.kept = true,
            None => {}
        }
    }

    //      cmp %s, (%rsp)
    pub(super) fn compare_return_word(&mut self, s: Gpr) {
        let word = self.place_of_return_word(&self.insn.memory) == Some(ReturnPlace::Word);
        self.state.flags = match word && self.state.get(s).form == Form::ReturnWord {
            true => Flags::ReturnWord,
            false => Flags::Unknown,
        };
    }

    /// `ret`, and jumps to code that returns in the function's place.
    pub(super) fn returns(&self) -> Result<(), Broken> {
        match self.laws.rules.return_words {
            ReturnWords::Shadowed if !self.state.returns.intact => broken(
                ViolationCode::ReturnWord,
                "the return address may have been overwritten since the function began",
            ),
            ReturnWords::Shadowed | ReturnWords::OutOfReach | ReturnWords::Trusted => Ok(()),
        }
    }
}
