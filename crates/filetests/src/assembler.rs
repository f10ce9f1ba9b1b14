//! The system assembler, which decides what a line of assembly means.

use std::path::Path;
use std::process::Command;

/// The object that the assembler makes of a text.
///
/// # Panics
///
/// When it refuses the text.
pub fn assemble(text: impl AsRef<[u8]>, options: &[&str]) -> Vec<u8> {
    let text = text.as_ref();
    assembled(text, options).unwrap_or_else(|message| {
        panic!("{message}\n{}", String::from_utf8_lossy(text));
    })
}

/// Whether the assembler takes a text: those of two releases differ in what they refuse.
pub fn is_assembled(text: impl AsRef<[u8]>) -> bool {
    assembled(text.as_ref(), &[]).is_ok()
}

fn assembled(text: &[u8], options: &[&str]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let object = folder.path().join("test.o");
    run(text, &object, options)?;
    Ok(std::fs::read(object).expect("the assembled object"))
}

fn run(text: &[u8], object: &Path, options: &[&str]) -> Result<(), String> {
    let source = object.with_extension("s");
    std::fs::write(&source, text).expect("the source");
    let mut assembler = Command::new("as");
    let assembler = assembler.args(options).arg("-o").args([object, &source]);
    let output = assembler.output().expect("the system assembler runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(message)
}
