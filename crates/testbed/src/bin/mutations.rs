//! The mutation run: every mutant of many checks of the rewritten stock e1000.ko
//! must be rejected by the verifier.

use std::process::ExitCode;

use clap::Parser;

use elf_loader::Object;
use svm_rewrite::{Options as Rewriting, Scheme, rewrite};
use testbed::campaign::{self, Plan};
use testbed::functions::subject;
use testbed::mutate::{self, Survivor, Tally};
use testbed::program::{Program, Variant};
use testbed::random::Random;
use testbed::stock::{self, Stock};
use testbed::{Error, native};

/// Change one instruction of a check, for many checks, and ask the verifier.
#[derive(Parser)]
#[command(after_help = "Exit status: 0 all rejected, 1 not all, 2 the run could not be made.")]
struct Options {
    /// Checks to mutate under each scheme.
    #[arg(long, default_value_t = 500)]
    checks: usize,
    /// Seed of the choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; as many as processors if 0.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("mutations: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool, Error> {
    let file = stock::find()?;
    let stock = Stock::new(&file, native::import_entry())?;
    let mut clean = true;
    for variant in Variant::PLAIN {
        let (mut object, tally) = scheme_tally(&stock.object, variant.scheme, options)?;
        println!("scheme {}\n{tally}", variant.name());
        for survivor in &tally.survivors {
            let same = means_the_same(&stock, variant, &mut object, survivor)?;
            println!("accepted, {same}: {}", survivor.mutant.text);
            clean &= same == Meaning::Same;
        }
    }
    Ok(clean)
}

/// What running a mutant showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// It did the same in all runs.
    Same,
    /// It did not.
    Different,
    /// Its function cannot be run.
    Unknown,
}

impl std::fmt::Display for Meaning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Meaning::Same => "and the same in all runs",
            Meaning::Different => "and DIFFERENT when run",
            Meaning::Unknown => "and its function cannot be run",
        })
    }
}

/// Runs the mutant's function, native against mutated.
fn means_the_same(
    stock: &Stock<'_>,
    variant: Variant,
    object: &mut Object<'static>,
    survivor: &Survivor,
) -> Result<Meaning, Error> {
    let name = survivor.function.trim_end_matches(".cold");
    let Some(subject) = subject(name) else {
        return Ok(Meaning::Unknown);
    };
    let undo = survivor.mutant.apply(object);
    let program = Program::link(stock, variant, object.clone());
    undo.undo(object);
    let plan = Plan {
        images: 1000,
        stepped: 0,
        first: 0,
        jobs: 1,
    };
    let report = campaign::run(stock, &[program?], &[subject], plan, &|_| {})?;
    Ok(if report.differing() == 0 {
        Meaning::Same
    } else {
        Meaning::Different
    })
}

fn scheme_tally(
    object: &Object<'_>,
    scheme: Scheme,
    options: &Options,
) -> Result<(Object<'static>, Tally), Error> {
    let rewriting = Rewriting {
        report: true,
        ..Rewriting::new(scheme)
    };
    let rewritten = rewrite(object, rewriting).map_err(|refusals| Error::Refused {
        count: refusals.len(),
        first: refusals
            .first()
            .map_or_else(String::new, ToString::to_string),
    })?;
    let all = mutate::checks(&rewritten.object, &rewritten.sites, scheme);
    let mut random = Random::new(options.seed);
    let chosen: Vec<_> = (0..options.checks)
        .map(|_| all[random.below(all.len() as u64) as usize].clone())
        .collect();
    let jobs = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = chosen
            .chunks(chosen.len().div_ceil(jobs).max(1))
            .enumerate()
            .map(|(i, part)| {
                let (mut object, all) = (rewritten.object.clone(), &all);
                scope.spawn(move || mutate::judge(&mut object, part, all, options.seed + i as u64))
            })
            .collect();
        for thread in threads {
            tally.add(thread.join().expect("a mutation thread panicked"));
        }
    });
    Ok((rewritten.object, tally))
}
