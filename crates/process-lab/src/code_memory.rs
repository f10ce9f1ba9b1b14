//! Code in a process that runs it: new memory at the address that the code is
//! linked to, filled, then read and executed only.

use std::io;

use crate::address_space::PAGE;
use crate::mapping;
use crate::program::LinkedCode;

/// Makes memory that [`mapping::new_memory`] gave executable, and no longer
/// writable.
pub fn seal(memory: *mut u8, length: u64) -> io::Result<()> {
    // SAFETY: memory of `new_memory`, to which its user keeps no references.
    let status = unsafe {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mprotect(memory.cast(), length as usize, protection)
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes code that was sealed, and gives the previous bytes.
/// # Safety
/// `N` bytes of sealed memory, which no thread executes now.
pub unsafe fn patch<const N: usize>(address: u64, bytes: [u8; N]) -> io::Result<[u8; N]> {
    let start = address & !(PAGE - 1);
    let length = (address + N as u64).next_multiple_of(PAGE) - start;
    // SAFETY: the caller's: whole pages of sealed memory.
    let status = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mprotect(start as *mut _, length as usize, protection)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let at = address as *mut [u8; N];
    // SAFETY: inside these pages.
    let was = unsafe { at.replace(bytes) };
    seal(start as *mut u8, length)?;
    Ok(was)
}

/// Loads `pieces` (address, bytes) of code into new memory from `start` to `end`,
/// rounded up to whole pages.
///
/// # Errors
/// A system call's, or the addresses are taken.
///
/// # Panics
/// If a piece is outside.
pub fn load(start: u64, end: u64, pieces: &[(u64, &[u8])]) -> io::Result<()> {
    let length = (end - start).next_multiple_of(PAGE);
    let memory = mapping::new_memory(start, length)?;
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
/// A system call's, or something is there.
pub fn load_program(program: &LinkedCode) -> io::Result<()> {
    let (start, end) = program.text();
    let mut pieces: Vec<(u64, &[u8])> = program
        .linked
        .iter()
        .map(|l| (l.address, l.bytes.as_slice()))
        .collect();
    pieces.push((program.trampolines.base, &program.trampolines.bytes));
    load(start, end, &pieces)
}
