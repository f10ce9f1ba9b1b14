//! The algorithm: computes the live locations of a program, given as one small trait.
//!
//! Takes a [`FlowGraph`], gives a [`Liveness`], changes nothing. The steps:
//!
//! 1. Summarise each block: a run of effects composes into one effect of the same shape, so from
//!    here on a block costs as much as an instruction.
//! 2. Order the blocks so that successors mostly come first (postorder of a depth-first search).
//! 3. Evaluate blocks in that order. New live locations before a block are added after its
//!    predecessors. Blocks whose live-out set grew are evaluated again, until none is left.
//!
//! The crate's documentation says why the result is right. A block is evaluated once, and again at
//! most once for each location; an edge is passed at most once for each location. In the order
//! above, few blocks are evaluated more than twice.

use crate::locations::LocSet;
use crate::order::{Pending, Predecessors, postorder};
use std::ops::Range;

/// A basic block: 0 to [`FlowGraph::block_count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// An instruction, with a number that the client chooses; a block is a range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstId(pub u32);

impl BlockId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an instruction does to liveness: `live_before = uses ∪ (live_after − kills)`.
///
/// Too many uses and too few kills are sound: they make more locations live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Effect {
    /// Locations whose value before the instruction may matter to it.
    pub uses: LocSet,
    /// Locations whose value before the instruction certainly does not outlast it.
    pub kills: LocSet,
}

impl Effect {
    /// Uses nothing, kills nothing.
    pub const NONE: Effect = Effect {
        uses: LocSet::empty(),
        kills: LocSet::empty(),
    };

    /// The effect of something unknown: it uses everything and kills nothing.
    pub const OPAQUE: Effect = Effect {
        uses: LocSet::all(),
        kills: LocSet::empty(),
    };

    /// The effect of this instruction if it may leave the block before it has written anything, as
    /// one that faults into an exception fixup does: it kills nothing.
    #[must_use]
    pub const fn interruptible(self) -> Effect {
        Effect {
            uses: self.uses,
            kills: LocSet::empty(),
        }
    }

    /// What is live before, given what is live after.
    #[must_use]
    pub const fn live_before(self, live_after: LocSet) -> LocSet {
        self.uses.union(live_after.minus(self.kills))
    }

    /// The effect of this instruction and then `next`.
    #[must_use]
    pub const fn then(self, next: Effect) -> Effect {
        Effect {
            uses: self.live_before(next.uses),
            kills: self.kills.union(next.kills),
        }
    }
}

/// A program as the algorithm sees it.
///
/// The answers must stay the same while a solution is computed and read. Every successor must be
/// below `block_count`; a violation panics.
pub trait FlowGraph {
    /// Number of blocks.
    fn block_count(&self) -> usize;

    /// The instructions of a block, in order of execution. May be empty.
    fn instructions(&self, block: BlockId) -> Range<u32>;

    /// The effect of one instruction. [`solve`] calls this once for each instruction of a block, and
    /// [`Liveness::before_each`] calls it again: worth caching if it is expensive.
    fn effect(&self, inst: InstId) -> Effect;

    /// Where control can go after the last instruction, interprocedural edges included if the
    /// client wants them. Order and repetition do not matter.
    fn successors(&self, block: BlockId) -> &[BlockId];

    /// What is live after the block on ways out that are not edges: at a return, the results and
    /// the preserved registers; at a jump to code that is not analysed, everything. Added to the live-out set,
    /// so it is empty for a block that has only edges.
    fn live_at_exit(&self, block: BlockId) -> LocSet;
}

/// The live locations at the ends of each block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    live_in: Vec<LocSet>,
    live_out: Vec<LocSet>,
}

impl Liveness {
    /// What is live before the first instruction of a block.
    pub fn live_in(&self, block: BlockId) -> LocSet {
        self.live_in[block.index()]
    }

    /// What is live after the last instruction of a block, [`FlowGraph::live_at_exit`] included.
    pub fn live_out(&self, block: BlockId) -> LocSet {
        self.live_out[block.index()]
    }

    /// Calls `f(inst, live_before, live_after)` for each instruction of a block, *last one first*.
    ///
    /// `program` must be the one that was solved.
    pub fn before_each(
        &self,
        program: &impl FlowGraph,
        block: BlockId,
        mut f: impl FnMut(InstId, LocSet, LocSet),
    ) {
        let mut live = self.live_out(block);
        for inst in program.instructions(block).rev().map(InstId) {
            let live_after = live;
            live = program.effect(inst).live_before(live_after);
            f(inst, live, live_after);
        }
    }
}

/// Computes what is live at the ends of every block, unreachable ones included.
pub fn solve(program: &impl FlowGraph) -> Liveness {
    let blocks = || (0..program.block_count() as u32).map(BlockId);
    let effects: Vec<Effect> = blocks().map(|block| summarise(program, block)).collect();
    let order = postorder(program);
    let predecessors = Predecessors::of(program);
    let mut live_in = vec![LocSet::empty(); effects.len()];
    let mut live_out: Vec<LocSet> = blocks().map(|block| program.live_at_exit(block)).collect();
    // --- the program's methods are not called after this ---

    let mut pending = Pending::all(&order);
    while let Some(block) = pending.next() {
        let before = effects[block.index()].live_before(live_out[block.index()]);
        if before == live_in[block.index()] {
            continue;
        }
        live_in[block.index()] = before;
        for predecessor in predecessors.of_block(block) {
            let after = &mut live_out[predecessor.index()];
            if !after.contains(before) {
                *after = after.union(before);
                pending.add(predecessor);
            }
        }
    }
    Liveness { live_in, live_out }
}

/// The effect of a whole block.
fn summarise(program: &impl FlowGraph, block: BlockId) -> Effect {
    program
        .instructions(block)
        .map(|inst| program.effect(InstId(inst)))
        .fold(Effect::NONE, Effect::then)
}
