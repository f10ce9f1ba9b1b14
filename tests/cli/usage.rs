//! Wrong usage: status 2, and nothing done.

use insta::assert_snapshot;

use crate::sandbox::{Outcome, Sandbox};

/// Runs in a directory with `driver.o` and `copy.o`, which must stay alone.
fn wrong(args: &[&str]) -> Outcome {
    let sandbox = Sandbox::with_driver();
    std::fs::hard_link(sandbox.path("driver.o"), sandbox.path("copy.o")).expect("a link");
    let before = sandbox.read("driver.o");
    let outcome = sandbox.run(args);
    assert_eq!(sandbox.read("driver.o"), before);
    assert_eq!(sandbox.names(), ["copy.o", "driver.o"]);
    assert_eq!(
        (outcome.status, outcome.text()),
        (2, ""),
        "{}",
        outcome.stderr
    );
    outcome
}

#[test]
fn no_subcommand() {
    assert_eq!(Sandbox::new().run::<&str>(&[]).status, 2);
}

#[test]
fn no_input() {
    assert_snapshot!(wrong(&["rewrite", "-o", "out.o"]));
}

#[test]
fn no_output() {
    assert_snapshot!(wrong(&["rewrite", "driver.o"]));
}

#[test]
fn one_output_for_several_inputs() {
    assert_snapshot!(wrong(&["rewrite", "driver.o", "copy.o", "-o", "out.o"]));
}

#[test]
fn both_kinds_of_output() {
    assert_snapshot!(wrong(&["rewrite", "driver.o", "-o", "out.o", "-d", "."]));
}

#[test]
fn output_is_the_input() {
    assert_snapshot!(wrong(&["rewrite", "driver.o", "-o", "./driver.o"]));
}

#[test]
fn output_is_the_input_by_another_name() {
    assert_snapshot!(wrong(&["rewrite", "driver.o", "-o", "copy.o"]));
}

#[test]
fn report_is_the_input() {
    assert_snapshot!(wrong(&[
        "rewrite", "driver.o", "-o", "out.o", "--report", "driver.o"
    ]));
}

#[test]
fn report_is_the_output() {
    assert_snapshot!(wrong(&[
        "rewrite", "driver.o", "-o", "out.o", "--report", "./out.o"
    ]));
}

#[test]
fn two_inputs_of_one_name() {
    assert_snapshot!(wrong(&["rewrite", "driver.o", "./driver.o", "-d", "out"]));
}

#[test]
fn standard_input_twice() {
    assert_snapshot!(wrong(&["rewrite", "-", "-", "-d", "out"]));
}

#[test]
fn standard_input_into_a_directory() {
    assert_snapshot!(wrong(&["rewrite", "-", "-d", "out"]));
}

#[test]
fn targets_to_come() {
    assert_snapshot!(
        "unknown_target",
        wrong(&["rewrite", "--target", "xen", "driver.o", "-o", "out.o"])
    );
}

#[test]
fn unknown_scheme() {
    assert_snapshot!(wrong(&[
        "rewrite", "--scheme", "fast", "driver.o", "-o", "out.o"
    ]));
}

#[test]
fn no_jobs_at_all() {
    assert_snapshot!(wrong(&["rewrite", "-j", "0", "driver.o", "-o", "out.o"]));
}
