//! How fast rewriting and verifying are, beside `objdump -d` over the same
//! files in the same run, and what is added to the code: `make bench`.
//!
//! One core, best of some rounds. Times are of the work itself on bytes in
//! memory; `objdump` is a whole process that writes to /dev/null. Rates are in
//! instructions, and MiB of code, of the original, for the verifier in those of
//! the object that it verifies. Nothing is asserted: machines differ.
//!
//! Where the machine is busy, instructions are counted instead of time:
//!
//! ```text
//! valgrind --tool=callgrind target/release/deps/throughput-* --once SCHEME FILE.ko...
//! ```
//!
//! rewrites and verifies each file once, and does nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use elf_loader::Object;
use mimalloc::MiMalloc;
use svm_rewrite::class::SiteClass;
use svm_rewrite::{Options, Scheme, Site};
use svm_verify::{Contract, Target};

/// As in `twin`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const ROUNDS: u32 = 20;
const ROUNDS_OF_MANY: u32 = 3;
const MIB: f64 = (1 << 20) as f64;
/// Instructions that the paper's figure 4 adds to an access, without its slow path.
const FIGURE_4: f64 = 9.0;

/// What one pass over some files took.
#[derive(Clone, Copy)]
struct Pass {
    instructions: u64,
    /// Of code.
    bytes: u64,
    /// `None` if it was not possible here.
    time: Option<Duration>,
}

/// A file, and what was made of it.
struct Subject {
    path: PathBuf,
    original: Vec<u8>,
    instructions: u64,
    /// Bytes of code.
    code: u64,
    rewritten: Vec<u8>,
    rewritten_instructions: u64,
    rewritten_code: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["--once", scheme, files @ ..] = &arguments[..] {
        return once(scheme, files);
    }
    let stock = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/stock");
    let e1000 = std::env::var_os("TWIN_STOCK_E1000").map_or(stock.join("e1000.ko"), PathBuf::from);
    let paths = modules(&stock.join("modules/kernel/drivers/net/ethernet"));
    let mut rows = Vec::new();
    for scheme in Scheme::ALL {
        let Some(subject) = subject(&e1000, scheme) else {
            eprintln!(
                "{}: missing or refused; run `make stock` first",
                e1000.display()
            );
            return ExitCode::FAILURE;
        };
        let title = format!("e1000.ko, scheme {}", scheme.as_str());
        print_table(&title, std::slice::from_ref(&subject), scheme, ROUNDS);
        rows.extend(added(&subject, scheme));
    }
    print_added(rows);
    for scheme in Scheme::ALL {
        let subjects = paths.iter().filter_map(|path| self::subject(path, scheme));
        let subjects: Vec<Subject> = subjects.collect();
        let title = format!(
            "{} of {} Ethernet modules (the others are refused), scheme {}",
            subjects.len(),
            paths.len(),
            scheme.as_str()
        );
        print_table(&title, &subjects, scheme, ROUNDS_OF_MANY);
    }
    ExitCode::SUCCESS
}

/// Rewrites and verifies each file once.
fn once(scheme: &str, files: &[&str]) -> ExitCode {
    let Some(scheme) = Scheme::ALL.into_iter().find(|s| s.as_str() == scheme) else {
        eprintln!("{scheme}: no such scheme");
        return ExitCode::FAILURE;
    };
    let mut instructions = 0;
    for file in files {
        let bytes = std::fs::read(file).ok();
        let rewritten = bytes.and_then(|bytes| rewrite(&bytes, scheme));
        match rewritten.and_then(|(count, bytes)| Some((count, verify(&bytes, scheme)?))) {
            Some((count, _)) => instructions += count,
            None => eprintln!("{file}: missing or refused"),
        }
    }
    println!("{instructions} instructions");
    ExitCode::SUCCESS
}

/// All modules below a directory, sorted.
fn modules(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(modules(&path));
        } else if path.extension().is_some_and(|e| e == "ko") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn subject(path: &Path, scheme: Scheme) -> Option<Subject> {
    let original = std::fs::read(path).ok()?;
    let (instructions, rewritten) = rewrite(&original, scheme)?;
    let rewritten_instructions = verify(&rewritten, scheme)?;
    Some(Subject {
        path: path.to_owned(),
        code: code(&original)?,
        original,
        instructions,
        rewritten_code: code(&rewritten)?,
        rewritten,
        rewritten_instructions,
    })
}

/// Bytes of code in an object.
fn code(bytes: &[u8]) -> Option<u64> {
    let object = elf_loader::read(bytes).ok()?;
    Some(code_of(&object))
}

fn code_of(object: &Object<'_>) -> u64 {
    let sections = object.sections().filter(|(_, s)| s.is_code());
    sections.map(|(_, s)| s.size).sum()
}

fn rewrite(bytes: &[u8], scheme: Scheme) -> Option<(u64, Vec<u8>)> {
    let object = elf_loader::read(bytes).ok()?;
    let options = Options::new(scheme);
    let rewritten = svm_rewrite::rewrite(&object, options).ok()?;
    Some((
        rewritten.stats.instructions,
        elf_loader::write(&rewritten.object).ok()?,
    ))
}

fn verify(bytes: &[u8], scheme: Scheme) -> Option<u64> {
    let object = elf_loader::read(bytes).ok()?;
    let contract = Contract::of(Target::Hypervisor).with(scheme);
    Some(svm_verify::verify(&object, contract).ok()?.instructions as u64)
}

fn objdump(paths: &[&Path]) -> Option<()> {
    let status = Command::new("objdump")
        .arg("-d")
        .args(paths)
        .stdout(Stdio::null())
        .status();
    status.ok()?.success().then_some(())
}

/// What a scheme adds to a file.
struct Added {
    scheme: Scheme,
    /// Accesses through registers.
    accesses: usize,
    /// Those that an earlier translation serves.
    reused: usize,
    /// Instructions added in the line of execution and out of it, to all of them.
    added: i64,
    /// Bytes of code after and before.
    growth: f64,
}

fn added(subject: &Subject, scheme: Scheme) -> Option<Added> {
    let object = elf_loader::read(&subject.original).ok()?;
    let options = Options {
        report: true,
        ..Options::new(scheme)
    };
    let rewritten = svm_rewrite::rewrite(&object, options).ok()?;
    let heap = |site: &&Site| site.class == SiteClass::Heap && site.scheme.is_some();
    let sites: Vec<&Site> = rewritten.sites.iter().filter(heap).collect();
    Some(Added {
        scheme,
        accesses: sites.len(),
        reused: sites.iter().filter(|s| s.scheme == Some("reuse")).count(),
        added: sites.iter().map(|s| s.added_instructions).sum(),
        growth: code_of(&rewritten.object) as f64 / subject.code as f64,
    })
}

fn print_added(rows: Vec<Added>) {
    println!("added to e1000.ko, accesses through registers, slow paths out of line included");
    for row in rows {
        let each = row.added as f64 / row.accesses.max(1) as f64;
        println!(
            "  {:<12}{:>6} accesses,{:>6} by an earlier translation,{each:>6.1} instructions each{:>7.2} times the code",
            row.scheme.as_str(),
            row.accesses,
            row.reused,
            row.growth
        );
    }
    println!(
        "  {:<12}{FIGURE_4:>52.1} instructions each, without the slow path\n",
        "figure 4"
    );
}

fn print_table(title: &str, subjects: &[Subject], scheme: Scheme, rounds: u32) {
    let originals: u64 = subjects.iter().map(|s| s.instructions).sum();
    let results: u64 = subjects.iter().map(|s| s.rewritten_instructions).sum();
    let paths: Vec<&Path> = subjects.iter().map(|s| s.path.as_path()).collect();
    println!("{title}");
    let all = |f: &dyn Fn(&Subject) -> Option<()>| subjects.iter().try_for_each(f);
    let before: u64 = subjects.iter().map(|s| s.code).sum();
    let after: u64 = subjects.iter().map(|s| s.rewritten_code).sum();
    let rewriting = best((originals, before), rounds, || {
        all(&|s| rewrite(&s.original, scheme).map(drop))
    });
    let verifying = best((results, after), rounds, || {
        all(&|s| verify(&s.rewritten, scheme).map(drop))
    });
    let disassembling = best((originals, before), rounds, || objdump(&paths));
    print_row("rewrite", rewriting);
    print_row("verify", verifying);
    print_row("objdump -d", disassembling);
    print_sum(rewriting, verifying);
    println!();
}

fn best((instructions, bytes): (u64, u64), rounds: u32, work: impl Fn() -> Option<()>) -> Pass {
    let round = || {
        let start = Instant::now();
        work().map(|()| start.elapsed())
    };
    let times: Option<Vec<Duration>> = (0..rounds).map(|_| round()).collect();
    let time = times.and_then(|times| times.into_iter().min());
    Pass {
        instructions,
        bytes,
        time,
    }
}

/// The speed of both steps, one after the other, in instructions of the original.
fn print_sum(rewriting: Pass, verifying: Pass) {
    if let (Some(rewrite), Some(verify)) = (rewriting.time, verifying.time) {
        let rate = rewriting.instructions as f64 / (rewrite + verify).as_secs_f64() / 1e6;
        println!("  rewrite + verify: {rate:.2} M instructions/s on one core");
    }
}

fn print_row(what: &str, pass: Pass) {
    match pass.time {
        Some(time) => println!(
            "  {what:<12}{:>12} instructions{:>10.1} ms{:>9.2} M instructions/s{:>8.1} MiB/s",
            pass.instructions,
            time.as_secs_f64() * 1e3,
            pass.instructions as f64 / time.as_secs_f64() / 1e6,
            pass.bytes as f64 / time.as_secs_f64() / MIB
        ),
        None => println!("  {what:<12}not possible here"),
    }
}
