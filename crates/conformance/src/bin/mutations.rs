//! The mutation run: every mutant of many checks must be rejected by the
//! verifier.

use std::process::ExitCode;

use clap::Parser;

use conformance::mutants::Tally;
use conformance::mutants::campaign::{self, Extent};
use process_lab::Error;
use process_lab::verdict;

/// Change one instruction of a check, for many checks, and ask the verifier.
#[derive(Parser)]
#[command(after_help = "Exit status: 0 all rejected, 1 not all, 2 the run could not be made.")]
struct Options {
    /// Checks of the stock module to mutate under each scheme.
    #[arg(long, default_value_t = 500)]
    checks: usize,
    /// Of the small object's checks, one in so many.
    #[arg(long, default_value_t = 1)]
    one_in: usize,
    /// Seed of the choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; as many as processors if 0.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Only objects and schemes whose name contains this, as `small object, linux`.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> ExitCode {
    verdict::exit("mutations", run(&Options::parse()))
}

fn run(options: &Options) -> Result<bool, Error> {
    let plan = Extent {
        only: options.only.clone(),
        checks: options.checks,
        one_in: options.one_in,
        seed: options.seed,
        jobs: options.jobs,
    };
    let report = campaign::run(&plan, &tell)?;
    if report.tallies.is_empty() {
        return Err(Error::NoSubject(options.only.clone()));
    }
    print!("{report}");
    Ok(report.surviving() == 0)
}

/// It takes an hour: what is done so far.
fn tell(name: &str, tally: &Tally) {
    let (checks, survivors) = (tally.checks, &tally.survivors);
    let count = survivors.len();
    eprintln!("{name}: {checks} checks, {count} mutants accepted without an argument");
    for survivor in survivors {
        eprintln!("  {}", survivor.mutant.text);
    }
}
