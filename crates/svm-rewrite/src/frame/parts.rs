//! Parts of an object between which no invocation moves. What is found on the paths of one
//! depends on others only by what its calls lose, so that a part is walked again only if its calls
//! lose something else.

use liveness::{BlockId, FlowGraph};

use super::frames::{Frames, Leads};
use super::lost::{Called, Lost};
use super::sets::Sets;
use crate::analyse::Analysis;
use crate::analyse::flow::Exit;
use crate::analyse::routines;
use crate::lift::InstIdx;

/// These parts, by number: that of one of their blocks.
pub(super) struct Parts {
    /// By node of the flow.
    of: Vec<usize>,
    /// What each part calls.
    calls: Vec<(Called, usize)>,
}

impl Parts {
    /// Finds them.
    pub fn find(analysis: &Analysis<'_>, frames: &Frames) -> Parts {
        let flow = &analysis.flow;
        let nodes = flow.nodes();
        let mut sets = Sets::new(nodes.len());
        for from in nodes.clone() {
            for to in flow.continuations(from) {
                sets.join(from.0, to.0);
            }
        }
        let mut calls = Vec::new();
        for block in nodes.clone() {
            let part = sets.of(block.0);
            calls.extend(called(analysis, frames, block).map(|called| (called, part)));
        }
        calls.sort_unstable();
        calls.dedup();
        Parts {
            of: nodes.map(|block| sets.of(block.0)).collect(),
            calls,
        }
    }

    /// The number of a block's part.
    pub fn of(&self, block: BlockId) -> usize {
        self.of[block.0 as usize]
    }

    /// For each part whether calls in it lose something else `now` than `before`.
    pub fn changed(&self, before: &Lost, now: &Lost) -> Vec<bool> {
        let mut changed = vec![false; self.of.len()];
        for calls in self.calls.chunk_by(|(one, _), (other, _)| one == other) {
            let called = calls[0].0;
            if before.to(called) != now.to(called) {
                calls.iter().for_each(|(_, part)| changed[*part] = true);
            }
        }
        changed
    }
}

/// What is called in a block, or jumped to as if it were called.
fn called<'c>(
    analysis: &'c Analysis<'_>,
    frames: &'c Frames,
    block: BlockId,
) -> impl Iterator<Item = Called> + 'c {
    let Analysis { lifted, flow, .. } = analysis;
    let insts = flow.instructions(block);
    let leaves = insts.clone().last();
    let leaves = leaves.is_some_and(|last| analysis.exits[last as usize] == Exit::TailOut);
    let away = frames.edges(flow, block);
    let away = away.filter(|(_, leads)| *leads == Leads::Away);
    let away = away.filter_map(|(to, _)| flow.begin(to));
    let insts = insts.map(|i| lifted.inst(InstIdx(i)));
    let calls = insts.filter(|inst| routines::is_call(&inst.iced));
    calls
        .filter_map(Called::by)
        .chain(leaves.then_some(Called::Pointed))
        .chain(away.map(Called::Entry))
}
