//! What the documents say, compared with what is there: every `console` block of
//! the README and the guides is run, every link leads somewhere, and crates
//! depend on each other as ARCHITECTURE.md says.
//!
//! After reading each change, `TWIN_BLESS=1 cargo test -p twin --test docs`
//! writes today's output into the documents.

#![allow(missing_docs, reason = "tests")]

mod architecture;
mod links;
mod page;
mod session;
#[path = "../simulator/mod.rs"]
mod simulator;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A document's text.
fn read(name: &str) -> String {
    let path = root().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The guides, sorted.
fn guides() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("docs")).expect("docs/");
    let path = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").path();
    let mut all: Vec<PathBuf> = entries.map(path).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "md"));
    all.sort();
    assert!(!all.is_empty());
    all
}
