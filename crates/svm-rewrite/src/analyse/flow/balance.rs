//! Which returns surely go back to the call that began their invocation.
//!
//! `ret` goes where the word at `rsp` says. That is the caller if `rsp` is where it was at
//! entry and the word is what it was then. Compilers also make other returns:
//!
//! ```text
//!         call  .L1               -mfunction-return=thunk-inline
//!     .L0: pause; lfence; jmp .L0
//!     .L1: lea  8(%rsp),%rsp
//!         ret                     returns from the function, not to .L0
//!
//!     .L1: mov  %rax,(%rsp)       -mindirect-branch=thunk, -mretpoline
//!         ret                     jumps to *%rax
//! ```
//!
//! The edges from returns to the places after calls do not hold for these. So a return that
//! is found here not to be an ordinary one is taken for a jump out of the object to code that
//! may read every register; where any calling convention may be in use, so is one that is not
//! proved to be ordinary.
//!
//! The direction flag is followed too: it must be clear at calls and returns (psABI 3.2.1), and
//! so at ports and traps where these become calls.
//!
//! What is found also says where a function does not keep its stack in order: how deep it is
//! depends on the path, or something is left on it where the function ends ([`Unbalanced`]).

use std::collections::BTreeMap;
use std::ops::Range;

use foldhash::HashSet;
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, Register};
use liveness::{BlockId, LocSet, Reg};
use twin_abi::stack;

use super::invocations::BlockEnding;
use super::{Edges, Exit};
use crate::analyse::routines;
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::Operand;
use crate::lift::{Destination, Inst, InstIdx, Lifted};
use crate::registers::reg64;

/// Bytes of the return address, which `rsp` points to at entry.
const RETURN_ADDRESS: i64 = 8;

/// More bytes than a sequence pushes: eight registers, the three of a chunk of a string, two over a
/// call, and what is skipped of a red zone.
const SEQUENCE: i64 = 256;

/// The deepest `rsp` where there is room for a sequence.
const DEEP: i64 = SEQUENCE - stack::MAX_FRAME;

/// Where a return goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnsTo {
    /// To the caller of the invocation.
    ToCaller,
    /// Not known.
    Anywhere,
    /// Not to its caller: the stack is another, or the word at `rsp` was written.
    Elsewhere,
}

/// What is known of the stack at a place, counted from `rsp` at entry. `None` where paths
/// disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth {
    rsp: Option<i64>,
    rbp: Option<i64>,
    /// The lowest that `rsp` may be in a realigned frame, where `rsp` is not known.
    least: Option<i64>,
    /// The return address may have been written.
    overwritten: bool,
    /// The direction flag may be set.
    backward: bool,
}

impl Depth {
    const ENTRY: Depth = Depth {
        rsp: Some(0),
        rbp: None,
        least: None,
        overwritten: false,
        backward: false,
    };

    fn join(self, other: Depth) -> Depth {
        Depth {
            rsp: self.rsp.filter(|_| self.rsp == other.rsp),
            rbp: self.rbp.filter(|_| self.rbp == other.rbp),
            least: self.least.filter(|_| self.least == other.least),
            overwritten: self.overwritten || other.overwritten,
            backward: self.backward || other.backward,
        }
    }

    /// How `rsp` is not the same on two paths, if that is known.
    fn disagrees(self, other: Depth) -> Option<Unbalanced> {
        let realigned = self.rsp.is_none() || other.rsp.is_none();
        let (one, two) = (self.deepest()?, other.deepest()?);
        match (self.rsp, self.least) == (other.rsp, other.least) {
            true => None,
            false if realigned => Some(Unbalanced::RealignedPaths),
            false => Some(Unbalanced::Paths(one.wrapping_neg(), two.wrapping_neg())),
        }
    }

    fn returns(self) -> ReturnsTo {
        match (self.rsp, self.overwritten) {
            (Some(0), false) => ReturnsTo::ToCaller,
            (None, false) => ReturnsTo::Anywhere,
            (Some(_), _) | (None, true) => ReturnsTo::Elsewhere,
        }
    }

    /// Whether `rsp` is above the return address, or so far down that a sequence may make it too
    /// deep.
    fn is_strange(self) -> bool {
        let is_strange = |rsp| !(DEEP..=0).contains(&rsp);
        self.deepest().is_some_and(is_strange)
    }

    /// Whether [`Depth::at_end`] may say what is wrong.
    fn may_not_end(self, input: Input<'_, '_>, block: BlockId) -> bool {
        let may_end = matches!(
            input.endings[block.0 as usize],
            BlockEnding::Return | BlockEnding::TailOut
        );
        may_end && (self.rsp != Some(0) || self.overwritten)
    }

    /// What is wrong at the end of a block, where the function may end.
    fn at_end(self, input: Input<'_, '_>, block: BlockId, last: InstIdx) -> Option<Unbalanced> {
        let ending = input.endings[block.0 as usize];
        if !matches!(ending, BlockEnding::Return | BlockEnding::TailOut) {
            return None;
        }
        match self.rsp {
            Some(rsp) if rsp < 0 && is_indirect(input.lifted, last) => {
                Some(Unbalanced::Computed(-rsp))
            }
            Some(rsp) if rsp < 0 => Some(Unbalanced::Left(-rsp)),
            None if self.least.is_some() => Some(Unbalanced::Realigned),
            _ if ending == BlockEnding::Return && self.overwritten => Some(Unbalanced::Overwritten),
            _ => None,
        }
    }

    fn get(self, register: Register) -> Option<i64> {
        match register {
            Register::RSP => self.rsp,
            Register::RBP => self.rbp,
            _ => None,
        }
    }

    fn set(&mut self, register: Register, value: Option<i64>) {
        match register {
            Register::RSP => (self.rsp, self.least) = (value, None),
            Register::RBP => self.rbp = value,
            _ => {}
        }
    }

    /// How far down `rsp` may be.
    fn deepest(self) -> Option<i64> {
        self.rsp.or(self.least)
    }

    /// These instructions, if a sequence may push more than there is room for here.
    fn deep(self, insts: Range<u32>) -> impl Iterator<Item = Deep> {
        let is_deep = |rsp| rsp < DEEP;
        let insts = match self.deepest().is_some_and(is_deep) {
            true => insts,
            false => 0..0,
        };
        insts.map(move |i| Deep {
            inst: InstIdx(i),
            realigned: self.least.map(i64::wrapping_neg),
        })
    }

    /// Where an operand without an index points to.
    fn place(self, iced: &Instruction) -> Option<i64> {
        let (base, displacement) = Operand::of(iced).simple()?;
        Some(self.get(reg64(base))? + displacement)
    }

    /// Updates the depth over an instruction.
    fn pass(&mut self, inst: &Inst, survey: &Survey) {
        let iced = &inst.iced;
        let moved = i64::from(iced.stack_pointer_increment());
        if survey.memory == MemoryEffect::Written {
            self.store(iced, moved);
        }
        // A callee leaves rsp and rbp as they were (psABI 3.2.1).
        if leaves(inst) {
            return;
        }
        let op0 = iced.op0_register();
        match iced.code() {
            Code::Std => self.backward = true,
            Code::Cld => self.backward = false,
            Code::Leaveq => {
                self.set(Register::RSP, self.rbp.map(|rbp| rbp + 8));
                self.rbp = None;
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => self.set(op0, self.get(iced.op1_register())),
            Code::Lea_r64_m
                if op0 == Register::RSP
                    && inst.displacement.is_none()
                    && Operand::of(iced)
                        .simple()
                        .is_some_and(|(base, _)| base == Reg::RSP) =>
            {
                self.add(op0, iced.memory_displacement64() as i64);
            }
            Code::Lea_r64_m => {
                let place = self.place(iced).filter(|_| inst.displacement.is_none());
                self.set(op0, place);
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => self.add(op0, iced.immediate(1) as i64),
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
                self.add(op0, (iced.immediate(1) as i64).wrapping_neg());
            }
            _ => {
                if survey.writes(Reg::RBP) {
                    self.rbp = None;
                }
                // Of push and pop, rsp is the implied operand. It is the named one of
                // `pop %rsp`, and of all that do not count: `and $-32,%rsp`.
                let counts = moved < 0 || moved > 0 && op0.full_register() != Register::RSP;
                if counts {
                    self.add(Register::RSP, moved);
                } else if survey.writes(Reg::RSP) {
                    let least = self.realigned(iced);
                    self.set(Register::RSP, None);
                    self.least = least;
                }
            }
        }
    }

    fn add(&mut self, register: Register, amount: i64) {
        let add = |at: Option<i64>| at.and_then(|at| at.checked_add(amount));
        let least = add(self.least).filter(|_| register == Register::RSP);
        self.set(register, add(self.get(register)));
        self.least = least.or(self.least);
    }

    /// How far down `and $-32,%rsp` may move `rsp`, a multiple of 8.
    fn realigned(self, iced: &Instruction) -> Option<i64> {
        let realigns = matches!(iced.code(), Code::And_rm64_imm8 | Code::And_rm64_imm32);
        let mask = realigns.then(|| iced.immediate(1) as i64)?;
        let padding = mask.wrapping_neg().checked_sub(RETURN_ADDRESS)?;
        self.deepest()?.checked_sub(padding.max(0))
    }

    /// A store to a place in the frame. One with an index is to an array, which does not
    /// hold the return address; one through another register, to anything else.
    fn store(&mut self, iced: &Instruction, moved: i64) {
        let pushes = moved < 0;
        let (at, size) = match (pushes, self.rsp, self.place(iced)) {
            (true, Some(rsp), _) => (rsp + moved, -moved),
            // `pop 8(%rsp)` counts from the place after the pop.
            (false, _, Some(at)) => (at + moved, iced.memory_size().size() as i64),
            (true, None, _) | (false, _, None) => return,
        };
        self.overwritten |= at < RETURN_ADDRESS && at + size > 0;
    }
}

/// What the analysis works from.
#[derive(Clone, Copy)]
pub struct Input<'i, 'a> {
    /// The instructions.
    pub lifted: &'i Lifted<'a>,
    /// How each instruction continues.
    pub exits: &'i [Exit],
    /// What the decoder says of each.
    pub surveys: &'i [Survey],
    /// Whether each may change what is known of the stack.
    pub changes_facts: &'i [bool],
    /// Instructions of each block that has any.
    pub blocks: &'i [Range<u32>],
    pub endings: &'i [BlockEnding],
    /// Successors of each block, into callees but not back.
    pub successors: &'i Edges,
    /// Calls of local functions that are known never to return, by instruction.
    pub stops: &'i HashSet<u32>,
    /// Instructions that may not take effect before control leaves them, by index.
    pub skipped: &'i HashSet<u32>,
}

/// What was found.
pub struct Balance {
    /// Of each block that ends in a return, where it goes. Of others, nothing is said.
    pub returns: Vec<ReturnsTo>,
    /// Calls, returns, ports and traps where the direction flag may be set, in order.
    pub backward: Vec<InstIdx>,
    /// Where the stack is not in order.
    pub unbalanced: Vec<(InstIdx, Unbalanced)>,
    /// Where the stack is nearly as deep as it may be, in order.
    pub deep: Vec<Deep>,
}

/// An instruction where the stack is nearly as deep as it may be.
#[derive(Clone, Copy, Debug)]
pub struct Deep {
    pub inst: InstIdx,
    /// How many bytes `rsp` may be below its place at entry, if the stack was realigned.
    pub realigned: Option<i64>,
}

/// How a function does not keep its stack in order. Depths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbalanced {
    /// Two paths come here with the stack so deep.
    Paths(i64, i64),
    /// Two paths come here, the stack is realigned, and not as deep on one as on the other.
    RealignedPaths,
    /// `rsp` is moved above the return address.
    Above,
    /// The stack becomes so deep.
    Deep(i64),
    /// The function returns, or goes to a name outside, with so much left.
    Left(i64),
    /// The function ends, and has not taken back a realignment of its stack.
    Realigned,
    /// An indirect jump leaves so much: it is to a label, if to anything.
    Computed(i64),
    /// The function returns after it may have written its return address.
    Overwritten,
}

/// Follows the stack from `entries`, the blocks that invocations begin with.
pub fn analyse(input: Input<'_, '_>, entries: &[BlockId]) -> Balance {
    let mut search = Search {
        before: vec![None; input.endings.len()],
        work: Vec::new(),
        disagree: BTreeMap::new(),
        strange: vec![false; input.endings.len()],
        sets_direction: false,
    };
    for entry in entries {
        search.arrive(*entry, Depth::ENTRY);
    }
    let mut balance = Balance {
        returns: vec![ReturnsTo::Anywhere; input.endings.len()],
        backward: Vec::new(),
        unbalanced: Vec::new(),
        deep: Vec::new(),
    };
    while let Some((block, mut depth)) = search.next() {
        let mut strange = depth.is_strange();
        for i in input.changes(block) {
            let before = depth;
            depth.pass(&input.lifted.insts[i as usize], &input.surveys[i as usize]);
            search.sets_direction |= depth.backward;
            strange |= depth.is_strange();
            if input.skipped.contains(&i) {
                depth = depth.join(before);
            }
        }
        search.strange[block.0 as usize] |= strange || depth.may_not_end(input, block);
        match input.endings[block.0 as usize] {
            BlockEnding::Return => balance.returns[block.0 as usize] = depth.returns(),
            BlockEnding::Call(to, behind) => {
                search.arrive(to, Depth::ENTRY);
                let behind = behind.filter(|next| input.goes_on(block, *next));
                behind
                    .into_iter()
                    .for_each(|next| search.arrive(next, depth));
            }
            BlockEnding::TailOut | BlockEnding::Other => {
                let next = input.successors.of(block).iter();
                let next = next.filter(|next| input.goes_on(block, **next));
                next.for_each(|next| search.arrive(*next, depth));
            }
        }
    }
    if search.sets_direction {
        balance.backward = search.backward(input);
    }
    search.stack(input, &mut balance);
    balance
}

/// Whether a jump goes where a register or a word says, perhaps through a thunk.
fn is_indirect(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let inst = lifted.inst(i);
    match inst.target {
        Some(Destination::Import(s)) => routines::indirect_thunk(lifted.symbol_name(s)).is_some(),
        _ => inst.iced.flow_control() == FlowControl::IndirectBranch,
    }
}

/// Whether it is a port or a trap, of which a hypervisor's instance makes a call.
pub fn is_gate(iced: &Instruction) -> bool {
    matches!(
        iced.mnemonic(),
        Mnemonic::In | Mnemonic::Out | Mnemonic::Ud2
    )
}

/// Whether it is a call or return.
fn leaves(inst: &Inst) -> bool {
    routines::is_call(&inst.iced) || inst.iced.flow_control() == FlowControl::Return
}

impl Input<'_, '_> {
    /// Whether control may go from a block to one of its successors, as far as calls tell:
    /// where padding follows a call, the callee does not return.
    fn goes_on(&self, block: BlockId, next: BlockId) -> bool {
        let Some(last) = self.blocks.get(block.0 as usize).map(|insts| insts.end - 1) else {
            return true;
        };
        let calls =
            |i: u32| self.may_leave(i) && routines::is_call(&self.lifted.insts[i as usize].iced);
        let padding = |first: u32| {
            let f = self.lifted.function_of(InstIdx(first));
            self.lifted.function(f).padding
        };
        let first = self.blocks.get(next.0 as usize).map(|insts| insts.start);
        let behind = || first.is_some_and(|first| first == last + 1 && padding(first));
        !(self.stops.contains(&last) || calls(last) && behind())
    }

    /// The instructions of a block that may change what is known, and its returns.
    fn changes(&self, block: BlockId) -> impl Iterator<Item = u32> {
        let insts = self.blocks.get(block.0 as usize).cloned();
        let insts = insts.unwrap_or(0..0);
        let last = insts.end.saturating_sub(1);
        // Calls are among those that may change facts, and a return ends its block.
        insts.filter(move |&i| {
            let leaves = || self.may_leave(i) && leaves(&self.lifted.insts[i as usize]);
            self.changes_facts[i as usize] && self.concerns_stack(i) || i == last && leaves()
        })
    }

    /// Whether an instruction may be a call or return. This is known of all without a look at
    /// the instructions, which are in no near cache.
    fn may_leave(&self, i: u32) -> bool {
        matches!(
            self.exits[i as usize],
            Exit::CallLocal(_) | Exit::CallOut | Exit::CallStop | Exit::Return
        )
    }

    /// Whether an instruction has to do with the stack, the registers that lead to it, or the
    /// direction flag.
    fn concerns_stack(&self, i: u32) -> bool {
        const POINTERS: LocSet = LocSet::reg(Reg::RSP).union(LocSet::reg(Reg::RBP));
        let survey = &self.surveys[i as usize];
        survey.uses_stack || survey.registers().intersects(POINTERS) || survey.sets_direction
    }
}

/// What is known before each block so far, and the blocks to look at again.
struct Search {
    before: Vec<Option<Depth>>,
    work: Vec<BlockId>,
    /// Blocks where `rsp` is not the same on two paths.
    disagree: BTreeMap<u32, Unbalanced>,
    /// Blocks in which the stack was not in order, or deep, with something that was known
    /// before them.
    strange: Vec<bool>,
    /// Whether the direction flag may be set behind an instruction.
    sets_direction: bool,
}

impl Search {
    fn arrive(&mut self, block: BlockId, depth: Depth) {
        let known = &mut self.before[block.0 as usize];
        if *known == Some(depth) {
            return;
        }
        if let Some(paths) = known.and_then(|old| old.disagrees(depth)) {
            self.disagree.entry(block.0).or_insert(paths);
        }
        let joined = known.map_or(depth, |old| old.join(depth));
        if known.replace(joined) != Some(joined) {
            self.work.push(block);
        }
    }

    /// Where the direction flag may be set and must not be, when all is known.
    fn backward(&self, input: Input<'_, '_>) -> Vec<InstIdx> {
        let code = |i: u32| input.lifted.insts[i as usize].iced.code();
        let mut found = Vec::new();
        for (n, before) in self.before.iter().enumerate() {
            let (Some(depth), Some(insts)) = (before, input.blocks.get(n)) else {
                continue;
            };
            let mut sets = input.changes(BlockId(n as u32));
            if !depth.backward && !sets.any(|i| code(i) == Code::Std) {
                continue;
            }
            let ends = matches!(input.endings[n], BlockEnding::TailOut).then_some(insts.end - 1);
            let mut backward = depth.backward;
            for i in insts.clone() {
                let inst = &input.lifted.insts[i as usize];
                let asks = leaves(inst) || is_gate(&inst.iced) || ends == Some(i);
                found.extend((backward && asks).then_some(InstIdx(i)));
                backward = match code(i) {
                    Code::Std => true,
                    Code::Cld => backward && input.skipped.contains(&i),
                    _ => backward,
                };
            }
        }
        found.sort_unstable();
        found
    }

    /// Where the stack is not in order, and where it is nearly as deep as it may be, when all is
    /// known.
    fn stack(&self, input: Input<'_, '_>, balance: &mut Balance) {
        let Balance {
            unbalanced, deep, ..
        } = balance;
        for (block, before) in (0..).map(BlockId).zip(&self.before) {
            let (Some(mut depth), Some(insts)) = (*before, input.blocks.get(block.0 as usize))
            else {
                continue;
            };
            if let Some(paths) = self.disagree.get(&block.0) {
                unbalanced.push((InstIdx(insts.start), *paths));
            }
            // What is known at last was known when the block was last looked at.
            if !self.strange[block.0 as usize] {
                continue;
            }
            let mut from = insts.start;
            for i in input.changes(block) {
                deep.extend(depth.deep(from..i + 1));
                from = i + 1;
                let before = depth.deepest();
                depth.pass(&input.lifted.insts[i as usize], &input.surveys[i as usize]);
                match depth.deepest().filter(|now| Some(*now) != before) {
                    Some(now) if now > 0 && depth.rsp.is_some() => {
                        unbalanced.push((InstIdx(i), Unbalanced::Above))
                    }
                    Some(now) if now < -stack::MAX_FRAME => {
                        unbalanced.push((InstIdx(i), Unbalanced::Deep(now.wrapping_neg())));
                    }
                    _ => {}
                }
            }
            deep.extend(depth.deep(from..insts.end));
            let last = InstIdx(insts.end - 1);
            unbalanced.extend(depth.at_end(input, block, last).map(|why| (last, why)));
        }
        deep.sort_unstable_by_key(|deep| deep.inst);
    }

    fn next(&mut self) -> Option<(BlockId, Depth)> {
        let block = self.work.pop()?;
        Some((block, self.before[block.0 as usize]?))
    }
}
