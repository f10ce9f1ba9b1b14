//! Modules for a stock kernel: code from assembly with the runtime linked in.

use std::fs;
use std::process::Command;

use super::{ABI, assemble, note};

/// A module with this source and that runtime (`twin_linux_runtime::object`).
pub fn module(source: &str, runtime: &[u8]) -> Vec<u8> {
    let note = note([ABI, 1, 64, 1]);
    link(
        &format!("{note}.text\n{source}\n.section .note.GNU-stack,\"\",@progbits\n"),
        runtime,
    )
}

/// A source, its note included, linked with that runtime.
pub fn link(source: &str, runtime: &[u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::write(path("code.o"), assemble(source)).expect("the object");
    fs::write(path("runtime.o"), runtime).expect("the runtime");
    // In the runtime they are local: only this test links with it by name.
    let status = Command::new("objcopy")
        .args([
            "--globalize-symbol=twin_stlb",
            "--globalize-symbol=twin_slow_rax",
        ])
        .arg(path("runtime.o"))
        .status()
        .expect("the system's objcopy runs");
    assert!(status.success(), "the runtime's symbols");
    let status = Command::new("ld")
        .arg("-r")
        .arg("-o")
        .args([path("out.o"), path("code.o"), path("runtime.o")])
        .status()
        .expect("the system linker runs");
    assert!(status.success(), "{source} does not link");
    fs::read(path("out.o")).expect("the module")
}
