//! Decides, for each instruction, how it will be emitted. Nothing is edited here: a plan
//! is data, and only [`crate::encode::apply`] acts on it.
//!
//! A block is planned after the blocks that lead to it, except over the back edge of a
//! loop, so that a translation may be used again:
//!
//! ```text
//! for each block
//!   joins       the translations in registers on every path to it
//!   for each instruction
//!     reused    an earlier translation serves it: no sequence. Else
//!     cut       its base may hold the place instead of the address, in a window. Else
//!     demand    what its class's sequence needs
//!     leave     r10 and r11 where it goes out of the object
//!     ahead     which registers could carry its translation to a later access
//!     registers dead registers, and spilled ones; compare: the flags
//!     ahead     before a spill, translations without a later use are given up
//!     advance   the translations in registers after it
//! ```

mod ahead;
pub mod borrow;
mod compare;
mod cut;
mod decision;
mod demand;
mod joins;
mod numbering;
mod numbers;
pub mod registers;
pub mod returns;
mod reuse;
pub mod stack;
pub mod strict;
mod trace;
mod transfers;

use foldhash::HashSet;
use liveness::{LocSet, Reg};

use crate::analyse::class::Class;
use crate::analyse::flow::Flow;
use crate::analyse::survey::Survey;
use crate::lift::{InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};
use crate::registers::uses_high_byte;
use crate::schemes::{Cut, Row, Table};
use numbering::Ids;
use reuse::{Access, Available};

use ahead::Lookahead;
use borrow::Borrowed;
use demand::Demand;
use joins::Joins;
use strict::PointerCheck;

pub use decision::{CutBy, Flags, InstPlan, Scratch};

/// What a target decides about sequences before there are any.
pub struct Rules {
    /// How checks reach the table.
    pub table: Table,
    /// Registers that a sequence must never overwrite, in addition to `rsp`.
    pub reserved: LocSet,
    /// Whether calls and jumps out of the object go through a linker's veneer, which may
    /// overwrite `r10` and `r11` (psABI 3.2.1).
    pub has_veneers: bool,
    /// Whether a sequence may push where the instruction loads `rsp`: code keeps nothing below
    /// `rsp` that a word could not take the place of there.
    pub loads_rsp: bool,
    /// Whether callee-saved registers are pushed last: programs reserve such for variables of their
    /// own, which a signal's handler reads.
    pub spares_callee_saved: bool,
}

/// The code of one object, and what is known of each instruction.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    pub lifted: &'a Lifted<'a>,
    pub surveys: &'a [Survey],
    pub flow: &'a Flow,
    pub classes: &'a [Class],
    /// What is live before it.
    pub live_before: &'a [LocSet],
}

/// Makes plans for the instructions of one object.
pub struct Planner<'a> {
    lifted: &'a Lifted<'a>,
    surveys: &'a [Survey],
    flow: &'a Flow,
    scheme: &'a Row,
    rules: &'a Rules,
    classes: &'a [Class],
    live_before: &'a [LocSet],
    /// Translations that registers hold before the next instruction.
    available: Available,
    /// Of each instruction; empty if the scheme reuses no translation.
    known: Vec<Lookahead>,
    /// What is live as a number before each instruction; empty unless addresses are cut in
    /// registers.
    needed: Vec<LocSet>,
    /// The pointers that are compared before each instruction; empty unless the code is
    /// strict.
    pointers: Vec<Option<PointerCheck>>,
    ids: Ids,
}

/// Instructions for which there is no plan.
#[derive(Default)]
struct Refused(Vec<(u32, Refusal)>);

impl Refused {
    /// Takes the plan of an instruction; where it has none, the reason, and gives none.
    fn taken(&mut self, i: u32, plan: Result<InstPlan, Refusal>) -> Option<InstPlan> {
        let refusal = match plan {
            Ok(plan) => return Some(plan),
            Err(refusal) => refusal,
        };
        if refusal::fits(self.0.len(), &refusal) {
            self.0.push((i, refusal));
        }
        None
    }

    /// The plans, if all instructions have one.
    fn or(mut self, plans: impl Iterator<Item = InstPlan>) -> Result<Vec<InstPlan>, Vec<Refusal>> {
        if self.0.is_empty() {
            return Ok(plans.collect());
        }
        self.0.sort_by_key(|(i, _)| *i);
        let refusals = self.0.into_iter();
        Err(refusals.map(|(_, refusal)| refusal).collect())
    }
}

impl<'a> Planner<'a> {
    /// A planner for code under `scheme`; `is_strict`: pointers are compared.
    pub fn new(code: Code<'a>, scheme: &'a Row, rules: &'a Rules, is_strict: bool) -> Planner<'a> {
        let Code {
            lifted,
            surveys,
            flow,
            classes,
            live_before,
        } = code;
        let mut ids = Ids::default();
        let known = match scheme.reuses {
            true => ahead::look_ahead(lifted, surveys, classes, live_before, flow, scheme),
            false => Vec::new(),
        };
        let pointers = match is_strict {
            true => strict::find(&code),
            false => Vec::new(),
        };
        let needed = match scheme.cut {
            Some(Cut::Register(_)) => numbers::needed(lifted, flow, classes, scheme, &pointers),
            Some(Cut::Prefix) | None => Vec::new(),
        };
        Planner {
            available: Available::nothing(&mut ids),
            known,
            needed,
            pointers,
            ids,
            lifted,
            surveys,
            flow,
            scheme,
            rules,
            classes,
            live_before,
        }
    }

    /// Plans every instruction.
    ///
    /// # Errors
    /// Each instruction for which no registers can be freed.
    pub fn plan_all(mut self) -> Result<Vec<InstPlan>, Vec<Refusal>> {
        match self.scheme.reuses {
            true => self.plan_along_paths(),
            false => self.plan_each(),
        }
    }

    /// Plans instructions as they come: no plan depends on another one.
    fn plan_each(&mut self) -> Result<Vec<InstPlan>, Vec<Refusal>> {
        let mut refused = Refused::default();
        let mut plans = Vec::with_capacity(self.classes.len());
        for i in 0..self.classes.len() as u32 {
            if self.has_no_sequence(InstIdx(i)) {
                plans.push(self.without_sequence(InstIdx(i)));
            } else if let Some(plan) = refused.taken(i, self.plan(InstIdx(i))) {
                plans.push(plan);
            }
        }
        refused.or(plans.into_iter())
    }

    /// Plans a block after those that lead to it.
    fn plan_along_paths(&mut self) -> Result<Vec<InstPlan>, Vec<Refusal>> {
        let mut refused = Refused::default();
        let mut plans = vec![None; self.classes.len()];
        let functions = self.lifted.functions.iter();
        let starts: HashSet<u32> = functions.map(|f| f.insts.start).collect();
        let mut joins = Joins::of(self.flow);
        for block in liveness::postorder(self.flow).into_iter().rev() {
            let Some(insts) = self.flow.blocks().get(block.0 as usize).cloned() else {
                joins.arrived(block);
                continue;
            };
            match starts.contains(&insts.start) {
                true => self.available.lose(&mut self.ids),
                false => joins.arriving(block, &mut self.available, &mut self.ids),
            }
            joins.arrived(block);
            for i in insts {
                plans[i as usize] = refused.taken(i, self.plan(InstIdx(i)));
            }
            joins.leave(block, &self.available);
        }
        let plans = plans.into_iter();
        refused.or(plans.map(|plan| plan.expect("it is in a block")))
    }

    fn plan(&mut self, i: InstIdx) -> Result<InstPlan, Refusal> {
        let operand = self.shared_operand(i);
        if operand.is_none() && self.has_no_sequence(i) {
            let plan = self.without_sequence(i);
            if self.survives(i) {
                self.pass(i);
            }
            return Ok(plan);
        }
        let mut plan = match operand.and_then(|operand| self.reused(i, &operand)) {
            Some(plan) => plan,
            None => match operand.and_then(|operand| self.cut_in_place(i, &operand)) {
                Some(plan) => plan,
                None => self.translated(i, operand)?,
            },
        };
        plan.borrowed = self.borrowed(i, &plan);
        plan.cut = self.cut_by(i, &plan);
        self.advance(i, operand, &plan);
        Ok(plan)
    }

    /// Whether no register and no flag is asked for, as of most instructions. Where addresses
    /// are cut in registers, what cuts is decided of each.
    fn has_no_sequence(&self, i: InstIdx) -> bool {
        if matches!(self.scheme.cut, Some(Cut::Register(_))) || !self.pointers.is_empty() {
            return false;
        }
        let class = self.class(i);
        let demand = Demand::of(class, self.scheme, self.rules);
        let leaves = demand.call_registers || matches!(class, Class::Branch(_));
        !(demand.translates || leaves && self.rules.has_veneers)
    }

    /// Nothing is chosen for it but what it may borrow.
    fn without_sequence(&self, i: InstIdx) -> InstPlan {
        let mut plan = self.untouched(i);
        plan.borrowed = self.borrowed(i, &plan);
        plan
    }

    /// An earlier translation serves it.
    fn reused(&self, i: InstIdx, operand: &Access) -> Option<InstPlan> {
        // What compares a pointer may push and pop the register that holds the translation.
        if self.borrows_to_compare(i) {
            return None;
        }
        let usable = |r: Reg| r.number() < 8 || !uses_high_byte(&self.lifted.inst(i).iced);
        let reuse = self.available.find(operand, self.scheme.reach, usable)?;
        Some(InstPlan {
            reuse: Some(reuse),
            ..self.untouched(i)
        })
    }

    fn borrows_to_compare(&self, i: InstIdx) -> bool {
        let check = self.pointers.get(i.0 as usize).copied().flatten();
        check.is_some_and(|check| check.borrows())
    }

    fn untouched(&self, i: InstIdx) -> InstPlan {
        InstPlan {
            class: self.class(i),
            scratch: Scratch::EMPTY,
            flags: Flags::Dead,
            live: self.live(i).union(self.available.registers()),
            reuse: None,
            across: LocSet::empty(),
            cut: CutBy::Pext,
            borrowed: None,
            pointers: self.pointers.get(i.0 as usize).copied().flatten(),
        }
    }

    /// It has a sequence of its own, if its class has any.
    fn translated(&mut self, i: InstIdx, operand: Option<Access>) -> Result<InstPlan, Refusal> {
        let class = self.class(i);
        let demand = Demand::of(class, self.scheme, self.rules);
        let mut plan = self.untouched(i);
        let leaves = demand.call_registers || matches!(class, Class::Branch(_));
        if leaves && self.rules.has_veneers {
            self.leave_object(i, class, self.live(i), &mut plan)?;
        }
        if !demand.translates {
            return Ok(plan);
        }
        let flags_live = self.live(i).intersects(LocSet::flags());
        let keeps_flags = flags_live && !demand.keeps_flags;
        let result_registers = operand.map_or(LocSet::empty(), |operand| {
            self.result_registers(i, &self.held(operand), LocSet::empty())
        });
        loop {
            let mut chosen = InstPlan {
                live: self.live(i).union(self.available.registers()),
                ..plan
            };
            let live = chosen.live;
            let done = self.choose(
                i, demand.registers, live, keeps_flags, result_registers, &mut chosen,
            );
            let given_up = match &done {
                Ok(()) if chosen.scratch.spilled().is_empty() => false,
                // A spill costs two instructions, another check eight, another cut one. So
                // a translation that is used again soon is kept, any other is not.
                Ok(()) if self.scheme.cut.is_some() => self.available.give_up(0),
                Ok(()) => self.give_up_idle(i),
                Err(_) => self.available.give_up(0),
            };
            if !given_up {
                done?;
                return self.is_left(i, &chosen).map(|()| chosen);
            }
        }
    }

    /// A switch needs what it loaded after its sequence.
    fn is_left(&self, i: InstIdx, plan: &InstPlan) -> Result<(), Refusal> {
        match plan.class {
            Class::Switch(_) if plan.dead_result().is_none() => {
                let reason = "no register is dead for what the table holds";
                Err(self.lifted.refusal(RefusalCode::NoScratch, i, reason))
            }
            _ => Ok(()),
        }
    }

    /// What registers hold after the instruction.
    fn advance(&mut self, i: InstIdx, operand: Option<Access>, plan: &InstPlan) {
        if !self.survives(i) {
            return;
        }
        // Spilled registers are restored, but the verifier does not track
        // translations through the spill.
        self.available.forget(plan.scratch.set());
        for register in plan.borrowed.into_iter().flatten() {
            self.available.forget(LocSet::reg(register));
        }
        if let Flags::Save(_) = plan.flags {
            // `lahf` overwrites rax. The sequence restores it, but the verifier
            // does not track a translation through that.
            self.available.forget(LocSet::reg(Reg::RAX));
        }
        if plan.cut == CutBy::AndKeepingFlags {
            // It pushes one of these, to the same effect.
            let kept = LocSet::reg(Reg::RAX).union(LocSet::reg(Reg::RCX));
            self.available.forget(kept);
        }
        if self.borrows_to_compare(i) {
            self.available.forget(strict::BORROWED);
        }
        if let (Some(operand), None, Some(v)) = (operand, plan.reuse, plan.dead_result()) {
            self.available.hold(v, &self.held(operand));
        }
        self.pass(i);
    }

    /// Whether translations survive an instruction, where the scheme reuses any; if not, they
    /// are lost.
    fn survives(&mut self, i: InstIdx) -> bool {
        let survives = self.known.get(i.0 as usize).map(|known| known.survives);
        if survives == Some(false) {
            self.available.lose(&mut self.ids);
        }
        survives == Some(true)
    }

    /// What an instruction itself, which translations survive, does to them.
    fn pass(&mut self, i: InstIdx) {
        let Lookahead { motion, writes, .. } = self.known[i.0 as usize];
        self.available.forget(writes);
        self.available.pass(motion, writes, &mut self.ids);
    }

    /// The registers that the sequence of an instruction may borrow.
    fn borrowed(&self, i: InstIdx, plan: &InstPlan) -> Option<Borrowed> {
        self.scheme.cut?;
        let (inst, survey) = (self.lifted.inst(i), &self.surveys[i.0 as usize]);
        if !borrow::borrows(inst, survey, self.class(i)) {
            return None;
        }
        let reused = plan
            .reuse
            .map_or(LocSet::empty(), |reuse| LocSet::reg(reuse.register));
        let taken = self.registers_of(i).union(plan.scratch.set()).union(reused);
        Some(borrow::borrowed(taken))
    }

    /// What the register holds after the sequence of an access: the translation of its
    /// address, or of its base where that alone is cut.
    fn held(&self, operand: Access) -> Access {
        match self.scheme.cut {
            Some(Cut::Register(_)) => operand.at_base(),
            Some(Cut::Prefix) | None => operand,
        }
    }

    fn class(&self, i: InstIdx) -> Class {
        self.classes[i.0 as usize]
    }

    fn live(&self, i: InstIdx) -> LocSet {
        self.live_before[i.0 as usize]
    }

    /// All registers that an instruction names or implies.
    fn registers_of(&self, i: InstIdx) -> LocSet {
        self.surveys[i.0 as usize].named()
    }

    /// All registers that an instruction may change.
    fn writes(&self, i: InstIdx) -> LocSet {
        self.surveys[i.0 as usize].written()
    }
}
