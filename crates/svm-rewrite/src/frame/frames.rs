//! Which blocks have their words in the same frame: those of one invocation.
//!
//! Functions and subroutines each have a frame of their own, also where one stands inside the
//! other. A part that the compiler moved elsewhere has that of the function that jumps to it.

use liveness::BlockId;

use super::sets::Sets;
use crate::analyse::flow::Flow;
use crate::analyse::routines;
use crate::lift::{InstIdx, Lifted};

/// Blocks that share their frames.
pub struct Frames(Vec<usize>);

/// Where an edge of the invocation leads, as far as frames matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To a block with the same frame.
    Inside,
    /// To where another frame begins: a tail call.
    Away,
    /// To padding, which is not written. Or to the function behind a call: what is called does
    /// not return.
    Nowhere,
}

impl Frames {
    /// Finds them.
    pub fn find(lifted: &Lifted<'_>, flow: &Flow) -> Frames {
        let mut sets = Sets::new(flow.blocks().len());
        for (from, to, leads) in edges(lifted, flow) {
            if leads == Leads::Inside {
                sets.join(from.0, to.0);
            }
        }
        Frames(
            (0..flow.blocks().len() as u32)
                .map(|n| sets.of(n))
                .collect(),
        )
    }

    /// The number of a block's frame.
    pub fn of(&self, block: BlockId) -> usize {
        self.0[block.0 as usize]
    }
}

/// All edges in invocations.
pub fn edges<'e>(
    lifted: &'e Lifted<'_>,
    flow: &'e Flow,
) -> impl Iterator<Item = (BlockId, BlockId, Leads)> {
    let blocks = (0..flow.blocks().len() as u32).map(BlockId);
    blocks.flat_map(move |from| {
        let leads = Leading { lifted, flow, from };
        let to = flow.continuations(from).iter();
        to.map(move |to| (from, *to, leads.to(*to)))
    })
}

/// A block whose edges are looked at.
#[derive(Clone, Copy)]
pub struct Leading<'l> {
    pub lifted: &'l Lifted<'l>,
    pub flow: &'l Flow,
    pub from: BlockId,
}

impl Leading<'_> {
    /// Where its edge to another block leads.
    pub fn to(self, to: BlockId) -> Leads {
        let Leading { lifted, flow, from } = self;
        let blocks = flow.blocks();
        let first = InstIdx(blocks[to.0 as usize].start);
        let function = flow.function_of(from);
        let own = lifted.function(function);
        let stays = flow.function_of(to) == function;
        if own.padding || !stays && lifted.function(flow.function_of(to)).padding {
            return Leads::Nowhere;
        }
        // A jump of a function to its own beginning may be any loop.
        let begins = match stays {
            true => own.insts.start != first.0 && lifted.is_subroutine(first),
            false => lifted.is_entry(first),
        };
        if !begins {
            return Leads::Inside;
        }
        let last = InstIdx(blocks[from.0 as usize].end - 1);
        match !stays && routines::is_call(&lifted.inst(last).iced) {
            true => Leads::Nowhere,
            false => Leads::Away,
        }
    }
}
