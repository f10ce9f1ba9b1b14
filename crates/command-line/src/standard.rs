//! Standard input and output as the program was started with them.
//!
//! Rust's runtime opens `/dev/null` in place of a stream that was closed (`>&-`), and calls a
//! write to one that is open for reading only a success (std/src/sys/stdio). A result would be
//! lost, and the exit status would say that it was written. So the streams are looked at before
//! that runtime starts, by one system call each.

use std::fs::File;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::stdio;

/// Standard input is closed, or open for writing only.
static NO_INPUT: AtomicBool = AtomicBool::new(false);
/// Standard output is closed, or open for reading only.
static NO_OUTPUT: AtomicBool = AtomicBool::new(false);

/// The functions of this section are called before `main` (gABI, "Initialization and Termination
/// Functions").
//
// SAFETY: what is in the section is the address of a function of C's calling convention that
// takes no argument and returns nothing; the arguments that glibc and musl pass are ignored. It
// needs nothing that a runtime sets up: it makes system calls and stores to atomics, allocates
// nothing, uses no thread-local variable, and cannot panic.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    let input = fcntl_getfl(stdio::stdin());
    let output = fcntl_getfl(stdio::stdout());
    NO_INPUT.store(lacks(input, OFlags::WRONLY), Ordering::Relaxed);
    NO_OUTPUT.store(lacks(output, OFlags::RDONLY), Ordering::Relaxed);
}

/// Whether a stream is closed, or open in no way but the other one.
fn lacks(flags: rustix::io::Result<OFlags>, other: OFlags) -> bool {
    match flags {
        Ok(flags) => flags & OFlags::RWMODE == other,
        Err(_) => true,
    }
}

/// Whether the program was given a standard input to read.
pub fn has_input() -> bool {
    !NO_INPUT.load(Ordering::Relaxed)
}

/// Whether the program was given a standard output to write to.
pub fn has_output() -> bool {
    !NO_OUTPUT.load(Ordering::Relaxed)
}

/// Standard input for a program that this one runs: it cannot read what this one cannot.
pub fn input() -> Stdio {
    let other = || File::options().write(true).open(NULL);
    passed_on(has_input(), other)
}

/// Standard output for a program that this one runs: it cannot write where this one cannot.
pub fn output() -> Stdio {
    passed_on(has_output(), || File::open(NULL))
}

const NULL: &str = "/dev/null";

/// A stream that is open the other way fails as a closed one does: EBADF (read(2), write(2)).
fn passed_on(is_there: bool, other: impl FnOnce() -> std::io::Result<File>) -> Stdio {
    match is_there {
        true => Stdio::inherit(),
        false => other().map_or_else(|_| Stdio::inherit(), Stdio::from),
    }
}
