//! Parts of an object between which no invocation moves. What is found on the paths of one
//! depends on others only by what its calls lose, so that a part is walked again only if its calls
//! lose something else.

use liveness::BlockId;

use super::frames::{Frames, Leads};
use super::lost::{Called, Lost};
use super::sets::Sets;
use crate::analyse::Analysis;
use crate::analyse::flow::Exit;
use crate::analyse::routines;
use crate::lift::InstIdx;

/// These parts, by number: that of one of their blocks.
pub(super) struct Parts {
    /// By block.
    of: Vec<usize>,
    /// What each part calls.
    calls: Vec<(Called, usize)>,
}

impl Parts {
    /// Finds them.
    pub fn find(analysis: &Analysis<'_>, frames: &Frames) -> Parts {
        let flow = &analysis.flow;
        let blocks = (0..flow.blocks().len() as u32).map(BlockId);
        let mut sets = Sets::new(blocks.len());
        for from in blocks.clone() {
            for to in flow.continuations(from) {
                sets.join(from.0, to.0);
            }
        }
        let mut calls = Vec::new();
        for block in blocks.clone() {
            let part = sets.of(block.0);
            calls.extend(called(analysis, frames, block).map(|called| (called, part)));
        }
        calls.sort_unstable();
        calls.dedup();
        Parts {
            of: blocks.map(|block| sets.of(block.0)).collect(),
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
    let insts = flow.blocks()[block.0 as usize].clone();
    let leaves = analysis.exits[insts.end as usize - 1] == Exit::TailOut;
    let away = frames.edges(flow, block);
    let away = away.filter(|(_, leads)| *leads == Leads::Away);
    let away = away.map(|(to, _)| InstIdx(flow.blocks()[to.0 as usize].start));
    let insts = insts.map(|i| lifted.inst(InstIdx(i)));
    let calls = insts.filter(|inst| routines::is_call(&inst.iced));
    calls
        .filter_map(Called::by)
        .chain(leaves.then_some(Called::Pointed))
        .chain(away.map(Called::Entry))
}
