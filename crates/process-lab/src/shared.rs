//! Memory that several processes share: a file that each maps where it likes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

/// A file in memory that several processes map, mapped here as a whole at an
/// arbitrary address.
///
/// Processes take turns: one writes while the others wait for its message, so
/// memory does not change during any copy below.
#[derive(Debug)]
pub struct Shared {
    file: OwnedFd,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the value and is reached through its methods
// alone, of which those that write take `&mut self`.
unsafe impl Send for Shared {}

impl Shared {
    /// A file of `length` zero bytes.
    pub fn new(length: u64) -> io::Result<Shared> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a terminated string.
        let fd = unsafe { libc::memfd_create(c"twin-testbed".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain system call on that file.
        if unsafe { libc::ftruncate(fd, length as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // If a process shortened the file, the others' reads would fault.
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: plain system call on that file.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let length = length as usize;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        match NonNull::new(at.cast::<u8>()) {
            Some(start) if at != libc::MAP_FAILED => Ok(Shared {
                file,
                start,
                length,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The file, for mapping pieces of it elsewhere.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Where the file is mapped here: `length()` bytes, as long as `self` lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes that are mapped.
    pub fn length(&self) -> usize {
        self.length
    }

    fn check(&self, offset: usize, length: usize) {
        assert!(
            offset <= self.length && length <= self.length - offset,
            "outside the shared file"
        );
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        // SAFETY: checked to be inside the mapping; `bytes` is no part of it,
        // for no reference into it is ever made.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.as_ptr().add(offset), bytes.len())
        }
    }

    /// Copies bytes at `offset` out.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: as for `write`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.as_ptr().add(offset), into.as_mut_ptr(), into.len())
        }
    }

    /// The offset of the first byte that differs from `other`'s.
    pub fn first_difference(&self, other: &Shared) -> Option<usize> {
        let length = self.length.min(other.length);
        // SAFETY: both mappings have at least `length` bytes, and their
        // writers wait (see the type).
        let (a, b) = unsafe {
            (
                std::slice::from_raw_parts(self.as_ptr(), length),
                std::slice::from_raw_parts(other.as_ptr(), length),
            )
        };
        if a == b {
            None
        } else {
            a.iter().zip(b).position(|(x, y)| x != y)
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_space::PAGE;

    /// A process that has the file must not shorten it: others' mappings would fault.
    #[test]
    fn nobody_shortens_shared_memory() {
        let shared = Shared::new(2 * PAGE).expect("memory");
        for length in [0, PAGE, 3 * PAGE] {
            // SAFETY: plain system call on our own file.
            let truncated = unsafe { libc::ftruncate(shared.fd(), length as libc::off_t) };
            let error = io::Error::last_os_error().raw_os_error();
            assert_eq!((truncated, error), (-1, Some(libc::EPERM)), "{length}");
        }
        let mut last = [1];
        shared.read(2 * PAGE as usize - 1, &mut last);
        assert_eq!(last, [0]);
    }
}
