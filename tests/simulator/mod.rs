//! Builds `twin-run` beside the `twin` under test: cargo builds the programs of a
//! test's own package only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The program, built once in a test process.
pub fn twin_run() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(build);
    &BUILT
}

fn build() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_twin"))
        .parent()
        .expect("a directory");
    let target = beside.parent().expect("cargo's target directory");
    let profile = match beside.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let status = Command::new(env!("CARGO"))
        // As `make test` builds it, so that nothing is built twice.
        .args([
            "build", "--quiet", "--workspace", "--bin", "twin", "--bin", "twin-run",
        ])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "twin-run cannot be built");
    beside.join("twin-run")
}
