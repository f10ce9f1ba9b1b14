//! The folders of the rewriter are layers: each uses only those that lib.rs lists
//! above it. So no two of them import each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders in the order of the table in lib.rs.
fn order(lib: &str) -> Vec<String> {
    let table = lib.split("```text").nth(2).expect("lib.rs has a table");
    let table = table.split("```").next().expect("the table ends");
    let rows = table.lines().filter_map(|row| row.strip_prefix("//! "));
    let names = rows.filter_map(|row| row.split("  ").next());
    names
        .flat_map(|names| names.split_whitespace().map(str::to_owned))
        .collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// The folders that a text imports by `crate::name` or `crate::{name, ...}`.
fn imports(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join(" ");
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let group = after.strip_prefix('{').and_then(|g| g.split('}').next());
        for path in group.unwrap_or(after).split(',') {
            let name: String = path
                .trim_start()
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                .collect();
            found.insert(name);
            if group.is_none() {
                break;
            }
        }
    }
    found.remove("");
    found
}

#[test]
fn folders_use_only_those_above_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let order = order(&std::fs::read_to_string(src.join("lib.rs")).expect("lib.rs"));
    let layer = |name: &str| {
        let found = order.iter().position(|listed| listed == name);
        found.unwrap_or_else(|| panic!("lib.rs does not list {name}"))
    };
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let path = file.strip_prefix(&src).expect("a source");
        let first = path.components().next().expect("a name");
        let own = first.as_os_str().to_string_lossy().replace(".rs", "");
        if own == "lib" {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        for used in imports(&text) {
            if layer(&used) > layer(&own) {
                wrong.push(format!("{} uses {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
