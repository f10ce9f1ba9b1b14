//! `--strict`: which pointers are compared with dom0's first and last address, and where.
//!
//! A window cuts a pointer, so a wild one may reach a page of dom0's and is not noticed. A
//! pointer is compared before the first access through it, wherever it came from: loaded,
//! computed, or an argument. Not compared are
//!
//! * what is known to point into dom0 already: a pointer that was compared on every path to
//!   here, its copies and sums with constants, the stack, addresses of symbols,
//! * numbers that are no pointers: an index of a symbol's place or of a pointer that was
//!   compared, a distance from `%gs`,
//! * operands of prefetches, which may be anything, and pointers of `rep` with a count of 0.
//!
//! Registers that callees keep (psABI 3.2.1) are known over calls. If a callee breaks that,
//! one comparison is missing; the proof rests on none.

use iced_x86::{FlowControl, Mnemonic, OpKind};
use liveness::{BlockId, FlowGraph, LocSet, Reg};

use crate::analyse::class::{Callee, Class, Repeat, Space};
use crate::analyse::flow::effects::callee_saved;
use crate::asm::{Base, Index, Operand};
use crate::lift::{Inst, InstIdx};
use crate::plan::Code;
use crate::plan::numbering::Motion;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// A register.
    Register(Reg),
    /// The sum of two, either of which may be the pointer.
    Sum(Reg, Reg),
}

/// The comparisons before one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerCheck {
    /// Each of these; a string instruction has two.
    pub pointers: [Option<Pointer>; 2],
    /// Whether nothing is reached if `rcx` is 0.
    pub is_counted: bool,
    /// Whether flags are live, which the comparisons change.
    pub keeps_flags: bool,
}

impl PointerCheck {
    /// Whether it needs registers, which it pushes and pops.
    pub fn borrows(&self) -> bool {
        let is_sum = |pointer: &Pointer| matches!(pointer, Pointer::Sum(..));
        self.keeps_flags || self.pointers.iter().flatten().any(is_sum)
    }
}

/// Registers that comparisons may push and pop, to the same effect.
pub const BORROWED: LocSet = LocSet::reg(Reg::RAX)
    .union(LocSet::reg(Reg::RDX))
    .union(LocSet::reg(Reg::RSI))
    .union(LocSet::reg(Reg::RDI));

/// The comparisons before each instruction.
pub fn find(code: &Code<'_>) -> Vec<Option<PointerCheck>> {
    let arriving = code.solve();
    let mut checks = vec![None; code.classes.len()];
    for (block, arriving) in code.flow.blocks().iter().zip(&arriving) {
        let mut known = Known::on_arrival(arriving.unwrap_or(LocSet::empty()));
        for i in block.clone().map(InstIdx) {
            checks[i.0 as usize] = code.check(i, &known);
            code.advance(i, &mut known);
        }
    }
    checks
}

/// What is known of registers at a place.
struct Known {
    /// Those that point into dom0.
    pointers: LocSet,
    /// Registers with the same number hold the same pointer, up to a constant. Known since
    /// the start of the block.
    same: [u32; Reg::COUNT as usize],
    /// The next number.
    next: u32,
}

impl Known {
    fn on_arrival(pointers: LocSet) -> Known {
        Known {
            pointers,
            same: std::array::from_fn(|n| n as u32),
            next: Reg::COUNT.into(),
        }
    }

    /// A register is a pointer into dom0, and so are its copies.
    fn compared(&mut self, register: Reg) {
        let of = |r: Reg| self.same[usize::from(r.number())];
        let copies = Reg::all().filter(|r| of(*r) == of(register));
        self.pointers = copies.map(LocSet::reg).fold(self.pointers, LocSet::union);
    }

    fn copied(&mut self, from: Reg, to: Reg) {
        let is_pointer = from == Reg::RSP || self.pointers.contains(LocSet::reg(from));
        let same = self.same[usize::from(from.number())];
        self.written(LocSet::reg(to));
        self.same[usize::from(to.number())] = same;
        if is_pointer {
            self.pointers = self.pointers.union(LocSet::reg(to));
        }
    }

    fn written(&mut self, registers: LocSet) {
        self.pointers = self.pointers.minus(registers);
        for register in Reg::all().filter(|r| registers.intersects(LocSet::reg(*r))) {
            self.same[usize::from(register.number())] = self.next;
            self.next += 1;
        }
    }
}

impl Code<'_> {
    /// The registers that point into dom0 at the start of each block, on every path there;
    /// `None` where no path from a function's start leads.
    fn solve(&self) -> Vec<Option<LocSet>> {
        let flow = self.flow;
        let mut arriving = vec![None; flow.nodes().len()];
        let mut work = Vec::new();
        for function in &self.lifted.functions {
            if function.insts.start < function.insts.end {
                let first = flow.block_of(InstIdx(function.insts.start));
                arriving[first.0 as usize] = Some(LocSet::empty());
                work.push(first);
            }
        }
        // The sets only become smaller: no block comes here more often than there are registers.
        while let Some(block) = work.pop() {
            let known = arriving[block.0 as usize].unwrap_or(LocSet::empty());
            let left = self.leaving(block, known);
            for &next in self.flow.continuations(block) {
                let there = &mut arriving[next.0 as usize];
                let joined = there.map_or(left, |known: LocSet| known.intersect(left));
                if *there != Some(joined) {
                    *there = Some(joined);
                    work.push(next);
                }
            }
        }
        arriving
    }

    fn leaving(&self, block: BlockId, arriving: LocSet) -> LocSet {
        let mut known = Known::on_arrival(arriving);
        for i in self.flow.instructions(block).map(InstIdx) {
            self.advance(i, &mut known);
        }
        known.pointers
    }

    fn check(&self, i: InstIdx, known: &Known) -> Option<PointerCheck> {
        let class = self.classes[i.0 as usize];
        let pointers = pointers(self.lifted.inst(i), class);
        let pointers = pointers.map(|p| p.filter(|p| !is_known(*p, known.pointers)));
        pointers.iter().any(Option::is_some).then(|| PointerCheck {
            pointers,
            is_counted: is_counted(class),
            keeps_flags: self.live_before[i.0 as usize].intersects(LocSet::flags()),
        })
    }

    /// Takes what is known past an instruction.
    fn advance(&self, i: InstIdx, known: &mut Known) {
        let (inst, class) = (self.lifted.inst(i), self.classes[i.0 as usize]);
        for pointer in pointers(inst, class).into_iter().flatten() {
            // With a count of 0 nothing is compared.
            if let (Pointer::Register(r), false) = (pointer, is_counted(class)) {
                known.compared(r);
            }
        }
        let survey = &self.surveys[i.0 as usize];
        match Motion::of(inst, survey) {
            Motion::Copy { to, from, .. } => known.copied(from, to),
            _ => known.written(survey.written()),
        }
        if let Some(to) = address_of(inst, class) {
            known.pointers = known.pointers.union(LocSet::reg(to));
        }
        if calls(inst) {
            known.written(LocSet::registers().minus(callee_saved()));
        }
    }
}

/// Whether it reaches nothing if `rcx` is 0.
fn is_counted(class: Class) -> bool {
    match class {
        Class::String(_, _, repeat) | Class::PortString(_, repeat) => repeat != Repeat::Once,
        _ => false,
    }
}

fn calls(inst: &Inst) -> bool {
    matches!(
        inst.iced.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

fn is_known(pointer: Pointer, known: LocSet) -> bool {
    match pointer {
        Pointer::Register(r) => known.contains(LocSet::reg(r)),
        // One is a pointer, so the other is a distance from it.
        Pointer::Sum(a, b) => known.intersects(LocSet::reg(a).union(LocSet::reg(b))),
    }
}

/// The register that gets the address of a symbol.
fn address_of(inst: &Inst, class: Class) -> Option<Reg> {
    match class {
        Class::AddressOf(to) => Some(to),
        _ if inst.immediate.is_some()
            && inst.iced.mnemonic() == Mnemonic::Mov
            && inst.iced.op0_kind() == OpKind::Register =>
        {
            crate::registers::gpr(inst.iced.op0_register())
        }
        _ => None,
    }
}

/// What an instruction reaches memory by, if these are pointers.
fn pointers(inst: &Inst, class: Class) -> [Option<Pointer>; 2] {
    match class {
        Class::Memory(Space::Heap)
        | Class::BitString(Space::Heap)
        | Class::PushMemory(Space::Heap)
        | Class::PopMemory(Space::Heap)
        | Class::CallIndirect(Callee::Memory(Space::Heap))
        | Class::JumpIndirect(Callee::Memory(Space::Heap)) => [in_operand(inst.operand()), None],
        Class::Xlat => [Some(Pointer::Register(Reg::RBX)), None],
        Class::String(op, ..) => [
            op.translates_rsi().then_some(Pointer::Register(Reg::RSI)),
            op.translates_rdi().then_some(Pointer::Register(Reg::RDI)),
        ],
        Class::PortString(port, _) => match port.input {
            true => [Some(Pointer::Register(Reg::RDI)), None],
            false => [Some(Pointer::Register(Reg::RSI)), None],
        },
        // The stack, symbols, distances from a segment, hints, tables of the own function's
        // labels; all else reaches no memory by a register.
        Class::Memory(Space::Stack | Space::Global | Space::PerCpu(_))
        | Class::BitString(Space::Stack | Space::Global | Space::PerCpu(_))
        | Class::PushMemory(Space::Stack | Space::Global | Space::PerCpu(_))
        | Class::PopMemory(Space::Stack | Space::Global | Space::PerCpu(_))
        | Class::CallIndirect(_)
        | Class::JumpIndirect(_)
        | Class::Prefetch(_)
        | Class::Switch(_)
        | Class::Plain
        | Class::Stack
        | Class::Drop
        | Class::Unreached(_)
        | Class::AddressOf(_)
        | Class::Branch(_)
        | Class::Return
        | Class::Trap(_)
        | Class::Stop
        | Class::PopFlags
        | Class::TypeHash(_)
        | Class::Port(_)
        | Class::FramePointerToStack
        | Class::Realign(_)
        | Class::Keep(_)
        | Class::KeepOwnPlace(_)
        | Class::KeepBranch(_)
        | Class::StaticNop => [None, None],
    }
}

fn in_operand(operand: Operand) -> Option<Pointer> {
    if operand.relocated || operand.narrow || operand.segment.is_some() {
        return None;
    }
    match (operand.base, operand.index) {
        (Base::Register(Reg::RSP) | Base::Rip | Base::None, _) => None,
        (Base::Register(base), Index::Register(index, 0)) => Some(Pointer::Sum(base, index)),
        // No pointer is multiplied.
        (Base::Register(base), _) => Some(Pointer::Register(base)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_a_known_pointer_is_known() {
        let known = LocSet::reg(Reg::RBX);
        assert!(is_known(Pointer::Sum(Reg::RAX, Reg::RBX), known));
        assert!(is_known(Pointer::Register(Reg::RBX), known));
        assert!(!is_known(Pointer::Sum(Reg::RAX, Reg::RCX), known));
    }

    #[test]
    fn indices_of_symbols_and_of_the_stack_are_no_pointers() {
        let at = Operand::at(Reg::RAX, 8);
        assert_eq!(in_operand(at), Some(Pointer::Register(Reg::RAX)));
        let scaled = Operand::indexed(Reg::RAX, Reg::RCX, 3);
        assert_eq!(in_operand(scaled), Some(Pointer::Register(Reg::RAX)));
        let sum = Operand::indexed(Reg::RAX, Reg::RCX, 0);
        assert_eq!(in_operand(sum), Some(Pointer::Sum(Reg::RAX, Reg::RCX)));
        let relocated = true;
        assert_eq!(in_operand(Operand { relocated, ..at }), None);
        assert_eq!(in_operand(Operand::indexed(Reg::RSP, Reg::RCX, 0)), None);
    }
}
