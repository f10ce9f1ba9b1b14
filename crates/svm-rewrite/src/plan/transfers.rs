//! Transfers out of the object, and the registers that they overwrite.

use iced_x86::FlowControl;
use liveness::{LocSet, Reg};

use super::{InstPlan, Planner};
use crate::analyse::class::{Callee, Class};
use crate::analyse::routines::{self, Convention};
use crate::lift::{Destination, InstIdx};
use crate::refusal::{Refusal, RefusalCode};

impl Planner<'_> {
    /// Spills r10 and r11 if they are live over a call out of the object. The psABI
    /// leaves them to code between caller and callee: here `twin_stlb_call` and the stubs
    /// of imports. Only code that calls an assembly routine keeps something in them.
    /// These routines take no stack arguments, which a spill would move. The same holds for the
    /// operations of `pv_ops` that keep registers (`PV_CALLEE_SAVE`,
    /// arch/x86/include/asm/paravirt_types.h): calls of all others are declared to change r10
    /// and r11 (`EXTRA_CLOBBERS`).
    ///
    /// # Errors
    /// One of them is live over any other transfer.
    pub(super) fn leave_object(
        &mut self,
        i: InstIdx,
        class: Class,
        live: LocSet,
        plan: &mut InstPlan,
    ) -> Result<(), Refusal> {
        let inst = self.lifted.inst(i);
        let import = match inst.target {
            Some(Destination::Import(s)) => Some(routines::convention(self.lifted.symbol_name(s))),
            Some(Destination::Hypercall(..)) => Some(Convention::Hypercall),
            Some(Destination::Inst(_)) => return Ok(()),
            Some(Destination::Behind(_)) | None => None,
        };
        let operands = self.registers_of(i).union(callee_register(class));
        let live = live.minus(operands);
        let across = [Reg::R10, Reg::R11]
            .into_iter()
            .filter(|r| live.intersects(LocSet::reg(*r)));
        let assembly = matches!(import, Some(Convention::KeepsAll | Convention::Private));
        let paravirtual = routines::is_paravirtual(self.lifted, i);
        for register in across {
            if paravirtual {
                plan.across = plan.across.union(LocSet::reg(register));
                continue;
            }
            if !assembly || inst.iced.flow_control() != FlowControl::Call {
                let reason = "r10 or r11 is live over a transfer out of the object, where the psABI leaves them to linkers";
                return Err(self.lifted.refusal(RefusalCode::NoScratch, i, reason));
            }
            plan.scratch.push(register, true);
        }
        Ok(())
    }
}

/// The register that an indirect transfer through a thunk reads.
fn callee_register(class: Class) -> LocSet {
    match class {
        Class::CallIndirect(Callee::Register(r)) | Class::JumpIndirect(Callee::Register(r)) => {
            LocSet::reg(r)
        }
        _ => LocSet::empty(),
    }
}
