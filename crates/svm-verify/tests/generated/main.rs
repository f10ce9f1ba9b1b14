//! Generated modules: those that the verifier accepts are executed, and none leaves the contract.
//!
//! What the verifier refuses in a program is taken out, until it accepts the rest: so programs are
//! as close to what it refuses as they can be.
//!
//! `TWIN_GENERATED` is the number of programs, `TWIN_GENERATED_FIRST` the seed of the first one.

#[path = "../common/mod.rs"]
mod common;

mod encode;
mod hypervisor;
mod machine;
mod maker;
mod object;
mod program;

use std::collections::BTreeMap;
use std::env;

use elf_loader::Object;
use svm_verify::Accesses;

use common::LINUX;
use machine::{End, Machine};
use object::Placed;
use program::{FUNCTIONS, Program, Random};

/// Programs of an ordinary run.
const PROGRAMS: u64 = 150;
/// States that each accepted one is executed from.
const STATES: u64 = 8;
/// Rounds in which what is refused is taken out.
const ROUNDS: usize = 40;
/// Instructions of a report.
const REPORTED: usize = 60;

#[test]
fn modules_that_are_accepted_stay_within_the_contract() {
    executed(Accesses::All);
}

#[test]
fn modules_that_are_accepted_stay_within_the_contract_for_stores_alone() {
    executed(Accesses::Stores);
}

fn executed(accesses: Accesses) {
    let object = object::template(accesses);
    let template = elf_loader::read(&object).expect("an object");
    let (first, count) = (
        number("TWIN_GENERATED_FIRST", 0),
        number("TWIN_GENERATED", PROGRAMS),
    );
    let (mut number_accepted, mut ends, mut breaches) = (0, BTreeMap::new(), Vec::new());
    for seed in first..first + count {
        let Some((program, placed)) = accepted(&template, accesses, seed) else {
            continue;
        };
        number_accepted += 1;
        for state in 0..STATES {
            let mut machine = Machine::new(&program, &placed, accesses, seed << 8 | state);
            let end = machine.run((state % u64::from(FUNCTIONS)) as u32);
            if let End::Breach(reason) = &end {
                breaches.push(format!(
                    "program {seed}, state {state}: {reason}\n{}",
                    listing(&machine)
                ));
            }
            *ends.entry(end.to_string()).or_insert(0) += 1;
        }
    }
    println!("{number_accepted} of {count} programs are accepted: {ends:#?}");
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    assert!(
        2 * number_accepted > count && ends.contains_key("returned"),
        "hardly anything was executed"
    );
}

fn number(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |n| n.parse().expect("a number"))
}

/// A program that the verifier accepts, if one is left.
fn accepted<'t>(template: &Object<'t>, accesses: Accesses, seed: u64) -> Option<(Program, Placed)> {
    let (mut program, mut random) = (maker::program(seed), Random(!seed));
    for _ in 0..ROUNDS {
        let placed = object::place(&program)?;
        let object = object::module(template, &program, &placed)?;
        match svm_verify::verify(&object, LINUX.confining(accesses)) {
            Ok(_) => return Some((program, placed)),
            Err(violations) => program.take_out(violations.list.first()?, &placed, &mut random)?,
        }
    }
    None
}

/// The last instructions that were executed, with `rsp` counted from the entry.
fn listing(machine: &Machine<'_>) -> String {
    let first = machine.trace.len().saturating_sub(REPORTED);
    let lines = machine.trace[first..].iter();
    let lines = lines.map(|(i, rsp)| format!("{:5x} {rsp:6} {i}", i.ip() - machine::TEXT));
    lines.collect::<Vec<_>>().join("\n")
}
