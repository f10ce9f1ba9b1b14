//! The sessions of the README and the guides, run and compared.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::page::{Page, Part, matches, renewed, without_numbers};
use crate::simulator::twin_run;
use crate::{guides, read, root};

/// Files that sessions find in their directory, and where they come from.
const STOCK: [(&str, &str); 2] = [
    ("e1000.ko", "target/stock/e1000.ko"),
    (
        "via-rng.ko",
        "target/stock/modules/kernel/drivers/char/hw_random/via-rng.ko",
    ),
];

/// The kernel package whose modules the documents show. In later packages of Debian 12
/// the same functions have other sizes and places: with one of those, numbers are not
/// compared.
const DOCUMENTED: &str = "6.1.192-2";

#[test]
fn the_readme() {
    agree(check("README.md".as_ref()));
}

#[test]
fn the_guides() {
    let guides = guides();
    let relative = |page: &PathBuf| page.strip_prefix(root()).map(check).expect("a guide");
    let different: Vec<String> = guides.iter().filter_map(|g| relative(g).err()).collect();
    agree(match different.is_empty() {
        true => Ok(()),
        false => Err(different.join("\n")),
    });
}

fn agree(result: Result<(), String>) {
    result.unwrap_or_else(|different| panic!("{different}"));
}

/// A directory with the stock modules, in which commands follow one another.
struct Session {
    directory: tempfile::TempDir,
    /// Exit status of the last command, for `echo $?`.
    status: i32,
}

impl Session {
    fn new() -> Session {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, path) in STOCK {
            let from = root().join(path);
            std::os::unix::fs::symlink(&from, directory.path().join(name)).expect("a link");
            assert!(from.exists(), "{path} is missing: run `make stock`");
        }
        let status = 0;
        Session { directory, status }
    }

    /// What a command prints, standard error included.
    fn run(&mut self, command: &str) -> String {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n(exit {})\n{command}", self.status))
            .current_dir(&self.directory)
            .env("PATH", path_with_twin())
            .env("NO_COLOR", "1")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        self.status = output.status.code().expect("no signal");
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }
}

fn path_with_twin() -> OsString {
    let twin = twin_run().parent();
    let mut path = twin.expect("a directory").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Whether a command's output matches the page.
fn agrees(expected: &[&str], lines: &[&str]) -> bool {
    let package = read("target/stock/VERSION");
    if matches(expected, lines) || package.trim().ends_with(DOCUMENTED) {
        return matches(expected, lines);
    }
    let [expected, lines] = [expected, lines].map(|all| {
        let all = all.iter().map(|line| without_numbers(line));
        all.collect::<Vec<String>>()
    });
    let [expected, lines] = [&expected, &lines].map(|all| all.iter().map(String::as_str));
    matches(&expected.collect::<Vec<_>>(), &lines.collect::<Vec<_>>())
}

/// Runs the sessions of a page, one after the other in one directory, and compares the
/// page with what they print.
fn check(name: &Path) -> Result<(), String> {
    let text = read(name.to_str().expect("UTF-8"));
    let mut session = Session::new();
    let mut page: Vec<String> = Vec::new();
    let owned = |text: &&str| (*text).to_owned();
    for part in Page::parse(&text).parts {
        match part {
            Part::Text(text) => page.push(text.to_owned()),
            Part::File(name, content) => {
                let path = session.directory.path().join(name);
                std::fs::write(path, content.join("\n") + "\n").expect("a file");
                page.extend(content.iter().map(owned));
            }
            Part::Command(command, expected) => {
                let output = session.run(command);
                let lines: Vec<&str> = output.lines().collect();
                page.push(format!("$ {command}"));
                if agrees(&expected, &lines) {
                    page.extend(expected.iter().map(owned));
                } else {
                    let renewed = renewed(&expected, &lines);
                    assert_ne!(renewed, expected, "{}: $ {command}", name.display());
                    page.extend(renewed);
                }
            }
        }
    }
    filetests::agree(&root().join(name), &(page.join("\n") + "\n"))
}
