//! An allocator that counts for each thread, to measure the cost of a piece of work
//! without a clock. A program that measures installs it:
//!
//! ```text
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//! ```
//!
//! Built with `-C instrument-coverage --cfg twin_steps` (`make cost`), it also counts
//! work without allocation: how often the parts of this project's functions were
//! entered, which the compiler counts for coverage.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted.
pub struct Counting;

#[derive(Clone, Copy)]
struct Counts {
    allocated: u64,
    live: i64,
    peak: i64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const {
        Cell::new(Counts { allocated: 0, live: 0, peak: 0 })
    };
}

fn note(allocated: usize, freed: usize) {
    // Memory is also freed after the thread-local data are gone.
    let _ = COUNTS.try_with(|counts| {
        let mut now = counts.get();
        now.allocated += allocated as u64;
        now.live += allocated as i64 - freed as i64;
        now.peak = now.peak.max(now.live);
        counts.set(now);
    });
}

// SAFETY: the system's allocator does the work; nothing here allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The cost of a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Bytes allocated, those freed meanwhile included.
    pub allocated: u64,
    /// Most bytes at a time.
    pub peak: u64,
    /// Parts of functions entered; 0 where that is not counted.
    pub steps: u64,
}

/// Does a piece of work on this thread and counts what it takes.
///
/// # Panics
/// If the program has another allocator: then nothing would be counted.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Used) {
    let before = COUNTS.get();
    COUNTS.set(Counts {
        peak: before.live,
        ..before
    });
    drop(std::hint::black_box(Box::new(0u64)));
    let counted = COUNTS.get().allocated > before.allocated;
    assert!(counted, "the program has not installed this allocator");
    let steps = steps();
    let result = work();
    let after = COUNTS.get();
    let used = Used {
        allocated: after.allocated - before.allocated,
        peak: (after.peak - before.live).max(0) as u64,
        steps: self::steps().wrapping_sub(steps),
    };
    (result, used)
}

/// The sum of all of the program's coverage counters.
#[cfg(twin_steps)]
fn steps() -> u64 {
    unsafe extern "C" {
        // compiler-rt, lib/profile/InstrProfiling.h
        fn __llvm_profile_begin_counters() -> *const u64;
        fn __llvm_profile_end_counters() -> *const u64;
    }
    // SAFETY: the runtime that the compiler links gives both ends of its counters.
    let counters = unsafe {
        let (start, end) = (
            __llvm_profile_begin_counters(),
            __llvm_profile_end_counters(),
        );
        std::slice::from_raw_parts(start, end.offset_from(start) as usize)
    };
    counters.iter().fold(0, |sum, n| sum.wrapping_add(*n))
}

#[cfg(not(twin_steps))]
fn steps() -> u64 {
    0
}
