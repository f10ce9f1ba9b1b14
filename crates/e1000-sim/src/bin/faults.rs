//! Faults in the stock driver's data while the hypervisor instance serves
//! packets, and their outcomes.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use e1000_sim::inject::campaign::{self, Options};
use e1000_sim::inject::tally::Column;
use e1000_sim::stages::{Stage, Stages};
use process_lab::program::{self, Variant};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scheme {
    Stlb,
    Paper,
    Window32,
    Window,
}

/// Break the stock e1000.ko's data, again and again, while its hypervisor
/// instance serves packets, and see that nothing else breaks.
#[derive(Parser)]
#[command(after_help = "Examples:
  faults
  faults --faults 5000 --seed 7
  faults --first 321 --faults 1 --verbose
  faults --only DMA --unchecked

Exit status: 0 all is well, 1 the hypervisor died, hung or changed, a guest's
memory or packets did, or packets did not go again; 2 the run could not be made.")]
struct Arguments {
    /// How many faults: 60 of each kind.
    #[arg(long, default_value_t = 1080)]
    faults: u64,
    /// Other faults.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of the first fault.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Inject only kinds whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Leave descriptors for the card unchecked: to compare.
    #[arg(long)]
    unchecked: bool,
    /// How the driver is rewritten.
    #[arg(long, value_enum, default_value_t = Scheme::Stlb)]
    scheme: Scheme,
    /// Rewrite so that pointers are compared with dom0's first and last address: a window's only.
    #[arg(long)]
    strict: bool,
    /// Put all stages of the packet path around the driver: aggregates of TCP segments, a bridge,
    /// notifications, and a card that neither cuts nor gathers nor sums.
    #[arg(long)]
    stages: bool,
    /// Say what each fault was and became.
    #[arg(long)]
    verbose: bool,
    /// Say it as JSON, a line each: what an abort's report has, too.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = Options {
        faults: arguments.faults,
        seed: arguments.seed,
        first: arguments.first,
        only: arguments.only,
        unchecked: arguments.unchecked,
        stages: match arguments.stages {
            true => Stages::of(Stage::ALL),
            false => Stages::NONE,
        },
        verbose: arguments.verbose,
        json: arguments.json,
        variant: Variant {
            strict: arguments.strict,
            ..Variant::here(match arguments.scheme {
                Scheme::Stlb => program::Scheme::Stlb,
                Scheme::Paper => program::Scheme::Paper,
                Scheme::Window32 => program::Scheme::Window32,
                Scheme::Window => program::Scheme::Window,
            })
        },
    };
    match campaign::supervised(&options) {
        Err(error) => {
            eprintln!("faults: {error}");
            ExitCode::from(2)
        }
        Ok((tally, violations)) => {
            let tally = tally.get();
            println!("{}", tally.table());
            let struck = tally.total(Column::Injected);
            let missed = options.count() - struck.min(options.count());
            println!("{missed} faults found nothing to strike");
            for violation in &violations {
                println!("VIOLATION: {violation}");
            }
            ExitCode::from(u8::from(!violations.is_empty()))
        }
    }
}
