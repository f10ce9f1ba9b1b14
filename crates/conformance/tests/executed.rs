//! Programs of `tests/fixtures/executed`, natively and rewritten: functions whose
//! rewriting depends on more than one instruction.
//!
//! `TWIN_EXECUTED_SEEDS` is the number of images of memory and registers for each
//! function and way of rewriting, of eight states each.

use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::forms::campaign::EXECUTIONS;
use conformance::forms::programs::{Verdict, run_object};

/// States of each image.
const STATES: u64 = 8;

fn fixtures() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/executed");
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no programs in {}", directory.display());
    files
}

fn assemble(source: &Path) -> Vec<u8> {
    let stem = source.file_stem().expect("a file name");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(stem)
        .with_extension("o");
    let mut assembler = Command::new("as");
    let status = assembler.arg(source).arg("-o").arg(&object).status();
    let status = status.expect("the system assembler runs");
    assert!(status.success(), "{} does not assemble", source.display());
    std::fs::read(object).expect("the assembled object")
}

#[test]
fn programs_compute_the_same() {
    let seeds = std::env::var("TWIN_EXECUTED_SEEDS");
    let seeds: u64 = seeds.map_or(8, |n| n.parse().expect("a number"));
    for source in fixtures() {
        let bytes = assemble(&source);
        let object = elf_loader::read(&bytes).expect("an object");
        let (mut compared, mut faulted) = (0, 0);
        for (execution, seed) in EXECUTIONS
            .iter()
            .flat_map(|execution| (0..seeds).map(move |n| (execution, n)))
        {
            match run_object(&object, *execution, seed, STATES).expect("the machines can be set up")
            {
                Verdict::Same { states, faults } => {
                    compared += states;
                    faulted += faults;
                }
                other => panic!("{}, seed {seed}: {other:?}", source.display()),
            }
        }
        let name = source.display();
        println!("{name}: {compared} states, {faulted} with a fault");
        assert!(
            2 * faulted < compared,
            "{name}: {faulted} of {compared} states ended with a fault"
        );
    }
}
