//! Directories and lists as inputs, and where their results go.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::bad_input::gzip;
use crate::sandbox::{Answer, DRIVER, Sandbox, privileged};

/// `driver.o`, and a tree of drivers.
fn tree() -> Sandbox {
    let sandbox = Sandbox::with_driver();
    let object = sandbox.read("driver.o");
    fs::create_dir_all(sandbox.path("tree/net/deep")).expect("a directory");
    fs::create_dir_all(sandbox.path("tree/empty")).expect("a directory");
    sandbox.write("tree/net/b.ko", &object);
    sandbox.write("tree/net/deep/a.ko.gz", gzip(&object));
    sandbox.write("tree/c.s", DRIVER);
    sandbox.write("tree/modules.dep", "no driver");
    sandbox.write("tree/.ko", "a name without a stem");
    sandbox
}

/// The files below a directory, sorted.
fn below(sandbox: &Sandbox, directory: &str) -> Vec<String> {
    let output = Command::new("find")
        .args([directory, "-type", "f"])
        .env("LC_ALL", "C")
        .current_dir(sandbox.path(""))
        .output()
        .expect("find");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn a_directory_keeps_its_tree_and_compression() {
    let sandbox = tree();
    let target = ["--target", "hypervisor"];
    sandbox
        .run(&[&["rewrite", "driver.o", "-o", "plain.o"], &target[..]].concat())
        .ok();
    sandbox
        .run(&[&["rewrite", "tree", "-d", "out"], &target[..]].concat())
        .ok();
    let made = below(&sandbox, "out");
    assert_eq!(
        made,
        [
            "out/tree/c.o",
            "out/tree/net/b.ko",
            "out/tree/net/deep/a.ko.gz"
        ]
    );
    assert_eq!(sandbox.read("out/tree/net/b.ko"), sandbox.read("plain.o"));
    let unpacked = Command::new("gzip")
        .args(["-dc", "out/tree/net/deep/a.ko.gz"])
        .current_dir(sandbox.path(""))
        .output()
        .expect("gzip");
    assert_eq!(unpacked.stdout, sandbox.read("plain.o"));
    // Directories are inputs of the other commands too.
    let verdict = sandbox
        .run(&["verify", "out", "--format", "json"])
        .ok()
        .json();
    let files: Vec<_> = verdict
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| &v["file"])
        .collect();
    assert_eq!(files, made.iter().collect::<Vec<_>>());
    let stats = sandbox
        .run(&["stats", "tree/net", "--format", "json"])
        .ok()
        .json();
    assert_eq!(stats.as_array().map(Vec::len), Some(2));
}

#[test]
fn results_of_an_earlier_run_are_no_inputs() {
    let sandbox = tree();
    let rewrite = ["rewrite", "--target", "hypervisor", ".", "-d", "out"];
    sandbox.run(&rewrite).ok();
    let made = below(&sandbox, "out");
    assert!(made.contains(&"out/tree/net/b.ko".to_owned()), "{made:?}");
    sandbox.run(&rewrite).ok();
    assert_eq!(below(&sandbox, "out"), made);
}

/// As `build` of a kernel's modules leads to its headers.
#[test]
fn links_to_directories_are_not_followed_and_links_to_files_are() {
    let sandbox = tree();
    symlink(".", sandbox.path("tree/build")).expect("a link");
    symlink("net/b.ko", sandbox.path("tree/link.ko")).expect("a link");
    symlink("nowhere", sandbox.path("tree/lost.ko")).expect("a link");
    symlink("tree", sandbox.path("named")).expect("a link");
    let rewrite = ["rewrite", "--target", "hypervisor", "named", "-d", "out"];
    sandbox.run(&rewrite).ok();
    let expected = ["c.o", "link.ko", "net/b.ko", "net/deep/a.ko.gz"];
    assert_eq!(
        below(&sandbox, "out"),
        expected.map(|name| format!("out/named/{name}"))
    );
}

#[test]
fn a_directory_without_drivers() {
    let sandbox = tree();
    let outcome = sandbox.run(&["rewrite", "tree/empty", "driver.o", "-d", "out"]);
    assert_eq!(outcome.status, 2);
    let expected = "twin: tree/empty: it is a directory, and no file below it ends in .ko, .o, .s or \
                    .a, or one of these and .xz, .zst or .gz\ntwin: 1 of 2 files failed\n";
    assert_eq!(outcome.stderr, expected);
    assert_eq!(below(&sandbox, "out"), ["out/driver.o"]);
}

#[test]
fn names_from_a_list() {
    let sandbox = tree();
    sandbox.write("list", "tree/net/b.ko\n\ntree/net/deep\n");
    sandbox
        .run(&["rewrite", "driver.o", "--files-from", "list", "-d", "out"])
        .ok();
    let made = below(&sandbox, "out");
    let expected = [
        "out/driver.o",
        "out/tree/net/b.ko",
        "out/tree/net/deep/a.ko.gz",
    ];
    assert_eq!(made, expected);
    // From standard input, where zeros end names, as `find -print0` writes them.
    let odd = "a\nb.o";
    sandbox.write(odd, sandbox.read("driver.o"));
    let list = format!("{odd}\0tree/net/b.ko\0");
    let rewrite = ["rewrite", "--files-from", "-", "-d", "more"];
    sandbox.run_with(&rewrite, list.as_bytes()).ok();
    assert!(sandbox.path("more/a\nb.o").exists());
    assert!(sandbox.path("more/tree/net/b.ko").exists());
    sandbox.run(&["stats", "--files-from", "list"]).ok();
}

#[test]
fn wrong_lists() {
    let sandbox = tree();
    for args in [
        &["rewrite", "--files-from", "missing", "-d", "out"][..],
        &["rewrite", "--files-from", "-", "-", "-o", "out.o"],
    ] {
        let outcome = sandbox.run(args);
        assert_eq!(
            (outcome.status, outcome.text()),
            (2, ""),
            "{}",
            outcome.stderr
        );
        assert!(!sandbox.path("out").exists());
    }
    // A list may be empty: then there is nothing to do.
    sandbox.write("none", "");
    sandbox
        .run(&["rewrite", "--files-from", "none", "-d", "out"])
        .ok();
}

/// Two names that differ only in a byte that is no UTF-8 have two results, and two names in
/// messages and reports.
#[test]
fn names_that_are_not_utf_8() {
    let sandbox = Sandbox::new();
    let name = |byte: u8| OsStr::from_bytes(&[b'a', byte, b'.', b'o']).to_owned();
    let names = [name(0xfe), name(0xff)];
    for name in &names {
        sandbox.assemble("driver.o", DRIVER);
        fs::rename(sandbox.path("driver.o"), sandbox.path("").join(name)).expect("a name");
    }
    let options = ["rewrite", "-d", "out", "--report", "r.json"].map(OsStr::new);
    let inputs = names.each_ref().map(|name| name.as_os_str());
    sandbox.run(&[&options[..], &inputs].concat()).ok();
    for name in &names {
        assert!(sandbox.path("out").join(name).exists(), "{name:?}");
    }
    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    let files = report["files"].as_array().expect("a list");
    let files: Vec<_> = files.iter().filter_map(|f| f["file"].as_str()).collect();
    assert_eq!(files, [r"a\xfe.o", r"a\xff.o"]);
    sandbox.assemble("evil.o", &privileged(1));
    fs::rename(sandbox.path("evil.o"), sandbox.path("").join(&names[0])).expect("a name");
    let outcome = sandbox.run(&[OsStr::new("stats"), OsStr::new("a\n.o")]);
    assert!(
        outcome.stderr.starts_with(r"twin: a\x0a.o: "),
        "{}",
        outcome.stderr
    );
}

/// A limit on the size of files lets directories be made, and then nothing be written.
#[test]
fn a_failure_leaves_no_directory_that_it_made() {
    let sandbox = tree();
    fs::create_dir_all(sandbox.path("old/empty")).expect("a directory");
    let before = sandbox.names();
    let twin = env!("CARGO_BIN_EXE_twin");
    for command in [
        "rewrite tree -d new/a/b",
        "rewrite tree -d old/empty",
        "man new/man1",
        "man old/empty",
    ] {
        let script = format!("ulimit -f 0; exec '{twin}' {command}");
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).current_dir(sandbox.path(""));
        let outcome = Answer::of(shell.output().expect("sh"));
        assert_eq!(outcome.status, 2, "{command}: {outcome}");
        assert!(outcome.stderr.contains("File too large"), "{outcome}");
        assert_eq!(sandbox.names(), before, "{command}");
        let left = fs::read_dir(sandbox.path("old/empty")).expect("it stays");
        assert_eq!(left.count(), 0, "{command}");
    }
}

/// What came about stays, with its directory.
#[test]
fn a_failure_leaves_the_results_before_it() {
    let sandbox = tree();
    let outcome = sandbox.run(&["rewrite", "tree/net", "missing/b.o", "-d", "new/a"]);
    assert_eq!(outcome.status, 2, "{outcome}");
    assert_eq!(
        below(&sandbox, "new"),
        ["new/a/tree/net/b.ko", "new/a/tree/net/deep/a.ko.gz"]
    );
    assert!(!sandbox.path("new/a/missing").exists());
}

#[test]
fn a_directory_where_one_file_is_meant() {
    let sandbox = tree();
    sandbox.run(&["rewrite", "tree/net", "-d", "new"]).ok();
    for args in [
        &["explain", "./tree"][..],
        &["verify", "new", "--check-original", "tree"],
    ] {
        let outcome = sandbox.run(args);
        assert_eq!((outcome.status, outcome.text()), (2, ""), "{outcome}");
        assert!(
            outcome
                .stderr
                .contains("tree: it is a directory; give a file"),
            "{outcome}"
        );
    }
}
