//! Later uses of a translation on the likely path.

use liveness::LocSet;

use super::{Access, AccessPlace, Held};
use crate::plan::numbering::{Motion, NumberedValue, Values};
use crate::plan::trace::Trace;
use crate::schemes::Reach;

/// How many instructions ahead a next use is searched for. A translation that is held
/// longer usually takes a register from others.
pub const REACH: usize = 48;

/// The facts of an instruction that the search for later uses needs.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its operand, if it could share a translation.
    pub operand: Option<Access>,
    /// What it does to values.
    pub motion: Motion,
    /// Registers that it changes.
    pub writes: LocSet,
    /// Registers live before it.
    pub live: LocSet,
    /// [`super::survives`].
    pub survives: bool,
}

/// Registers that could hold the translation of `operand`, which the first of `steps`
/// makes, for the later steps that it serves. Only the registers that reach as many of
/// these steps as any register can are returned. They are dead all the way there, and
/// nothing writes them; those in `own` are only not written. Empty if the translation serves
/// no later step.
pub fn result_registers(
    operand: &Access,
    reach: Reach,
    values: &Values,
    own: LocSet,
    steps: impl Iterator<Item = Step>,
) -> LocSet {
    let mut free = LocSet::registers();
    let mut result_registers = LocSet::empty();
    let Some(AccessPlace { address, .. }) = operand.place(values) else {
        return result_registers;
    };
    let mut trace = Trace::of(address.id, values);
    for (n, now) in steps.enumerate() {
        if n > 0 {
            free = free.minus(now.live.minus(own));
            if free.is_empty() {
                break;
            }
            if serves(address, reach, &now, &trace) {
                result_registers = free;
            }
        }
        trace.pass(now.motion, now.writes);
        if !now.survives || trace.is_lost() {
            break;
        }
        free = free.minus(now.writes);
    }
    result_registers
}

/// Whether a translation serves one of `steps` before its register is written or
/// needed.
pub fn is_used(
    held: &Held,
    reach: Reach,
    values: &Values,
    steps: impl Iterator<Item = Step>,
) -> bool {
    let register = LocSet::reg(held.register);
    let mut trace = Trace::of(held.address.id, values);
    for now in steps {
        if now.live.intersects(register) {
            return false;
        }
        if serves(held.address, reach, &now, &trace) {
            return true;
        }
        trace.pass(now.motion, now.writes);
        if !now.survives || now.writes.intersects(register) || trace.is_lost() {
            return false;
        }
    }
    false
}

fn serves(translated: NumberedValue, reach: Reach, step: &Step, trace: &Trace) -> bool {
    step.operand.is_some_and(|operand| {
        let base = trace.offset(operand.base).map(i64::from);
        base.is_some_and(|base| {
            let address = base + i64::from(operand.displacement);
            reach.covers(address - i64::from(translated.offset), operand.size())
        })
    })
}

#[cfg(test)]
mod tests {
    use liveness::Reg;

    use super::*;
    use crate::plan::numbering::{Ids, Written};

    const OTHER: Motion = Motion::Other(Written::Nothing);

    #[test]
    fn a_carrier_is_dead_up_to_the_last_use() {
        let operand = Access::at(Reg::RDI, 0, 8);
        let later = Access::at(Reg::RDI, 16, 4);
        let step = |i: u32| {
            let written = [Reg::RAX, Reg::RDX, Reg::RSI][i as usize];
            Step {
                operand: (i == 0).then_some(operand).or((i == 2).then_some(later)),
                motion: OTHER,
                writes: LocSet::reg(written),
                live: LocSet::reg(Reg::RDI),
                survives: true,
            }
        };
        let mut ids = Ids::default();
        let values = Values::unknown(&mut ids);
        let steps = (0..3).map(step);
        let result_registers = result_registers(
            &operand,
            Reach::TRANSLATION,
            &values,
            LocSet::empty(),
            steps,
        );
        assert!(
            !result_registers.intersects(LocSet::reg(Reg::RAX)),
            "written by the first"
        );
        assert!(
            !result_registers.intersects(LocSet::reg(Reg::RDX)),
            "written in between"
        );
        assert!(
            result_registers.intersects(LocSet::reg(Reg::RSI)),
            "written by the last"
        );
        assert!(result_registers.intersects(LocSet::reg(Reg::RCX)));
        assert!(!result_registers.intersects(LocSet::reg(Reg::RDI)), "live");
    }
}
