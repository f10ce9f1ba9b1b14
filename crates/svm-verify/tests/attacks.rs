//! The attack objects of `tests/attacks`: each is refused by the rule that its
//! trick breaks, and each control, its sibling without the trick, is accepted.
//!
//! One run reports all cases with another result; with `TWIN_BLESS=1` the results are
//! also written into the cases. With `TWIN_ATTACKS=DIR` the objects are written to that
//! directory, for `make attacks`, which gives them to `twin verify`.

mod common;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use common::attack::{self, Case, Expected};
use common::verify;
use svm_verify::{Accesses, Contract, Target};

/// The codes that a case is refused with, by the reader or by the verifier.
fn found(bytes: &[u8], contract: Contract) -> Vec<&'static str> {
    if let Err(error) = elf_loader::read(bytes) {
        return vec![error.code().as_str()];
    }
    match verify(bytes, contract) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.list.iter().map(|v| v.code.as_str()).collect(),
    }
}

/// What is wrong with the result of a case; `found` are the codes of the refusal.
fn wrong(case: &Case, found: &[&'static str]) -> Option<String> {
    let title = &case.title;
    match &case.expected {
        Expected::Refuse(_) if found.is_empty() => Some(format!("{title}: accepted")),
        Expected::Refuse(rule) => {
            (!found.contains(&rule.as_str())).then(|| format!("{title}: not {rule} but {found:?}"))
        }
        Expected::Accept => (!found.is_empty()).then(|| format!("{title}: refused with {found:?}")),
    }
}

fn write(directory: &Path, case: &Case, bytes: &[u8]) {
    let verdict = match case.expected {
        Expected::Refuse(_) => "refused",
        Expected::Accept => "accepted",
    };
    let directory = directory.join(case.target.as_str()).join(verdict);
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join(&case.file), bytes).expect("the object");
}

/// Writes the result of a case into its source. Read every change: an attack that is
/// accepted now is a hole, not a new expectation.
fn bless(case: &Case, found: &[&'static str]) {
    let (path, line) = &case.said;
    let text = fs::read_to_string(path).expect("the source");
    let became = match found.first() {
        Some(code) => format!("# refuse: {code}"),
        None => String::from("# accept"),
    };
    let mut lines: Vec<&str> = text.lines().collect();
    lines[*line] = &became;
    fs::write(path, lines.join("\n") + "\n").expect("the source is written");
}

#[test]
fn every_attack_is_refused_by_its_rule_and_every_control_accepted() {
    let directory = env::var_os("TWIN_ATTACKS");
    let mut report = String::new();
    let (mut attacks, mut controls) = (0, 0);
    for case in attack::all() {
        let bytes = case.object();
        match case.expected {
            Expected::Refuse(_) => attacks += 1,
            Expected::Accept => controls += 1,
        }
        if let Some(directory) = &directory {
            write(Path::new(directory), &case, &bytes);
        }
        let found = found(&bytes, case.contract());
        if let Some(line) = wrong(&case, &found) {
            writeln!(report, "{line}").expect("text");
            if env::var_os("TWIN_BLESS").is_some() {
                bless(&case, &found);
            }
        }
    }
    println!("{attacks} attacks, {controls} controls");
    assert!(report.is_empty(), "\n{report}");
    assert!(attacks > 0 && controls > 0, "the cases are found");
}

/// The attacks on modules again, where stores alone are confined: what is accepted then is
/// listed, and each is an attack by a load.
#[test]
fn where_stores_alone_are_confined_only_attacks_by_loads_are_accepted() {
    let mut listed = String::new();
    for case in attack::all() {
        if case.target != Target::Linux || case.whole || case.accesses == Accesses::Stores {
            continue;
        }
        let case = Case {
            accesses: Accesses::Stores,
            ..case
        };
        let found = found(&case.object(), case.contract());
        match case.expected {
            Expected::Accept => assert!(found.is_empty(), "{}: {found:?}", case.title),
            Expected::Refuse(rule) if found.is_empty() => {
                let (_, name) = case.title.split_once(": ").expect("a title");
                writeln!(listed, "{rule}: {name}").expect("text");
            }
            Expected::Refuse(_) => {}
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/attacks");
    let path = root.join("accepted-where-stores-alone-are-confined.txt");
    if env::var_os("TWIN_BLESS").is_some() {
        fs::write(&path, &listed).expect("the list is written");
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    let only = |these: &str, those: &str| -> Vec<String> {
        let lines = these
            .lines()
            .filter(|line| !those.lines().any(|l| l == *line));
        lines.map(str::to_owned).collect()
    };
    let (new, gone) = (only(&listed, &known), only(&known, &listed));
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:#?}\ngone: {gone:#?}"
    );
}

#[test]
fn the_harness_notices_a_case_that_is_answered_otherwise() {
    let text = "### a plain load\n# accept\nmov (%rdi), %rax\nret\n\
                ### nothing\n# refuse: P1-untranslated\nret\n\
                ### another rule\n# refuse: P1-window\nmov (%rdi), %rax\nret\n";
    let path = Path::new("none.s");
    let cases = attack::parse(Target::Hypervisor, path, "hypervisor", "none", text);
    assert_eq!(cases.len(), 3);
    let noticed = |case: &Case| wrong(case, &found(&case.object(), case.contract())).is_some();
    assert!(cases.iter().all(noticed));
}
