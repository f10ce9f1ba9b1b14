//! The fuzz targets' logic for a few seconds: random bytes, and mutations of
//! real inputs. `fuzz/README.md` tells how to run it for longer.

use std::time::{Duration, Instant};

use testbed::fuzz;
use testbed::random::Random;

const EACH: Duration = Duration::from_secs(3);

/// Runs `check` on inputs from `make` until the time is over; at least once.
fn run(seed: u64, make: impl Fn(&mut Random) -> Vec<u8>, check: impl Fn(&[u8])) {
    let mut random = Random::new(seed);
    let started = Instant::now();
    let mut count = 0u64;
    while count == 0 || started.elapsed() < EACH {
        check(&make(&mut random));
        count += 1;
    }
    println!("{count} inputs");
}

fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    let length = random.below(most);
    (0..length).map(|_| random.word() as u8).collect()
}

/// A file with some bytes changed and perhaps cut short.
fn mutate(random: &mut Random, file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..1 + random.below(8) {
        let at = random.below(file.len() as u64) as usize;
        file[at] = random.word() as u8;
    }
    if random.one_in(4) {
        file.truncate(random.below(file.len() as u64) as usize);
    }
    file
}

#[test]
fn reading() {
    let stock = testbed::stock::find().expect("the stock module");
    run(1, |r| bytes(r, 4096), fuzz::read);
    run(2, |r| mutate(r, &stock), fuzz::read);
}

#[test]
fn rewriting() {
    run(3, |r| bytes(r, 64), fuzz::rewrite_code);
}

#[test]
fn verifying() {
    let accepted = fuzz::accepted();
    run(
        4,
        |r| bytes(r, 48),
        |edits| fuzz::verify_mutant(&accepted, edits),
    );
}
