//! Helps: complete, with examples and exit statuses.

use insta::assert_snapshot;

use crate::sandbox::Sandbox;

fn help(subcommand: &[&str]) -> String {
    let outcome = Sandbox::new().run(&[subcommand, &["--help"]].concat()).ok();
    for part in ["Usage: twin", "Examples:", "Exit status:"] {
        assert!(outcome.text().contains(part), "no {part}");
    }
    outcome.text().to_owned()
}

#[test]
fn of_twin() {
    assert_snapshot!(help(&[]));
}

#[test]
fn of_rewrite() {
    assert_snapshot!(help(&["rewrite"]));
}

#[test]
fn of_verify() {
    assert_snapshot!(help(&["verify"]));
}

#[test]
fn of_run() {
    assert_snapshot!(help(&["run"]));
}

#[test]
fn of_stats() {
    assert_snapshot!(help(&["stats"]));
}

#[test]
fn of_explain() {
    assert_snapshot!(help(&["explain"]));
}

#[test]
fn of_completions() {
    assert_snapshot!(help(&["completions"]));
}

#[test]
fn of_man() {
    assert_snapshot!(help(&["man"]));
}

#[test]
fn version() {
    let short = Sandbox::new().run(&["-V"]).ok();
    let version = concat!("twin ", env!("CARGO_PKG_VERSION"));
    assert_eq!(short.text(), format!("{version}\n"));
    let long = Sandbox::new().run(&["--version"]).ok();
    let lines: Vec<&str> = long.text().lines().collect();
    assert!(lines[0].starts_with(&format!("{version} (")), "{lines:?}");
    assert!(lines[1].starts_with("build:  ") && lines[1].contains(" for "));
    assert_eq!(
        lines[2..],
        [
            "scheme: stlb (default)",
            "target: hypervisor (default for objects)"
        ]
    );
}
