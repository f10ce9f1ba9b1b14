//! The instructions whose treatment depends on stack facts, and the functions that are
//! followed to find these facts.

use iced_x86::Register;
use liveness::{BlockId, Reg};

use super::facts::{Asked, Input};
use crate::analyse::class::{Class, Space};
use crate::lift::{FuncIdx, Inst, InstIdx};
use crate::registers::{gpr, has_memory, register_operands};

/// Instructions whose treatment depends on facts, and the functions that are followed
/// to find these facts.
pub(super) struct Dependents {
    /// In order.
    pub insts: Vec<InstIdx>,
    /// For each function, whether it has such an instruction or leads, in the same
    /// invocation, into a function that has.
    pub functions: Vec<bool>,
}

impl Dependents {
    pub fn find(input: Input<'_>, asked: Asked) -> Dependents {
        let uses_words = |i: &InstIdx| {
            asked == Asked::AllWords
                && (input.changes_facts[i.0 as usize] || uses_frame(input.lifted.inst(*i)))
        };
        let asks = |i: &InstIdx| match input.classes[i.0 as usize] {
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
            _ => uses_words(i),
        };
        // How deep the stack is decides whether a sequence may push more.
        let deep = |i: &InstIdx| input.flow.deep_at(*i).is_some();
        let all = (0..input.classes.len() as u32).map(InstIdx);
        let insts: Vec<InstIdx> = all.filter(|i| asks(i) || deep(i)).collect();
        let mut functions = vec![false; input.lifted.functions.len()];
        if !insts.is_empty() {
            let mut function = FuncIdx(0);
            for &i in &insts {
                function = input.lifted.function_from(function, i);
                functions[function.0 as usize] = true;
            }
            lead_back(&mut functions, &jumps_between_functions(input));
        }
        Dependents { insts, functions }
    }
}

/// Marks each function that jumps into a marked one.
fn lead_back(functions: &mut [bool], jumps: &[(FuncIdx, FuncIdx)]) {
    loop {
        let mut changed = false;
        for (from, to) in jumps {
            if functions[to.0 as usize] && !functions[from.0 as usize] {
                functions[from.0 as usize] = true;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// Where control goes from one function into another, in the same invocation.
fn jumps_between_functions(input: Input<'_>) -> Vec<(FuncIdx, FuncIdx)> {
    let (lifted, blocks) = (input.lifted, input.flow.blocks());
    let mut jumps = Vec::new();
    let mut from = FuncIdx(0);
    for (n, block) in blocks.iter().enumerate() {
        // A block is in one function, and both are in order.
        from = lifted.function_from(from, InstIdx(block.start));
        for next in input.flow.continuations(BlockId(n as u32)) {
            let to = blocks[next.0 as usize].start;
            if !lifted.function(from).insts.contains(&to) {
                jumps.push((from, lifted.function_of(InstIdx(to))));
            }
        }
    }
    jumps
}

/// Whether an instruction names `rsp`, also as a base, or has an operand `disp(%reg)`.
fn uses_frame(inst: &Inst) -> bool {
    let iced = &inst.iced;
    let names_rsp = || register_operands(iced).any(|r| gpr(r) == Some(Reg::RSP));
    let through_rsp = || iced.memory_base() == Register::RSP;
    let memory = || has_memory(iced) && (through_rsp() || inst.operand().simple().is_some());
    names_rsp() || memory()
}

/// Whether an operand is `disp(%rbp)` or `disp(%r10)`, which unwinding counts from.
pub fn through_frame_pointer(inst: &Inst) -> bool {
    matches!(inst.operand().simple(), Some((Reg::RBP | Reg::R10, _)))
}
