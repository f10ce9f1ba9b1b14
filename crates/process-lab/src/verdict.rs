//! How programs of this crate end.

use std::fmt::Display;
use std::process::ExitCode;

/// The exit status of program `name`: 0 if all is as it should be, 1 if not, 2 if
/// that could not be determined; prints why.
pub fn exit<E: Display>(name: &str, result: Result<bool, E>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::from(2)
        }
    }
}
