//! Mappings at given addresses: dom0's memory and rewritten code are linked to
//! addresses that are fixed beforehand.

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use libc::c_int;

/// The addresses of a line of `/proc/PID/maps` (proc(5)).
pub fn addresses(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// What backs a mapping.
#[derive(Clone, Copy, Debug)]
pub enum Backing {
    /// New memory, all zero, of this process alone.
    New,
    /// A file from an offset on, a multiple of a page; shared.
    File {
        /// Open for as long as the mapping is made.
        fd: RawFd,
        /// Bytes from its start.
        offset: u64,
    },
}

/// Maps `length` bytes, whole pages, at exactly `address`, with `protection` as
/// `mmap` takes it. No existing mapping is replaced.
///
/// # Errors
/// The system call's, or the addresses are taken.
pub fn map(address: u64, length: u64, protection: c_int, backing: Backing) -> io::Result<*mut u8> {
    // SAFETY: with FIXED_NOREPLACE nothing that exists is replaced.
    unsafe {
        at(
            address,
            length,
            protection,
            backing,
            libc::MAP_FIXED_NOREPLACE,
        )
    }
}

/// New memory at exactly `address`, readable and writable, all zero: `length`
/// bytes, whole pages. No existing mapping is replaced.
///
/// # Errors
/// The system call's, or the addresses are taken.
pub fn new_memory(address: u64, length: u64) -> io::Result<*mut u8> {
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    map(address, length, writable, Backing::New)
}

/// Maps new, writable memory in place of whatever is there.
/// # Safety
/// Nothing uses the memory that is there.
pub unsafe fn replace(address: u64, length: u64) -> io::Result<*mut u8> {
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the caller's promise.
    unsafe { at(address, length, writable, Backing::New, libc::MAP_FIXED) }
}

unsafe fn at(
    address: u64,
    length: u64,
    protection: c_int,
    backing: Backing,
    fixed: c_int,
) -> io::Result<*mut u8> {
    let (kind, fd, offset) = match backing {
        Backing::New => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        Backing::File { fd, offset } => (libc::MAP_SHARED, fd, offset),
    };
    // SAFETY: the callers say what happens to memory that is there.
    let at = unsafe {
        libc::mmap(
            address as *mut c_void,
            length as usize,
            protection,
            kind | fixed,
            fd,
            offset as libc::off_t,
        )
    };
    if at as u64 == address {
        Ok(at.cast())
    } else {
        Err(io::Error::last_os_error())
    }
}
