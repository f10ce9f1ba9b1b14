//! The stack facts that sequences need. They are checked here, so that writing the
//! sequences cannot fail for lack of them.

use iced_x86::Instruction;
use liveness::LocSet;

use super::InstPlan;
use crate::analyse::class::Class;
use crate::analyse::classify::{PART_OF_A_WORD, Refused, WORD};
use crate::frame::facts::{Facts, FactsBefore};
use crate::frame::variants::{Variant, Variants};
use crate::lift::{FuncIdx, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Refuses each instruction whose sequence needs a fact that is not known, and each
/// function whose entry cannot choose a variant.
pub fn check(
    lifted: &Lifted<'_>,
    classes: &[Class],
    plans: &[InstPlan],
    facts: &FactsBefore,
    variants: &Variants,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for f in (0..lifted.functions.len() as u32).map(FuncIdx) {
        if lifted.is_entered(f) && variants.of(f).count() > 1 {
            refusals.extend(flags_at_entry(lifted, plans, f));
        }
        if variants.of(f).count() > 1 {
            refusals.extend(subroutine(lifted, classes, f));
        }
        let insts = lifted.function(f).insts.clone().map(InstIdx);
        for i in insts.filter(|i| needs_facts(classes[i.0 as usize])) {
            let (class, iced) = (classes[i.0 as usize], &lifted.inst(i).iced);
            let known = |variant| known(class, iced, || facts.get(i, variant), variant);
            // Variants mostly agree, and it is one instruction.
            if let Some((code, reason)) = variants.of(f).find_map(|v| known(v).err()) {
                refusal::add(&mut refusals, lifted.refusal(code, i, reason));
            }
        }
    }
    refusals
}

/// The choice among variants is a `test`, so no flag may be live before it.
fn flags_at_entry(lifted: &Lifted<'_>, plans: &[InstPlan], f: FuncIdx) -> Option<Refusal> {
    let entry = InstIdx(lifted.function(f).insts.start);
    let live = plans[entry.0 as usize].live.intersects(LocSet::flags());
    let reason = "flags are live at the entry of a function that realigns its stack";
    live.then(|| lifted.refusal(RefusalCode::StackPointer, entry, reason))
}

/// A call that leads inside the function does not choose among variants.
fn subroutine(lifted: &Lifted<'_>, classes: &[Class], f: FuncIdx) -> Option<Refusal> {
    let is_reached = |i: &InstIdx| !matches!(classes[i.0 as usize], Class::Unreached(_));
    let start = lifted.function(f).insts.start;
    let mut inside = lifted.entries_of(f).filter(|i| i.0 != start);
    let entry = inside.find(is_reached)?;
    let reason =
        "a call leads inside a function that realigns its stack; make a function of it (.type)";
    Some(lifted.refusal(RefusalCode::StackPointer, entry, reason))
}

/// Whether the sequence of a class needs a fact: that of few instructions does.
fn needs_facts(class: Class) -> bool {
    matches!(
        class,
        Class::String(..) | Class::PortString(..) | Class::FramePointerToStack | Class::Realign(_)
    )
}

fn known<'f>(
    class: Class,
    iced: &Instruction,
    facts: impl Fn() -> Option<&'f Facts>,
    variant: Variant,
) -> Result<(), Refused> {
    match class {
        Class::String(..) | Class::PortString(..) => {
            facts().and_then(Facts::direction).map(|_| ()).ok_or((
                RefusalCode::Direction,
                "the direction flag is not known here",
            ))
        }
        Class::FramePointerToStack => match facts().and_then(|facts| facts.stack_move(iced)) {
            Some(distance) if distance % WORD == 0 => Ok(()),
            Some(_) => Err(PART_OF_A_WORD),
            None => Err((
                RefusalCode::StackPointer,
                "the distance from rsp to what it is set to is not known here",
            )),
        },
        Class::Realign(alignment) => facts()
            .and_then(|facts| facts.padding(alignment, variant))
            .map(|_| ())
            .ok_or((
                RefusalCode::StackPointer,
                "the frame's size is not known here",
            )),
        _ => Ok(()),
    }
}
