//! All mutants that are to be made: of checks of the stock e1000.ko, and
//! systematically of a small object; for each target and under each scheme, on several
//! threads.
//!
//! A mutant that the verifier accepts without an argument is run, where it can be, and
//! counts as surviving if it does anything other than the original.

use std::fmt;

use elf_loader::Object;
use process_lab::error::Error;
use process_lab::program::{self, LinkedCode, Variant};
use process_lab::random::Random;
use process_lab::stock::{self, Stock};
use svm_verify::Target;

use super::{
    Setting, Survivor, Systematic, Tally, checks, guards, judge, judge_guards, judge_window,
    subjects, systematic,
};
use crate::differential::campaign;
use crate::differential::functions::subject;
use crate::differential::native;

/// What to make.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Only of objects and schemes whose name contains this.
    pub only: String,
    /// Checks of the stock module to mutate under each scheme.
    pub checks: usize,
    /// One check of the small object in so many.
    pub one_in: usize,
    /// Seed of the choice.
    pub seed: u64,
    /// Threads; as many as processors if 0.
    pub jobs: usize,
}

impl Extent {
    fn asks_for(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    fn threads(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        }
    }
}

/// The results.
#[derive(Debug, Default)]
pub struct MutantsReport {
    /// By name of scheme and object.
    pub tallies: Vec<(String, Tally)>,
    /// The mutants accepted without an argument, with the result of running them.
    pub accepted: Vec<(MutantEffect, String)>,
}

impl MutantsReport {
    /// Mutants made.
    pub fn made(&self) -> u64 {
        self.sum(|c| c.made)
    }

    /// Mutants that the verifier rejected.
    pub fn rejected(&self) -> u64 {
        self.sum(|c| c.rejected)
    }

    /// Mutants that keep the contract, by argument.
    pub fn harmless(&self) -> u64 {
        self.sum(|c| c.harmless)
    }

    /// Mutants that do the same in all runs.
    pub fn same(&self) -> u64 {
        self.accepted.len() as u64 - self.surviving()
    }

    /// Mutants that should have been rejected.
    pub fn surviving(&self) -> u64 {
        let survives = |a: &&(MutantEffect, String)| a.0 != MutantEffect::Same;
        self.accepted.iter().filter(survives).count() as u64
    }

    /// Adds a tally, with the effects of its survivors.
    fn add(&mut self, name: String, tally: Tally, effects: Vec<MutantEffect>) {
        let texts = tally.survivors.iter().map(|s| s.mutant.text.clone());
        self.accepted.extend(effects.into_iter().zip(texts));
        self.tallies.push((name, tally));
    }

    fn sum(&self, of: impl Fn(&super::Count) -> u64) -> u64 {
        let tallies = self.tallies.iter();
        tallies.flat_map(|(_, t)| t.counts.iter()).map(of).sum()
    }
}

impl fmt::Display for MutantsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, tally) in &self.tallies {
            writeln!(f, "{name}\n{tally}")?;
        }
        for (meaning, text) in &self.accepted {
            writeln!(f, "accepted, {meaning}: {text}")?;
        }
        let rows = [
            ("mutants made", self.made()),
            ("  rejected", self.rejected()),
            ("  harmless by argument", self.harmless()),
            ("  the same in all runs", self.same()),
            ("  surviving", self.surviving()),
        ];
        rows.iter()
            .try_for_each(|(name, n)| writeln!(f, "{name:<34}{n:>12}"))
    }
}

/// Makes them and asks the verifier about each. `tell` hears of each object when it is done.
///
/// # Errors
/// The stock module cannot be found, rewritten, or run.
pub fn run(plan: &Extent, tell: &dyn Fn(&str, &Tally)) -> Result<MutantsReport, Error> {
    let mut report = MutantsReport::default();
    let mut add = |name: String, tally: Tally, effects: Vec<MutantEffect>| {
        tell(&name, &tally);
        report.add(name, tally, effects);
    };
    let unknown = |tally: &Tally| vec![MutantEffect::Unknown; tally.survivors.len()];
    let file = stock::find()?;
    let stock = Stock::new(&file, native::import_entry())?;
    let hypervisor = Variant::PLAIN.map(|variant| {
        let setting = Setting::of(Target::Hypervisor, variant.scheme);
        (setting, Some(variant))
    });
    let modules = Setting::MODULES.map(|setting| (setting, None));
    for (setting, variant) in hypervisor.into_iter().chain(modules) {
        let name = format!("e1000, {setting}");
        if plan.asks_for(&name) {
            let (mut object, tally) = setting_tally(&stock.object, setting, plan)?;
            let effects = match variant {
                Some(variant) => tally
                    .survivors
                    .iter()
                    .map(|survivor| means_the_same(&stock, variant, &mut object, survivor))
                    .collect::<Result<_, _>>()?,
                None => unknown(&tally),
            };
            add(name, tally, effects);
        }
        let name = format!("small object, {setting}");
        if plan.asks_for(&name) {
            let tally = small_tally(setting, plan);
            let effects = unknown(&tally);
            add(name, tally, effects);
        }
    }
    for variant in Variant::WINDOWS.into_iter().chain(Variant::STRICT) {
        let name = format!("e1000, scheme {}", variant.name());
        if plan.asks_for(&name) {
            let tally = window_tally(&stock.object, variant, plan)?;
            let effects = unknown(&tally);
            add(name, tally, effects);
        }
    }
    Ok(report)
}

/// The mutants of the stock module with a window: of as many instructions as of checks in
/// other schemes, times five, since each has fewer.
fn window_tally(object: &Object<'_>, variant: Variant, plan: &Extent) -> Result<Tally, Error> {
    const FEWER: usize = 5;
    let rewritten = program::rewrite(object, variant)?;
    let subjects = &subjects(&rewritten);
    let contract = variant.contract();
    let threads = plan.threads();
    let count = (FEWER * plan.checks).div_ceil(threads);
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let start = |n: usize| {
            let mut object = rewritten.clone();
            let seed = plan.seed + n as u64;
            scope.spawn(move || judge_window(&mut object, contract, subjects, count, seed))
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        for thread in running {
            tally.add(thread.join().expect("a mutation thread panicked"));
        }
    });
    Ok(tally)
}

/// The mutants of the small object.
fn small_tally(setting: Setting, plan: &Extent) -> Tally {
    let subject = Systematic::new(setting);
    let threads = plan.threads();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let start = |first| {
            let mut subject = subject.clone();
            scope.spawn(move || systematic(&mut subject, first, threads * plan.one_in.max(1)))
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        for thread in running {
            tally.add(thread.join().expect("a mutation thread panicked"));
        }
    });
    tally
}

/// The result of running a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutantEffect {
    /// It did the same in all runs.
    Same,
    /// It did not.
    Different,
    /// Its function cannot be run.
    Unknown,
}

impl std::fmt::Display for MutantEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MutantEffect::Same => "and the same in all runs",
            MutantEffect::Different => "and DIFFERENT when run",
            MutantEffect::Unknown => "and its function cannot be run",
        })
    }
}

/// Runs the mutant's function, native against mutated.
fn means_the_same(
    stock: &Stock<'_>,
    variant: Variant,
    object: &mut Object<'static>,
    survivor: &Survivor,
) -> Result<MutantEffect, Error> {
    let name = survivor.function.trim_end_matches(".cold");
    let Some(subject) = subject(name) else {
        return Ok(MutantEffect::Unknown);
    };
    let Some(undo) = survivor.mutant.apply(object) else {
        return Ok(MutantEffect::Unknown);
    };
    let program = LinkedCode::link(stock, variant, object.clone());
    undo.undo(object);
    let runs = campaign::Extent {
        images: 1000,
        stepped: 0,
        first: 0,
        jobs: 1,
    };
    let report = campaign::run(stock, &[program?], &[subject], runs, &|_| {})?;
    Ok(if report.differing() == 0 {
        MutantEffect::Same
    } else {
        MutantEffect::Different
    })
}

/// The mutants of some checks of the stock module.
fn setting_tally(
    object: &Object<'_>,
    setting: Setting,
    plan: &Extent,
) -> Result<(Object<'static>, Tally), Error> {
    let rewritten = setting.rewritten(object)?;
    let contract = setting.contract();
    let all = checks(&rewritten.object, &rewritten.sites, setting);
    // As many of them as a third of the checks.
    let guards = guards(&rewritten.object, &rewritten.sites);
    let one_in = plan.threads() * (3 * guards.len()).div_ceil(plan.checks.max(1)).max(1);
    let mut random = Random::new(plan.seed);
    let chosen: Vec<_> = (0..plan.checks)
        .map(|_| all[random.below(all.len() as u64) as usize].clone())
        .collect();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = chosen
            .chunks(chosen.len().div_ceil(plan.threads()).max(1))
            .enumerate()
            .map(|(i, part)| {
                let (mut object, all, guards) = (rewritten.object.clone(), &all, &guards);
                scope.spawn(move || {
                    let mut tally = judge(&mut object, contract, part, all, plan.seed + i as u64);
                    tally.add(judge_guards(&mut object, contract, guards, i, one_in));
                    tally
                })
            })
            .collect();
        for thread in threads {
            tally.add(thread.join().expect("a mutation thread panicked"));
        }
    });
    Ok((rewritten.object, tally))
}
