//! How fast assembly text is rewritten, beside `as` on the same text: part of
//! `make bench`.
//!
//! ```text
//! cargo bench -p svm-rewrite --bench source -- FILE.s...
//! ```
//!
//! One core, processor time, best of some rounds, the allocator that `twin` has. What
//! is timed as rewriting is everything this project does between a text in memory and the rewritten text in
//! memory: taking the text apart, marking it, reading the object that the marked
//! text was assembled to, lifting, analyses and plans, the sequences, printing.
//! The assembler's time for the marked text is apart, and files and processes are
//! not in it. A line is what ends with a newline in the text that comes in, blank
//! lines, labels and directives included, as compilers print them.
//!
//! `make bench` gives sqlite's amalgamation. Without arguments, two fixtures are taken,
//! which are too small to see the assembler's time in hundredths of a second. Nothing
//! is asserted: machines differ.

#![allow(missing_docs, reason = "a program, not a library")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use svm_rewrite::source::Source;
use svm_rewrite::{Options, Scheme, Target};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: u32 = 5;

/// Each step is repeated until it took so long: the clock goes by the kernel's tick.
const LEAST: Duration = Duration::from_millis(200);

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
        let (front, (source, marked)) = time(|| Source::new(&text));
        let (marked_time, bytes) = assemble(&marked);
        let (rest, printed) = time(|| {
            let object = elf_loader::read(&bytes).expect("an object");
            source.rewrite(&object, Options::of(Target::Process, Scheme::Stlb))
        });
        printed.expect("no refusal");
        let times = [own, marked_time, front, rest];
        best = Some(best.map_or(times, |b| std::array::from_fn(|i| b[i].min(times[i]))));
    }
    let [own, marked, front, rest] = best.expect("at least one round");
    let rate = |time: Duration| lines as f64 / time.as_secs_f64() / 1e6;
    let name = file.file_name().unwrap_or(file.as_os_str()).display();
    println!("{name}: {lines} lines");
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

/// Processor time of a step, and what it gives.
fn time<T>(step: impl Fn() -> T) -> (Duration, T) {
    let start = processor_time();
    let mut times = 0;
    loop {
        let done = step();
        times += 1;
        let all = processor_time() - start;
        if all >= LEAST {
            return (all / times, done);
        }
    }
}

fn assemble(text: &[u8]) -> (Duration, Vec<u8>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (source, object) = (directory.path().join("x.s"), directory.path().join("x.o"));
    std::fs::write(&source, text).expect("writable");
    let start = children_time();
    let status = Command::new("as")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    let time = children_time() - start;
    assert!(status.expect("`as` is installed").success());
    (time, std::fs::read(&object).expect("assembled"))
}

/// What this thread has had of a processor (proc(5), schedstat).
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

/// What processes that ended have had of a processor, in hundredths of a second
/// (proc(5), fields 16 and 17 of stat).
fn children_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    let (_, fields) = text
        .rsplit_once(')')
        .expect("the name stands in parentheses");
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.map(|n| n.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(10 * ticks)
}
