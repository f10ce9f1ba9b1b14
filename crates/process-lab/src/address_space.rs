//! dom0's address space as the testbed makes it, and the file that backs it.
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
/// Where the heap is in dom0.
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

/// `rsp` at the call of a driver function, below room for its stack arguments: the
/// value that `twin_enter` uses, so that all workers' stacks are alike.
pub const START_RSP: u64 = STACK.1 - stack::INCOMING_ARGS as u64;

/// Zeroes the driver stack, so that what a run finds there does not depend on
/// the run before it.
///
/// # Safety
/// The driver stack is mapped in this process, and no code runs on it.
pub unsafe fn clear_stack() {
    let (low, high) = STACK;
    // SAFETY: the caller's promise.
    unsafe { std::ptr::write_bytes(low as *mut u8, 0, (high - low) as usize) };
}

/// Access to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionAccess {
    /// Read and executed.
    Code,
    /// Only read.
    ReadOnly,
    /// Read and written.
    Writable,
}

/// A piece of dom0's address space. All numbers are multiples of a page.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// dom0 address.
    pub start: u64,
    /// Bytes, in memory and in the file.
    pub length: u64,
    /// Offset in the file.
    pub offset: u64,
    /// The access that it permits.
    pub access: RegionAccess,
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
                Protection::Code => RegionAccess::Code,
                Protection::ReadOnly => RegionAccess::ReadOnly,
                Protection::Writable => RegionAccess::Writable,
            };
            (
                segment.addresses.start,
                segment.addresses.end - segment.addresses.start,
                access,
            )
        });
        let others = [
            (KERNEL, kernel.next_multiple_of(PAGE), RegionAccess::Code),
            (VARIABLES, VARIABLES_SIZE, RegionAccess::Writable),
            (PERCPU, PERCPU_SIZE, RegionAccess::Writable),
            (HEAP, HEAP_SIZE, RegionAccess::Writable),
            (ISLAND, ISLAND_SIZE, RegionAccess::Writable),
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

    /// All of it, in the order of their addresses.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Where in the file the regions are that a run can change.
    pub fn writable(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let writable = |r: &&Region| r.access == RegionAccess::Writable;
        let place = |r: &Region| r.offset as usize..(r.offset + r.length) as usize;
        self.regions.iter().filter(writable).map(place)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.regions.iter().map(|r| r.length).sum()
    }

    /// Where in the file `length` bytes at `address` are, if one region has all.
    pub fn offset(&self, address: u64, length: u64) -> Option<(usize, RegionAccess)> {
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
