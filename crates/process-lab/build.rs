//! Compiles the runtime (core and the testbed platform) into this crate, with the
//! flags of `runtime/Makefile`: vector registers are the driver's while a slow
//! path runs, and the core needs no C library.

use std::path::{Path, PathBuf};

const RUNTIME: &str = "../../runtime";
const PLAIN: [&str; 5] = [
    "-mgeneral-regs-only",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fPIE",
    "-std=c11",
];

/// C and assembly files of a directory, sorted so that builds are repeatable.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|e| panic!("cannot list {}: {e}", directory.display()));
    let is_source = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "c" || extension == "S")
    };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_source)
        .collect();
    files.sort();
    files
}

fn compile(name: &str, directory: &str, extra: &[&str]) {
    let mut build = cc::Build::new();
    build
        .include(format!("{RUNTIME}/include"))
        .opt_level(2)
        .debug(true)
        // With debugging information `cc` would keep one.
        .force_frame_pointer(false);
    for flag in PLAIN.iter().chain(extra) {
        build.flag(flag);
    }
    build
        .files(sources(&Path::new(RUNTIME).join(directory)))
        .compile(name);
    println!("cargo::rerun-if-changed={RUNTIME}/{directory}");
}

fn main() {
    println!("cargo::rerun-if-changed={RUNTIME}/include");
    // The platform refers to the core, so it comes first.
    compile("twin-testbed", "platform/testbed", &[]);
    compile("twin-core", "core", &["-ffreestanding"]);
}
