//! How long [`liveness::solve`] takes: `cargo bench -p liveness`. Effects are looked up in a table,
//! so what an instruction does is not part of the time.

use liveness::check::Graph;
use liveness::{BlockId, Effect, FlowGraph, LocSet, Reg, solve};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Timed runs of each graph; the best one is reported.
const RUNS: u32 = 20;

fn main() {
    println!(
        "{:>28} {:>8} {:>12} {:>10}",
        "graph", "blocks", "instructions", "best"
    );
    report("like e1000", &like_code(4_000, 20));
    report("like code", &like_code(100_000, 20));
    report("one function of branches", &like_code(100_000, 100_000));
    report("nested loops", &nested_loops(100_000));
    report("path laid out backwards", &backward_path(100_000));
    report("two-way ladder", &ladder(100_000));
    report("one return, many callers", &shared_return(100_000));
    report("random edges", &random_edges(100_000));
}

fn report(name: &str, graph: &Graph) {
    let blocks = (0..graph.block_count() as u32).map(BlockId);
    let instructions: usize = blocks.map(|block| graph.instructions(block).len()).sum();
    let best = (0..RUNS).map(|_| time(graph)).min().unwrap_or_default();
    println!(
        "{name:>28} {:>8} {instructions:>12} {best:>10.1?}",
        graph.block_count()
    );
}

fn time(graph: &Graph) -> Duration {
    let start = Instant::now();
    black_box(solve(black_box(graph)));
    start.elapsed()
}

/// Functions of `size` blocks: each block falls through, branches forward, or loops back a little.
fn like_code(blocks: u32, size: u32) -> Graph {
    let mut random = Random(1);
    let mut graph = Graph::new();
    for block in 0..blocks {
        let first = block - block % size;
        let last = (first + size).min(blocks) - 1;
        let effects = effects(&mut random, 4 + block % 2);
        if block == last {
            graph.add(&effects, &[], LocSet::reg(Reg::RAX));
            continue;
        }
        let target = match random.below(4) {
            0 => block.saturating_sub(random.below(8)).max(first),
            _ => (block + 1 + random.below(8)).min(last),
        };
        graph.add(&effects, &[block + 1, target], LocSet::empty());
    }
    graph
}

/// Loops inside loops, all in one: block `i` of the second half closes a loop of the first half.
fn nested_loops(blocks: u32) -> Graph {
    graph_of(blocks, |block| match block {
        _ if block + 1 == blocks => vec![],
        _ if block < blocks / 2 => vec![block + 1],
        _ => vec![block + 1, blocks - 1 - block],
    })
}

/// A path whose blocks come in the opposite order.
fn backward_path(blocks: u32) -> Graph {
    graph_of(blocks, |block| block.checked_sub(1).into_iter().collect())
}

/// A path that can also be walked backwards.
fn ladder(blocks: u32) -> Graph {
    graph_of(blocks, |block| {
        let next = Some(block + 1).filter(|next| *next < blocks);
        block.checked_sub(1).into_iter().chain(next).collect()
    })
}

/// Every odd block calls block 0, which returns to every even one.
fn shared_return(blocks: u32) -> Graph {
    graph_of(blocks, |block| match block {
        0 => (1..blocks / 2).map(|site| 2 * site).collect(),
        _ if block % 2 == 1 => vec![0],
        _ => vec![block + 1]
            .into_iter()
            .filter(|next| *next < blocks)
            .collect(),
    })
}

/// No structure at all.
fn random_edges(blocks: u32) -> Graph {
    let mut random = Random(3);
    graph_of(blocks, |_| vec![random.below(blocks), random.below(blocks)])
}

fn graph_of(blocks: u32, mut successors: impl FnMut(u32) -> Vec<u32>) -> Graph {
    let mut random = Random(2);
    let mut graph = Graph::new();
    for block in 0..blocks {
        graph.add(
            &effects(&mut random, 4),
            &successors(block),
            LocSet::empty(),
        );
    }
    graph
}

/// Instructions that use two registers and overwrite a third.
fn effects(random: &mut Random, count: u32) -> Vec<Effect> {
    let mut reg = || Reg::new(random.below(16) as u8).map_or(LocSet::empty(), LocSet::reg);
    let mut effect = || Effect {
        uses: reg().union(reg()),
        kills: reg().union(LocSet::flags()),
    };
    (0..count).map(|_| effect()).collect()
}

/// Numbers that are the same in every run (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % bound
    }
}
