//! What is known of `rsp`, of registers that point into the frame, and of the
//! direction flag on the way to an instruction, for those whose treatment
//! depends on it: `leave` and its relatives, string instructions, operands in
//! the stack frame.
//!
//! Where a function realigns its stack, each of its copies has facts of its own
//! ([`crate::copies`]).

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};
use liveness::{BlockId, Program};
use twin_abi::stack;

use crate::class::{Class, Kind, Space};
use crate::copies::{Copies, Copy, is_entered};
use crate::flow::Flow;
use crate::frame::{Frame, Place};
use crate::lift::{Inst, InstIdx, Lifted, Target};
use crate::sequences::Direction;
use crate::survey::{Memory, Survey};

/// Bytes of the return address, which `rsp` points to at entry.
const RETURN_ADDRESS: i64 = 8;

/// Facts before an instruction. `None` where paths disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    frame: Frame,
    /// The direction flag; clear at entry (psABI 3.2.1).
    direction: Option<Direction>,
}

impl Facts {
    const ENTRY: Facts = Facts {
        frame: Frame::ENTRY,
        direction: Some(Direction::Forward),
    };

    /// How far `rsp` moves when it is set to this register, if that is known.
    pub fn distance_to(&self, register: Register) -> Option<i64> {
        Some(self.frame.get(register)? - self.frame.get(Register::RSP)?)
    }

    /// How far `and $-alignment,%rsp` moves `rsp` down, if that is known.
    pub fn padding(&self, alignment: u8, copy: Copy) -> Option<i64> {
        let before = self.frame.get(Register::RSP)?;
        Some(before - aligned(before, alignment, copy))
    }

    /// The direction of string instructions here, if known.
    pub fn direction(&self) -> Option<Direction> {
        self.direction
    }

    /// Whether an operand `disp(%rsp)` may write the return address or what is
    /// above it, or read above the arguments that every caller provides.
    fn leaves_frame(&self, iced: &Instruction, memory: Memory) -> bool {
        let Some(rsp) = self.frame.get(Register::RSP) else {
            return false;
        };
        let end = rsp + iced.memory_displacement64() as i64 + iced.memory_size().size() as i64;
        end > if memory != Memory::Written {
            RETURN_ADDRESS + stack::INCOMING_ARGS
        } else {
            0
        }
    }

    fn join(self, other: Facts) -> Facts {
        Facts {
            frame: self.frame.join(&other.frame),
            direction: if self.direction == other.direction {
                self.direction
            } else {
                None
            },
        }
    }

    /// Becomes what holds after an instruction. Where realigned functions are not copied, what is
    /// known of `rsp` behind that is right up to one distance for all.
    fn pass(&mut self, inst: &Inst, copy: Copy) {
        let iced = &inst.iced;
        match iced.mnemonic() {
            Mnemonic::Std => self.direction = Some(Direction::Backward),
            Mnemonic::Cld => self.direction = Some(Direction::Forward),
            _ => {}
        }
        if let FlowControl::Call | FlowControl::IndirectCall = iced.flow_control() {
            // The callee returns with the registers that it keeps for its
            // caller, with rsp, and with DF clear (psABI 3.2.1).
            self.direction = Some(Direction::Forward);
            self.frame.called();
            return;
        }
        self.frame.store(iced);
        match iced.code() {
            Code::Leaveq => {
                let saved = self.frame.get(Register::RBP);
                self.frame.set(Register::RSP, saved);
                self.pop(Register::RBP);
            }
            Code::Push_r64 => {
                self.frame.push(Some(iced.op0_register()));
            }
            Code::Pop_r64 => self.pop(iced.op0_register()),
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 if iced.op0_kind() == OpKind::Register => {
                let value = match iced.op1_kind() {
                    OpKind::Register => self.frame.get(iced.op1_register()),
                    _ => self.frame.place(iced).and_then(|at| self.frame.load(at)),
                };
                self.frame.set(iced.op0_register(), value);
            }
            Code::Lea_r64_m => {
                let value = self.frame.place(iced).map(|Place(at)| at);
                self.frame.set(iced.op0_register(), value);
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if iced.op0_register() == Register::RSP => {
                self.move_rsp(|rsp| rsp + iced.immediate(1) as i64);
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if iced.op0_register() == Register::RSP => {
                self.move_rsp(|rsp| rsp - iced.immediate(1) as i64);
            }
            Code::And_rm64_imm8 | Code::And_rm64_imm32 if iced.op0_register() == Register::RSP => {
                let alignment = u8::try_from(iced.immediate(1).wrapping_neg());
                match alignment {
                    Ok(alignment) if alignment.is_power_of_two() => {
                        self.move_rsp(|rsp| aligned(rsp, alignment, copy));
                    }
                    _ => self.frame.set(Register::RSP, None),
                }
            }
            _ if iced.mnemonic() == Mnemonic::Push && iced.stack_pointer_increment() == -8 => {
                self.frame.push(None);
            }
            _ => {
                let moved = i64::from(iced.stack_pointer_increment());
                self.move_rsp(|rsp| rsp + moved);
                self.frame.overwrite(iced);
            }
        }
    }

    fn pop(&mut self, to: Register) {
        let value = self
            .frame
            .get(Register::RSP)
            .and_then(|rsp| self.frame.load(Place(rsp)));
        self.move_rsp(|rsp| rsp + 8);
        self.frame.set(to, value);
    }

    fn move_rsp(&mut self, to: impl Fn(i64) -> i64) {
        let rsp = self.frame.get(Register::RSP).map(to);
        self.frame.set(Register::RSP, rsp);
    }
}

/// Where `and $-alignment,%rsp` takes `rsp`, both counted from its value at
/// entry, which is the copy's residue modulo the alignment.
fn aligned(rsp: i64, alignment: u8, copy: Copy) -> i64 {
    let residue = copy.residue();
    ((rsp + residue) & -i64::from(alignment)) - residue
}

/// Facts before the instructions whose treatment depends on them.
pub struct FactsBefore {
    /// By copy; each in the order of the instructions.
    found: Vec<Vec<(InstIdx, Facts)>>,
}

impl FactsBefore {
    /// What is known before an instruction, in a copy of its function.
    pub fn get(&self, i: InstIdx, copy: Copy) -> Option<&Facts> {
        let found = self.found.get(usize::from(copy.0))?;
        let n = found.binary_search_by_key(&i, |(i, _)| *i).ok()?;
        Some(&found[n].1)
    }
}

/// Facts before each instruction whose treatment depends on them.
pub fn analyse(
    lifted: &Lifted<'_>,
    flow: &Flow,
    classes: &[Class],
    copies: &Copies,
) -> FactsBefore {
    let found = copies
        .all()
        .map(|copy| one_copy(lifted, flow, classes, copies, copy))
        .collect();
    FactsBefore { found }
}

fn one_copy(
    lifted: &Lifted<'_>,
    flow: &Flow,
    classes: &[Class],
    copies: &Copies,
    copy: Copy,
) -> Vec<(InstIdx, Facts)> {
    let asks = |i: u32| match classes[i as usize] {
        Class::FramePointerToStack
        | Class::Realign(_)
        | Class::String(..)
        | Class::PortString(..)
        | Class::Stack => true,
        Class::Memory(Space::Heap) | Class::PushMemory(Space::Heap) => {
            through_frame_pointer(&lifted.insts[i as usize])
        }
        _ => false,
    };
    let before = solve(lifted, flow, copies, copy);
    let mut found = Vec::new();
    for (block, facts) in flow.blocks().iter().zip(before) {
        let Some(mut facts) = facts.filter(|_| block.clone().any(asks)) else {
            continue;
        };
        for i in block.clone() {
            if asks(i) {
                found.push((InstIdx(i), facts));
            }
            facts.pass(&lifted.insts[i as usize], copy);
        }
    }
    found
}

/// Operands that are written through `rsp` but lie in the caller's frame (stack
/// arguments, which a compiler may reuse) are reached like any pointer: the
/// slow path knows the whole stack, a displacement from `rsp` is only good for
/// the own frame.
pub fn translate_callers_frame(
    lifted: &Lifted<'_>,
    surveys: &[Survey],
    facts: &FactsBefore,
    classes: &mut [Class],
) {
    for (i, facts) in facts.found.iter().flatten() {
        let class = &mut classes[i.0 as usize];
        if *class == Class::Stack
            && facts.leaves_frame(&lifted.inst(*i).iced, surveys[i.0 as usize].memory)
        {
            *class = Class::Memory(Space::Heap);
        }
    }
}

/// Operands `disp(%rbp)` where `rbp` is a frame pointer stay as they are in a
/// module for a stock kernel, and `disp(%r10)` where a frame is realigned.
pub fn keep_frame_pointer(lifted: &Lifted<'_>, facts: &FactsBefore, classes: &mut [Class]) {
    for (i, facts) in facts.found.iter().flatten() {
        let inst = lifted.inst(*i);
        let class = &mut classes[i.0 as usize];
        let heap = matches!(
            class,
            Class::Memory(Space::Heap) | Class::PushMemory(Space::Heap)
        );
        if heap && through_frame_pointer(inst) && facts.frame.place(&inst.iced).is_some() {
            *class = Class::Keep(Some(Kind::Stack));
        }
    }
}

fn through_frame_pointer(inst: &Inst) -> bool {
    let iced = &inst.iced;
    matches!(iced.memory_base(), Register::RBP | Register::R10)
        && iced.memory_index() == Register::None
        && inst.displacement.is_none()
}

fn solve(lifted: &Lifted<'_>, flow: &Flow, copies: &Copies, copy: Copy) -> Vec<Option<Facts>> {
    let blocks = flow.blocks();
    let mut before: Vec<Option<Facts>> = vec![None; blocks.len()];
    let mut work = Vec::new();
    // Functions are entered with an empty frame, parts of functions that the
    // compiler split off are not: those get their facts from their jumps.
    for (f, function) in lifted.functions.iter().enumerate() {
        let f = crate::lift::FuncIdx(f as u32);
        if !is_entered(lifted, f) || !copies.of(f).any(|c| c == copy) {
            continue;
        }
        let entry = flow.block_of(InstIdx(function.insts.start));
        before[entry.0 as usize] = Some(Facts::ENTRY);
        work.push(entry);
    }
    while let Some(block) = work.pop() {
        let Some(mut facts) = before[block.0 as usize] else {
            continue;
        };
        for k in blocks[block.0 as usize].clone() {
            facts.pass(&lifted.insts[k as usize], copy);
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
pub fn continues(lifted: &Lifted<'_>, flow: &Flow, block: BlockId) -> Vec<BlockId> {
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
