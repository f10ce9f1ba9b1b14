//! A sample of the mutation run: the verifier rejects every mutant of a check
//! of the rewritten stock module.

use conformance::mutants;
use process_lab::program::{self, Variant};
use process_lab::random::Random;
use process_lab::stock;
use svm_rewrite::{Options, Scheme, rewrite};
use svm_verify::{Contract, Target};

const CHECKS: usize = 6;

fn every_mutant_is_rejected(scheme: Scheme) {
    let file = stock::find().unwrap_or_else(|error| panic!("{error}"));
    let object = elf_loader::read(&file).expect("the stock module reads");
    let options = Options {
        report: true,
        ..Options::new(scheme)
    };
    let rewritten = rewrite(&object, options).expect("rewritten");
    let all = mutants::checks(&rewritten.object, &rewritten.sites, scheme);
    assert!(all.len() > 2000, "{} checks", all.len());
    let mut random = Random::new(7);
    let chosen: Vec<_> = (0..CHECKS)
        .map(|_| all[random.below(all.len() as u64) as usize].clone())
        .collect();
    let mut object = rewritten.object;
    let contract = Contract::of(Target::Hypervisor).with(scheme);
    assert!(
        svm_verify::verify(&object, contract).is_ok(),
        "the original is accepted"
    );
    let mut tally = mutants::judge(&mut object, &chosen, &all, 7);
    let guards = mutants::guards(&object, &rewritten.sites);
    assert!(guards.len() > 300, "{} guards", guards.len());
    let one_in = guards.len() / CHECKS;
    tally.add(mutants::judge_guards(&mut object, &guards, 3, one_in));
    println!("scheme {}\n{tally}", scheme.as_str());
    assert!(tally.survivors.is_empty(), "{:#?}", tally.survivors);
    let kinds = mutants::MutantKind::ALL.iter().zip(tally.counts);
    // Checks have no operand in a window.
    for (kind, count) in kinds.filter(|(kind, _)| **kind != mutants::MutantKind::Prefix) {
        assert!(count.made >= CHECKS as u64, "{kind:?}: {}", count.made);
        assert!(count.rejected > 0, "{kind:?}");
    }
    // A repeated idempotent instruction is accepted: so an insertion by itself is no
    // reason for a rejection.
    let twice = tally.counts[mutants::MutantKind::Duplicated as usize];
    assert!(twice.harmless > 0, "{twice:?}");
    assert!(
        svm_verify::verify(&object, contract).is_ok(),
        "every mutation was undone"
    );
}

#[test]
fn of_the_default_scheme() {
    every_mutant_is_rejected(Scheme::Stlb);
}

#[test]
fn of_the_papers_scheme() {
    every_mutant_is_rejected(Scheme::Paper);
}

/// Every mutant of some checks of a small object, branches to every byte of the
/// function included.
#[test]
fn of_a_small_object_systematically() {
    for scheme in Scheme::TABLES {
        let mut subject = mutants::Systematic::new(scheme);
        assert!(
            svm_verify::verify(
                &subject.object,
                Contract::of(Target::Hypervisor).with(scheme)
            )
            .is_ok()
        );
        assert!(subject.checks.len() > 100, "{}", subject.checks.len());
        assert!(subject.guards.len() > 100, "{}", subject.guards.len());
        let tally = mutants::systematic(&mut subject, 7, 60);
        println!("scheme {}\n{tally}", scheme.as_str());
        let survivors: Vec<_> = tally.survivors.iter().map(|s| &s.mutant.text).collect();
        assert!(survivors.is_empty(), "{survivors:#?}");
    }
}

/// Operands, cuts, moves of the stack pointer, string pointers and comparisons of the schemes
/// with a window.
#[test]
fn of_the_schemes_with_a_window() {
    for variant in Variant::WINDOWS.into_iter().chain(Variant::STRICT) {
        of_a_window(variant);
    }
}

fn of_a_window(variant: Variant) {
    const INSTRUCTIONS: usize = 120;
    let file = stock::find().unwrap_or_else(|error| panic!("{error}"));
    let object = elf_loader::read(&file).expect("the stock module reads");
    let mut object = program::rewrite(&object, variant).expect("rewritten");
    let contract = variant.contract();
    assert!(svm_verify::verify(&object, contract).is_ok());
    let subjects = mutants::subjects(&object);
    assert!(subjects.len() > 5000, "{} instructions", subjects.len());
    let tally = mutants::judge_window(&mut object, &subjects, INSTRUCTIONS, 7);
    println!("{}\n{tally}", variant.name());
    let survivors: Vec<_> = tally.survivors.iter().map(|s| &s.mutant.text).collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
    for kind in [mutants::MutantKind::Prefix, mutants::MutantKind::Deleted] {
        let count = tally.counts[kind as usize];
        assert!(count.rejected > 10, "{kind:?}: {count:?}");
    }
    assert!(svm_verify::verify(&object, contract).is_ok(), "undone");
}
