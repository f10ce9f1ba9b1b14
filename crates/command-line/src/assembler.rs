//! The system's assembler (binutils), for texts in memory.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use crate::failure::Failure;
use crate::input::describe;
use crate::temporary::ScratchDirectory;

/// Most lines of an assembler's complaint that are passed on.
const SHOWN: usize = 5;

/// What to do about a text that it rejects.
const REMEDY: &str = "give an object, or a text that `as --64` takes; `twin cc` compiles C";

/// Assembles a text; `name` is what messages call it.
///
/// # Errors
/// The assembler does not take it, is not there, or fails by itself.
pub fn assemble(name: &str, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let scratch = scratch()?;
    let source = scratch.path().join("text.s");
    std::fs::write(&source, text).map_err(|e| Failure::access(source.display(), e))?;
    let output = scratch.path().join("text.o");
    let mut command = Command::new("as");
    command.arg("--64").arg(&source).arg("-o").arg(&output);
    let done = run(&mut command)?;
    match done.status.success() {
        true => read(&output),
        false => Err(rejected(name, &done)),
    }
}

/// What a failed assembler says of the text, or of itself.
fn rejected(name: &str, done: &Output) -> Failure {
    let complaint = String::from_utf8_lossy(&done.stderr);
    let lines = complaint.lines().filter_map(|line| {
        let place = line.split_once("text.s:").map_or(line, |(_, rest)| rest);
        let numbered = place.starts_with(|c: char| c.is_ascii_digit());
        // What ends the assembler at a line is the text's (`.abort`, macros without end).
        let of_the_text = line.contains("Error") || numbered && line.contains("Fatal error");
        of_the_text.then(|| match numbered {
            true => format!("\n  line {place}"),
            // What is missing at the end has no line.
            false => format!("\n  {}", place.trim_start()),
        })
    });
    let lines: String = lines.take(SHOWN).collect();
    if lines.is_empty() {
        // No line of the text is wrong: a full disk ("Fatal error"), or a signal.
        let said = complaint.lines().last().map(str::to_owned);
        let why = said.unwrap_or_else(|| done.status.to_string());
        return Failure::access("as", format!("the assembler failed at {name}: {why}"));
    }
    let why = format!("the assembler rejects this text:{lines}\n  {REMEDY}");
    Failure::input(name, why)
}

fn scratch() -> Result<ScratchDirectory, Failure> {
    ScratchDirectory::create("twin-").map_err(|e| Failure::access("a temporary directory", e))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| Failure::access(path.display(), e))
}

/// Runs a program.
fn run(command: &mut Command) -> Result<Output, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.env("LC_ALL", "C").output().map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::NotFound => "; install binutils",
            _ => "",
        };
        Failure::access(
            &program,
            format!("cannot be run: {}{remedy}", describe(&error)),
        )
    })
}
