//! Functions that leave a register alone which the psABI does not make them keep. gcc knows that of
//! functions that it has compiled (`-fipa-ra`), and leaves numbers there over calls.

use iced_x86::{FlowControl, InstructionInfoFactory};
use liveness::Reg;

use super::escape::returns;
use super::find::{Finder, is_saved};
use super::reaching::changes;
use crate::lift::{Destination, FuncIdx, InstIdx, is_filler};

impl Finder<'_, '_> {
    /// Whether a register is after a call what it was before.
    pub(super) fn keeps(&self, call: InstIdx, register: Reg) -> bool {
        if is_saved(register) {
            return true;
        }
        let Some(Destination::Inst(to)) = self.lifted.inst(call).target else {
            return false;
        };
        let mut known = self.changing.borrow_mut();
        let changing = known
            .entry(register)
            .or_insert_with(|| changing(self, register));
        !changing[self.lifted.function_of(to).0 as usize]
    }
}

/// Whether each function changes a register, or goes on where that is not known.
fn changing(finder: &Finder<'_, '_>, register: Reg) -> Vec<bool> {
    let lifted = finder.lifted;
    let mut factory = InstructionInfoFactory::new();
    let mut changing = vec![false; lifted.functions.len()];
    let mut from: Vec<Vec<FuncIdx>> = vec![Vec::new(); lifted.functions.len()];
    let mut work = Vec::new();
    for (n, function) in (0..).zip(&lifted.functions) {
        let f = FuncIdx(n);
        for i in function.insts.clone() {
            let inst = &lifted.insts[i as usize];
            match inst.target {
                Some(Destination::Inst(to)) => from[lifted.function_of(to).0 as usize].push(f),
                _ => changing[n as usize] |= goes_on(finder, InstIdx(i)),
            }
            changing[n as usize] |= changes(&mut factory, &inst.iced, register);
        }
        if function
            .insts
            .clone()
            .last()
            .is_some_and(|last| finder.falls_through(last))
        {
            match from.get_mut(n as usize + 1) {
                Some(next) => next.push(f),
                None => changing[n as usize] = true,
            }
        }
        work.extend(changing[n as usize].then_some(f));
    }
    while let Some(f) = work.pop() {
        for caller in std::mem::take(&mut from[f.0 as usize]) {
            if !std::mem::replace(&mut changing[caller.0 as usize], true) {
                work.push(caller);
            }
        }
    }
    changing
}

/// Whether control goes from an instruction where it does not show, other than back to the caller.
fn goes_on(finder: &Finder<'_, '_>, i: InstIdx) -> bool {
    let iced = &finder.lifted.inst(i).iced;
    let stays = matches!(
        iced.flow_control(),
        FlowControl::Next | FlowControl::Exception
    );
    !stays && !is_filler(iced) && !returns(finder, i)
}
