//! `twin-run`: the testbed moves packets through a driver, and says what they cost.
//! `twin run` starts it with its own arguments.
//!
//! ```text
//! arguments ──> run ──> e1000_sim::experiment ──> results ──> table, figures or JSON
//! ```

mod code_size;
mod figures;
mod parameters;
mod plot;
mod processor;
mod progress;
mod results;
mod rows;
mod run;
mod support;
mod table;

use std::process::ExitCode;

use clap::Parser;
use command_line::output;
use command_line::run::Opts;
use mimalloc::MiMalloc;

/// See the workspace's `Cargo.toml`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Run the e1000 driver in the testbed and measure what packets cost
#[derive(Debug, Parser)]
#[command(name = "twin-run", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    opts: Opts,
}

fn main() -> ExitCode {
    match run::run(&Cli::parse().opts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::remove_empty_dirs();
            failure.print();
            failure.exit_code()
        }
    }
}
