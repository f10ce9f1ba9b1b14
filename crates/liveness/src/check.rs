//! The oracle: liveness by its definition over paths, and programs to compare on.
//!
//! [`solve`] is compared here with a search that shares neither code nor method with it: no
//! summaries of blocks, no sets, no fixpoint, one location and one starting point at a time. A fuzz
//! target is [`Graph::from_bytes`] and [`agrees`]; the tests of this crate run the same two.
//!
//! ```
//! use liveness::check::{Graph, agrees};
//!
//! fn target(bytes: &[u8]) {
//!     agrees(&Graph::from_bytes(bytes)).unwrap();
//! }
//! # target(&[3, 0x55, 1, 2, 0x10, 0x20, 4, 8, 0x33]);
//! ```

use crate::locations::{Loc, LocSet};
use crate::solve::{BlockId, Effect, FlowGraph, InstId, Liveness, solve};
use std::fmt;
use std::ops::Range;

/// Where the solution and the definition differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// A set is wrong.
    #[error("{place}: solved {solved}, by paths {by_paths}")]
    Set {
        /// Which set it is.
        place: Place,
        /// What the solution says.
        solved: LocSet,
        /// What the definition says.
        by_paths: LocSet,
    },
    /// The instructions of a block were not visited once each, last one first. It names the
    /// first one out of order, or the one that was left out.
    #[error("block {}: instructions visited out of order, at {}", .0.0, .1.0)]
    Visit(BlockId, InstId),
}

/// The sets of a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The set before an instruction.
    Before(BlockId, InstId),
    /// The set after an instruction.
    After(BlockId, InstId),
    /// The live-in set of a block.
    In(BlockId),
    /// The live-out set of a block.
    Out(BlockId),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Before(block, inst) => {
                write!(f, "before instruction {} of block {}", inst.0, block.0)
            }
            Place::After(block, inst) => {
                write!(f, "after instruction {} of block {}", inst.0, block.0)
            }
            Place::In(block) => write!(f, "live into block {}", block.0),
            Place::Out(block) => write!(f, "live out of block {}", block.0),
        }
    }
}

/// Solves a program and compares every set with the definition. Slow: for small programs.
pub fn agrees(program: &impl FlowGraph) -> Result<(), Disagreement> {
    compare(program, &solve(program))
}

/// Compares a solution with the definition at every point of a program.
pub fn compare(program: &impl FlowGraph, liveness: &Liveness) -> Result<(), Disagreement> {
    (0..program.block_count() as u32)
        .map(BlockId)
        .try_for_each(|block| {
            compare_ends(program, liveness, block)?;
            compare_instructions(program, liveness, block)
        })
}

fn compare_ends(
    program: &impl FlowGraph,
    liveness: &Liveness,
    block: BlockId,
) -> Result<(), Disagreement> {
    let Range { start, end } = program.instructions(block);
    same(
        program,
        block,
        start,
        Place::In(block),
        liveness.live_in(block),
    )?;
    same(
        program,
        block,
        end,
        Place::Out(block),
        liveness.live_out(block),
    )
}

/// Compares a set with what is live before instruction `inst` by the definition.
fn same(
    program: &impl FlowGraph,
    block: BlockId,
    inst: u32,
    place: Place,
    solved: LocSet,
) -> Result<(), Disagreement> {
    let by_paths = live_at(program, Point { block, inst });
    if solved == by_paths {
        return Ok(());
    }
    Err(Disagreement::Set {
        place,
        solved,
        by_paths,
    })
}

fn compare_instructions(
    program: &impl FlowGraph,
    liveness: &Liveness,
    block: BlockId,
) -> Result<(), Disagreement> {
    let mut visits = Vec::new();
    liveness.before_each(program, block, |inst, before, after| {
        visits.push((inst, before, after));
    });
    let expected = program.instructions(block).rev().map(InstId);
    if let Some(inst) = first_difference(expected, visits.iter().map(|visit| visit.0)) {
        return Err(Disagreement::Visit(block, inst));
    }
    for (inst, before, after) in visits {
        same(program, block, inst.0, Place::Before(block, inst), before)?;
        same(program, block, inst.0 + 1, Place::After(block, inst), after)?;
    }
    Ok(())
}

/// The first element in which two sequences differ, from the one that has an element there.
fn first_difference(
    mut left: impl Iterator<Item = InstId>,
    mut right: impl Iterator<Item = InstId>,
) -> Option<InstId> {
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (l, r) if l != r => return l.or(r),
            _ => {}
        }
    }
}

/// A place between instructions: before `inst`, or at the end of the block when `inst` is the end
/// of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The block that it is about.
    pub block: BlockId,
    /// The number of the instruction that comes next.
    pub inst: u32,
}

/// What is live at a point by the definition, one location at a time.
pub fn live_at(program: &impl FlowGraph, point: Point) -> LocSet {
    LocSet::all()
        .iter()
        .filter(|loc| path_to_use(program, point, *loc))
        .map(LocSet::loc)
        .collect()
}

/// Whether a path from `point` comes to a use of `loc`, or to an exit that has it in its boundary,
/// before it comes to a kill.
///
/// A path that comes back to the beginning of a block finds nothing new there. So following each
/// block from its beginning once finds every path to a use.
pub fn path_to_use(program: &impl FlowGraph, point: Point, loc: Loc) -> bool {
    let mut entered = vec![false; program.block_count()];
    let mut open = vec![point];
    while let Some(Point { block, inst }) = open.pop() {
        let rest = inst..program.instructions(block).end;
        match walk(program, rest, loc) {
            Walk::Use => return true,
            Walk::Kill => continue,
            Walk::End => {}
        }
        if program.live_at_exit(block).contains(loc.into()) {
            return true;
        }
        for &next in program.successors(block) {
            if !std::mem::replace(&mut entered[next.index()], true) {
                let inst = program.instructions(next).start;
                open.push(Point { block: next, inst });
            }
        }
    }
    false
}

/// What a walk along a run of instructions meets first.
enum Walk {
    Use,
    Kill,
    End,
}

fn walk(program: &impl FlowGraph, mut run: Range<u32>, loc: Loc) -> Walk {
    run.find_map(|inst| {
        let Effect { uses, kills } = program.effect(InstId(inst));
        if uses.contains(loc.into()) {
            Some(Walk::Use)
        } else if kills.contains(loc.into()) {
            Some(Walk::Kill)
        } else {
            None
        }
    })
    .unwrap_or(Walk::End)
}

/// A program that is nothing but its graph and effects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    blocks: Vec<Block>,
    effects: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    instructions: Range<u32>,
    successors: Vec<BlockId>,
    live_at_exit: LocSet,
}

impl Graph {
    /// A graph without blocks.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a block. Successors may be blocks that are added later.
    pub fn add(&mut self, effects: &[Effect], successors: &[u32], live_at_exit: LocSet) -> BlockId {
        let start = self.effects.len() as u32;
        self.effects.extend_from_slice(effects);
        self.blocks.push(Block {
            instructions: start..self.effects.len() as u32,
            successors: successors.iter().copied().map(BlockId).collect(),
            live_at_exit,
        });
        BlockId(self.blocks.len() as u32 - 1)
    }

    /// A graph of at most eight blocks made from arbitrary bytes, for fuzzing.
    ///
    /// All shapes occur: unreachable blocks, self loops, loops without exit, empty blocks, repeated
    /// edges. Few locations, so that uses and kills meet. Bytes that run out count as zeros.
    pub fn from_bytes(bytes: &[u8]) -> Graph {
        let mut bytes = bytes.iter().copied().chain(std::iter::repeat(0));
        let mut next = || bytes.next().unwrap_or(0);
        let count = next() % 9;
        let mut graph = Graph::new();
        for _ in 0..count {
            let shape = next();
            let effects: Vec<Effect> = (0..shape % 4)
                .map(|_| Effect {
                    uses: few_locations(next()),
                    kills: few_locations(next()),
                })
                .collect();
            let successors: Vec<u32> = (0..shape / 4 % 4)
                .map(|_| u32::from(next() % count))
                .collect();
            // Mostly edges or a boundary, sometimes both or neither.
            let is_exit = successors.is_empty() || shape >= 0xc0;
            let live_at_exit = if is_exit {
                few_locations(next())
            } else {
                LocSet::empty()
            };
            graph.add(&effects, &successors, live_at_exit);
        }
        graph
    }
}

/// At most two of six locations, three from each end of the representation.
fn few_locations(choice: u8) -> LocSet {
    let all = LocSet::all();
    let at = |index| all.iter().nth(index).map_or(LocSet::empty(), LocSet::loc);
    let pick = |choice: u8| match usize::from(choice % 16) {
        low @ 0..3 => at(low),
        high @ 3..6 => at(all.len() as usize - high + 2),
        _ => LocSet::empty(),
    };
    pick(choice).union(pick(choice / 16))
}

impl FlowGraph for Graph {
    fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn instructions(&self, block: BlockId) -> Range<u32> {
        self.blocks[block.index()].instructions.clone()
    }

    fn effect(&self, inst: InstId) -> Effect {
        self.effects[inst.0 as usize]
    }

    fn successors(&self, block: BlockId) -> &[BlockId] {
        &self.blocks[block.index()].successors
    }

    fn live_at_exit(&self, block: BlockId) -> LocSet {
        self.blocks[block.index()].live_at_exit
    }
}
