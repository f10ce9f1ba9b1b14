//! The same for the target `hypervisor`: programs of checks, which are about names and indices.
//!
//! The states have few addresses, so that registers are often equal, and pages that the table
//! cannot tell apart by the index, or of which one is what the other's invalid entry says.

mod checks;
mod maker;
mod object;
mod twist;
mod windows;

use std::collections::BTreeMap;

use elf_loader::Object;
use svm_verify::Scheme;

use super::common::USER;
use super::common::machine::{Cpu, End};
use super::program::{FUNCTIONS, Program, Random};
use super::{ROUNDS, number, object as linked};

/// Programs of an ordinary run, for each scheme.
const PROGRAMS: u64 = 250;
/// States that each accepted one is executed from.
const STATES: u64 = 16;

/// Pages: the first two are next to each other, so that the index of each is the tag of the other's
/// invalid entry. The others have their indices.
const PAGES: [u64; 5] = [
    0x12_2000,
    0x12_3000,
    0xffff_8880_0012_2000,
    0xffff_8880_0012_3000,
    0xffff_8880_0112_2000,
];

#[test]
fn programs_of_checks_that_are_accepted_are_confined_in_stlb() {
    executed(Scheme::Stlb, false);
}

#[test]
fn programs_of_checks_that_are_accepted_are_confined_in_paper() {
    executed(Scheme::Paper, false);
}

#[test]
fn programs_that_are_accepted_are_confined_in_window32() {
    executed(Scheme::Window32, false);
}

#[test]
fn programs_that_are_accepted_are_confined_in_window() {
    executed(Scheme::Window, false);
}

#[test]
fn programs_that_are_accepted_are_confined_in_window_where_pointers_are_compared() {
    executed(Scheme::Window, true);
}

fn executed(scheme: Scheme, strict: bool) {
    let bytes = object::template(scheme);
    let template = elf_loader::read(&bytes).expect("an object");
    let (first, count) = (
        number("TWIN_GENERATED_FIRST", 0),
        number("TWIN_GENERATED", PROGRAMS),
    );
    let (mut accepted_ones, mut ends, mut breaches) = (0, BTreeMap::new(), Vec::new());
    for seed in first..first + count {
        let Some((program, starts, object)) = accepted(&template, scheme, strict, seed) else {
            continue;
        };
        accepted_ones += 1;
        let text = object.section(object.section_named(".text").expect("code"));
        for state in 0..STATES {
            let mut machine = machine(scheme, seed << 8 | state);
            let start = starts[(state % u64::from(FUNCTIONS)) as usize];
            let end = machine.run_from(&object, text, start);
            *ends.entry(name(&end)).or_insert(0) += 1;
            if let End::Breach(reason) = end {
                let listing = listing(&program);
                breaches.push(format!(
                    "program {seed}, state {state}: {reason}\n{listing}"
                ));
                break;
            }
        }
    }
    println!("{accepted_ones} of {count} programs are accepted: {ends:#?}");
    let all = breaches.len();
    breaches.truncate(3);
    assert!(all == 0, "{all} breaches\n{}", breaches.join("\n"));
    assert!(
        2 * accepted_ones > count && ends.contains_key("returned"),
        "hardly anything was executed"
    );
}

fn name(end: &End) -> &'static str {
    match end {
        End::Returned => "returned",
        End::Stopped => "stopped",
        End::Breach(_) => "breach",
    }
}

/// A program that the verifier accepts, if one is left: where its functions begin, and its object.
fn accepted<'t>(
    template: &Object<'t>,
    scheme: Scheme,
    strict: bool,
    seed: u64,
) -> Option<(Program, [u64; FUNCTIONS as usize], Object<'t>)> {
    let (mut program, mut random) = (maker::program(scheme, strict, seed), Random(!seed));
    for _ in 0..ROUNDS {
        let placed = linked::place(&program)?;
        let object = object::module(template, &placed)?;
        match svm_verify::verify(&object, USER.with(scheme)) {
            Ok(_) => {
                let starts = std::array::from_fn(|n| placed.labels[&(n as u32)]);
                return Some((program, starts, object));
            }
            Err(mut violations) => {
                // From behind, since what is taken out moves what follows.
                violations.list.sort_by_key(|v| v.offset);
                let all = random.one_in(2);
                for violation in violations
                    .list
                    .iter()
                    .rev()
                    .take(if all { usize::MAX } else { 1 })
                {
                    program.take_out(violation, &placed, &mut random)?;
                }
            }
        }
    }
    None
}

/// A machine in a state.
fn machine(scheme: Scheme, seed: u64) -> Cpu {
    let mut random = Random(seed);
    if !Scheme::TABLES.contains(&scheme) {
        return windows::machine(scheme, random);
    }
    let near = random.of(&[2, PAGES.len()]);
    let few: [u64; 3] = std::array::from_fn(|_| {
        random.of(&PAGES[..near]) + random.of(&[0, 8, 0x7f8, 0xff8, 0xfff])
    });
    let valid = random.of(&[1, 3]);
    let mut number = || match random.below(12) {
        0 => random.below(64),
        1 => 1 << 20,
        _ => random.of(&few),
    };
    let regs = std::array::from_fn(|_| number());
    let left = (0..8).map(|_| number()).collect();
    let pages = PAGES.into_iter().filter(|_| random.below(4) < valid);
    let pages: Vec<u64> = pages.collect();
    let mut machine = Cpu::new(scheme == Scheme::Paper, regs, &pages);
    machine.left = left;
    machine.hostile = random.one_in(2);
    machine
}

fn listing(program: &Program) -> String {
    let lines = program.lines.iter();
    lines.map(|line| format!("{line:x?}\n")).collect()
}
