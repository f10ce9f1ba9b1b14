//! The command line by example. Each file of a folder here is a case: commands that `sh`
//! runs one after the other, and below each what it answers.
//!
//! ```text
//! # What the case is about.
//!
//! $ echo earlier >out.o
//! $ twin rewrite missing.ko -o out.o
//! status 2
//! --- stderr
//! twin: missing.ko: No such file or directory
//! ```
//!
//! A command that succeeds and prints nothing has nothing below it. Below a command that
//! runs `twin`, `--- files` lists those that it made, changed or removed. The directory
//! has `driver.o`, a small driver, and `evil.o`, which no driver may be; `$STOCK` has the
//! stock modules.

#[allow(dead_code, reason = "tests of the command line use all of it")]
#[path = "../cli/sandbox.rs"]
mod sandbox;
#[path = "../simulator/mod.rs"]
mod simulator;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use filetests::Trial;
use sandbox::{Answer, Sandbox, privileged};
use simulator::twin_run;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folders = std::fs::read_dir(&root).expect("tests/cases");
    let folders = folders.map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let files = folders.iter().flat_map(|f| filetests::files(f, "txt"));
    let test = |path: PathBuf| {
        let name = path.strip_prefix(&root).expect("a file of the folder");
        let name = name.with_extension("").display().to_string();
        Trial::test(name, move || Ok(filetests::agree(&path, &case(&path))?))
    };
    filetests::run(files.map(test).collect());
}

/// The text of a case, as its commands answer today.
fn case(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a case");
    let head = text.lines().take_while(|line| line.starts_with('#'));
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
    let mut all: String = head.map(|line| format!("{line}\n")).collect();
    let sandbox = Sandbox::with_driver();
    sandbox.assemble("evil.o", &privileged(1));
    let mut silent = false;
    for command in commands {
        let answer = answer(&sandbox, command);
        assert!(!answer.contains("\n$ "), "it looks like a command");
        let apart = if silent { "" } else { "\n" };
        all.push_str(&format!("{apart}$ {command}\n{answer}"));
        silent = answer.is_empty();
    }
    all
}

fn answer(sandbox: &Sandbox, command: &str) -> String {
    if command.contains("twin run") {
        twin_run();
    }
    let before = files(sandbox);
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", command]).current_dir(sandbox.path("."));
    let shell = in_environment(shell).stdin(Stdio::null());
    let outcome = Answer::of(shell.output().expect("sh runs"));
    let mut answer = String::new();
    if outcome.status != 0 || !outcome.stdout.is_empty() || !outcome.stderr.is_empty() {
        answer = format!("{}\n", outcome.to_string().trim_end_matches('\n'));
    }
    if command.contains("twin ") {
        answer.push_str(&changes(&before, &files(sandbox)));
    }
    answer
}

fn in_environment(command: &mut Command) -> &mut Command {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    let program = Path::new(env!("CARGO_BIN_EXE_twin"));
    let mut path = program
        .parent()
        .expect("a directory")
        .as_os_str()
        .to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command
        .env("PATH", path)
        .env("STOCK", target.join("stock"))
        .env("TWIN_SUPPORT", target.join("support"))
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
}

/// The files of a directory and of those in it, by name.
fn files(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(sandbox.path(&folder)).expect("a directory");
        for entry in entries.map(|entry| entry.expect("an entry")) {
            let name = format!("{folder}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => folders.push(format!("{name}/")),
                false => drop(found.insert(name.clone(), sandbox.read(&name))),
            }
        }
    }
    found
}

fn changes(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> String {
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let removed = removed.map(|name| format!("removed {name}\n"));
    let changed = after
        .iter()
        .filter_map(|(name, now)| match before.get(name) {
            None => Some(format!("made {name}\n")),
            Some(then) => (then != now).then(|| format!("changed {name}\n")),
        });
    let all: String = removed.chain(changed).collect();
    match all.is_empty() {
        true => all,
        false => format!("--- files\n{all}"),
    }
}
