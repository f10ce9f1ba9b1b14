//! The size of the graph of control flow, which [`crate::analyse`] makes by a target's rules.

use std::fmt::Write;
use std::num::NonZero;

use crate::analyse::{self, flow::Hints};
use crate::lift::{self, InstIdx};

/// How many edges a function has in which each of so many jumps may go to as many places, as
/// interpreters do.
fn edges(jumps: usize) -> usize {
    let mut text = String::from(".globl f\n.type f,@function\nf: jmp *%rsi\n");
    for _ in 0..jumps {
        writeln!(text, "mov (%rdi,%rax),%rax\njmp *%rax").expect("memory");
    }
    let bytes = filetests::assemble(format!("{text}.size f,.-f\n"), &[]);
    let object = elf_loader::read(&bytes).expect("an object");
    let lifted = lift::lift(&object).expect("code");
    let places = (0..jumps as u32).map(|n| InstIdx(1 + 2 * n));
    let hints = Hints {
        by_jumps: places.collect(),
        ..Hints::default()
    };
    let rules = &super::of(twin_abi::Target::Process).classes;
    let all = twin_abi::Accesses::All;
    let analysis = analyse::analyse(&lifted, &hints, rules, all, NonZero::<usize>::MIN);
    let flow = analysis.expect("control flow").flow;
    flow.nodes()
        .map(|node| flow.continuations(node).len())
        .sum()
}

#[test]
fn edges_are_as_many_as_jumps_and_places() {
    assert_eq!(edges(100), 201);
    assert_eq!(edges(1000), 2001);
}
