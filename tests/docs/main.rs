//! Checks of the documents: every `console` block of the README and the guides is run,
//! every link has a target, and crates depend on each other as ARCHITECTURE.md says.
//!
//! After reading each change, `TWIN_BLESS=1 cargo test -p twin --test docs`
//! writes today's output into the documents.

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

/// The pages of `docs/` and of its folders, sorted.
fn guides() -> Vec<PathBuf> {
    let mut pages = pages_in(&root().join("docs"));
    pages.sort();
    assert!(!pages.is_empty());
    pages
}

/// The pages of a folder and of the folders in it, in no order.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of docs/");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let pages = files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "md"));
    pages
        .chain(folders.iter().flat_map(|folder| pages_in(folder)))
        .collect()
}
