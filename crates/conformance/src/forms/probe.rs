//! Access to the memory of the code under test by a signal's handler that emulates an
//! instruction: first a check that it is mapped, in the processor's order, then the
//! access.
//!
//! A page stays mapped during one instruction, so each is checked once.

use std::ffi::c_void;

use process_lab::address_space::PAGE;

/// The fault of an access: trap number, and the address if the processor reports one.
pub type Fault = (u64, u64);

/// Checks the elements of one string.
pub struct Probe {
    writes: bool,
    /// The last page that was found mapped.
    page: Option<u64>,
}

impl Probe {
    /// For elements that are read, and written if `writes`.
    pub fn new(writes: bool) -> Probe {
        Probe { writes, page: None }
    }

    /// Whether an element of `size` bytes, at most a page, can be reached.
    ///
    /// # Errors
    /// The first fault that the processor would report.
    pub fn element(&mut self, at: u64, size: u64) -> Result<(), Fault> {
        const PROTECTION: u64 = 13;
        const PAGE_FAULT: u64 = 14;
        let last = at.wrapping_add(size - 1);
        let canonical = |address: u64| matches!(address as i64 >> 47, 0 | -1);
        if !canonical(at) || !canonical(last) {
            return Err((PROTECTION, 0));
        }
        let page = |address: u64| address & !(PAGE - 1);
        let second = (page(at) != page(last)).then_some(page(last));
        for first_byte in [Some(at), second].into_iter().flatten() {
            if self.page == Some(page(first_byte)) {
                continue;
            }
            if !self.is_there(first_byte) {
                return Err((PAGE_FAULT, first_byte));
            }
            self.page = Some(page(first_byte));
        }
        Ok(())
    }

    /// Writes a byte back unchanged, to see whether that is possible.
    fn is_there(&self, address: u64) -> bool {
        let mut byte = [0];
        read(address, &mut byte) == 1 && (!self.writes || write(address, &byte) == 1)
    }
}

/// The element at `at`, of up to eight bytes; the others are zero.
///
/// # Safety
/// [`Probe::element`] found it.
pub unsafe fn load(at: u64, size: u64) -> [u8; 8] {
    let mut element = [0; 8];
    // SAFETY: the bytes are mapped, by the caller's promise; they are memory of the
    // code under test, to which no references exist here.
    unsafe { std::ptr::copy(at as *const u8, element.as_mut_ptr(), size as usize) };
    element
}

/// Writes an element of up to eight bytes.
///
/// # Safety
/// As for [`load`], by a probe of what is written.
pub unsafe fn store(at: u64, element: [u8; 8], size: u64) {
    // SAFETY: as for `load`.
    unsafe { std::ptr::copy(element.as_ptr(), at as *mut u8, size as usize) };
}

/// Reads this process's memory as far as it is mapped; gives the number of bytes read.
pub fn read(at: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    transfer(local, at, libc::process_vm_readv)
}

/// Writes this process's memory as far as permitted; gives the number of bytes written.
fn write(at: u64, from: &[u8]) -> usize {
    let local = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    transfer(local, at, libc::process_vm_writev)
}

type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> libc::ssize_t;

/// The kernel reports unmapped memory, where an access of our own would fault.
fn transfer(local: libc::iovec, at: u64, call: Transfer) -> usize {
    let remote = libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: local.iov_len,
    };
    // SAFETY: the local part is a slice of the caller's; the remote one is checked by
    // the kernel, and is memory of the code under test, not of Rust's.
    let done = unsafe { call(libc::getpid(), &local, 1, &remote, 1, 0) };
    usize::try_from(done).unwrap_or(0)
}
