//! What scripts say before anything is built: `setup.sh` names at once what cannot be got, and
//! installs nothing; `space.sh` says what a disk lacks.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::sandbox::Sandbox;

/// A program of that name, found first.
fn program(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(name, format!("#!/bin/sh\n{text}\n"));
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.path(name), executable).expect("its mode");
}

/// Runs it with a further package.
fn setup(sandbox: &Sandbox, package: &str) -> Output {
    // As it is, but a test changes nothing on its machine.
    let simulates = "case \" $* \" in *' -s '*) exec /usr/bin/apt-get \"$@\" ;; esac; exit 1";
    program(sandbox, "apt-get", simulates);
    let path = std::env::var("PATH").expect("a path");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("sh");
    command.arg(root.join("scripts/setup.sh")).arg(package);
    command.env("PATH", format!("{}:{path}", sandbox.path("").display()));
    command.output().expect("sh runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A package that no release has, and a cargo that is too old, are named together.
#[test]
fn all_that_cannot_be_got_is_named_at_once() {
    let sandbox = Sandbox::new();
    program(&sandbox, "cargo", "echo 'cargo 1.85.1 (2025)'");
    let output = setup(&sandbox, "no-command:twin-no-such-package");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing was installed"), "{said}");
    assert!(said.contains("cargo is 1.85.1, and 1.88"), "{said}");
    assert!(!said.contains("installing"), "{said}");
    if has_lists() {
        assert!(said.contains("package twin-no-such-package"), "{said}");
    }
}

/// Without an optional package the tests that need it are left out, visibly.
#[test]
fn an_optional_package_is_left_out_by_name() {
    if !has_lists() {
        return; // Then apt knows of no package what it is.
    }
    let sandbox = Sandbox::new();
    let output = setup(&sandbox, "clang-0:clang-0:optional");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let expected = "apt has no clang-0: left out are the tests of `twin cc` with clang-0";
    assert!(said.contains(expected), "{said}");
}

/// A disk that no machine has is asked for in vain, and what is there is named.
#[test]
fn a_disk_that_is_too_small_is_said_before_a_build() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/space.sh");
    let run = |gib: &str| {
        Command::new("sh")
            .arg(&script)
            .arg(gib)
            .output()
            .expect("sh runs")
    };
    let refused = run("999999999");
    assert_eq!(refused.status.code(), Some(1));
    let said = said(&refused);
    assert!(
        said.contains("needs 999999999 GiB in all; it has "),
        "{said}"
    );
    assert!(said.contains(" are free on its disk."), "{said}");
    assert!(run("0").status.success());
    assert_eq!(run("").status.code(), Some(2));
    assert_eq!(run("9G").status.code(), Some(2));
}

/// Whether apt has lists of packages: some images of containers come without.
fn has_lists() -> bool {
    let entries = Path::new("/var/lib/apt/lists").read_dir();
    let mut names = entries.into_iter().flatten().flatten();
    names.any(|entry| entry.file_name().to_string_lossy().contains("Packages"))
}
