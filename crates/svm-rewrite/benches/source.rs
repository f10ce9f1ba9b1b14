//! How fast assembly text is rewritten, beside `as` on the same text: part of
//! `make bench`.
//!
//! ```text
//! cargo bench -p svm-rewrite --bench source -- FILE.s...
//! ```
//!
//! One core, best of some rounds. What is timed as rewriting is everything this
//! project does: taking the text apart, marking it, reading the object, lifting
//! to planning, printing. The assembler's time for the marked text is apart.
//! Without arguments, the fixtures are taken. Nothing is asserted: machines differ.

#![allow(missing_docs, reason = "a program, not a library")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use svm_rewrite::source::Source;
use svm_rewrite::{Options, Scheme, Target};

const ROUNDS: u32 = 5;

fn main() {
    let files: Vec<PathBuf> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .map(PathBuf::from)
        .collect();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/source");
    let files = match files.is_empty() {
        true => ["user-gcc-O0.s", "user-gcc-O2.s"]
            .map(|f| fixtures.join(f))
            .to_vec(),
        false => files,
    };
    for file in files {
        measure(&file);
    }
}

fn measure(file: &Path) {
    let text = std::fs::read(file).expect("the file is there");
    let lines = text.iter().filter(|b| **b == b'\n').count();
    let mut best: Option<[Duration; 4]> = None;
    for _ in 0..ROUNDS {
        let (own, _) = assemble(&text);
        let start = Instant::now();
        let (source, marked) = Source::new(&text);
        let front = start.elapsed();
        let (marked_time, bytes) = assemble(&marked);
        let start = Instant::now();
        let object = elf_loader::read(&bytes).expect("an object");
        let printed = source.rewrite(&object, Options::of(Target::Process, Scheme::Stlb));
        printed.expect("no refusal");
        let rest = start.elapsed();
        let times = [own, marked_time, front, rest];
        best = Some(best.map_or(times, |b| std::array::from_fn(|i| b[i].min(times[i]))));
    }
    let [own, marked, front, rest] = best.expect("at least one round");
    let rate = |time: Duration| lines as f64 / time.as_secs_f64() / 1e6;
    println!("{}: {lines} lines", file.display());
    for (what, time) in [
        ("as, the original", own),
        ("as, the marked text", marked),
        ("take apart and mark", front),
        ("rewrite and print", rest),
        ("twin in all", front + rest),
    ] {
        let ms = time.as_secs_f64() * 1e3;
        println!("  {what:<20}{ms:>10.1} ms{:>8.2} M lines/s", rate(time));
    }
}

fn assemble(text: &[u8]) -> (Duration, Vec<u8>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (source, object) = (directory.path().join("x.s"), directory.path().join("x.o"));
    std::fs::write(&source, text).expect("writable");
    let start = Instant::now();
    let status = Command::new("as")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    let time = start.elapsed();
    assert!(status.expect("`as` is installed").success());
    (time, std::fs::read(&object).expect("assembled"))
}
