//! Crates depend in the permitted direction only. ARCHITECTURE.md has the table: the
//! crate, its permitted dependencies, and those permitted in addition for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::{read, root};

/// Libraries whose types stay inside one crate.
const CONFINED: [&str; 3] = ["goblin", "object", "petgraph"];

#[derive(Default)]
struct Dependencies {
    always: BTreeSet<String>,
    in_tests: BTreeSet<String>,
}

type Graph = BTreeMap<String, Dependencies>;

/// The table in ARCHITECTURE.md.
fn permitted() -> Graph {
    let text = read("ARCHITECTURE.md");
    let (_, table) = text
        .split_once("| crate | depends on | in tests also on |\n|---|---|---|\n")
        .expect("the table of crates");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let names = |cell: &str| -> BTreeSet<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [name, always, in_tests] = cells[..] else {
            panic!("three cells: {row}")
        };
        let name = name.trim().trim_matches('`').to_owned();
        let (always, in_tests) = (names(always), names(in_tests));
        (name, Dependencies { always, in_tests })
    })
    .collect()
}

/// The dependencies that cargo reports.
fn actual() -> Graph {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |value: &serde_json::Value| value["name"].as_str().expect("a name").to_owned();
    let mut known: BTreeSet<String> = packages.iter().map(name).collect();
    known.extend(CONFINED.map(str::to_owned));
    let mut graph = Graph::new();
    for package in packages {
        let of = graph.entry(name(package)).or_default();
        for dependency in package["dependencies"].as_array().expect("a list") {
            if !known.contains(&name(dependency)) {
                continue;
            }
            match dependency["kind"].as_str() {
                None | Some("build") => of.always.insert(name(dependency)),
                Some(_) => of.in_tests.insert(name(dependency)),
            };
        }
    }
    graph
}

#[test]
fn crates_depend_as_the_table_says() {
    let (permitted, actual) = (permitted(), actual());
    let names = |graph: &Graph| graph.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&permitted),
        names(&actual),
        "the table has every crate"
    );
    for (name, crates) in &actual {
        assert_eq!(crates.always, permitted[name].always, "{name}");
        assert_eq!(
            crates.in_tests, permitted[name].in_tests,
            "{name}, in tests"
        );
    }
}

/// All that a crate depends on, directly or not.
fn reached(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        let next = graph.get(&name).into_iter().flat_map(|of| &of.always);
        open.extend(next.filter(|next| found.insert((*next).clone())).cloned());
    }
    found
}

#[test]
fn the_verifier_knows_nothing_of_the_rewriter() {
    let graph = actual();
    for name in ["svm-rewrite", "liveness", "conformance", "petgraph"] {
        assert!(!reached(&graph, "svm-verify").contains(name), "{name}");
    }
    assert!(!graph["svm-verify"].in_tests.contains("svm-rewrite"));
}

#[test]
fn nothing_depends_on_itself() {
    let graph = actual();
    for name in graph.keys() {
        assert!(!reached(&graph, name).contains(name), "{name}");
    }
}

#[test]
fn types_of_libraries_stay_where_they_are() {
    for (name, of) in &actual() {
        for library in CONFINED
            .iter()
            .filter(|library| of.always.contains(**library))
        {
            let home = if *library == "petgraph" {
                "svm-rewrite"
            } else {
                "elf-loader"
            };
            assert_eq!(name, home, "{library}");
        }
    }
}
