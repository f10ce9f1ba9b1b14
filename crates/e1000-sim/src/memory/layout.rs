//! Addresses and sizes of everything.
//!
//! The low halves of dom0's addresses differ, so that all of it fits a window of 4 GiB
//! (`docs/spec/window.md`):
//!
//! ```text
//! low half     what                             room
//! 0x1000_0000  images, stubs to host functions  0x0400_0000
//! 0x2000_0000  RAM: the direct map              0x1000_0000
//! 0x3000_0000  struct page[]                    0x1000_0000
//! 0x4000_0000  driver stacks                    a block for each CPU
//! 0x5000_0000  the NIC's registers
//! ```

use std::ops::Range;

use process_lab::program::{Bounds, STACK_VIEW};

/// By how many pages code lies above its usual addresses.
///
/// Branches of several objects get into each other's way in the processor, as their distances
/// have it. With the hot routines a page higher the native driver takes 30 cycles for a
/// received packet instead of 60, the rewritten one as many as before (Intel family 6,
/// model 167). So the driver's cost is measured in several layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift(u64);

impl Shift {
    /// So many of them; the first moves nothing.
    pub fn first(count: u64) -> impl Iterator<Item = Shift> {
        (0..count).map(Shift)
    }

    /// The address of an object that is at `usual` without it; `step` tells objects apart, so
    /// that their distances change.
    pub fn moved(self, usual: u64, step: u64) -> u64 {
        usual + self.0 * step * PAGE
    }
}

/// Page size in bytes.
pub const PAGE: u64 = twin_abi::stlb::PAGE_SIZE;
/// Where `e1000.ko` is linked. The three are not whole translation tables apart (16 MiB): else
/// their pages would share entries, the first with the first and so on, and whether two of
/// them are used for every packet would depend on the objects' sizes.
pub const DRIVER: u64 = 0x10e0_0000;
/// Where `hot.o` is linked.
pub const HOT: u64 = 0x11c0_0000;
/// Where `kernel.o` is linked.
pub const KERNEL: u64 = 0x12a0_0000;
/// Where the stubs to host functions are, in calls' reach of all three.
pub const FAR: u64 = 0x1300_0000;
/// Most bytes of an image.
pub const IMAGE_ROOM: u64 = 0x0020_0000;
/// dom0's RAM, whole: `page_offset_base`.
pub const DIRECT_MAP: u64 = 0x1012_2000_0000;
/// `struct page[]` for all machine frames: `vmemmap_base`.
pub const VMEMMAP: u64 = 0x2123_3000_0000;
/// The first and the last address that any of dom0's memory has.
pub const DOM0_ADDRESSES: Bounds = Bounds {
    lowest: DRIVER,
    highest: data_stack_view(CPUS).end - 1,
};
/// Most bytes of dom0's RAM, and of `struct page[]`.
pub const ROOM: u64 = 0x1000_0000;
/// Bytes of a `struct page`.
const STRUCT_PAGE: u64 = 64;
/// The NIC's registers.
pub const BAR: u64 = 0x3334_5000_0000;
/// Bytes of the NIC's registers.
pub const BAR_SIZE: u64 = 128 << 10;
/// First port of the NIC.
pub const PORTS: u16 = 0xc000;
/// Ports of the NIC.
pub const PORTS_SIZE: u16 = 64;
/// Bus address of the NIC's registers.
pub const BAR_BUS: u32 = 0xf000_0000;
/// The NIC's interrupt line.
pub const IRQ: u32 = 11;
/// CPUs of dom0: number 0 boots, the others are the hypervisor's.
pub const CPUS: usize = 4;
/// Where percpu sections are linked: offsets in a percpu area, because `%gs` is the
/// area's address. The page below has the canary, at 0x28.
pub const PERCPU_LINK: u64 = 0x1000;
/// Bytes of a percpu area.
pub const PERCPU_SIZE: u64 = 64 << 10;
/// Bytes of a kernel stack, its guard page included.
const STACK_SIZE: u64 = 64 << 10;
/// The runtime's stack block of CPU 1; those of further CPUs follow.
pub const DRIVER_STACK: u64 = 0x4000_0000;
/// Stack canary, as GCC's stack protector reads it at `%gs:0x28`.
pub const CANARY: u64 = 0x00ab_cdef_1234_5678;

const PERCPU_AT: u64 = 0x0001_0000;
const STACKS_AT: u64 = 0x0010_0000;
const DATA_STACKS_AT: u64 = 0x0018_0000;
const EXCHANGE_AT: u64 = 0x0020_0000;
const EXCHANGE_SIZE: u64 = 0x0010_0000;
pub(super) const IMAGES_AT: u64 = EXCHANGE_AT + EXCHANGE_SIZE;

const _: () = assert!(PERCPU_AT + CPUS as u64 * PERCPU_SIZE <= STACKS_AT);
const _: () = assert!(STACKS_AT + CPUS as u64 * STACK_SIZE <= DATA_STACKS_AT);
const _: () = assert!(data_stack(CPUS) <= EXCHANGE_AT);

/// dom0 address of percpu area `cpu`.
pub const fn percpu(cpu: usize) -> u64 {
    DIRECT_MAP + PERCPU_AT + cpu as u64 * PERCPU_SIZE
}

/// dom0 addresses of the kernel stack of `cpu`, without its guard page.
pub const fn kernel_stack(cpu: usize) -> Range<u64> {
    let low = DIRECT_MAP + STACKS_AT + cpu as u64 * STACK_SIZE;
    low + PAGE..low + STACK_SIZE
}

/// dom0 addresses of the driver stack of `cpu` (1 or more): the same in dom0 as
/// in the hypervisor.
pub const fn driver_stack(cpu: usize) -> Range<u64> {
    let block = DRIVER_STACK + (cpu as u64 - 1) * twin_abi::stack::BLOCK;
    block + twin_abi::stack::LOW..block + twin_abi::stack::HIGH
}

/// Machine address of the data stack of `cpu` (1 or more), which driver code of a scheme
/// with a window has beside the driver stack.
pub const fn data_stack(cpu: usize) -> u64 {
    DATA_STACKS_AT + (cpu as u64 - 1) * (twin_abi::stack::HIGH - twin_abi::stack::LOW)
}

/// dom0 addresses of the data stack of `cpu`.
pub const fn data_stack_view(cpu: usize) -> Range<u64> {
    let stack = driver_stack(cpu);
    stack.start + STACK_VIEW..stack.end + STACK_VIEW
}

/// dom0 addresses of memory for arguments by reference between supervisor and dom0
/// process; kernel.o does not use it by itself.
pub const EXCHANGE: Range<u64> = DIRECT_MAP + EXCHANGE_AT..DIRECT_MAP + EXCHANGE_AT + EXCHANGE_SIZE;

/// Most bytes of a ring of descriptors (8254x manual, 13.4.27).
pub const RING: u64 = 4096 * 16;
/// Bytes of the hypervisor's own frames: a copy of each ring.
const HYPERVISOR: u64 = 2 * RING;

/// How much memory the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Machine address where it begins: 0, except for parts of a machine ([`Machine::divided`]).
    ///
    /// [`Machine::divided`]: super::Machine::divided
    pub base: u64,
    /// Bytes of dom0's RAM.
    pub dom0: u64,
    /// Number of guests.
    pub guests: u32,
    /// Bytes of each guest's RAM.
    pub guest: u64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            base: 0,
            dom0: 64 << 20,
            guests: 9,
            guest: 2 << 20,
        }
    }
}

impl Sizes {
    /// Machine addresses of dom0's RAM.
    pub fn ram(&self) -> Range<u64> {
        self.base..self.base + self.dom0
    }

    /// Where all memory ends: bytes of it, if it begins at 0.
    pub fn total(&self) -> u64 {
        self.ram().end + u64::from(self.guests) * self.guest
    }

    /// Machine addresses of the hypervisor's own frames, which have no owner in the table of
    /// frames: the copies of the card's rings.
    pub fn hypervisor(&self) -> Range<u64> {
        self.total()..self.total() + HYPERVISOR
    }

    /// Bytes of `struct page[]`.
    pub fn vmemmap(&self) -> u64 {
        (self.total() / PAGE * STRUCT_PAGE).next_multiple_of(PAGE)
    }

    /// Machine addresses of a guest's RAM.
    pub fn guest(&self, number: u32) -> Range<u64> {
        let start = self.ram().end + u64::from(number) * self.guest;
        start..start + self.guest
    }
}
