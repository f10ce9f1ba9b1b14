//! Changes of classes that depend on stack facts. After this, classes are final.

use iced_x86::{Instruction, Mnemonic};

use super::dependents::through_frame_pointer;
use super::facts::FactsBefore;
use crate::analyse::Analysis;
use crate::analyse::class::{Callee, Class, SiteClass, Space};
use crate::analyse::survey::MemoryEffect;
use crate::lift::{InstIdx, Lifted};

/// Operands `disp(%rsp)` that lie in the caller's frame (stack arguments, which a
/// compiler may write to) are translated like any pointer: the verifier accepts a
/// displacement from `rsp` only inside the function's own frame, and the slow path
/// translates addresses of the whole stack.
pub fn translate_callers_frame(
    analysis: &Analysis<'_>,
    facts: &FactsBefore,
    classes: &mut [Class],
) {
    let Analysis {
        lifted, surveys, ..
    } = analysis;
    let all = (0..).map(InstIdx).zip(classes);
    for (i, class) in all.filter(|(_, class)| class.is_in_frame()) {
        let memory = match class {
            // A call writes its return address, and reads its operand.
            Class::CallIndirect(_) | Class::JumpIndirect(_) => MemoryEffect::Read,
            _ => surveys[i.0 as usize].memory,
        };
        let iced = &lifted.inst(i).iced;
        if facts
            .before(i)
            .any(|facts| facts.leaves_frame(iced, memory))
        {
            *class = translated(*class, iced);
        }
    }
}

/// The class of an instruction with an operand `disp(%rsp)` that is translated. `push` moves
/// `rsp`, too; `pop` has its own class from the beginning.
fn translated(class: Class, iced: &Instruction) -> Class {
    match (class, iced.mnemonic()) {
        (Class::CallIndirect(_), _) => Class::CallIndirect(Callee::Memory(Space::Heap)),
        (Class::JumpIndirect(_), _) => Class::JumpIndirect(Callee::Memory(Space::Heap)),
        (_, Mnemonic::Push) => Class::PushMemory(Space::Heap),
        _ => Class::Memory(Space::Heap),
    }
}

/// In a module for a stock kernel, operands `disp(%rsp)` above all that a caller passes are
/// translated, too: the head of a list in the frame, taken for an element of it, is a member
/// of a structure that begins far from it. The others stay.
pub fn translate_beyond_arguments(lifted: &Lifted<'_>, facts: &FactsBefore, classes: &mut [Class]) {
    for (i, facts) in facts.all() {
        let (iced, class) = (&lifted.inst(i).iced, &mut classes[i.0 as usize]);
        if class.is_in_frame() {
            *class = match facts.is_beyond_arguments(iced) {
                true => translated(*class, iced),
                false => Class::Keep(class.site_class()),
            };
        }
    }
}

/// Operands `disp(%rbp)` where `rbp` is a frame pointer stay as they are in a
/// module for a stock kernel, and `disp(%r10)` where a frame is realigned. Not those far from the
/// frame, for the reason above.
pub fn keep_frame_pointer(analysis: &Analysis<'_>, facts: &FactsBefore, classes: &mut [Class]) {
    let lifted = analysis.lifted;
    for (i, facts) in facts.all() {
        let inst = lifted.inst(i);
        let class = &mut classes[i.0 as usize];
        let heap = matches!(
            class,
            Class::Memory(Space::Heap) | Class::PushMemory(Space::Heap)
        );
        let near = facts.points_to_frame(&inst.iced) && !facts.is_far_from_frame(&inst.iced);
        if heap && through_frame_pointer(inst) && near {
            *class = Class::Keep(Some(SiteClass::Stack));
        }
    }
}
