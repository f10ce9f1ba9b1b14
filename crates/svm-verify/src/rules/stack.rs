//! P4: how `rsp` moves.

use super::{Broken, Step, broken};
use crate::domain::bounds::MAX_ALIGNMENT;
use crate::domain::{Form, Value};
use crate::findings::ViolationCode;
use crate::insn::Gpr;

/// Bytes of a word.
const WORD: i32 = 8;

/// `rsp` stays at whole words, counted from the entry. So if a function is entered with
/// `rsp` at a multiple of 8, its calls and returns are at multiples of 8.
///
/// Not of 16, which the psABI (3.2.2) requires at calls: kernels are built with
/// `-mpreferred-stack-boundary=3`, and code called by kernel code does not rely on 16.
fn in_words(at: i32) -> Result<(), Broken> {
    match at % WORD {
        0 => Ok(()),
        _ => broken(
            ViolationCode::Alignment,
            "%rsp is moved by a part of a word",
        ),
    }
}

impl Step<'_> {
    fn move_rsp(&mut self, at: i64) -> Result<(), Broken> {
        match self.state.set_rsp(at) {
            true => in_words(self.state.rsp()),
            false if at > 0 => broken(
                ViolationCode::Frame,
                "%rsp would be above the return address",
            ),
            false => broken(
                ViolationCode::Frame,
                "the frame would reach over the guard page",
            ),
        }
    }

    pub(super) fn move_rsp_to(&mut self, form: Form) -> Result<(), Broken> {
        match self.state.set_rsp_to(form) {
            true => in_words(self.state.rsp()),
            false => broken(
                ViolationCode::Frame,
                "%rsp would be above its origin, or reach over the guard page",
            ),
        }
    }

    //      and $-16, %rsp
    //
    // How far it moves depends on `rsp` at entry. Once a function: one more
    // would not be told from the first.
    pub(super) fn realign(&mut self, before: Form, imm: i32) -> Result<(), Broken> {
        let alignment = -i64::from(imm);
        let (Form::Stack(at), 8..=MAX_ALIGNMENT, None, true) = (
            before,
            alignment,
            self.state.realigned,
            (alignment as u64).is_power_of_two(),
        ) else {
            return self.clobber();
        };
        self.state.realigned = Some(at);
        // It is a multiple of a word before, too.
        self.state.alignment = alignment as i32 - WORD;
        self.move_rsp_to(Form::Aligned(0))
    }

    pub(super) fn push(&mut self) -> Result<(), Broken> {
        self.move_rsp(i64::from(self.state.rsp()) - 8)
    }

    //      pop %d              # of %rsp, the word counts and not the move (SDM, POP)
    pub(super) fn pop(&mut self, d: Option<Gpr>) -> Result<(), Broken> {
        let at = self.state.get(Gpr::RSP).form;
        let popped = self.state.saved.get(at);
        let own = d.filter(|&d| self.state.kept.is_saved(d, at));
        if d != Some(Gpr::RSP) {
            self.move_rsp(i64::from(self.state.rsp()) + 8)?;
        }
        d.map_or(Ok(()), |d| self.set(d, Value::of(popped.loaded())))?;
        own.into_iter().for_each(|d| self.state.kept.restore(d));
        Ok(())
    }

    /// `pop disp(%v)`: the address is computed after `rsp` has moved (SDM,
    /// POP), so that `rsp` itself may not be its base.
    pub(super) fn pop_memory(&mut self) -> Result<(), Broken> {
        let m = self.insn.memory;
        self.pop(None)?;
        match m.base == Gpr::RSP {
            true => broken(ViolationCode::StackBounds, "pop to memory through %rsp"),
            false => self.memory(&m).map(|_| ()),
        }
    }

    pub(super) fn leave(&mut self) -> Result<(), Broken> {
        if self.laws.rules.named_memory.is_window() {
            self.state.clobber(self.insn.writes);
            return broken(
                ViolationCode::StackPointer,
                "leave moves %rsp to where a register says",
            );
        }
        let frame = self.state.get(Gpr::RBP).form;
        if !frame.trusted().in_frame() {
            return broken(
                ViolationCode::StackPointer,
                "leave, but %rbp is not known to be in the frame",
            );
        }
        self.move_rsp_to(frame)?;
        self.pop(Some(Gpr::RBP))
    }
}
