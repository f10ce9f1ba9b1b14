//! The allocator of programs that read files, and what they say when there is no more memory.
//!
//! Stable Rust has no hook for that: it aborts, by which a shell takes the program for broken.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mimalloc::MiMalloc;

use crate::temporary;

/// [`MiMalloc`], which the workspace's `Cargo.toml` gives the reasons for. Without memory it ends
/// the program with a message and status 2, and leaves no output half written. So nothing that asks
/// for memory goes on without it: `try_reserve` never fails.
pub struct Allocator;

// SAFETY: each function gives what MiMalloc's gives, for the same arguments, or does not return.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps this function's contract, which is the same.
        given(unsafe { MiMalloc.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps this function's contract, which is the same.
        given(unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps this function's contract, which is the same; the block is
        // MiMalloc's.
        given(unsafe { MiMalloc.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps this function's contract, which is the same; the block is
        // MiMalloc's.
        unsafe { MiMalloc.dealloc(block, layout) }
    }
}

/// What was given, if anything was.
#[inline]
fn given(block: *mut u8) -> *mut u8 {
    match block.is_null() {
        true => end(),
        false => block,
    }
}

/// What is said. It takes no memory.
const MESSAGE: &[u8] = b"twin: out of memory; give it more (`ulimit -v`, the limits of a \
container), or fewer files at a time (-j 1)\n";

/// Ends the program as what it was asked to do cannot be done: status 2.
#[cold]
fn end() -> ! {
    thread_local! {
        /// Whether this thread is here already, and what it does here has asked for memory.
        static ENDING: Cell<bool> = const { Cell::new(false) };
    }
    /// Whether any thread is.
    static SAID: AtomicBool = AtomicBool::new(false);
    if !ENDING.replace(true) {
        // It says it once, and must not be ended while it removes what is half written.
        while SAID.swap(true, Ordering::Relaxed) {
            std::thread::sleep(Duration::MAX);
        }
        // Nobody is told of a message that cannot be written.
        let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
        temporary::remove_without_memory();
    }
    // SAFETY: it has no requirement; neither destructors nor handlers run, which could ask for
    // memory.
    unsafe { libc::_exit(2) }
}
