//! The fuzz targets' logic for a few seconds: every input of the corpus, random
//! inputs, and mutations of real ones, the same ones each time. `TWIN_FUZZ_TIMES`
//! multiplies their number (1) and `TWIN_FUZZ_SEED` selects others; `fuzz/README.md`
//! tells how to run the same guided by coverage.

use std::path::Path;

use conformance::counting::Counting;
use conformance::fuzz;
use elf_loader::consts::STT_FUNC;
use elf_loader::{Object, Place};
use process_lab::random::Random;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| v.parse().expect("a number"))
}

/// An input that is printed if the check of it fails, for the corpus.
struct Shown(Vec<u8>);

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("input: {:02x?}", self.0);
        }
    }
}

/// Runs `check` on a number of inputs from `make`.
fn run(seed: u64, inputs: u64, make: impl Fn(&mut Random) -> Vec<u8>, check: impl Fn(&[u8])) {
    let mut random = Random::new(seed ^ setting("TWIN_FUZZ_SEED", 0) << 8);
    for _ in 0..inputs * setting("TWIN_FUZZ_TIMES", 1) {
        let input = Shown(make(&mut random));
        check(&input.0);
    }
}

/// Runs `check` on every file of `fuzz/corpus/NAME`.
fn replay(name: &str, check: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {}", directory.display());
    for file in files {
        println!("{}", file.display());
        check(&std::fs::read(&file).expect("a file of the corpus"));
    }
}

fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    let length = random.below(most);
    (0..length).map(|_| random.word() as u8).collect()
}

/// Random bytes after a first one that says what they are.
fn choices(random: &mut Random, kind: u8, most: u64) -> Vec<u8> {
    [vec![kind], bytes(random, most)].concat()
}

/// A file with some bytes changed and perhaps cut short.
fn mutate(random: &mut Random, file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    if file.is_empty() {
        return file;
    }
    for _ in 0..1 + random.below(8) {
        let at = random.below(file.len() as u64) as usize;
        file[at] = random.word() as u8;
    }
    if random.one_in(4) {
        file.truncate(random.below(file.len() as u64) as usize);
    }
    file
}

/// The code of every function of at most 1 KiB. Its relocations are dropped, so
/// that calls lead to the next instruction and symbols are at zero.
fn functions(object: &Object<'_>) -> Vec<Vec<u8>> {
    let code = |value: u64, size: u64, place| {
        let Place::In(id) = place else { return None };
        let data = &object.section(id).data;
        let end = value.checked_add(size)?;
        Some(data.get(value as usize..end as usize)?.to_vec())
    };
    object
        .symbols()
        .filter(|(_, s)| s.kind == STT_FUNC && (1..=1024).contains(&s.size))
        .filter_map(|(_, s)| code(s.value, s.size, s.place))
        .collect()
}

#[test]
fn the_corpus_of_bugs_found() {
    replay("read", fuzz::read);
    replay("lift", fuzz::lift);
    replay("rewrite", fuzz::rewrite);
    replay("execute", |input| {
        fuzz::execute(input);
    });
    replay("verify", fuzz::verify);
}

#[test]
fn reading() {
    let stock = process_lab::stock::find().expect("the stock module");
    run(1, 20_000, |r| bytes(r, 4096), fuzz::read);
    run(2, 500, |r| mutate(r, &stock), fuzz::read);
}

#[test]
fn lifting() {
    let stock = process_lab::stock::find().expect("the stock module");
    run(8, 10_000, |r| choices(r, 1, 128), fuzz::lift);
    run(
        9,
        500,
        |r| [vec![0], mutate(r, &stock)].concat(),
        fuzz::lift,
    );
}

#[test]
fn executing() {
    use std::cell::Cell;
    let (executed, faults) = (Cell::new(0), Cell::new(0));
    let check = |input: &[u8]| {
        if let fuzz::FuzzOutcome::Executed(states, faulted) = fuzz::execute(input) {
            executed.set(executed.get() + states);
            faults.set(faults.get() + faulted);
        }
    };
    run(10, 100, |r| bytes(r, 160), check);
    println!("{} states, {} faults", executed.get(), faults.get());
    assert!(executed.get() > 0, "nothing was executed");
}

#[test]
fn rewriting_bytes_and_programs() {
    run(3, 5_000, |r| choices(r, 0, 64), fuzz::rewrite);
    run(4, 2_000, |r| choices(r, 1, 128), fuzz::rewrite);
}

#[test]
fn rewriting_mutated_functions() {
    let stock = process_lab::stock::find().expect("the stock module");
    let object = elf_loader::read(&stock).expect("the stock module is readable");
    let functions = functions(&object);
    let any = |r: &mut Random| r.below(functions.len() as u64) as usize;
    run(
        5,
        2_000,
        |r| {
            let n = any(r);
            mutate(r, &functions[n])
        },
        fuzz::rewrite_code,
    );
}

/// Twice as many units of any kind cost at most two and a half times as much.
#[test]
fn costing() {
    run(11, 2_000, |r| bytes(r, 64), fuzz::cost);
}

#[test]
fn verifying() {
    run(6, 10_000, |r| choices(r, 0, 48), fuzz::verify);
    run(7, 10_000, |r| choices(r, 1, 64), fuzz::verify);
}
