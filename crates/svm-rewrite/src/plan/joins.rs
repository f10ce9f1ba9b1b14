//! The translations in registers where paths meet. Those at the end of a block are kept
//! until every block that it leads to is planned.

use liveness::{BlockId, FlowGraph, Predecessors};

use crate::analyse::flow::Flow;
use crate::plan::numbering::Ids;
use crate::plan::reuse::Available;

/// The facts at the ends of planned blocks.
pub struct Joins {
    /// The facts at the end of each block; `None` for a block that is not planned yet,
    /// for one whose successors are all planned, and for the hubs of returns.
    behind: Vec<Option<Box<Available>>>,
    /// How many edges out of each block lead to blocks that are still to be planned.
    awaited: Vec<u32>,
    predecessors: Predecessors,
    /// Boxes to be used again.
    #[expect(clippy::vec_box, reason = "they go back behind a block as they are")]
    spare: Vec<Box<Available>>,
}

impl Joins {
    /// Nothing is planned.
    pub fn of(flow: &Flow) -> Joins {
        let blocks = (0..flow.block_count() as u32).map(BlockId);
        let edges = blocks.map(|block| flow.successors(block).len() as u32);
        Joins {
            behind: vec![None; flow.block_count()],
            awaited: edges.collect(),
            predecessors: Predecessors::of(flow),
            spare: Vec::new(),
        }
    }

    /// Sets `available` to the facts that hold on every path to a block.
    pub fn arriving(&self, block: BlockId, available: &mut Available, ids: &mut Ids) {
        let behind = |from: BlockId| self.behind[from.0 as usize].as_deref();
        let mut joins = self.predecessors.of_block(block).map(behind);
        let all_known = self
            .predecessors
            .of_block(block)
            .all(|from| behind(from).is_some());
        let Some(first) = joins.next().flatten().filter(|_| all_known) else {
            available.lose(ids);
            return;
        };
        available.clone_from(first);
        for other in joins.flatten() {
            available.join(other, ids);
        }
    }

    /// A block is planned: it no longer needs the facts at the ends of its predecessors.
    pub fn arrived(&mut self, block: BlockId) {
        for from in self.predecessors.of_block(block) {
            let from = from.0 as usize;
            self.awaited[from] -= 1;
            if self.awaited[from] == 0 {
                self.spare.extend(self.behind[from].take());
            }
        }
    }

    /// Records the facts at the end of a block.
    pub fn leave(&mut self, block: BlockId, available: &Available) {
        if self.awaited[block.0 as usize] > 0 {
            self.behind[block.0 as usize] = Some(match self.spare.pop() {
                Some(mut spare) => {
                    spare.as_mut().clone_from(available);
                    spare
                }
                None => Box::new(available.clone()),
            });
        }
    }
}
