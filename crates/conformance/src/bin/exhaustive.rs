//! Every instruction form: enumerated, rewritten, verified, executed, compared.
//! Then every mutant of the checks: made and rejected.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use conformance::forms::campaign::Extent;
use conformance::forms::report::FormsReport;
use conformance::forms::{self, campaign, known, survey};
use conformance::mutants;
use process_lab::Error;
use process_lab::program::Variant;
use process_lab::verdict;

/// Enumerate every instruction form with a memory operand, rewrite and verify
/// it, and run it natively and rewritten on the same states. Then mutate checks
/// and ask the verifier.
#[derive(Parser)]
#[command(after_help = "Examples:
  exhaustive
  exhaustive --seeds 4 --jobs 2
  exhaustive --one-in 50 --states 16
  exhaustive --form 23976
  exhaustive --refusals

Exit status: 0 no difference and no surviving mutant, 1 some, 2 the run could not be made.")]
struct Options {
    /// Seeds for registers and memory.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// States of each function: placements times tables.
    #[arg(long, default_value_t = 64)]
    states: u64,
    /// States of each string instruction.
    #[arg(long, default_value_t = 2000)]
    string_states: u64,
    /// Only one form in so many.
    #[arg(long, default_value_t = 1)]
    one_in: u64,
    /// Only this form, by the number that a difference gives; may be repeated.
    #[arg(long = "form")]
    forms: Vec<usize>,
    /// Batches at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Checks of the stock module to mutate under each scheme; 0 for no mutants.
    #[arg(long, default_value_t = 200)]
    checks: usize,
    /// List what is refused and why, and run nothing.
    #[arg(long)]
    refusals: bool,
}

fn main() -> ExitCode {
    verdict::exit("exhaustive", run(&Options::parse()))
}

fn run(options: &Options) -> Result<bool, Error> {
    let start = Instant::now();
    let enumeration = forms::all();
    let verdicts = survey::survey(&enumeration.forms, Variant::PLAIN[0]);
    if options.refusals {
        print!(
            "{}",
            survey::describe(&enumeration.forms, &verdicts, &enumeration.lost)
        );
        return Ok(true);
    }
    let counts = survey::counts(&enumeration.forms, &verdicts);
    println!("{:<34}{:>12}", "forms enumerated", counts.forms);
    println!("{:<34}{:>12}", "  of codes", counts.codes);
    println!("{:<34}{:>12}", "rewritten and verified", counts.accepted);
    println!(
        "{:<34}{:>12}",
        "rewritten, refused by verifier", counts.verifier_refused
    );
    println!("{:<34}{:>12}", "refused by rewriter", counts.refused);
    let plan = Extent {
        states: options.states,
        string_states: options.string_states,
        seeds: (options.first, options.seeds),
        one_in: options.one_in.max(1),
        only: options.forms.clone(),
        jobs: options.jobs,
        known: true,
    };
    let progress = |n, of| {
        eprint!(
            "\rbatch {n} of {of}, {:.0} s ",
            start.elapsed().as_secs_f64()
        )
    };
    let report = campaign::run(&enumeration.forms, &verdicts, &plan, &progress)?;
    eprintln!();
    print!("{report}");
    println!("{:<34}{:>11.0}s", "time", start.elapsed().as_secs_f64());
    for difference in &report.described {
        println!("\n{difference}");
    }
    let stale = if options.one_in > 1 || !options.forms.is_empty() {
        Vec::new()
    } else {
        stale(&report)
    };
    for name in &stale {
        println!("the known defect `{name}` was not seen: take it off the list");
    }
    let clean = report.differences == 0 && stale.is_empty();
    let whole = options.one_in <= 1 && options.forms.is_empty() && options.checks > 0;
    Ok(clean && (!whole || mutate(options, start)?))
}

/// Whether the verifier rejected every mutant that could do harm.
fn mutate(options: &Options, start: Instant) -> Result<bool, Error> {
    let plan = mutants::campaign::Extent {
        only: String::new(),
        checks: options.checks,
        one_in: 1,
        seed: 1,
        jobs: options.jobs,
    };
    let report = mutants::campaign::run(&plan, &|_, _| {})?;
    print!("{report}");
    println!("{:<34}{:>11.0}s", "time", start.elapsed().as_secs_f64());
    Ok(report.surviving() == 0)
}

fn stale(report: &FormsReport) -> Vec<&'static str> {
    let names = known::KNOWN.iter().map(|known| known.name);
    names
        .filter(|name| !report.known.contains_key(name))
        .collect()
}
