//! `twin`: rewrites kernel drivers for a hypervisor, and proves what they can reach.
//!
//! ```text
//! arguments ──cli──> Command ──commands::*::run──> Result<(), Failure> ──> exit status
//! ```
//!
//! The library crates do the work. This program has only files, options and
//! messages: one file for each subcommand.

mod cc;
mod cli;
mod commands;
mod inputs;
mod mark;
mod object;
mod parallel;
mod place;
mod ranges;
mod report;
mod signing;
mod source;
mod version;

use std::process::ExitCode;

use clap::Parser;
use command_line::failure::Failure;
use command_line::memory::Allocator;
use command_line::output;

/// Without memory it ends the program.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are errors to clap, which knows where to print each.
        Err(error) => {
            if !error.use_stderr()
                && let Err(failure) = output::help(&error)
            {
                return ended(&failure);
            }
            if error.use_stderr() {
                // Of usage that cannot be printed nobody can be told.
                let _ = error.print();
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    command_line::interrupt::watch();
    match parallel::unless_defect(|| "this command".to_owned(), || cli.command.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::remove_empty_dirs();
            ended(&failure)
        }
    }
}

fn ended(failure: &Failure) -> ExitCode {
    failure.print();
    failure.exit_code()
}
