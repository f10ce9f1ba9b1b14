//! `twin`: rewrites kernel drivers for a hypervisor, and proves what they can reach.
//!
//! ```text
//! arguments ──cli──> Command ──commands::*::run──> Result<(), Failure> ──> exit status
//! ```
//!
//! The work is done by the library crates; here are files, options, messages
//! and nothing else. One file a subcommand.

mod cc;
mod cli;
mod commands;
mod parallel;
mod report;
mod source;
mod version;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

/// See the workspace's `Cargo.toml`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are errors to clap; it knows where each belongs. If
        // nobody reads them there is nothing left to do.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
