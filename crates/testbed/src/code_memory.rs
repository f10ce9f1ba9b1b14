//! Memory for rewritten code, in a process that runs it: new memory at a fixed
//! address, filled, then read and executed only.

use std::io;

use crate::dom0::PAGE;
use crate::mapping::{self, Backing};
use crate::program::Program;

/// New memory at `address`, whole pages, readable and writable. Nothing that
/// exists there is replaced.
///
/// # Errors
/// The system call's, or something is there.
pub fn map(address: u64, length: u64) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    mapping::map(address, length, protection, Backing::New)
}

/// Makes memory that [`map`] gave code: executed, and written no more.
///
/// # Errors
/// The system call's.
pub fn seal(memory: *mut u8, length: u64) -> io::Result<()> {
    // SAFETY: memory of `map`, to which its user keeps no references.
    let status = unsafe {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mprotect(memory.cast(), length as usize, protection)
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Loads `pieces` (address, bytes) of code between two addresses.
///
/// # Errors
/// A system call's.
///
/// # Panics
/// If a piece is outside.
pub fn load(start: u64, end: u64, pieces: &[(u64, &[u8])]) -> io::Result<()> {
    let length = (end - start).next_multiple_of(PAGE);
    let memory = map(start, length)?;
    for (address, bytes) in pieces {
        assert!(
            *address >= start && address + bytes.len() as u64 <= start + length,
            "a piece is outside"
        );
        // SAFETY: checked to be inside the new mapping.
        unsafe {
            let to = memory.add((address - start) as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
    seal(memory, length)
}

/// Loads a linked program: its sections and its trampolines.
///
/// # Errors
/// A system call's.
pub fn load_program(program: &Program) -> io::Result<()> {
    let (start, end) = program.text();
    let mut pieces: Vec<(u64, &[u8])> = program
        .linked
        .iter()
        .map(|l| (l.address, l.bytes.as_slice()))
        .collect();
    pieces.push((program.trampolines.base, &program.trampolines.bytes));
    load(start, end, &pieces)
}
