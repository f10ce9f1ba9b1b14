//! Random assembly, natively and rewritten: for a hypervisor under each scheme, and as text for a
//! program.
//!
//! `TWIN_ASSEMBLY` is the number of functions for a hypervisor (default 10; a program has eight
//! times as many), `TWIN_ASSEMBLY_FIRST` the first one's seed (default 0).

use std::path::Path;
use std::process::Command;

use conformance::forms::assembly::{self, DATA, FAR, Place};
use conformance::forms::compiled::{Compiled, Tally};
use filetests::assemble;
use svm_rewrite::text::Source;
use svm_rewrite::{Accesses, Options, Scheme, Target};

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/forms/assembly/driver.c");
const RUNTIME: &str = include_str!("../../../runtime/platform/process/process.s");

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable);
    value.map_or(default, |n| n.parse().expect("a number"))
}

/// The seeds of this run, `times` as many as are asked for.
fn seeds(times: u64) -> std::ops::Range<u64> {
    let first = number("TWIN_ASSEMBLY_FIRST", 0);
    first..first + times * number("TWIN_ASSEMBLY", 10)
}

#[test]
fn hypervisors_functions_compute_the_same() {
    let mut tally = Tally::default();
    for seed in seeds(1) {
        let bytes = assemble(assembly::function("f0", seed, Place::Hypervisor), &[]);
        let object = elf_loader::read(&bytes).expect("an object");
        let compiled = Compiled::new(&object, seed, 8).expect("the machine can be set up");
        let lines = compiled.compare(&mut tally);
        let lines = lines.expect("machines can be set up");
        let (wrong, other) = (lines.wrong.join("\n"), lines.other.join("\n"));
        // No step is one that must be refused, and no function goes on for ever.
        assert!(
            wrong.is_empty() && other.is_empty(),
            "seed {seed}: {wrong}{other}"
        );
    }
    print!("{tally}");
    assert!(tally.is_good(), "{tally}");
}

#[test]
fn programs_compute_the_same() {
    let text = program();
    let native = output(text.as_bytes());
    let lines: Vec<&str> = native.lines().collect();
    assert!(lines.len() >= seeds(8).count(), "each function has run");
    assert_eq!(lines.len() % seeds(8).count(), 0, "runs of each function");
    for (accesses, poison) in [
        (Accesses::All, false),
        (Accesses::All, true),
        (Accesses::Stores, false),
    ] {
        let options = Options {
            accesses,
            poison,
            ..Options::of(Target::Process, Scheme::Stlb)
        };
        let rewritten = output(&rewrite(text.as_bytes(), options));
        let different = lines.iter().zip(rewritten.lines()).find(|(a, b)| **a != *b);
        assert!(
            different.is_none() && rewritten.lines().count() == lines.len(),
            "{accesses:?}, poison {poison}, first seed {}: {different:#?}",
            seeds(8).start
        );
    }
}

/// A text with all functions, and a table of them.
fn program() -> String {
    let (mut text, mut table) = (
        String::new(),
        "\t.data\n\t.globl functions\nfunctions:\n".to_owned(),
    );
    for (n, seed) in seeds(8).enumerate() {
        text += &assembly::function(&format!("f{n}"), seed, Place::Process);
        table += &format!("\t.quad f{n}\n");
    }
    text + &table + "\t.quad 0\n\t.section .note.GNU-stack,\"\",@progbits\n"
}

/// The program rewritten, with its runtime.
fn rewrite(text: &[u8], options: Options) -> Vec<u8> {
    let (source, marked) = Source::new(text);
    let bytes = assemble(&marked, &[]);
    let object = elf_loader::read(&bytes).expect("an object");
    let printed = source.rewrite(&object, options);
    let mut printed = printed.unwrap_or_else(|refusals| panic!("{}", refusals[0]));
    printed.text.extend_from_slice(b"\n");
    printed.text.extend_from_slice(RUNTIME.as_bytes());
    printed.text
}

/// What the program says that its functions left.
fn output(text: &[u8]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name| directory.path().join(name);
    std::fs::write(path("functions.o"), assemble(text, &[])).expect("a file");
    let mut linker = Command::new("gcc");
    linker
        .args([
            "-O1", "-no-pie", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
        ])
        .arg(format!("-DFAR={FAR:#x}"))
        .arg(format!("-Wl,--defsym,dom0_data={DATA:#x}"))
        .args([Path::new(DRIVER), &path("functions.o")])
        .arg("-o")
        .arg(path("program"));
    assert!(
        linker.status().expect("a compiler").success(),
        "it is linked"
    );
    let run = Command::new(path("program")).output().expect("it runs");
    assert!(run.status.success(), "{}", run.status);
    String::from_utf8(run.stdout).expect("ASCII")
}
