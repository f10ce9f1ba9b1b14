//! A sample of the mutation run: the verifier rejects every mutant of a check
//! of the rewritten stock module, for a hypervisor and as a module.

use conformance::mutants::{self, MutantKind, Setting};
use process_lab::program::{self, Variant};
use process_lab::random::Random;
use process_lab::stock;
use svm_verify::{Accesses, Scheme, Target};

const CHECKS: usize = 6;
/// Of those a module has as many kinds, but not return addresses that are kept.
const CHECKS_OF_A_MODULE: usize = 2;

fn every_mutant_is_rejected(setting: Setting, checks: usize) {
    let file = stock::find().unwrap_or_else(|error| panic!("{error}"));
    let object = elf_loader::read(&file).expect("the stock module reads");
    let rewritten = setting.rewritten(&object).expect("rewritten");
    let all = mutants::checks(&rewritten.object, &rewritten.sites, setting);
    assert!(all.len() > 700, "{} checks", all.len());
    let mut random = Random::new(7);
    let chosen: Vec<_> = (0..checks)
        .map(|_| all[random.below(all.len() as u64) as usize].clone())
        .collect();
    let mut object = rewritten.object;
    let contract = setting.contract();
    assert!(
        svm_verify::verify(&object, contract).is_ok(),
        "the original is accepted"
    );
    let mut tally = mutants::judge(&mut object, contract, &chosen, &all, 7);
    let guards = mutants::guards(&object, &rewritten.sites);
    if setting.target == Target::Hypervisor {
        assert!(guards.len() > 300, "{} guards", guards.len());
        let one_in = guards.len() / checks;
        let of_guards = mutants::judge_guards(&mut object, contract, &guards, 3, one_in);
        tally.add(of_guards);
    }
    println!("{setting}\n{tally}");
    assert!(tally.survivors.is_empty(), "{:#?}", tally.survivors);
    let kinds = MutantKind::ALL.iter().zip(tally.counts);
    for (kind, count) in kinds.filter(|(kind, _)| is_made(setting, **kind)) {
        assert!(count.made >= checks as u64, "{kind:?}: {}", count.made);
        assert!(count.rejected > 0, "{kind:?}");
    }
    // A repeated idempotent instruction is accepted: so an insertion by itself is no
    // reason for a rejection.
    let twice = tally.counts[MutantKind::Duplicated as usize];
    assert!(twice.harmless > 0, "{twice:?}");
    assert!(
        svm_verify::verify(&object, contract).is_ok(),
        "every mutation was undone"
    );
}

/// Whether a kind is made of an object: a module keeps no return addresses.
fn is_made(setting: Setting, kind: MutantKind) -> bool {
    setting.target == Target::Hypervisor
        || !matches!(kind, MutantKind::Displaced | MutantKind::Condition)
}

#[test]
fn of_the_default_scheme() {
    every_mutant_is_rejected(Setting::of(Target::Hypervisor, Scheme::Stlb), CHECKS);
}

#[test]
fn of_the_papers_scheme() {
    every_mutant_is_rejected(Setting::of(Target::Hypervisor, Scheme::Paper), CHECKS);
}

/// Stores alone are in the small object, and in `make mutations`.
#[test]
fn of_a_module() {
    let settings = Setting::MODULES.into_iter();
    for setting in settings.filter(|setting| setting.accesses == Accesses::All) {
        every_mutant_is_rejected(setting, CHECKS_OF_A_MODULE);
    }
}

/// Every mutant of some checks of a small object, branches to every byte of the
/// function included.
#[test]
fn of_a_small_object_systematically() {
    let hypervisor = Scheme::TABLES.map(|scheme| Setting::of(Target::Hypervisor, scheme));
    for setting in hypervisor.into_iter().chain(Setting::MODULES) {
        let mut subject = mutants::Systematic::new(setting);
        assert!(svm_verify::verify(&subject.object, subject.contract).is_ok());
        let keeps_returns = setting.target == Target::Hypervisor;
        assert!(subject.checks.len() > 70, "{}", subject.checks.len());
        assert_eq!(subject.guards.len() > 100, keeps_returns);
        let tally = mutants::systematic(&mut subject, 7, if keeps_returns { 60 } else { 200 });
        println!("{setting}\n{tally}");
        let survivors: Vec<_> = tally.survivors.iter().map(|s| &s.mutant.text).collect();
        assert!(survivors.is_empty(), "{survivors:#?}");
    }
}

/// Mutants that the verifier accepts, each for a reason of its own: stores and loads that stay in
/// the own frame, and a copy of a register to one that holds the same.
#[test]
fn harmless_by_what_registers_hold() {
    const STLB: Setting = Setting::of(Target::Linux, Scheme::Stlb);
    const PAPER: Setting = Setting::of(Target::Linux, Scheme::Paper);
    let known = [
        (STLB, ".text+0x2e96 (", "`mov (%r12),%r10` with REX 4c"),
        (STLB, ".text+0xd24f (", "`mov %eax,(%r10)` with REX 40"),
        (PAPER, ".text+0xf3b2 (", "`mov %eax,(%r10)` with REX 40"),
        (
            PAPER,
            ".text+0x992b (",
            "`mov %rbx,%rdi` swapped with `mov %rdi,%rax`",
        ),
    ];
    let file = stock::find().unwrap_or_else(|error| panic!("{error}"));
    let object = elf_loader::read(&file).expect("the stock module reads");
    for setting in [STLB, PAPER] {
        let rewritten = setting.rewritten(&object).expect("rewritten");
        let all = mutants::checks(&rewritten.object, &rewritten.sites, setting);
        let mut object = rewritten.object;
        for (_, place, how) in known.iter().filter(|(of, ..)| *of == setting) {
            let here = all.iter().filter(|check| check.place().starts_with(place));
            let made = here.flat_map(|c| c.mutants(&object, &all[..1], true, &mut Random::new(1)));
            let made: Vec<_> = made.filter(|mutant| mutant.text.ends_with(how)).collect();
            assert!(!made.is_empty(), "{place}: {how}");
            for mutant in made {
                let undo = mutant.apply(&mut object).expect("it fits");
                let verdict = svm_verify::verify(&object, setting.contract());
                undo.undo(&mut object);
                assert!(mutant.harmless, "{}", mutant.text);
                assert!(verdict.is_ok(), "{}", mutant.text);
            }
        }
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
    let tally = mutants::judge_window(&mut object, contract, &subjects, INSTRUCTIONS, 7);
    println!("{}\n{tally}", variant.name());
    let survivors: Vec<_> = tally.survivors.iter().map(|s| &s.mutant.text).collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
    for kind in [MutantKind::Prefix, MutantKind::Deleted] {
        let count = tally.counts[kind as usize];
        assert!(count.rejected > 10, "{kind:?}: {count:?}");
    }
    assert!(svm_verify::verify(&object, contract).is_ok(), "undone");
}
