//! Every encoding that the verifier allows, executed here: registers, flags and
//! memory change as it believes.

use std::process::ExitCode;

use clap::Parser;

use conformance::belief;
use process_lab::verdict;

/// Execute every encoding that the verifier allows, and compare what it does with
/// what the verifier believes of it.
#[derive(Parser)]
#[command(after_help = "Examples:
  belief
  belief --one-in 100

Exit status: 0 all is as believed, 1 something is not, 2 the run could not be made.")]
struct Options {
    /// Only one encoding in so many.
    #[arg(long, default_value_t = 1)]
    one_in: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = belief::run(options.one_in).map(|report| {
        print!("{report}");
        report.wrong == 0 && report.executed > 0
    });
    verdict::exit("belief", result)
}
