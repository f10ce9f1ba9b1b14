//! Functions shared out among threads: each takes a run of functions that follow one another,
//! and the results come in the order of the functions. So they do not depend on the number of
//! threads.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use crate::lift::{FuncIdx, Lifted};

/// Fewer instructions are judged sooner than a thread is made.
const FEWEST: usize = 2048;

/// Does `work` for runs of functions that have about as many instructions each, and gives the
/// results in the order of the runs. The calling thread takes the first.
pub fn by_functions<R: Send>(
    lifted: &Lifted<'_>,
    threads: NonZero<usize>,
    work: impl Fn(Range<u32>) -> R + Sync,
) -> Vec<R> {
    let runs = runs(lifted, threads.get().min(lifted.insts.len() / FEWEST + 1));
    let Some((first, rest)) = runs.split_first() else {
        return Vec::new();
    };
    thread::scope(|scope| {
        let work = &work;
        let spawn = |run: &Range<u32>| {
            let run = run.clone();
            thread::Builder::new().spawn_scoped(scope, move || work(run))
        };
        let others: Vec<_> = rest.iter().map(spawn).collect();
        let mut all = vec![work(first.clone())];
        for (run, other) in rest.iter().zip(others) {
            all.push(match other {
                // A panic is a defect: the caller's thread has it, as if there were no other.
                Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // No more threads are allowed (RLIMIT_NPROC).
                Err(_) => work(run.clone()),
            });
        }
        all
    })
}

/// Functions in at most `count` runs, all of them, in order.
fn runs(lifted: &Lifted<'_>, count: usize) -> Vec<Range<u32>> {
    let functions = lifted.functions.len() as u32;
    // Functions hold every instruction, in order.
    let begins = |f: u32| lifted.function(FuncIdx(f)).insts.start as usize;
    let share = lifted.insts.len().div_ceil(count).max(1);
    let mut runs = Vec::with_capacity(count);
    let mut start = 0;
    for n in 1..=count {
        let mut end = start;
        while end < functions && (n == count || begins(end) < n * share) {
            end += 1;
        }
        runs.push(start..end);
        start = end;
    }
    runs
}
