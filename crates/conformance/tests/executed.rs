//! Programs of `tests/fixtures/executed`, natively and rewritten: functions whose
//! rewriting depends on more than one instruction.
//!
//! `TWIN_EXECUTED_SEEDS` is the number of images of memory and registers for each
//! function and way of rewriting, of eight states each.

use conformance::forms::campaign::EXECUTIONS;
use conformance::forms::programs::{ExecutionVerdict, run_object};
use filetests::Fixture;

/// States of each image.
const STATES: u64 = 8;

fn main() {
    let programs = Fixture::of("executed").into_iter();
    let tests = programs.map(|program| program.property("computes the same", computes_the_same));
    filetests::run(tests.collect());
}

fn computes_the_same(program: &Fixture) {
    let seeds = std::env::var("TWIN_EXECUTED_SEEDS");
    let seeds: u64 = seeds.map_or(8, |n| n.parse().expect("a number"));
    let bytes = program.assemble();
    let object = elf_loader::read(&bytes).expect("an object");
    let (mut compared, mut faulted) = (0, 0);
    for (execution, seed) in EXECUTIONS
        .iter()
        .filter(|execution| execution.variant.is_executable())
        .flat_map(|execution| (0..seeds).map(move |n| (execution, n)))
    {
        match run_object(&object, *execution, seed, STATES).expect("the machines can be set up") {
            ExecutionVerdict::Same { states, faults } => {
                compared += states;
                faulted += faults;
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    println!(
        "{}: {compared} states, {faulted} with a fault",
        program.name()
    );
    assert!(
        2 * faulted < compared,
        "{faulted} of {compared} states ended with a fault"
    );
}
