//! What is known of `rsp`, `rbp` and the direction flag on the way to an
//! instruction, for those whose treatment depends on it: `leave` and its
//! relatives, string instructions, operands in the stack frame.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use liveness::{BlockId, Program};
use twin_abi::stack;

use crate::class::{Class, Kind, Space};
use crate::flow::Flow;
use crate::lift::{Inst, InstIdx, Lifted, Target};
use crate::sequences::Direction;

/// Bytes of the return address, which `rsp` points to at entry.
const RETURN_ADDRESS: i64 = 8;

/// Facts before an instruction. `None` where paths disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `rsp` minus its value at function entry, in bytes.
    rsp: Option<i64>,
    /// `rbp` minus `rsp` at function entry, if it is a frame pointer.
    rbp: Option<i64>,
    /// `r10` likewise: where a frame is realigned it points to the caller's.
    r10: Option<i64>,
    /// The direction flag; clear at entry (psABI 3.2.1).
    direction: Option<Direction>,
}

impl Facts {
    const ENTRY: Facts = Facts {
        rsp: Some(0),
        rbp: None,
        r10: None,
        direction: Some(Direction::Forward),
    };

    /// `rbp - rsp`, if both are known.
    pub fn frame_distance(&self) -> Option<i64> {
        Some(self.rbp? - self.rsp?)
    }

    /// The direction of string instructions here, if known.
    pub fn direction(&self) -> Option<Direction> {
        self.direction
    }

    /// Whether an operand `disp(%rsp)` may write the return address or what is
    /// above it, or read above the arguments that every caller provides.
    fn leaves_frame(&self, iced: &Instruction, info: &mut InstructionInfoFactory) -> bool {
        let Some(rsp) = self.rsp else { return false };
        let end = rsp + iced.memory_displacement64() as i64 + iced.memory_size().size() as i64;
        let only_reads = info
            .info(iced)
            .used_memory()
            .iter()
            .all(|m| matches!(m.access(), OpAccess::Read | OpAccess::CondRead));
        end > if only_reads {
            RETURN_ADDRESS + stack::INCOMING_ARGS
        } else {
            0
        }
    }

    fn join(self, other: Facts) -> Facts {
        fn same<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<T> {
            if a == b { a } else { None }
        }
        Facts {
            rsp: same(self.rsp, other.rsp),
            rbp: same(self.rbp, other.rbp),
            r10: same(self.r10, other.r10),
            direction: same(self.direction, other.direction),
        }
    }

    fn after(mut self, inst: &Inst) -> Facts {
        let iced = &inst.iced;
        match iced.mnemonic() {
            Mnemonic::Std => self.direction = Some(Direction::Backward),
            Mnemonic::Cld => self.direction = Some(Direction::Forward),
            _ => {}
        }
        match iced.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                // The callee returns with its caller's rbp, rsp and DF clear (psABI 3.2.1).
                self.direction = Some(Direction::Forward);
                self.r10 = None;
                return self;
            }
            _ => {}
        }
        let base_offset = |facts: &Facts, base: Register| match base {
            Register::RSP => facts.rsp,
            Register::RBP => facts.rbp,
            Register::R10 => facts.r10,
            _ => None,
        };
        if names(iced, Register::R10) && iced.mnemonic() != Mnemonic::Push {
            let copied_from = base_offset(&self, Register::R10);
            self.r10 = None;
            // Only read there.
            if iced.mnemonic() == Mnemonic::Lea && iced.op0_register() != Register::R10 {
                self.r10 = copied_from;
            }
        }
        match iced.code() {
            Code::Leaveq => {
                self.rsp = self.rbp.map(|b| b + 8);
                self.rbp = None;
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64
                if iced.op0_kind() == OpKind::Register && iced.op1_kind() == OpKind::Register =>
            {
                let value = base_offset(&self, iced.op1_register());
                self.set(iced.op0_register(), value);
            }
            Code::Lea_r64_m if iced.memory_index() == Register::None => {
                let displacement = iced.memory_displacement64() as i64;
                let value = base_offset(&self, iced.memory_base()).map(|b| b + displacement);
                self.set(iced.op0_register(), value);
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if iced.op0_register() == Register::RSP => {
                self.rsp = self.rsp.map(|v| v + iced.immediate(1) as i64);
            }
            // Realigned: by how much is not known.
            Code::And_rm64_imm8 | Code::And_rm64_imm32 if iced.op0_register() == Register::RSP => {
                self.rsp = None;
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if iced.op0_register() == Register::RSP => {
                self.rsp = self.rsp.map(|v| v - iced.immediate(1) as i64);
            }
            _ => {
                self.rsp = self
                    .rsp
                    .map(|v| v + i64::from(iced.stack_pointer_increment()));
                let first_is_rbp = iced.op_count() > 0
                    && iced.op0_kind() == OpKind::Register
                    && iced.op0_register().full_register() == Register::RBP;
                if first_is_rbp && iced.mnemonic() != Mnemonic::Push {
                    self.rbp = None;
                }
            }
        }
        self
    }

    fn set(&mut self, register: Register, value: Option<i64>) {
        match register.full_register() {
            Register::RSP => self.rsp = value,
            Register::RBP => self.rbp = value,
            Register::R10 => self.r10 = value,
            _ => {}
        }
    }
}

/// Facts before the instructions whose treatment depends on them.
pub struct FactsBefore {
    /// In the order of the instructions.
    found: Vec<(InstIdx, Facts)>,
}

impl FactsBefore {
    /// What is known before an instruction.
    pub fn get(&self, i: InstIdx) -> Option<&Facts> {
        let n = self.found.binary_search_by_key(&i, |(i, _)| *i).ok()?;
        Some(&self.found[n].1)
    }
}

/// Facts before each instruction whose treatment depends on them.
pub fn analyse(lifted: &Lifted<'_>, flow: &Flow, classes: &[Class]) -> FactsBefore {
    let asks = |i: u32| match classes[i as usize] {
        Class::FramePointerToStack | Class::String(..) | Class::Stack => true,
        Class::Memory(Space::Heap) | Class::PushMemory(Space::Heap) => {
            through_frame_pointer(&lifted.insts[i as usize])
        }
        _ => false,
    };
    let before = solve(lifted, flow);
    let mut found = Vec::new();
    for (block, facts) in flow.blocks().iter().zip(before) {
        let Some(mut facts) = facts.filter(|_| block.clone().any(asks)) else {
            continue;
        };
        for i in block.clone() {
            if asks(i) {
                found.push((InstIdx(i), facts));
            }
            facts = facts.after(&lifted.insts[i as usize]);
        }
    }
    FactsBefore { found }
}

/// Operands that are written through `rsp` but lie in the caller's frame (stack
/// arguments, which a compiler may reuse) are reached like any pointer: the
/// slow path knows the whole stack, a displacement from `rsp` is only good for
/// the own frame.
pub fn translate_callers_frame(lifted: &Lifted<'_>, facts: &FactsBefore, classes: &mut [Class]) {
    let mut info = InstructionInfoFactory::new();
    for (i, facts) in &facts.found {
        let class = &mut classes[i.0 as usize];
        if *class == Class::Stack && facts.leaves_frame(&lifted.inst(*i).iced, &mut info) {
            *class = Class::Memory(Space::Heap);
        }
    }
}

/// Operands `disp(%rbp)` where `rbp` is a frame pointer stay as they are in a
/// module for a stock kernel, and `disp(%r10)` where a frame is realigned.
pub fn keep_frame_pointer(lifted: &Lifted<'_>, facts: &FactsBefore, classes: &mut [Class]) {
    for (i, facts) in &facts.found {
        let inst = lifted.inst(*i);
        let class = &mut classes[i.0 as usize];
        let heap = matches!(
            class,
            Class::Memory(Space::Heap) | Class::PushMemory(Space::Heap)
        );
        let known = match inst.iced.memory_base() {
            Register::RBP => facts.rbp,
            _ => facts.r10,
        };
        if heap && known.is_some() && through_frame_pointer(inst) {
            *class = Class::Keep(Some(Kind::Stack));
        }
    }
}

fn through_frame_pointer(inst: &Inst) -> bool {
    let iced = &inst.iced;
    matches!(iced.memory_base(), Register::RBP | Register::R10)
        && iced.memory_index() == Register::None
        && iced.segment_prefix() == Register::None
        && inst.displacement.is_none()
}

/// Whether a register is an operand, in any width.
fn names(iced: &Instruction, register: Register) -> bool {
    (0..iced.op_count()).any(|n| {
        iced.op_kind(n) == OpKind::Register && iced.op_register(n).full_register() == register
    })
}

fn solve(lifted: &Lifted<'_>, flow: &Flow) -> Vec<Option<Facts>> {
    let blocks = flow.blocks();
    let mut before: Vec<Option<Facts>> = vec![None; blocks.len()];
    let mut work = Vec::new();
    // Functions are entered with an empty frame, parts of functions that the
    // compiler split off are not: those get their facts from their jumps.
    for function in lifted
        .functions
        .iter()
        .filter(|f| !f.insts.is_empty() && !f.name.contains(".cold"))
    {
        let entry = flow.block_of(InstIdx(function.insts.start));
        before[entry.0 as usize] = Some(Facts::ENTRY);
        work.push(entry);
    }
    while let Some(block) = work.pop() {
        let Some(mut facts) = before[block.0 as usize] else {
            continue;
        };
        for k in blocks[block.0 as usize].clone() {
            facts = facts.after(&lifted.insts[k as usize]);
        }
        for next in continues(lifted, flow, block) {
            let slot = &mut before[next.0 as usize];
            let joined = slot.map_or(facts, |old| old.join(facts));
            if *slot != Some(joined) {
                *slot = Some(joined);
                work.push(next);
            }
        }
    }
    before
}

/// Successors in the same invocation: behind a local call rather than into it.
fn continues(lifted: &Lifted<'_>, flow: &Flow, block: BlockId) -> Vec<BlockId> {
    let end = flow.blocks()[block.0 as usize].end;
    let last = &lifted.insts[end as usize - 1];
    if let (FlowControl::Call, Some(Target::Inst(_))) = (last.iced.flow_control(), last.target) {
        let next = (end as usize) < lifted.insts.len() && !flow.stops(InstIdx(end - 1));
        let unwound = flow.successors(block).iter().filter_map(|b| flow.table(*b));
        let mut to: Vec<BlockId> = unwound.flatten().copied().collect();
        to.extend(next.then(|| flow.block_of(InstIdx(end))));
        return to;
    }
    let real = flow.blocks().len() as u32;
    let mut next = Vec::new();
    for &to in flow.successors(block) {
        match flow.table(to) {
            Some(places) => next.extend_from_slice(places),
            None if to.0 < real => next.push(to),
            None => {}
        }
    }
    next
}
