//! Calls inside the object: which returns come back from them, and which calls never
//! return.
//!
//! An *invocation* of a local function is the code that runs from its entry until it
//! returns: over jumps and tail jumps, and after the function's own calls, without their
//! callees. If no invocation of a function can return (it ends in `panic`, or loops
//! forever), the code after a call of it is not reached: compilers put the next function
//! there. If a callee returns elsewhere ([`super::balance`]), that may be to the caller of
//! the invocation that called it.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashSet;

use liveness::BlockId;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, Reversed, VisitMap};

use crate::analyse::flow::Edges;
use crate::analyse::flow::balance::ReturnsTo;

/// How a block ends, as far as it matters to invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnding {
    /// Returns to the caller.
    Return,
    /// Leaves the object by a tail call, perhaps conditionally; the callee returns to
    /// the caller of this invocation.
    TailOut,
    /// Calls the function that begins with the first block; the second is the block
    /// after the call, if there is one.
    Call(BlockId, Option<BlockId>),
    /// Goes on to its successors.
    Other,
}

/// The facts about one local function that is called.
#[derive(Debug, Default)]
pub struct Callee {
    /// Blocks with a return that ends an invocation of it.
    pub returns: Vec<BlockId>,
    /// Whether an invocation can end at all.
    pub comes_back: bool,
}

/// The facts about calls.
#[derive(Debug)]
pub struct Callees {
    /// All local functions that are called, by the block of their entry.
    pub each: BTreeMap<BlockId, Callee>,
    /// Replaces [`Callee::returns`] where invocations share too much code to be told
    /// apart: any of these returns may end any of the invocations.
    pub shared: Option<Vec<BlockId>>,
}

/// Most rounds of the search for functions that never return. Each round covers one more
/// level of calls, and few levels occur. To stop early is sound: it leaves more edges.
const ROUNDS: usize = 64;

/// Most steps of the search that tells invocations apart, for each block. Functions
/// usually share only cold parts; code that enters a function at each of its
/// instructions would take a quadratic number of edges.
const SEARCHED: usize = 32;

/// Analyses calls, given how each block ends, where returns go, and the successors of
/// each block in its invocation.
pub fn analyse(endings: &[BlockEnding], returns: &[ReturnsTo], successors: &Edges) -> Callees {
    let entries: BTreeSet<BlockId> = endings
        .iter()
        .filter_map(|e| match e {
            BlockEnding::Call(to, _) => Some(*to),
            _ => None,
        })
        .collect();
    // If a callee never returns, the code after its calls is cut off, and then its
    // callers may never return either: repeat until nothing new is found.
    let mut silent: HashSet<BlockId> = HashSet::default();
    let mut followed = graph(endings, successors, &silent);
    let elsewhere = elsewhere(&followed, endings, returns);
    for _ in 0..ROUNDS {
        let ends = ends(&followed, endings, &elsewhere);
        let stuck = entries.iter().filter(|e| !ends.is_visited(&node(**e)));
        let found: HashSet<BlockId> = stuck.copied().collect();
        if found == silent {
            break;
        }
        silent = found;
        followed = graph(endings, successors, &silent);
    }
    let budget = SEARCHED * (followed.node_count() + followed.edge_count());
    let mut search = Search::new(&followed, endings, budget);
    let mut each = BTreeMap::new();
    for entry in entries {
        let callee = Callee {
            returns: search.returns(entry),
            comes_back: !silent.contains(&entry),
        };
        each.insert(entry, callee);
    }
    let shared = (search.left == 0).then(|| {
        let all = (0..).map(BlockId).zip(endings);
        let returns = all.filter(|(_, ending)| **ending == BlockEnding::Return);
        returns.map(|(block, _)| block).collect()
    });
    Callees { each, shared }
}

fn node(b: BlockId) -> NodeIndex {
    NodeIndex::new(b.0 as usize)
}

/// Entries of functions that may return elsewhere, by their number.
fn elsewhere(
    graph: &DiGraph<(), ()>,
    endings: &[BlockEnding],
    returns: &[ReturnsTo],
) -> HashSet<u32> {
    let odd = |n: &usize| endings[*n] == BlockEnding::Return && returns[*n] == ReturnsTo::Elsewhere;
    let odd: Vec<usize> = (0..endings.len()).filter(odd).collect();
    if odd.is_empty() {
        return HashSet::default();
    }
    let found = back(graph, odd);
    let visited = |n: &u32| found.is_visited(&NodeIndex::new(*n as usize));
    (0..endings.len() as u32).filter(visited).collect()
}

/// Searches back from the ends of invocations. The result has the nodes from which an
/// end is reached.
fn ends(
    graph: &DiGraph<(), ()>,
    endings: &[BlockEnding],
    elsewhere: &HashSet<u32>,
) -> impl VisitMap<NodeIndex> + use<> {
    let last = |n: &usize| match endings[*n] {
        BlockEnding::Return | BlockEnding::TailOut => true,
        BlockEnding::Call(to, _) => elsewhere.contains(&to.0),
        BlockEnding::Other => false,
    };
    back(graph, (0..endings.len()).filter(last).collect())
}

/// The nodes from which one of these is reached.
fn back(graph: &DiGraph<(), ()>, from: Vec<usize>) -> impl VisitMap<NodeIndex> + use<> {
    let mut search = Dfs::empty(graph);
    search.stack.extend(from.into_iter().map(NodeIndex::new));
    while search.next(Reversed(graph)).is_some() {}
    search.discovered
}

/// Searches from entries, one after the other.
struct Search<'g> {
    graph: &'g DiGraph<(), ()>,
    endings: &'g [BlockEnding],
    /// The last search that came to a node.
    seen: Vec<u32>,
    searches: u32,
    /// Edges that may still be followed, of all searches.
    left: usize,
}

impl<'g> Search<'g> {
    fn new(graph: &'g DiGraph<(), ()>, endings: &'g [BlockEnding], budget: usize) -> Search<'g> {
        Search {
            graph,
            endings,
            seen: vec![0; endings.len()],
            searches: 0,
            left: budget,
        }
    }

    /// The returns that an invocation of `entry` comes to, in order; incomplete if
    /// [`Search::left`] runs out.
    fn returns(&mut self, entry: BlockId) -> Vec<BlockId> {
        self.searches += 1;
        let mut returns = Vec::new();
        let mut stack = vec![node(entry)];
        self.seen[entry.0 as usize] = self.searches;
        while let Some(at) = stack.pop() {
            if self.endings[at.index()] == BlockEnding::Return {
                returns.push(BlockId(at.index() as u32));
            }
            for next in self.graph.neighbors(at) {
                self.left = self.left.saturating_sub(1);
                if std::mem::replace(&mut self.seen[next.index()], self.searches) != self.searches {
                    stack.push(next);
                }
            }
            if self.left == 0 {
                break;
            }
        }
        returns.sort_unstable();
        returns
    }
}

/// The edges that an invocation follows.
fn graph(
    endings: &[BlockEnding],
    successors: &Edges,
    silent: &HashSet<BlockId>,
) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(endings.len(), 2 * endings.len());
    for _ in endings {
        graph.add_node(());
    }
    for (b, ending) in endings.iter().enumerate() {
        let from = NodeIndex::new(b);
        match ending {
            BlockEnding::Return => {}
            BlockEnding::Call(to, behind) => {
                if let Some(behind) = behind.filter(|_| !silent.contains(to)) {
                    graph.add_edge(from, node(behind), ());
                }
            }
            // A conditional tail call that is not taken falls through.
            BlockEnding::TailOut | BlockEnding::Other => {
                for to in successors.of(BlockId(b as u32)) {
                    graph.add_edge(from, node(*to), ());
                }
            }
        }
    }
    graph
}
