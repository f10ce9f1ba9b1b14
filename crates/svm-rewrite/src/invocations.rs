//! Calls inside the object: which returns come back from them, and which never
//! do.
//!
//! An *invocation* of a local function is what runs from its entry over jumps,
//! tail jumps and behind its own calls until it returns. Where no invocation of a
//! function can return (it ends in `panic`, or loops for good), nothing is reached
//! behind calls of it: compilers put the next function there.

use std::collections::BTreeMap;

use foldhash::HashSet;

use liveness::BlockId;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

use crate::flow::Edges;

/// How a block ends, as far as invocations care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Returns to the caller.
    Return,
    /// Leaves the object for good, perhaps conditionally; whoever is entered
    /// returns to the caller.
    TailOut,
    /// Calls the function that begins with the first block; the second is the
    /// one behind the call, if there is one.
    Call(BlockId, Option<BlockId>),
    /// Goes on to its successors.
    Other,
}

/// What is known of one local function that is called.
#[derive(Debug, Default)]
pub struct Callee {
    /// Blocks with a return that ends an invocation of it.
    pub returns: Vec<BlockId>,
    /// Whether an invocation can end at all.
    pub comes_back: bool,
}

/// All local functions that are called, by the block of their entry.
pub type Callees = BTreeMap<BlockId, Callee>;

/// Finds out, given how each block ends and where it goes within its invocation.
pub fn analyse(endings: &[Ending], successors: &Edges) -> Callees {
    let entries: HashSet<BlockId> = endings
        .iter()
        .filter_map(|e| match e {
            Ending::Call(to, _) => Some(*to),
            _ => None,
        })
        .collect();
    // That a callee never comes back cuts what is behind its calls, which may
    // show the same of its callers: repeat until nothing new is found.
    let mut silent: HashSet<BlockId> = HashSet::default();
    loop {
        let graph = graph(endings, successors, &silent);
        let callees: Callees = entries
            .iter()
            .map(|&e| (e, callee(&graph, endings, e)))
            .collect();
        let found: HashSet<BlockId> = callees
            .iter()
            .filter(|(_, c)| !c.comes_back)
            .map(|(e, _)| *e)
            .collect();
        if found == silent {
            return callees;
        }
        silent = found;
    }
}

/// The edges that an invocation follows.
fn graph(endings: &[Ending], successors: &Edges, silent: &HashSet<BlockId>) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(endings.len(), 2 * endings.len());
    for _ in endings {
        graph.add_node(());
    }
    let node = |b: BlockId| NodeIndex::new(b.0 as usize);
    for (b, ending) in endings.iter().enumerate() {
        let from = NodeIndex::new(b);
        match ending {
            Ending::Return => {}
            Ending::Call(to, behind) => {
                if let Some(behind) = behind.filter(|_| !silent.contains(to)) {
                    graph.add_edge(from, node(behind), ());
                }
            }
            // A conditional tail call that is not taken goes on.
            Ending::TailOut | Ending::Other => {
                for to in successors.of(BlockId(b as u32)) {
                    graph.add_edge(from, node(*to), ());
                }
            }
        }
    }
    graph
}

fn callee(graph: &DiGraph<(), ()>, endings: &[Ending], entry: BlockId) -> Callee {
    let mut callee = Callee::default();
    let mut search = Dfs::new(graph, NodeIndex::new(entry.0 as usize));
    while let Some(node) = search.next(graph) {
        match endings[node.index()] {
            Ending::Return => {
                callee.returns.push(BlockId(node.index() as u32));
                callee.comes_back = true;
            }
            Ending::TailOut => callee.comes_back = true,
            Ending::Call(..) | Ending::Other => {}
        }
    }
    callee.returns.sort_unstable();
    callee
}
