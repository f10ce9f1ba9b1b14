//! Archives of objects: each member rewritten, the archive written again.

use std::process::Command;

use crate::sandbox::{DRIVER, Sandbox, privileged};

fn tool(sandbox: &Sandbox, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command
        .args(arguments)
        .current_dir(sandbox.path(""))
        .output();
    let output = output.expect("binutils");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

const LONG: &str = "a-member-with-a-long-name.o";

/// `lib.a` with two members, one of a long name.
fn library() -> Sandbox {
    let sandbox = Sandbox::with_driver();
    sandbox.assemble(LONG, &DRIVER.replace("poll", "other"));
    tool(&sandbox, "ar", &["rcs", "lib.a", "driver.o", LONG]);
    sandbox
}

/// The archive is what `ar` makes of the members, rewritten one by one.
#[test]
fn each_member_is_rewritten_and_the_index_is_made_anew() {
    let sandbox = library();
    for target in ["hypervisor", "linux"] {
        let target = ["--target", target];
        sandbox
            .run(&[&["rewrite", "lib.a", "-o", "out.a"], &target[..]].concat())
            .ok();
        std::fs::create_dir_all(sandbox.path("one")).expect("a directory");
        let each = ["rewrite", "driver.o", LONG, "-d", "one"];
        sandbox.run(&[&each[..], &target[..]].concat()).ok();
        let long = format!("one/{LONG}");
        let _ = std::fs::remove_file(sandbox.path("expected.a"));
        tool(
            &sandbox,
            "ar",
            &["rcsD", "expected.a", "one/driver.o", &long],
        );
        assert!(
            sandbox.read("out.a") == sandbox.read("expected.a"),
            "{target:?}"
        );
        let verified = sandbox
            .run(&[&["verify", "out.a"], &target[..]].concat())
            .ok();
        let names: Vec<_> = verified
            .text()
            .lines()
            .filter_map(|l| l.split(": ").next())
            .collect();
        assert_eq!(
            names,
            ["out.a(driver.o)".to_owned(), format!("out.a({LONG})")]
        );
    }
    let index = tool(&sandbox, "nm", &["--print-armap", "out.a"]);
    assert!(index.contains("poll in driver.o"), "{index}");
}

#[test]
fn made_from_an_archive() {
    let sandbox = library();
    sandbox.run(&["rewrite", "lib.a", "-d", "out"]).ok();
    let check = ["verify", "--check-original", "lib.a", "out/lib.a"];
    sandbox.run(&check).ok();
    tool(&sandbox, "ar", &["d", "lib.a", "driver.o"]);
    let outcome = sandbox.run(&check);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome
            .stderr
            .starts_with("twin: out/lib.a(driver.o): it was made from")
    );
    assert!(
        outcome
            .text()
            .starts_with(&format!("out/lib.a({LONG}): verified"))
    );
}

#[test]
fn one_bad_member_and_nothing_is_written() {
    let sandbox = library();
    sandbox.assemble("evil.o", &privileged(1));
    tool(&sandbox, "ar", &["rs", "lib.a", "evil.o"]);
    let options = ["rewrite", "lib.a", "-o", "out.a", "--report", "r.json"];
    let outcome = sandbox.run(&options);
    assert_eq!(outcome.status, 1);
    let refusal = "lib.a(evil.o): .text+0x0: in evil+0x0: `hlt`: ";
    assert!(outcome.stderr.starts_with(refusal), "{}", outcome.stderr);
    assert!(!sandbox.path("out.a").exists());
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    assert_eq!(report["refusals"][0]["file"], "lib.a(evil.o)");
    assert_eq!(report["files"][0]["result"], "refused");
}

#[test]
fn sites_name_their_members() {
    let sandbox = library();
    let options = ["rewrite", "lib.a", "-o", "out.a", "--report", "r.json"];
    sandbox.run(&options).ok();
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    let sites = report["sites"].as_array().expect("a list");
    let count = |file: &str| sites.iter().filter(|s| s["file"] == file).count();
    let long = format!("lib.a({LONG})");
    assert_eq!(
        (count("lib.a(driver.o)"), count(&long), sites.len()),
        (4, 4, 8)
    );
}

#[test]
fn archives_that_are_refused() {
    let sandbox = library();
    tool(&sandbox, "ar", &["rcsT", "thin.a", "driver.o", LONG]);
    let mut cut = sandbox.read("lib.a");
    cut.truncate(cut.len() - 100);
    sandbox.write("cut.a", cut);
    sandbox.write("text.o", DRIVER);
    tool(&sandbox, "ar", &["rcs", "text.a", "text.o"]);
    for (name, says) in [
        (
            "thin.a",
            "thin.a: this is a thin archive: its members are other files; rewrite these",
        ),
        ("cut.a", "cut.a: the archive is damaged at 0x"),
        ("text.a", "text.a(text.o): not an ELF file"),
    ] {
        let outcome = sandbox.run(&["rewrite", name, "-o", "out.a"]);
        assert_eq!(outcome.status, 1, "{name}");
        assert!(outcome.stderr.contains(says), "{name}: {}", outcome.stderr);
        assert!(!sandbox.path("out.a").exists());
    }
    let outcome = sandbox.run(&["explain", "lib.a"]);
    let expected =
        "twin: lib.a: this is an archive; give its members (`ar x` takes it apart) [input]\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, expected));
    sandbox.write("none.a", "!<arch>\n");
    let outcome = sandbox.run(&["rewrite", "none.a", "-o", "out.a"]);
    let expected = "twin: none.a: the archive has no member [input]\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (1, expected));
    assert!(!sandbox.path("out.a").exists());
}

#[test]
fn members_are_counted_one_by_one() {
    let sandbox = library();
    let answer = sandbox.run(&["stats", "lib.a"]);
    let stdout = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert_eq!(answer.status, 0, "{}", answer.stderr);
    for member in ["driver.o", LONG] {
        assert!(stdout.contains(&format!("lib.a({member}): x86-64, 6 instructions")));
    }
}
