//! Tells the program what it was built from, for `twin --version`: the commit if
//! there is one, the profile and the target. No dates, paths or hosts: the same
//! source gives the same bytes.
//!
//! `TWIN_COMMIT` names the commit where there is no repository, as in a package's
//! source tree; empty it says that none is known.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=TWIN_COMMIT");
    let commit = std::env::var("TWIN_COMMIT").ok().or_else(commit);
    println!(
        "cargo::rustc-env=TWIN_COMMIT={}",
        commit.unwrap_or_default()
    );
    for name in ["TARGET", "PROFILE"] {
        let value = std::env::var(name).expect("cargo sets it for build scripts");
        println!("cargo::rustc-env=TWIN_{name}={value}");
    }
}

/// The commit of the repository that this directory is the root of. A repository
/// further up is somebody else's.
fn commit() -> Option<String> {
    let here = std::env::current_dir().ok()?;
    if git(&["rev-parse", "--show-toplevel"])? != here.to_str()? {
        return None;
    }
    // Every commit and every checkout is written there.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
