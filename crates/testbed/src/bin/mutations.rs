//! The mutation run: every mutant of many checks of the rewritten stock e1000.ko
//! must be rejected by the verifier.

use std::process::ExitCode;

use clap::Parser;

use svm_rewrite::{Options as Rewriting, Scheme, rewrite};
use testbed::mutate::{self, Tally};
use testbed::stock;
use testbed::{Error, random::Random};

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
    let object = elf_loader::read(&file)?;
    let mut clean = true;
    for scheme in [Scheme::Stlb, Scheme::Paper] {
        let tally = scheme_tally(&object, scheme, options)?;
        for survivor in &tally.survivors {
            println!("accepted: {survivor}");
        }
        println!("scheme {}\n{tally}", scheme.as_str());
        clean &= tally.survivors.is_empty();
    }
    Ok(clean)
}

fn scheme_tally(
    object: &elf_loader::Object<'_>,
    scheme: Scheme,
    options: &Options,
) -> Result<Tally, Error> {
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
    Ok(tally)
}
