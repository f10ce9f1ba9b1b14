//! Fixtures: small `.s` files, assembled by the system assembler.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The `.s` files of a directory below `tests/fixtures`, sorted.
pub fn fixtures(below: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(below);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "s"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {}", dir.display());
    files
}

/// The object that the assembler makes of a text.
pub fn assemble_text(text: impl AsRef<[u8]>) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = dir.path().join("text.s");
    std::fs::write(&source, &text).expect("the source");
    let text = || String::from_utf8_lossy(text.as_ref()).into_owned();
    run_assembler(&source).unwrap_or_else(|| panic!("it does not assemble:\n{}", text()))
}

/// The object that the assembler makes of a file.
pub fn assemble(source: &Path) -> Vec<u8> {
    run_assembler(source).unwrap_or_else(|| panic!("{} does not assemble", source.display()))
}

/// The object, unless the assembler refuses.
fn run_assembler(source: &Path) -> Option<Vec<u8>> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let object = dir.path().join("fixture.o");
    let status = Command::new("as")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status()
        .expect("the system assembler runs");
    let object = || std::fs::read(object).expect("the assembled object");
    status.success().then(object)
}

/// The name of a fixture.
pub fn name(source: &Path) -> String {
    source
        .file_stem()
        .expect("a file name")
        .to_string_lossy()
        .into_owned()
}
