//! Which blocks have their words in the same frame: those of one invocation.
//!
//! Functions and subroutines each have a frame of their own, also where one stands inside the
//! other. A part that the compiler moved elsewhere has that of the function that jumps to it.

use liveness::BlockId;

use super::sets::Sets;
use crate::analyse::flow::Flow;
use crate::analyse::routines;
use crate::lift::Lifted;

/// Blocks that share their frames.
pub struct Frames {
    /// By node of the flow.
    of: Vec<usize>,
    /// Where each edge in an invocation leads, in the order of the nodes and of
    /// [`Flow::continuations`].
    leads: Vec<Leads>,
    /// The first of them of each node.
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
        let nodes = flow.nodes();
        let mut sets = Sets::new(nodes.len());
        let mut leads = Vec::with_capacity(2 * nodes.len());
        let mut first = Vec::with_capacity(nodes.len());
        for from in nodes.clone() {
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
            of: nodes.map(|node| sets.of(node.0)).collect(),
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
    let function = flow.function_of(from);
    let own = lifted.function(function);
    let stays = flow.function_of(to) == function;
    if own.padding || !stays && lifted.function(flow.function_of(to)).padding {
        return Leads::Nowhere;
    }
    // A hub is inside the function that leads there.
    let Some(first) = flow.begin(to) else {
        return Leads::Inside;
    };
    // A jump of a function to its own beginning may be any loop.
    let begins = match stays {
        true => own.insts.start != first.0 && lifted.is_subroutine(first),
        false => lifted.is_entry(first),
    };
    if !begins {
        return Leads::Inside;
    }
    let last = flow.last_of(from);
    let calls = last.is_some_and(|last| routines::is_call(&lifted.inst(last).iced));
    match !stays && calls {
        true => Leads::Nowhere,
        false => Leads::Away,
    }
}
