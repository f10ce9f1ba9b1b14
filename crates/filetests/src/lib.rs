//! Tests that are files: the input, and below it what is expected of it.
//!
//! Each file is a test of its own name, so `cargo test -p CRATE --test NAME WORD` runs
//! those whose names contain the word. A run reports every file that disagrees, with what
//! is different. `TWIN_BLESS=1` writes today's result into the files instead: read every
//! changed line before it is committed.

mod assembler;
mod fixture;

use std::path::{Path, PathBuf};

pub use assembler::{assemble, is_assembled};
pub use fixture::{Fixture, Section};
use libtest_mimic::Arguments;
pub use libtest_mimic::{Failed, Trial};
use similar::TextDiff;

/// The series, and flavour, of the kernel whose package the tests read: `6.12`, `6.1-rt`;
/// without it, the stock kernel.
pub const KERNEL: &str = "KERNEL";

/// A file of that kernel's package as `make stock` unpacks it.
///
/// # Panics
///
/// When it is not there.
pub fn kernel(below: &str) -> PathBuf {
    let named = std::env::var(KERNEL).unwrap_or_default();
    let (directory, argument) = match named.as_str() {
        "" => ("stock".to_owned(), String::new()),
        named => (format!("stock-{named}"), format!(" {KERNEL}={named}")),
    };
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let path = target.join(directory).join(below);
    let missing = || panic!("{}: run make stock{argument}", path.display());
    path.canonicalize().unwrap_or_else(|_| missing())
}

/// The variable that makes a run write what it found.
pub const BLESS: &str = "TWIN_BLESS";

/// Compares the text that a file should have with the text that it has, or writes it.
///
/// # Errors
///
/// The lines that differ, unless they are written.
pub fn agree(path: &Path, found: &str) -> Result<(), String> {
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    let name = path.display();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(path, found).map_err(|error| format!("{name}: {error}"))?;
        println!("{name}: written");
        return Ok(());
    }
    let lines = TextDiff::from_lines(expected.as_str(), found);
    let lines = lines.unified_diff().header("expected", "found").to_string();
    Err(format!(
        "{name}:\n{lines}{BLESS}=1 writes what was found into the file"
    ))
}

/// The files of a folder that have this extension, sorted. Folders in it are not searched.
///
/// # Panics
///
/// When there is none.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a directory entry").path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no tests in {}", folder.display());
    files
}

/// A test that is no file.
pub fn test(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Runs the tests that the command line asks for, and ends the process.
pub fn run(tests: Vec<Trial>) -> ! {
    libtest_mimic::run(&Arguments::from_args(), tests).exit()
}
