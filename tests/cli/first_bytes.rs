//! What a file is, is decided by its first bytes: the rest of a file that is nothing to
//! rewrite is not read, and not decompressed.

use std::fs::File;
use std::io::Write;
use std::process::Stdio;

use crate::bad_input::gzip;
use crate::sandbox::{Answer, Sandbox};

/// Far more than any memory: a hole that takes no space.
const HUGE: u64 = 1 << 42;

fn huge(sandbox: &Sandbox, name: &str, start: &[u8]) {
    sandbox.write(name, start);
    let file = File::options().write(true).open(sandbox.path(name));
    file.and_then(|file| file.set_len(HUGE))
        .expect("a file with a hole");
}

fn refused(sandbox: &Sandbox, name: &str) -> String {
    let outcome = sandbox.run(&["rewrite", name, "-o", "out.o"]);
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    assert_eq!(sandbox.names(), [name]);
    outcome.stderr
}

#[test]
fn a_large_file_that_is_no_object() {
    let sandbox = Sandbox::new();
    huge(&sandbox, "disk.img", &[0xeb, 0x63, 0x90, 0]);
    let said = refused(&sandbox, "disk.img");
    assert!(
        said.contains("not an ELF file: it begins with [eb, 63, 90, 00]"),
        "{said}"
    );
}

#[test]
fn a_large_file_for_another_machine() {
    let sandbox = Sandbox::with_driver();
    let mut object = sandbox.read("driver.o");
    object[18] = 183; // e_machine: EM_AARCH64
    std::fs::remove_file(sandbox.path("driver.o")).expect("it is there");
    huge(&sandbox, "vmlinux.o", &object);
    let said = refused(&sandbox, "vmlinux.o");
    assert!(said.contains("AArch64"), "{said}");
}

#[test]
fn compressed_files_are_judged_by_what_they_hold() {
    // Some kilobytes that are no object, in compressed data that goes on for ever.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        // xorshift64: nothing that a compressor finds.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(1_000_000)
    .collect();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(&noise).expect("memory");
    for (name, packed) in [
        ("a.ko.gz", gzip(&noise)),
        ("a.ko.xz", xz.finish().expect("memory")),
        (
            "a.ko.zst",
            ruzstd::encoding::compress_to_vec(&noise[..], level),
        ),
    ] {
        let sandbox = Sandbox::new();
        assert!(
            packed.len() > 300_000,
            "more than is looked at: {}",
            packed.len()
        );
        huge(&sandbox, name, &packed);
        let said = refused(&sandbox, name);
        assert!(
            said.contains("not an ELF file: it begins with"),
            "{name}: {said}"
        );
    }
}

#[test]
fn what_never_ends() {
    let sandbox = Sandbox::new();
    let mut twin = sandbox.twin(&["rewrite", "-", "-o", "out.o"]);
    twin.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut twin = twin.spawn().expect("it starts");
    let mut pipe = twin.stdin.take().expect("a pipe");
    // Until nobody reads.
    while pipe.write_all(&[0; 1 << 16]).is_ok() {}
    let outcome = Answer::of(twin.wait_with_output().expect("it ends"));
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stderr.contains("<stdin>: not an ELF file"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn machines_are_called_by_their_names() {
    for (machine, class, order, name) in [
        (3, 1, 1, "i386 (ELF machine 3, 32-bit, little-endian)"),
        (
            183,
            2,
            1,
            "AArch64 (ELF machine 183, 64-bit, little-endian)",
        ),
        (21, 2, 2, "PowerPC 64 (ELF machine 21, 64-bit, big-endian)"),
        (20, 1, 2, "PowerPC (ELF machine 20, 32-bit, big-endian)"),
        (22, 2, 2, "S/390 (ELF machine 22, 64-bit, big-endian)"),
        (62, 1, 1, "x32 (ELF machine 62, 32-bit, little-endian)"),
        (62, 2, 2, "x86-64 (ELF machine 62, 64-bit, big-endian)"),
        (
            9999,
            2,
            1,
            "an unknown machine (ELF machine 9999, 64-bit, little-endian)",
        ),
    ] {
        let sandbox = Sandbox::with_driver();
        let mut object = sandbox.read("driver.o");
        (object[4], object[5]) = (class, order);
        let bytes = if order == 1 {
            u16::to_le_bytes
        } else {
            u16::to_be_bytes
        };
        object[18..20].copy_from_slice(&bytes(machine));
        std::fs::remove_file(sandbox.path("driver.o")).expect("it is there");
        sandbox.write("bad.ko", object);
        let said = refused(&sandbox, "bad.ko");
        let expected = format!(
            "twin: bad.ko: this object is for {name}; twin takes objects for x86-64 (ELF machine \
             62, 64-bit, little-endian) only: compile it for x86-64 [elf-machine]\n"
        );
        assert_eq!(said, expected);
    }
}
