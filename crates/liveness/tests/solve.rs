//! The solver against the definition over paths, on small graphs; against the plainest possible
//! iteration, on large ones; and on the graphs that are easily got wrong.

use liveness::check::{Disagreement, Graph, Place, agrees, compare};
use liveness::{BlockId, Effect, FlowGraph, InstId, LocSet, Reg, solve};
use proptest::prelude::*;

const NOTHING: LocSet = LocSet::empty();
const RAX: LocSet = LocSet::reg(Reg::RAX);
const RCX: LocSet = LocSet::reg(Reg::RCX);
const RDX: LocSet = LocSet::reg(Reg::RDX);

fn uses(uses: LocSet) -> Effect {
    Effect {
        uses,
        kills: NOTHING,
    }
}

fn kills(kills: LocSet) -> Effect {
    Effect {
        uses: NOTHING,
        kills,
    }
}

/// Solves a graph, having compared the solution with the definition.
fn solved(graph: &Graph) -> impl Fn(u32) -> (LocSet, LocSet) + use<> {
    agrees(graph).expect("the solution is the definition");
    let liveness = solve(graph);
    move |block| {
        let block = BlockId(block);
        (liveness.live_in(block), liveness.live_out(block))
    }
}

#[test]
fn an_empty_program_has_a_solution() {
    assert_eq!(agrees(&Graph::new()), Ok(()));
}

#[test]
fn within_a_block_the_first_access_decides() {
    let mut graph = Graph::new();
    graph.add(&[uses(RAX), kills(RAX.union(RCX)), uses(RCX)], &[], RDX);
    assert_eq!(solved(&graph)(0), (RAX.union(RDX), RDX));
}

#[test]
fn a_block_without_instructions_passes_everything_on() {
    let mut graph = Graph::new();
    graph.add(&[], &[1], NOTHING);
    graph.add(&[], &[], RAX);
    let at = solved(&graph);
    assert_eq!(at(0), (RAX, RAX));
    assert_eq!(at(1), (RAX, RAX));
}

#[test]
fn an_instruction_may_use_what_it_kills() {
    let mut graph = Graph::new();
    let both = Effect {
        uses: RAX,
        kills: RAX.union(RCX),
    };
    graph.add(&[both], &[], RCX);
    assert_eq!(solved(&graph)(0), (RAX, RCX));
}

#[test]
fn partial_kills_leave_the_rest_live() {
    let mut graph = Graph::new();
    let low = LocSet::low16(Reg::RAX);
    graph.add(&[kills(low)], &[], RAX);
    assert_eq!(solved(&graph)(0), (RAX.minus(low), RAX));
}

#[test]
fn unreachable_blocks_are_solved_too() {
    let mut graph = Graph::new();
    graph.add(&[kills(RAX)], &[], RAX);
    graph.add(&[uses(RCX)], &[0], NOTHING);
    assert_eq!(solved(&graph)(1), (RCX, NOTHING));
}

#[test]
fn a_self_loop_carries_a_use_around() {
    let mut graph = Graph::new();
    graph.add(&[kills(RAX), uses(RCX)], &[0], NOTHING);
    assert_eq!(solved(&graph)(0), (RCX, RCX));
}

#[test]
fn a_loop_without_exit_keeps_alive_only_what_it_uses() {
    let mut graph = Graph::new();
    graph.add(&[uses(RAX)], &[1], NOTHING);
    graph.add(&[], &[2], NOTHING);
    graph.add(&[uses(RCX)], &[1], NOTHING);
    let at = solved(&graph);
    assert_eq!(at(0), (RAX.union(RCX), RCX));
    assert_eq!(at(2), (RCX, RCX));
}

#[test]
fn a_boundary_adds_to_what_comes_over_edges() {
    let mut graph = Graph::new();
    graph.add(&[], &[1, 1], RAX);
    graph.add(&[uses(RCX)], &[], NOTHING);
    assert_eq!(solved(&graph)(0), (RAX.union(RCX), RAX.union(RCX)));
}

#[test]
fn instructions_are_visited_last_one_first() {
    let mut graph = Graph::new();
    graph.add(&[kills(RDX)], &[], NOTHING);
    let block = graph.add(&[uses(RAX), kills(RCX)], &[], RCX);
    let mut visits = Vec::new();
    solve(&graph).before_each(&graph, block, |inst, before, after| {
        visits.push((inst, before, after));
    });
    let expected = [(InstId(2), NOTHING, RCX), (InstId(1), RAX, NOTHING)];
    assert_eq!(visits, expected);
}

#[test]
fn an_interruptible_instruction_kills_nothing() {
    let load = Effect {
        uses: RCX,
        kills: RAX,
    };
    assert_eq!(load.interruptible(), uses(RCX));
}

/// The oracle would notice: a solution of another program is refused with the place.
#[test]
fn a_wrong_solution_is_noticed() {
    let mut right = Graph::new();
    right.add(&[uses(RAX)], &[], RCX);
    let mut wrong = Graph::new();
    wrong.add(&[uses(RDX)], &[], RCX);
    let found = compare(&right, &solve(&wrong));
    assert_eq!(
        found,
        Err(Disagreement::Set {
            place: Place::In(BlockId(0)),
            solved: RCX.union(RDX),
            by_paths: RAX.union(RCX),
        })
    );
    let message = found.expect_err("a disagreement").to_string();
    assert_eq!(
        message,
        "live into block 0: solved {rcx, rdx}, by paths {rax, rcx}"
    );
}

/// Deep enough to overflow the machine stack of a recursive search.
#[test]
fn long_paths_are_no_problem() {
    const LENGTH: u32 = 200_000;
    let mut forward = Graph::new();
    let mut backward = Graph::new();
    forward.add(&[kills(RCX)], &[1], NOTHING);
    backward.add(&[uses(RAX)], &[], RCX);
    for block in 1..LENGTH {
        let next = Some(block + 1).filter(|next| *next < LENGTH);
        let boundary = if next.is_none() {
            RAX.union(RCX)
        } else {
            NOTHING
        };
        forward.add(&[], next.as_slice(), boundary);
        backward.add(&[], &[block - 1], NOTHING);
    }
    assert_eq!(solve(&forward).live_in(BlockId(0)), RAX);
    let last = BlockId(LENGTH - 1);
    assert_eq!(solve(&backward).live_in(last), RAX.union(RCX));
}

/// The plainest iteration: every block, in order, until nothing changes.
fn solve_plainly(graph: &Graph) -> Vec<LocSet> {
    let mut live_in = vec![NOTHING; graph.block_count()];
    loop {
        let before = live_in.clone();
        for block in (0..graph.block_count() as u32).map(BlockId) {
            let mut live = graph.live_at_exit(block);
            for successor in graph.successors(block) {
                live = live.union(live_in[successor.0 as usize]);
            }
            for inst in graph.instructions(block).rev() {
                live = graph.effect(InstId(inst)).live_before(live);
            }
            live_in[block.0 as usize] = live;
        }
        if live_in == before {
            return live_in;
        }
    }
}

/// Blocks enough for several words of words of the set of pending blocks, edges mostly local.
fn large_graph() -> impl Strategy<Value = Graph> {
    let block = (any::<[u8; 3]>(), any::<u16>(), any::<bool>());
    proptest::collection::vec(block, 1..10_000).prop_map(|blocks| {
        let count = blocks.len() as u32;
        let mut graph = Graph::new();
        for (at, (regs, far, is_far)) in blocks.iter().enumerate() {
            let at = at as u32;
            let reg = |n: usize| Reg::new(regs[n] % 16).map_or(NOTHING, LocSet::reg);
            let effect = Effect {
                uses: if regs[0] < 16 { reg(0) } else { NOTHING },
                kills: reg(1),
            };
            let other = if *is_far && regs[2] < 8 {
                u32::from(*far)
            } else {
                at + u32::from(regs[2] % 16)
            };
            graph.add(&[effect], &[(at + 1) % count, other % count], NOTHING);
        }
        graph
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..Default::default() })]

    /// What the fuzz target does.
    #[test]
    fn the_solution_is_the_definition(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        prop_assert_eq!(agrees(&Graph::from_bytes(&bytes)), Ok(()));
    }

    #[test]
    fn effects_compose(sets in any::<[[u64; 2]; 3]>()) {
        let set = |bits: u64| -> LocSet {
            let all = LocSet::all().iter().enumerate();
            all.filter(|(at, _)| bits >> at & 1 != 0).map(|(_, loc)| loc.into()).collect()
        };
        let [first, second, [live, _]] = sets;
        let effect = |[uses, kills]: [u64; 2]| Effect { uses: set(uses), kills: set(kills) };
        let (first, second, live) = (effect(first), effect(second), set(live));
        let composed = first.then(second).live_before(live);
        prop_assert_eq!(composed, first.live_before(second.live_before(live)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..Default::default() })]

    #[test]
    fn large_graphs_are_solved_alike(graph in large_graph()) {
        let liveness = solve(&graph);
        for (block, live) in solve_plainly(&graph).into_iter().enumerate() {
            prop_assert_eq!(liveness.live_in(BlockId(block as u32)), live);
        }
    }
}
