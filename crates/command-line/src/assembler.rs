//! The system's assembler (binutils), for texts in memory.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::temporary::ScratchDirectory;

/// Most lines of an assembler's complaint that are passed on.
const SHOWN: usize = 5;

/// Assembles a text; `name` is what messages call it.
///
/// # Errors
/// The assembler does not take it, or is not there.
pub fn assemble(name: &str, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let scratch = scratch()?;
    let source = scratch.path().join("text.s");
    std::fs::write(&source, text).map_err(|e| Failure::access(source.display(), e))?;
    let output = scratch.path().join("text.o");
    let mut command = Command::new("as");
    command.arg("--64").arg(&source).arg("-o").arg(&output);
    match run(&mut command)? {
        Ok(()) => read(&output),
        Err(complaint) => {
            let lines = complaint.lines().filter(|line| line.contains("Error"));
            let lines = lines.map(|line| {
                let place = line.split_once("text.s:").map_or(line, |(_, rest)| rest);
                format!("\n  line {place}")
            });
            let lines: String = lines.take(SHOWN).collect();
            let why = format!("the assembler rejects this text:{lines}");
            Err(Failure::input(name, why))
        }
    }
}

fn scratch() -> Result<ScratchDirectory, Failure> {
    ScratchDirectory::create("twin-").map_err(|e| Failure::access("a temporary directory", e))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| Failure::access(path.display(), e))
}

/// Runs a program; gives its complaints if it fails.
fn run(command: &mut Command) -> Result<Result<(), String>, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output().map_err(|error| {
        let why = format!("cannot be run: {error}; install binutils");
        Failure::access(&program, why)
    })?;
    Ok(match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    })
}
