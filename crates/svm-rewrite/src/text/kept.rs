//! Registers that functions of a text leave alone, beside those that every callee keeps. gcc has
//! values in such over calls (`-fipa-ra`), the stack pointer among them:
//!
//! ```text
//!     lea  8(%rsp), %r9
//!     push %rbx
//!     call read_number        static, and %r9 is not in it
//!     mov  %r9, %rsp
//! ```

use std::cell::RefCell;

use foldhash::{HashMap, HashSet};
use iced_x86::FlowControl;
use liveness::LocSet;

use crate::analyse::Analysis;
use crate::lift::{Destination, InstIdx, is_filler};

/// What is known of the functions that are called.
pub struct Kept<'k> {
    analysis: &'k Analysis<'k>,
    known: RefCell<HashMap<u32, LocSet>>,
}

impl<'k> Kept<'k> {
    /// Of no function yet.
    pub fn of(analysis: &'k Analysis<'k>) -> Kept<'k> {
        let known = RefCell::default();
        Kept { analysis, known }
    }

    /// The registers that nothing writes between a call and its return.
    pub fn over(&self, call: InstIdx) -> LocSet {
        let Some(Destination::Inst(to)) = self.analysis.lifted.inst(call).target else {
            return LocSet::empty();
        };
        let callee = self.function_of(to);
        let mut known = self.known.borrow_mut();
        let found = || self.untouched(callee).unwrap_or(LocSet::empty());
        *known.entry(callee).or_insert_with(found)
    }

    fn function_of(&self, i: InstIdx) -> u32 {
        self.analysis.lifted.function_of(i).0
    }

    /// The registers that a function, and all that it enters, never writes. `None` if not all of
    /// that is seen.
    fn untouched(&self, function: u32) -> Option<LocSet> {
        let mut left = LocSet::registers();
        let (mut seen, mut work) = (HashSet::default(), vec![function]);
        while let Some(function) = work.pop() {
            if !seen.insert(function) {
                continue;
            }
            let insts = self.analysis.lifted.functions[function as usize]
                .insts
                .clone();
            for i in insts.clone() {
                left = left.minus(self.analysis.surveys[i as usize].written());
                work.extend(self.entered(InstIdx(i))?);
            }
            self.ends(insts)?;
        }
        Some(left)
    }

    /// The function that an instruction goes to, if it goes elsewhere than on. `None` if it is not
    /// known.
    fn entered(&self, i: InstIdx) -> Option<Option<u32>> {
        let inst = self.analysis.lifted.inst(i);
        match inst.iced.flow_control() {
            FlowControl::Next | FlowControl::Return | FlowControl::Exception => Some(None),
            FlowControl::Call
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch => match inst.target {
                Some(Destination::Inst(to)) => Some(Some(self.function_of(to))),
                _ => None,
            },
            _ => None,
        }
    }

    /// `None` if control may run on behind these instructions.
    fn ends(&self, mut insts: std::ops::Range<u32>) -> Option<()> {
        let last = insts.rfind(|i| !is_filler(&self.analysis.lifted.inst(InstIdx(*i)).iced))?;
        let last = &self.analysis.lifted.inst(InstIdx(last)).iced;
        matches!(
            last.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch
        )
        .then_some(())
    }
}
