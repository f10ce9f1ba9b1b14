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
//! The direction flag is followed too: it must be clear at calls and returns (psABI 3.2.1).

use std::ops::Range;

use iced_x86::{Code, FlowControl, Instruction, Register};
use liveness::{BlockId, Reg};

use super::Edges;
use super::invocations::BlockEnding;
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::Operand;
use crate::lift::{Inst, InstIdx, Lifted};
use crate::registers::reg64;

/// Bytes of the return address, which `rsp` points to at entry.
const RETURN_ADDRESS: i64 = 8;

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
    /// The return address may have been written.
    overwritten: bool,
    /// The direction flag may be set.
    backward: bool,
}

impl Depth {
    const ENTRY: Depth = Depth {
        rsp: Some(0),
        rbp: None,
        overwritten: false,
        backward: false,
    };

    fn join(self, other: Depth) -> Depth {
        Depth {
            rsp: self.rsp.filter(|_| self.rsp == other.rsp),
            rbp: self.rbp.filter(|_| self.rbp == other.rbp),
            overwritten: self.overwritten || other.overwritten,
            backward: self.backward || other.backward,
        }
    }

    fn returns(self) -> ReturnsTo {
        match (self.rsp, self.overwritten) {
            (Some(0), false) => ReturnsTo::ToCaller,
            (None, false) => ReturnsTo::Anywhere,
            (Some(_), _) | (None, true) => ReturnsTo::Elsewhere,
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
            Register::RSP => self.rsp = value,
            Register::RBP => self.rbp = value,
            _ => {}
        }
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
                self.rsp = self.rbp.map(|rbp| rbp + 8);
                self.rbp = None;
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => self.set(op0, self.get(iced.op1_register())),
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
                    self.rsp = None;
                }
            }
        }
    }

    fn add(&mut self, register: Register, amount: i64) {
        let value = self.get(register);
        self.set(register, value.and_then(|at| at.checked_add(amount)));
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
    /// What the decoder says of each.
    pub surveys: &'i [Survey],
    /// Whether each may change what is known of the stack.
    pub changes_facts: &'i [bool],
    /// Instructions of each block that has any.
    pub blocks: &'i [Range<u32>],
    pub endings: &'i [BlockEnding],
    /// Successors of each block, into callees but not back.
    pub successors: &'i Edges,
}

/// What was found.
pub struct Balance {
    /// Of each block that ends in a return, where it goes. Of others, nothing is said.
    pub returns: Vec<ReturnsTo>,
    /// Calls and returns where the direction flag may be set.
    pub backward: Vec<InstIdx>,
}

/// Follows the stack from `entries`, the blocks that invocations begin with.
pub fn analyse(input: Input<'_, '_>, entries: impl Iterator<Item = BlockId>) -> Balance {
    let mut search = Search {
        before: vec![None; input.endings.len()],
        work: Vec::new(),
    };
    for entry in entries {
        search.arrive(entry, Depth::ENTRY);
    }
    let mut balance = Balance {
        returns: vec![ReturnsTo::Anywhere; input.endings.len()],
        backward: Vec::new(),
    };
    while let Some((block, mut depth)) = search.next() {
        for i in input.changes(block) {
            if depth.backward && leaves(&input.lifted.insts[i as usize]) {
                balance.backward.push(InstIdx(i));
            }
            depth.pass(&input.lifted.insts[i as usize], &input.surveys[i as usize]);
        }
        match input.endings[block.0 as usize] {
            BlockEnding::Return => balance.returns[block.0 as usize] = depth.returns(),
            BlockEnding::Call(to, behind) => {
                search.arrive(to, Depth::ENTRY);
                behind
                    .into_iter()
                    .for_each(|next| search.arrive(next, depth));
            }
            BlockEnding::TailOut | BlockEnding::Other => {
                let next = input.successors.of(block);
                next.iter().for_each(|next| search.arrive(*next, depth));
            }
        }
    }
    balance.backward.sort_unstable();
    balance.backward.dedup();
    balance
}

/// Whether it is a call or return.
fn leaves(inst: &Inst) -> bool {
    matches!(
        inst.iced.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
    )
}

impl Input<'_, '_> {
    /// The instructions of a block that may change what is known, and its returns.
    fn changes(&self, block: BlockId) -> impl Iterator<Item = u32> {
        let insts = self
            .blocks
            .get(block.0 as usize)
            .cloned()
            .into_iter()
            .flatten();
        insts.filter(|i| {
            let i = *i as usize;
            self.changes_facts[i] || leaves(&self.lifted.insts[i])
        })
    }
}

/// What is known before each block so far, and the blocks to look at again.
struct Search {
    before: Vec<Option<Depth>>,
    work: Vec<BlockId>,
}

impl Search {
    fn arrive(&mut self, block: BlockId, depth: Depth) {
        let known = &mut self.before[block.0 as usize];
        let joined = known.map_or(depth, |old| old.join(depth));
        if known.replace(joined) != Some(joined) {
            self.work.push(block);
        }
    }

    fn next(&mut self) -> Option<(BlockId, Depth)> {
        let block = self.work.pop()?;
        Some((block, self.before[block.0 as usize]?))
    }
}
