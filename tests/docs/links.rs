//! Links between documents, and the files of the repository that documents name.

use std::path::PathBuf;

use crate::{guides, root};

/// The documents outside `docs/`.
const PAGES: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "runtime/README.md",
    "fuzz/README.md",
];

/// The documents and their text.
fn pages() -> impl Iterator<Item = (PathBuf, String)> {
    let pages = PAGES.map(|name| root().join(name));
    pages.into_iter().chain(guides()).map(|page| {
        let text = std::fs::read_to_string(&page).expect("a page");
        (page, text)
    })
}

#[test]
fn links_lead_somewhere() {
    let mut broken = String::new();
    for (page, text) in pages() {
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.starts_with("http") {
                continue;
            }
            let directory = page.parent().expect("a directory");
            if !directory.join(file).exists() {
                broken.push_str(&format!("{}: {target}\n", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{broken}");
}

/// Files are named by their path from the root, and exist.
#[test]
fn files_that_are_named_are_there() {
    let mut missing = String::new();
    for (page, text) in pages() {
        let path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        for name in text.split(|c| !path(c)) {
            let name = name.trim_end_matches('.');
            let ours = ["crates/", "runtime/", "scripts/"]
                .iter()
                .any(|directory| name.starts_with(directory));
            let file = [".rs", ".c", ".h", ".S", ".sh", ".awk"]
                .iter()
                .any(|ending| name.ends_with(ending));
            if ours && file && !root().join(name).exists() {
                missing.push_str(&format!("{}: {name}\n", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "files that are not there:\n{missing}");
}
