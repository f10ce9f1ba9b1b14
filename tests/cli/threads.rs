//! What is done where no thread can be made besides the first.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use crate::sandbox::{Answer, DRIVER, Sandbox};

/// `twin` in the sandbox, as a user with as many processes as are allowed. Root may have more, so
/// that is another user then.
fn without_threads(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    let is_root = fs::metadata("/proc/self").expect("/proc").uid() == 0;
    let mut words = vec!["prlimit", "--nproc=1", "./twin"];
    if is_root {
        words.splice(0..0, ["setpriv", "--reuid=65534", "--clear-groups"]);
    }
    let mut command = Command::new(words[0]);
    let command = command
        .args(&words[1..])
        .args(arguments)
        .env("NO_COLOR", "1");
    let output = command.current_dir(sandbox.path("")).output();
    Answer::of(output.expect("util-linux is there"))
}

#[test]
fn one_thread_is_enough() {
    let sandbox = Sandbox::new();
    let more = "mov (%rsi), %rdx\nmov %rdx, (%rdi)\nret\n";
    let functions: String = (0..2000)
        .map(|n| format!(".type f{n}, @function\nf{n}: {more}.size f{n}, .-f{n}\n"))
        .collect();
    for name in ["a.o", "b.o"] {
        sandbox.assemble(name, &format!("{DRIVER}{functions}"));
    }
    let twin = env!("CARGO_BIN_EXE_twin");
    // By a process of its own: what is open for writing cannot be executed.
    let mut install = Command::new("install");
    let install = install.args([twin, "twin"]).current_dir(sandbox.path(""));
    assert!(install.status().expect("install runs").success());
    fs::create_dir(sandbox.path("out")).expect("a directory");
    for (name, mode) in [("", 0o755), ("out", 0o777)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(sandbox.path(name), mode).expect("own file");
    }
    let words = ["rewrite", "-j", "4", "a.o", "-o", "expected.o"];
    sandbox.run(&words).ok();
    let expected = sandbox.read("expected.o");
    let words = ["rewrite", "-j", "4", "a.o", "-o", "out/one.o"];
    without_threads(&sandbox, &words).ok();
    assert_eq!(sandbox.read("out/one.o"), expected);
    let words = ["rewrite", "-j", "4", "a.o", "b.o", "-d", "out"];
    without_threads(&sandbox, &words).ok();
    assert_eq!(sandbox.read("out/b.o"), expected);
    without_threads(&sandbox, &["verify", "out/a.o", "out/b.o"]).ok();
}
