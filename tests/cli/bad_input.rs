//! Bad inputs that need more than a shell: one clear message each, status 1 for what is
//! refused and 2 for what cannot be read, and no output. The others are in
//! `tests/cases/bad_input`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::sandbox::{DRIVER, Sandbox, privileged};

#[test]
fn unreadable_file() {
    let sandbox = Sandbox::with_driver();
    let mode = fs::Permissions::from_mode(0o000);
    fs::set_permissions(sandbox.path("driver.o"), mode).expect("own file");
    if fs::read(sandbox.path("driver.o")).is_ok() {
        return; // root reads everything
    }
    let outcome = sandbox.run(&["rewrite", "driver.o", "-o", "out.o"]);
    let expected = "twin: driver.o: Permission denied\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (2, expected));
    assert_eq!(sandbox.names(), ["driver.o"]);
}

#[test]
fn many_refusals_are_cut_short_and_all_in_the_report() {
    let sandbox = Sandbox::new();
    sandbox.assemble("bad.ko", &privileged(50));
    let outcome = sandbox.run(&["rewrite", "bad.ko", "-o", "out.o", "--report", "r.json"]);
    let lines: Vec<_> = outcome.stderr.lines().collect();
    assert_eq!((outcome.status, lines.len()), (1, 21));
    assert_eq!(lines[20], "bad.ko: and 30 more (see --report)");
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    let refusals = report["refusals"].as_array().expect("a list");
    assert_eq!(refusals.len(), 50);
    let last = serde_json::json!({
        "code": "privileged",
        "file": "bad.ko",
        "function": "evil",
        "function_offset": 49,
        "instruction": "hlt",
        "offset": 49,
        "reason": "only the kernel or the hypervisor may execute this",
        "remedy": "keep this function in the VM instance: leave it out of the object, or guard it there",
        "section": ".text",
    });
    assert_eq!(refusals[49], last);
    assert_eq!(sandbox.names(), ["bad.ko", "r.json"]);
}

#[test]
fn other_subcommands_say_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.ko", b"");
    for subcommand in ["verify", "stats", "explain"] {
        let outcome = sandbox.run(&[subcommand, "empty.ko"]);
        let expected =
            "twin: empty.ko: the file is empty; give a relocatable object (.o, .ko) [elf-empty]\n";
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (1, expected),
            "{subcommand}"
        );
        assert_eq!(
            sandbox.run(&[subcommand, "missing.ko"]).status,
            2,
            "{subcommand}"
        );
    }
}

/// A name in an object that would move a terminal's cursor, hide what follows and forge a line.
#[test]
fn names_in_an_object_are_only_shown() {
    const PLAIN: &str = ".text.that_has_been_named_by_a_stranger";
    const HOSTILE: &str = ".text\n\x1b[1A\x1b[2K\nok: verified";
    assert!(HOSTILE.len() < PLAIN.len() && HOSTILE.starts_with(".text"));
    let hostile = format!("{HOSTILE:_<0$}", PLAIN.len());
    let sandbox = Sandbox::new();
    let named = |source: &str| {
        sandbox.assemble(
            "plain.o",
            &source.replace(".text", &format!(".section {PLAIN},\"ax\"")),
        );
        let bytes = sandbox.read("plain.o");
        let at = bytes
            .windows(PLAIN.len())
            .position(|w| w == PLAIN.as_bytes());
        let at = at.expect("the section's name");
        [&bytes[..at], hostile.as_bytes(), &bytes[at + PLAIN.len()..]].concat()
    };
    sandbox.write("driver.o", named(DRIVER));
    sandbox.write("bad.o", named(&privileged(1)));
    for arguments in [
        &["explain", "driver.o"][..],
        &["verify", "driver.o"],
        &["rewrite", "bad.o", "-o", "out.o"],
    ] {
        let outcome = sandbox.run(arguments);
        let printed = [&outcome.stdout, outcome.stderr.as_bytes()].concat();
        assert!(!printed.contains(&0x1b), "{arguments:?}");
        let printed = String::from_utf8(printed).expect("text");
        assert!(
            printed.lines().all(|line| !line.starts_with("ok: ")),
            "{printed}"
        );
        assert!(
            printed.contains(r".text\x0a\x1b[1A") || arguments[0] == "verify",
            "{printed}"
        );
    }
}

/// Names that no assembler and no linker gives: none where one is needed, and one with two meanings.
#[test]
fn names_that_cannot_be_are_refused_with_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.assemble("driver.o", &format!("{DRIVER}.data\n.quad 1\n"));
    let renamed = |from: &str, to: &str, out: &str| {
        let option = format!("--redefine-sym={from}={to}");
        let mut objcopy = Command::new("objcopy");
        objcopy.args([&option, "driver.o", out]);
        let done = objcopy.current_dir(sandbox.path("")).status();
        assert!(done.expect("it is installed (make setup)").success());
    };
    renamed("poll", "napi_schedule", "both.o");
    let bytes = sandbox.read("driver.o");
    let at = |name: &[u8]| bytes.windows(name.len()).position(|w| w == name);
    let mut nameless = bytes.clone();
    nameless[at(b"\0.data\0").expect("the section's name") + 1] = 0;
    sandbox.write("nameless.o", nameless);
    let mut begun = bytes.clone();
    begun[at(b"\0poll\0").expect("the table of names")] = b'x';
    sandbox.write("begun.o", begun);
    for (file, said) in [
        (
            "both.o",
            "symbol `napi_schedule` is both defined and undefined [name]",
        ),
        (
            "nameless.o",
            "a section that is loaded has no name, so nobody finds it in dom0 [name]",
        ),
        (
            "begun.o",
            "the table of names does not begin with an empty one",
        ),
    ] {
        let outcome = sandbox.run(&["rewrite", file, "-o", "out.o"]);
        assert_eq!(outcome.status, 1, "{file}");
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("internal"), "{}", outcome.stderr);
    }
}

/// A name that would turn the text behind it (U+202E): what is read is not what is there.
#[test]
fn names_in_an_object_do_not_turn_text() {
    let sandbox = Sandbox::new();
    let named = |source: &str| {
        source
            .replace("poll", "poll_\u{202e}ko")
            .replace("evil", "e\u{2066}")
    };
    sandbox.assemble("driver.o", &named(DRIVER));
    sandbox.assemble("bad.o", &named(&privileged(1)));
    for (arguments, shown) in [
        (&["explain", "driver.o"][..], r"poll_\xe2\x80\xaeko"),
        // In a JSON value, where a backslash is two.
        (
            &["explain", "--html", "driver.o"],
            r"poll_\\xe2\\x80\\xaeko",
        ),
        (&["rewrite", "bad.o", "-o", "out.o"], r"e\xe2\x81\xa6"),
    ] {
        let outcome = sandbox.run(arguments);
        let printed = [&outcome.stdout, outcome.stderr.as_bytes()].concat();
        let printed = String::from_utf8(printed).expect("text");
        assert!(!printed.contains(['\u{202e}', '\u{2066}']), "{printed}");
        assert!(printed.contains(shown), "{printed}");
    }
}

/// The names on the command line are only shown, too.
#[test]
fn names_of_compilers_and_sources_are_only_shown() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["cc", "--", "no\x1b[2Jcompiler", "-c", "x.c"][..],
        &["cc", "--", "gcc", "-c", "half\x1b[2J.bc"],
        &["explain", "driver\x1b[2J.o"],
        &["rewrite", "driver.o", "--files-from", "list\x1b[2J"],
    ] {
        let outcome = sandbox.run(arguments);
        assert_eq!(outcome.status, 2, "{arguments:?}");
        assert!(!outcome.stderr.contains('\x1b'), "{arguments:?}");
        assert!(!outcome.stderr.contains("(os error"), "{}", outcome.stderr);
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}
