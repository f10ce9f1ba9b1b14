//! Bad inputs of every kind: one clear message each, status 1 for what is
//! refused and 2 for what cannot be read, and no output.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::sandbox::{DRIVER, Outcome, Sandbox, privileged};

/// Rewrites `name`, which must fail and leave an earlier output as it was.
fn rewrite(sandbox: &Sandbox, name: &str) -> Outcome {
    sandbox.write("out.o", "earlier output");
    let before = sandbox.names();
    let outcome = sandbox.run(&["rewrite", name, "-o", "out.o"]);
    assert_eq!(sandbox.read("out.o"), b"earlier output");
    assert_eq!(sandbox.names(), before, "nothing is left behind");
    assert_eq!(outcome.text(), "");
    outcome
}

/// A file of these bytes.
fn rewrite_bytes(bytes: impl AsRef<[u8]>) -> Outcome {
    let sandbox = Sandbox::new();
    sandbox.write("bad.ko", bytes);
    rewrite(&sandbox, "bad.ko")
}

/// The driver's object.
fn object() -> Vec<u8> {
    Sandbox::with_driver().read("driver.o")
}

#[test]
fn empty_file() {
    assert_snapshot!(rewrite_bytes(b""));
}

#[test]
fn truncated_object() {
    let object = object();
    assert_snapshot!(rewrite_bytes(&object[..object.len() / 2]));
}

#[test]
fn cut_off_in_the_header() {
    assert_snapshot!(rewrite_bytes(&object()[..20]));
}

#[test]
fn not_an_object() {
    assert_snapshot!(rewrite_bytes([0x89, b'P', b'N', b'G', 0, 0, 0, 1]));
}

#[test]
fn text_that_is_no_assembly() {
    assert_snapshot!(rewrite_bytes("read me\n"));
}

#[test]
fn executable() {
    // This test's own program.
    let program = fs::read(std::env::current_exe().expect("a program")).expect("it can be read");
    assert_snapshot!(rewrite_bytes(program));
}

#[test]
fn other_machine() {
    let mut object = object();
    object[18] = 183; // e_machine: EM_AARCH64
    assert_snapshot!(rewrite_bytes(object));
}

#[test]
fn i386_object() {
    let sandbox = Sandbox::new();
    sandbox.assemble_with("bad.ko", ".text\nf: mov (%eax), %ecx\nret\n", &["--32"]);
    assert_snapshot!(rewrite(&sandbox, "bad.ko"));
}

/// Where the addend is in the RELA entry of `call napi_schedule`: R_X86_64_PLT32,
/// type 4, addend -4.
fn addend(object: &[u8]) -> usize {
    let addend = (-4i64).to_le_bytes();
    let mut windows = object.windows(8);
    windows.position(|w| w == addend).expect("a relocation")
}

#[test]
fn corrupt_relocation() {
    let mut object = object();
    let at = addend(&object);
    object[at - 8..at - 4].copy_from_slice(&250u32.to_le_bytes());
    assert_snapshot!(rewrite_bytes(object));
}

#[test]
fn relocation_past_the_end() {
    let mut object = object();
    let at = addend(&object);
    object[at - 16..at - 8].copy_from_slice(&0xffff_u64.to_le_bytes());
    assert_snapshot!(rewrite_bytes(object));
}

#[test]
fn damaged_compression() {
    let mut compressed = gzip(&object());
    compressed.truncate(compressed.len() / 2);
    assert_snapshot!(rewrite_bytes(compressed));
}

#[test]
fn rewritten_already() {
    let sandbox = Sandbox::with_driver();
    sandbox.run(&["rewrite", "driver.o", "-o", "again.o"]).ok();
    assert_snapshot!(rewrite(&sandbox, "again.o"));
}

#[test]
fn directory() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    assert_snapshot!(rewrite(&sandbox, "dir"));
}

#[test]
fn missing_file() {
    assert_snapshot!(rewrite(&Sandbox::new(), "missing.ko"));
}

#[test]
fn unreadable_file() {
    let sandbox = Sandbox::with_driver();
    let mode = fs::Permissions::from_mode(0o000);
    fs::set_permissions(sandbox.path("driver.o"), mode).expect("own file");
    if fs::read(sandbox.path("driver.o")).is_ok() {
        return; // root reads everything
    }
    assert_snapshot!(rewrite(&sandbox, "driver.o"));
}

#[test]
fn instruction_refused() {
    let sandbox = Sandbox::new();
    sandbox.assemble("bad.ko", &privileged(1));
    assert_snapshot!(rewrite(&sandbox, "bad.ko"));
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
    assert_snapshot!(serde_json::to_string_pretty(&refusals[49]).expect("JSON"));
    assert_eq!(sandbox.names(), ["bad.ko", "r.json"]);
}

#[test]
fn one_bad_input_does_not_stop_the_others() {
    let sandbox = Sandbox::with_driver();
    sandbox.assemble("evil.o", &privileged(1));
    sandbox.assemble("other.o", DRIVER);
    let outcome = sandbox.run(&[
        "rewrite",
        "driver.o",
        "evil.o",
        "missing.o",
        "other.o",
        "-d",
        "out",
    ]);
    assert_snapshot!(outcome);
    let mut made: Vec<_> = fs::read_dir(sandbox.path("out"))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    made.sort();
    assert_eq!(made, ["driver.twin.o", "other.twin.o"]);
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

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A few hundred bytes, compressed, that would take gigabytes of memory.
#[test]
fn more_strings_than_there_may_be() {
    let sandbox = Sandbox::new();
    let code = ".globl f\n.type f,@function\nf: .rept 65537\nrep movsl\n.endr\nret\n.size f,.-f\n";
    sandbox.assemble("bad.o", code);
    assert_snapshot!(rewrite(&sandbox, "bad.o"));
}
