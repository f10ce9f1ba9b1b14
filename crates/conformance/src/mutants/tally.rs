//! The verifier's verdicts on mutants.

use elf_loader::Object;
use process_lab::random::Random;
use svm_verify::Contract;

use super::{Check, Mutant, MutantKind};

/// Counts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Mutants made.
    pub made: u64,
    /// Rejected by the verifier.
    pub rejected: u64,
    /// Accepted, and confined as before or of the same meaning.
    pub harmless: u64,
}

/// A mutant that was accepted without an argument for it.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// The change that the verifier accepts.
    pub mutant: Mutant,
    /// The function it is in.
    pub function: String,
}

/// The verifier's verdicts on all mutants.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By kind, in the order of [`MutantKind::ALL`].
    pub counts: [Count; MutantKind::ALL.len()],
    /// Checks that were mutated.
    pub checks: u64,
    /// Mutants that were accepted and should not have been.
    pub survivors: Vec<Survivor>,
}

impl Tally {
    /// Adds another thread's.
    pub fn add(&mut self, other: Tally) {
        for (a, b) in self.counts.iter_mut().zip(other.counts) {
            a.made += b.made;
            a.rejected += b.rejected;
            a.harmless += b.harmless;
        }
        self.checks += other.checks;
        self.survivors.extend(other.survivors);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (kind, count) in MutantKind::ALL.iter().zip(self.counts) {
            let Count {
                made,
                rejected,
                harmless,
            } = count;
            writeln!(
                f,
                "{kind:?}: {made} made, {rejected} rejected, {harmless} harmless"
            )?;
        }
        let made: u64 = self.counts.iter().map(|c| c.made).sum();
        write!(
            f,
            "{} checks, {made} mutants, {} accepted without an argument",
            self.checks,
            self.survivors.len()
        )
    }
}

/// Mutates `checks` in `object` and asks the verifier about the contract.
pub fn judge(
    object: &mut Object<'static>,
    contract: Contract,
    checks: &[Check],
    all: &[Check],
    seed: u64,
) -> Tally {
    let mut tally = Tally::default();
    let mut random = Random::new(seed);
    for check in checks {
        tally.checks += 1;
        let others: Vec<Check> = (0..3)
            .map(|_| all[random.below(all.len() as u64) as usize].clone())
            .collect();
        for mutant in check.mutants(object, &others, false, &mut random) {
            ask(object, contract, check, mutant, &mut tally);
        }
    }
    tally
}

/// Asks the verifier about one mutant.
pub(super) fn ask(
    object: &mut Object<'static>,
    contract: Contract,
    check: &Check,
    mutant: Mutant,
    tally: &mut Tally,
) {
    ask_in(object, contract, &check.function, mutant, tally);
}

/// The same about a mutant in a function.
pub(super) fn ask_in(
    object: &mut Object<'static>,
    contract: Contract,
    function: &str,
    mutant: Mutant,
    tally: &mut Tally,
) {
    let Some(undo) = mutant.apply(object) else {
        return;
    };
    let count = &mut tally.counts[mutant.kind as usize];
    count.made += 1;
    let options = svm_verify::Options { limit: 1 };
    let accepted = svm_verify::verify_with(object, contract, options).is_ok();
    undo.undo(object);
    match (accepted, mutant.harmless) {
        (false, _) => count.rejected += 1,
        (true, true) => count.harmless += 1,
        (true, false) => {
            let function = function.to_owned();
            tally.survivors.push(Survivor { mutant, function });
        }
    }
}
