//! `twin run`: executes the program `twin-run`, which contains the simulator.
//!
//! ```text
//! twin run ARGUMENTS ──checked──> exec twin-run ARGUMENTS
//! ```

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use command_line::failure::Failure;
use command_line::input::describe;
use command_line::output::check_stdout;

pub use command_line::run::Opts;

const PROGRAM: &str = "twin-run";
/// The remedy if it is not found.
const MISSING: &str = "no such program beside twin or on PATH; in twin's source `make install` \
                       installs it, `cargo build -p twin-run` builds it";

/// Becomes `twin-run`, with the arguments that this process was given.
///
/// # Errors
/// There is no such program, or it cannot be executed.
pub fn run() -> Result<(), Failure> {
    check_stdout()?;
    let program = beside().unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(arguments()).exec();
    Err(match error.kind() {
        ErrorKind::NotFound => Failure::access(PROGRAM, MISSING),
        _ => Failure::access(program.display(), describe(&error)),
    })
}

/// What follows `twin run`; `twin` takes no options before a subcommand.
fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(2)
}

/// `twin-run` in the directory of this program.
fn beside() -> Option<PathBuf> {
    let twin = std::env::current_exe().ok()?;
    let program = twin.parent().map(Path::to_path_buf)?.join(PROGRAM);
    program.is_file().then_some(program)
}
