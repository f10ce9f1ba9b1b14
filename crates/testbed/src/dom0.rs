//! dom0's address space as the testbed makes it, and the memory behind it.
//!
//! ```text
//! 0x1000_0000  module     e1000.ko: code | read-only | data   (elf_loader::layout)
//! 0x1400_0000  kernel     one stub for each imported routine, read and executed
//! 0x1500_0000  variables  imported data symbols
//! 0x1600_0000  percpu     %gs base; the canary is at %gs:0x28
//! 0x2000_0000  heap       the driver's objects, random otherwise
//! 0x2100_0000  island     random, with nothing before or after it
//! 0x3000_0000  stack      one block of the runtime's shape; not dom0's memory
//! ```
//!
//! All of it is below 2 GiB, because kernel code holds addresses in
//! sign-extended 32-bit fields. Regions are pieces of one file, so a process
//! can map them where dom0 has them (the native worker), page by page where it
//! likes (the rewritten one), or as a whole (the parent).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use elf_loader::link::{Layout, Protection};
use twin_abi::stack;

/// Page size in bytes.
pub const PAGE: u64 = twin_abi::stlb::PAGE_SIZE;
/// Where the module is linked.
pub const MODULE: u64 = 0x1000_0000;
/// Where imported routines are.
pub const KERNEL: u64 = 0x1400_0000;
/// Where imported variables are.
pub const VARIABLES: u64 = 0x1500_0000;
/// Bytes of imported variables.
pub const VARIABLES_SIZE: u64 = 4 * PAGE;
/// The per-CPU area, which `%gs` points to.
pub const PERCPU: u64 = 0x1600_0000;
/// Bytes of the per-CPU area.
pub const PERCPU_SIZE: u64 = 2 * PAGE;
/// The heap.
pub const HEAP: u64 = 0x2000_0000;
/// Bytes of the heap.
pub const HEAP_SIZE: u64 = 28 * PAGE;
/// A second heap, alone in its surroundings.
pub const ISLAND: u64 = 0x2100_0000;
/// Bytes of the island.
pub const ISLAND_SIZE: u64 = PAGE;
/// The stack block's address, equal in all workers.
pub const STACK_BLOCK: u64 = 0x3000_0000;
/// The driver stack: first address and address after the last.
pub const STACK: (u64, u64) = (STACK_BLOCK + stack::LOW, STACK_BLOCK + stack::HIGH);

/// `rsp` of whoever calls a function of the driver, below room for its stack
/// arguments: what `twin_enter` uses, so that all workers' stacks are alike.
pub const START_RSP: u64 = STACK.1 - stack::INCOMING_ARGS as u64;

/// Zeroes the driver stack, so that what a run finds there does not depend on
/// the run before it.
///
/// # Safety
/// The driver stack is mapped in this process, and nobody runs on it.
pub unsafe fn clear_stack() {
    let (low, high) = STACK;
    // SAFETY: the caller's promise.
    unsafe { std::ptr::write_bytes(low as *mut u8, 0, (high - low) as usize) };
}

/// What may be done with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and executed.
    Code,
    /// Read.
    ReadOnly,
    /// Read and written.
    Writable,
}

/// A piece of dom0's address space. All numbers are multiples of a page.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// dom0 address.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Offset in the file.
    pub offset: u64,
    /// What may be done with it.
    pub access: Access,
}

/// All regions, in address order.
#[derive(Clone, Debug)]
pub struct AddressSpace {
    regions: Vec<Region>,
}

impl AddressSpace {
    /// The regions for a module with this layout and `kernel` bytes of stubs.
    pub fn new(module: &Layout, kernel: u64) -> AddressSpace {
        let segments = module.segments().iter().map(|segment| {
            let access = match segment.protection {
                Protection::Code => Access::Code,
                Protection::ReadOnly => Access::ReadOnly,
                Protection::Writable => Access::Writable,
            };
            (
                segment.addresses.start,
                segment.addresses.end - segment.addresses.start,
                access,
            )
        });
        let others = [
            (KERNEL, kernel.next_multiple_of(PAGE), Access::Code),
            (VARIABLES, VARIABLES_SIZE, Access::Writable),
            (PERCPU, PERCPU_SIZE, Access::Writable),
            (HEAP, HEAP_SIZE, Access::Writable),
            (ISLAND, ISLAND_SIZE, Access::Writable),
        ];
        let mut regions = Vec::new();
        let mut offset = 0;
        for (start, length, access) in segments.chain(others) {
            regions.push(Region {
                start,
                length,
                offset,
                access,
            });
            offset += length;
        }
        AddressSpace { regions }
    }

    /// All regions.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Where in the file the regions are that a run can change.
    pub fn writable(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let writable = |r: &&Region| r.access == Access::Writable;
        let place = |r: &Region| r.offset as usize..(r.offset + r.length) as usize;
        self.regions.iter().filter(writable).map(place)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.regions.iter().map(|r| r.length).sum()
    }

    /// Where in the file `length` bytes at `address` are, if one region has all.
    pub fn offset(&self, address: u64, length: u64) -> Option<(usize, Access)> {
        let region = self
            .regions
            .iter()
            .find(|r| address.wrapping_sub(r.start) < r.length)?;
        let inside = address - region.start;
        (length <= region.length - inside)
            .then_some(((region.offset + inside) as usize, region.access))
    }

    /// The address of an offset in the file.
    pub fn address(&self, offset: usize) -> Option<u64> {
        let region = self
            .regions
            .iter()
            .find(|r| (offset as u64).wrapping_sub(r.offset) < r.length)?;
        Some(region.start + (offset as u64 - region.offset))
    }
}

/// A file in memory that several processes map, mapped here as a whole at an
/// address of no meaning.
///
/// Processes take turns: one writes while the others wait for its message, so
/// each copy below sees memory that nobody changes.
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
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain system call on that file.
        if unsafe { libc::ftruncate(fd, length as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Whoever has the file and shortened it would make others' reads fault.
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

    /// Bytes.
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

    /// Whoever has the file: another's mapping of it would fault.
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
