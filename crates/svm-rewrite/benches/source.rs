//! How fast assembly text is rewritten, compared with `as` on the same text: part of
//! `make bench`.
//!
//! ```text
//! cargo bench -p svm-rewrite --bench source -- FILE.s...
//! ```
//!
//! One core, processor time, best of some rounds, `twin`'s allocator. The time of
//! rewriting covers everything this project does between a text in memory and the
//! rewritten text in memory: splitting the text, marking it, reading the object that the
//! marked text was assembled to, lifting, analyses and plans, the sequences, printing.
//! Each step is run once and then repeated for some time. "first" is the first run, in
//! memory that the kernel still has to clear, as for a process that rewrites one file;
//! the other numbers are the mean of the runs after it. The assembler's time for the
//! marked text is separate; files and processes are not in any of these. A line is what
//! ends with a newline in the input, including blank lines, labels and directives, as
//! compilers print them.
//!
//! `make bench` uses sqlite's amalgamation. Without arguments, two fixtures are used,
//! which are too small to see the assembler's time in hundredths of a second. Nothing
//! is asserted: machines differ.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use svm_rewrite::text::Source;
use svm_rewrite::{Options, Scheme, Target};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: u32 = 5;

/// Each step is repeated for this long: the clock has the resolution of the kernel's
/// tick.
const LEAST: Duration = Duration::from_millis(500);

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
    // Without what is expected of it, if it is a fixture.
    let text = filetests::Fixture::read(file.to_owned()).input.into_bytes();
    let lines = text.iter().filter(|b| **b == b'\n').count();
    let mut best = [Duration::MAX; 6];
    for _ in 0..ROUNDS {
        let (own, _) = assemble(&text);
        let (front, (source, marked)) = time(|| Source::new(&text));
        let (marked_time, bytes) = assemble(&marked);
        let (rest, printed) = time(|| {
            let object = elf_loader::read(&bytes).expect("an object");
            source.rewrite(&object, Options::of(Target::Process, Scheme::Stlb))
        });
        printed.expect("no refusal");
        let first = front.first + rest.first;
        let all = front.again + rest.again;
        let times = [own, marked_time, front.again, rest.again, all, first];
        best = std::array::from_fn(|i| best[i].min(times[i]));
    }
    let name = file.file_name().unwrap_or(file.as_os_str()).display();
    println!("{name}: {lines} lines");
    let steps = [
        "as, the original",
        "as, the marked text",
        "take apart and mark",
        "rewrite and print",
        "twin in all",
        "twin in all, first",
    ];
    for (what, time) in steps.into_iter().zip(best) {
        let ms = time.as_secs_f64() * 1e3;
        let rate = lines as f64 / time.as_secs_f64() / 1e6;
        println!("  {what:<20}{ms:>10.1} ms{rate:>8.2} M lines/s");
    }
}

/// Processor time of a step.
struct Times {
    first: Duration,
    /// The mean of the later ones.
    again: Duration,
}

/// Takes a step some times. Gives what the last one gave.
fn time<T>(step: impl Fn() -> T) -> (Times, T) {
    let start = processor_time();
    drop(step());
    let first = processor_time() - start;
    let start = processor_time();
    let mut times = 0;
    loop {
        let done = step();
        times += 1;
        let all = processor_time() - start;
        if all >= LEAST {
            let again = all / times;
            return (Times { first, again }, done);
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

/// The processor time of this thread (proc(5), schedstat).
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

/// The processor time of child processes that ended, in hundredths of a second
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
