//! Looks ahead on the likely path from an instruction, for later uses of translations.

use iced_x86::FlowControl;
use liveness::LocSet;

use super::Planner;
use crate::analyse::class::Class;
use crate::analyse::flow::Flow;
use crate::analyse::survey::Survey;
use crate::lift::{Destination, Inst, InstIdx, Lifted};
use crate::plan::numbering::Motion;
use crate::plan::reuse::{self, Access, Step};
use crate::schemes::Row;

/// Facts that a search for later uses needs of each instruction that it passes. There
/// are many searches, so these facts are computed once and stored together.
#[derive(Clone, Copy, Debug)]
pub struct Lookahead {
    /// Its operand, if it could share a translation.
    operand: Option<Access>,
    /// What it does to values.
    pub motion: Motion,
    /// Registers that it changes.
    pub writes: LocSet,
    /// Registers live before it.
    live: LocSet,
    /// Whether translations survive it.
    pub survives: bool,
    /// Whether it jumps: the instruction that follows is not the next one.
    jumps: bool,
}

const _: () = assert!(size_of::<Lookahead>() <= 40);

/// The facts of each instruction, by index.
pub fn look_ahead(
    lifted: &Lifted<'_>,
    surveys: &[Survey],
    classes: &[Class],
    live_before: &[LocSet],
    flow: &Flow,
    scheme: &Row,
) -> Vec<Lookahead> {
    let judged = surveys.iter().zip(classes).zip(live_before);
    let all = (0..).map(InstIdx).zip(&lifted.insts).zip(judged);
    all.map(|((i, inst), ((survey, class), live))| Lookahead {
        operand: Access::of(inst, *class, scheme),
        motion: Motion::of(inst, survey),
        writes: survey.written(),
        live: *live,
        // Where it is skipped, registers do not hold what it writes, and a handler of its
        // fault may have written others.
        survives: survives(inst, *class) && !flow.may_be_skipped(i),
        jumps: straight_to(inst).is_some(),
    })
    .collect()
}

/// Whether translations survive an instruction.
fn survives(inst: &Inst, class: Class) -> bool {
    match class {
        // Inside the object; if that is into another function, nothing
        // arrives there.
        Class::Branch(_) => {
            let jumps = inst.iced.flow_control() != FlowControl::Call;
            jumps && matches!(inst.target, Some(Destination::Inst(_)))
        }
        // A branch ends its block anyway; a call leaves the driver.
        Class::Keep(_) | Class::KeepOwnPlace(_) => inst.iced.flow_control() == FlowControl::Next,
        class => reuse::survives(class),
    }
}

/// Where a jump without condition leads inside the object.
fn straight_to(inst: &Inst) -> Option<InstIdx> {
    // The target is looked at first: few instructions have one.
    match inst.target {
        Some(Destination::Inst(to))
            if inst.iced.flow_control() == FlowControl::UnconditionalBranch =>
        {
            Some(to)
        }
        _ => None,
    }
}

impl Planner<'_> {
    /// The operand, if it may share its translation with others.
    pub(super) fn shared_operand(&self, i: InstIdx) -> Option<Access> {
        self.known.get(i.0 as usize)?.operand
    }

    /// Registers that can carry this translation to the place of its next use. Those in
    /// `own` need not be dead.
    pub(super) fn result_registers(&self, i: InstIdx, operand: &Access, own: LocSet) -> LocSet {
        let (reach, way) = (self.scheme.reach, self.way_from(i));
        reuse::result_registers(operand, reach, &self.available.values, own, way)
    }

    /// Gives up a translation that serves no access on the likely path from `i` on.
    pub(super) fn give_up_idle(&mut self, i: InstIdx) -> bool {
        let (reach, values) = (self.scheme.reach, &self.available.values);
        let is_idle = |held| !reuse::is_used(held, reach, values, self.way_from(i));
        let idle = self.available.held().iter().position(is_idle);
        idle.is_some_and(|n| self.available.give_up(n))
    }

    /// The path from an instruction on that compilers lay out as the likely one: no
    /// conditional branch is taken.
    fn way_from(&self, i: InstIdx) -> impl Iterator<Item = Step> {
        let mut next = Some(i);
        let way = std::iter::from_fn(move || {
            let at = next?;
            let known = self.known.get(at.0 as usize)?;
            next = match known.jumps {
                true => straight_to(self.lifted.inst(at)),
                false => Some(InstIdx(at.0 + 1)),
            };
            Some(Step {
                operand: known.operand,
                motion: known.motion,
                writes: known.writes,
                live: known.live,
                survives: known.survives,
            })
        });
        way.take(reuse::REACH)
    }
}
