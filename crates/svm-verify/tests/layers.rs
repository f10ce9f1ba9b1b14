//! Each folder of the verifier uses only the folders that `src/lib.rs` lists for it, all
//! above it. The test reads the sources, without comments.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The table of `src/lib.rs`: folders in order, and what each uses.
fn listed(library: &str) -> Vec<(String, Vec<String>)> {
    let names = |cell: &str| -> Vec<String> {
        let parts = cell.split('`').skip(1).step_by(2);
        parts.map(String::from).collect()
    };
    let rows = library.lines().filter_map(|l| l.strip_prefix("//! | `"));
    rows.map(|row| {
        let row = format!("`{row}");
        let cells: Vec<&str> = row.split('|').collect();
        (names(cells[0]).remove(0), names(cells[2]))
    })
    .collect()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The folders that a source names: `crate::FOLDER`, outside of comments.
fn used(text: &str) -> Vec<String> {
    let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    let parts = code.flat_map(|line| line.split("crate::").skip(1));
    let name = |part: &str| {
        part.split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .map(String::from)
    };
    parts.filter_map(name).collect()
}

#[test]
fn every_folder_uses_only_what_stands_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let library = fs::read_to_string(root.join("lib.rs")).expect("lib.rs");
    let listed = listed(&library);
    let order: BTreeMap<&str, usize> = listed
        .iter()
        .enumerate()
        .map(|(n, (name, _))| (name.as_str(), n))
        .collect();
    let folders = fs::read_dir(&root).expect("src").filter_map(Result::ok);
    let folders: Vec<String> = folders
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let mut wrong = String::new();
    for name in &folders {
        if !order.contains_key(name.as_str()) {
            wrong += &format!("lib.rs does not list {name}\n");
        }
    }
    for (name, uses) in &listed {
        let mut found: Vec<String> = Vec::new();
        for path in sources(&root.join(name)) {
            let text = fs::read_to_string(&path).expect("a source");
            for other in used(&text).into_iter().filter(|other| other != name) {
                if !uses.contains(&other) {
                    wrong += &format!("{} uses {other}\n", path.display());
                }
                found.push(other);
            }
        }
        for other in uses {
            if order[other.as_str()] >= order[name.as_str()] {
                wrong += &format!("{name} stands above {other}, which it uses\n");
            }
            if !found.contains(other) {
                wrong += &format!("{name} does not use {other}\n");
            }
        }
    }
    assert!(!listed.is_empty() && wrong.is_empty(), "\n{wrong}");
}
