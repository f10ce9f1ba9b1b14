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
pub struct Frames {
    /// By block.
    of: Vec<usize>,
    /// Where each edge in an invocation leads, in the order of the blocks and of
    /// [`Flow::continuations`].
    leads: Vec<Leads>,
    /// The first of them of each block.
    first: Vec<u32>,
}

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
        let blocks = flow.blocks().len();
        let mut sets = Sets::new(blocks);
        let mut leads = Vec::with_capacity(2 * blocks);
        let mut first = Vec::with_capacity(blocks);
        for from in (0..blocks as u32).map(BlockId) {
            first.push(leads.len() as u32);
            for to in flow.continuations(from) {
                let way = leads_to(lifted, flow, from, *to);
                if way == Leads::Inside {
                    sets.join(from.0, to.0);
                }
                leads.push(way);
            }
        }
        Frames {
            of: (0..blocks as u32).map(|n| sets.of(n)).collect(),
            leads,
            first,
        }
    }

    /// The number of a block's frame.
    pub fn of(&self, block: BlockId) -> usize {
        self.of[block.0 as usize]
    }

    /// The edges from a block to others in the same invocation.
    pub fn edges<'e>(
        &'e self,
        flow: &'e Flow,
        from: BlockId,
    ) -> impl Iterator<Item = (BlockId, Leads)> {
        let leads = self.leads[self.first[from.0 as usize] as usize..].iter();
        flow.continuations(from).iter().copied().zip(leads.copied())
    }
}

/// Where an edge from a block to another one leads.
fn leads_to(lifted: &Lifted<'_>, flow: &Flow, from: BlockId, to: BlockId) -> Leads {
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
