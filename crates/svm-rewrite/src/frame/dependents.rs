//! The instructions whose treatment depends on stack facts.

use iced_x86::{Instruction, Register};
use liveness::Reg;

use super::facts::{Asked, Input};
use crate::analyse::class::{Class, Space};
use crate::lift::{Inst, InstIdx};
use crate::registers::{gpr, register_operands};

/// These instructions, in order.
pub(super) fn find(input: Input<'_>, asked: Asked) -> Vec<InstIdx> {
    let all_words = asked == Asked::AllWords;
    let asks = |i: &InstIdx| match input.classes[i.0 as usize] {
        _ if all_words && input.changes_facts[i.0 as usize] => true,
        Class::FramePointerToStack
        | Class::Realign(_)
        | Class::String(..)
        | Class::PortString(..) => true,
        class if class.is_in_frame() => true,
        Class::Memory(Space::Heap) | Class::PushMemory(Space::Heap)
            if asked == Asked::FrameOperands =>
        {
            through_frame_pointer(input.lifted.inst(*i))
        }
        _ => all_words && may_reach_frame(input, *i),
    };
    // How deep the stack is decides whether a sequence may push more.
    let has_deep = input.flow.has_deep();
    let deep = |i: &InstIdx| has_deep && input.flow.deep_at(*i).is_some();
    let all = (0..input.classes.len() as u32).map(InstIdx);
    all.filter(|i| asks(i) || deep(i)).collect()
}

/// Whether an instruction names `rsp` or a part, also as a base, or has an operand `disp(%reg)`
/// that no symbol is added to.
fn may_reach_frame(input: Input<'_>, i: InstIdx) -> bool {
    let inst = input.lifted.inst(i);
    input.surveys[i.0 as usize].may_reach_frame
        && (inst.displacement.is_none() || names_rsp(&inst.iced))
}

fn names_rsp(iced: &Instruction) -> bool {
    iced.memory_base() == Register::RSP || register_operands(iced).any(|r| gpr(r) == Some(Reg::RSP))
}

/// Whether an operand is `disp(%rbp)` or `disp(%r10)`, which unwinding counts from.
pub fn through_frame_pointer(inst: &Inst) -> bool {
    matches!(inst.operand().simple(), Some((Reg::RBP | Reg::R10, _)))
}
