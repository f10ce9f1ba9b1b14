//! `make processors`: what executes rewritten code, on processors that this machine is not.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use process_lab::verdict;
use qemu_tests::Error;
use qemu_tests::built;
use qemu_tests::processors::{Outcome, Program, run};

/// Run the tests that execute rewritten code in the stock kernel under QEMU's emulation, on other
/// processors than this machine has.
#[derive(Parser)]
#[command(after_help = "Examples:
  processors                              the models below, one after the other
  processors Haswell-noTSX                one of them, or any other that `qemu-system-x86_64 -cpu help` lists
  processors --only e1000-sim-together    the tests whose names contain that

The default is Nehalem (Intel's of 2008: no AVX, BMI2 or wrgsbase), Opteron_G3 (AMD's of 2009), Haswell-noTSX (BMI2,
wrgsbase, fast strings), EPYC-Milan (short strings, too), and max: all that the emulator has.

Exit status: 0 all passed, 1 something failed, 2 it could not be run.")]
struct Arguments {
    /// QEMU's models of processors.
    #[arg(default_values = ["Nehalem", "Opteron_G3", "Haswell-noTSX", "EPYC-Milan", "max"])]
    processors: Vec<String>,
    /// Run only what has this in its name.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
}

/// The emulator's own time for all tests; they take a quarter of it.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

fn main() -> ExitCode {
    verdict::exit("processors", all(&Arguments::parse()))
}

fn all(arguments: &Arguments) -> Result<bool, Error> {
    let mut programs = built::programs()?;
    if let Some(part) = &arguments.only {
        programs.retain(|program| program.name.contains(part.as_str()));
    }
    println!("{} programs", programs.len());
    // Nothing passes if nothing was run.
    let mut good = !programs.is_empty();
    for processor in &arguments.processors {
        good &= one(processor, &programs)?;
    }
    Ok(good)
}

/// A line for each program that failed, and one for the processor.
fn one(processor: &str, programs: &[Program]) -> Result<bool, Error> {
    let Outcome { report, time } = run(processor, programs, LIMIT)?;
    let problems = report.problems();
    for problem in &problems {
        println!("  FAIL  {problem}");
    }
    let missing = programs.iter().filter(|program| {
        let mut steps = report.steps.iter();
        !steps.any(|step| step.name == program.name)
    });
    let missing = missing.count();
    println!(
        "{processor}: {} steps, {} failed, {missing} not run, {} s ({})",
        report.steps.len(),
        problems.len(),
        time.as_secs(),
        report.place
    );
    Ok(problems.is_empty() && missing == 0)
}
