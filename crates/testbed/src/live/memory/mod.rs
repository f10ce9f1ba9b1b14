//! The machine's memory, and where dom0 has what.
//!
//! One file is the machine's memory: a machine address, which is also the
//! address that the NIC uses for DMA, is an offset in it.
//!
//! ```text
//! machine address                         dom0 address
//! 0           nobody's (64 KiB)           DIRECT_MAP + machine address,
//! 0x0001_0000 percpu areas                for all of dom0's RAM
//! 0x0010_0000 kernel stacks
//! 0x0020_0000 exchange area
//! 0x0030_0000 struct page[]               also at VMEMMAP
//!             images of the modules       also at DRIVER, HOT, KERNEL
//!             heap: kernel.o's pages
//! dom0 RAM    guest 0, guest 1, ...       none: a guest's page is known to
//! end                                     dom0 by its struct page only
//! ```
//!
//! The registers of the NIC are a second file, at [`BAR`].

use std::ops::Range;
use std::os::fd::RawFd;

use elf_loader::link::{Protection, Segment};
use libc::{c_int, c_void};

use super::error::LiveError;
use crate::dom0::Shared;

/// Page size in bytes.
pub const PAGE: u64 = twin_abi::stlb::PAGE_SIZE;
/// Where `e1000.ko` is linked.
pub const DRIVER: u64 = 0x1000_0000;
/// Where `hot.o` is linked.
pub const HOT: u64 = 0x1100_0000;
/// Where `kernel.o` is linked.
pub const KERNEL: u64 = 0x1200_0000;
/// Where the stubs to host functions are, in calls' reach of all three.
pub const FAR: u64 = 0x1300_0000;
/// Bytes between the images' places.
pub const IMAGE_ROOM: u64 = 0x0100_0000;
/// dom0's RAM, whole: `page_offset_base`.
pub const DIRECT_MAP: u64 = 0x1000_0000_0000;
/// `struct page[]` for all machine frames: `vmemmap_base`.
pub const VMEMMAP: u64 = 0x2000_0000_0000;
/// Bytes of a `struct page`.
pub const STRUCT_PAGE: u64 = 64;
/// The NIC's registers.
pub const BAR: u64 = 0x3000_0000_0000;
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
/// Where percpu sections are linked: offsets in a percpu area, for `%gs` is its
/// address. The page below has the canary, at 0x28.
pub const PERCPU_LINK: u64 = 0x1000;
/// Bytes of a percpu area.
pub const PERCPU_SIZE: u64 = 64 << 10;
/// Bytes of a kernel stack, its guard page included.
pub const STACK_SIZE: u64 = 64 << 10;
/// The runtime's stack block of CPU 1; those of further CPUs follow.
pub const DRIVER_STACK: u64 = 0x4000_0000;
/// Stack canary, as GCC's stack protector reads it at `%gs:0x28`.
pub const CANARY: u64 = 0x00ab_cdef_1234_5678;

const PERCPU_AT: u64 = 0x0001_0000;
const STACKS_AT: u64 = 0x0010_0000;
const EXCHANGE_AT: u64 = 0x0020_0000;
const EXCHANGE_SIZE: u64 = 0x0010_0000;
const IMAGES_AT: u64 = EXCHANGE_AT + EXCHANGE_SIZE;

const _: () = assert!(PERCPU_AT + CPUS as u64 * PERCPU_SIZE <= STACKS_AT);
const _: () = assert!(STACKS_AT + CPUS as u64 * STACK_SIZE <= EXCHANGE_AT);

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

/// dom0 addresses of memory for arguments by reference, which the supervisor
/// and dom0 agree about between themselves; kernel.o does not know of it.
pub const EXCHANGE: Range<u64> = DIRECT_MAP + EXCHANGE_AT..DIRECT_MAP + EXCHANGE_AT + EXCHANGE_SIZE;

/// How much memory the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
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
            dom0: 64 << 20,
            guests: 8,
            guest: 2 << 20,
        }
    }
}

impl Sizes {
    /// Bytes of all memory.
    pub fn total(&self) -> u64 {
        self.dom0 + u64::from(self.guests) * self.guest
    }

    /// Bytes of `struct page[]`.
    pub fn vmemmap(&self) -> u64 {
        (self.total() / PAGE * STRUCT_PAGE).next_multiple_of(PAGE)
    }

    /// Machine addresses of a guest's RAM.
    pub fn guest(&self, number: u32) -> Range<u64> {
        let start = self.dom0 + u64::from(number) * self.guest;
        start..start + self.guest
    }
}

/// The machine: its memory and the NIC's registers, each a file that is mapped
/// here as a whole, at an address of no meaning. Children inherit the mappings.
#[derive(Debug)]
pub struct Machine {
    sizes: Sizes,
    ram: Shared,
    bar: Shared,
}

// SAFETY: other processes change the memory at any time anyway; it is reached
// by copies through raw pointers, never by references.
unsafe impl Sync for Machine {}

impl Machine {
    /// Zeroed memory.
    ///
    /// # Errors
    /// A system call's.
    pub fn new(sizes: Sizes) -> Result<Machine, LiveError> {
        let file = |length| {
            Shared::new(length).map_err(|source| LiveError::System {
                what: "making the machine's memory",
                source,
            })
        };
        Ok(Machine {
            sizes,
            ram: file(sizes.total())?,
            bar: file(BAR_SIZE)?,
        })
    }

    /// How much there is.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The file of the memory.
    pub fn fd(&self) -> RawFd {
        self.ram.fd()
    }

    /// The file of the NIC's registers.
    pub fn bar_fd(&self) -> RawFd {
        self.bar.fd()
    }

    /// The NIC's registers in this process: [`BAR_SIZE`] bytes that other
    /// processes change as well.
    pub fn bar(&self) -> *mut u8 {
        self.bar.as_ptr()
    }

    /// All memory in this process: `sizes().total()` bytes from machine address
    /// 0 on, that other processes change as well.
    pub fn ram(&self) -> *mut u8 {
        self.ram.as_ptr()
    }

    /// `length` bytes at a machine address in this process, if they exist.
    pub fn at(&self, machine: u64, length: u64) -> Option<*mut u8> {
        let end = machine.checked_add(length)?;
        // SAFETY: checked to be inside the mapping.
        (end <= self.sizes.total()).then(|| unsafe { self.ram().add(machine as usize) })
    }

    /// Makes dom0's RAM and the NIC's registers zero again. Nobody uses them.
    ///
    /// # Errors
    /// A system call's.
    pub fn erase_dom0(&self) -> Result<(), LiveError> {
        for (fd, length) in [(self.fd(), self.sizes.dom0), (self.bar_fd(), BAR_SIZE)] {
            let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: plain system call on our own file.
            if unsafe { libc::fallocate(fd, how, 0, length as libc::off_t) } != 0 {
                return Err(LiveError::last("erasing dom0's memory"));
            }
        }
        Ok(())
    }

    /// Copies bytes from a machine address; `None` if there is no such memory.
    pub fn read(&self, machine: u64, into: &mut [u8]) -> Option<()> {
        let from = self.at(machine, into.len() as u64)?;
        // SAFETY: `at` checked the source; nobody has references into it.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Some(())
    }

    /// Copies bytes to a machine address; `None` if there is no such memory.
    pub fn write(&self, machine: u64, bytes: &[u8]) -> Option<()> {
        let to = self.at(machine, bytes.len() as u64)?;
        // SAFETY: `at` checked the target; nobody has references into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Some(())
    }
}

/// A piece of dom0's address space. All numbers are multiples of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// dom0 address.
    pub dom0_start: u64,
    /// Bytes.
    pub length: u64,
    /// Machine address.
    pub file_offset: u64,
    /// What dom0 may do with it.
    pub protection: Protection,
}

impl Region {
    /// Whether it may be written.
    pub fn writable(&self) -> bool {
        self.protection == Protection::Writable
    }

    /// As the runtime wants it. `fd` is that of [`Machine::fd`].
    pub fn for_runtime(&self, fd: RawFd) -> crate::runtime::Region {
        crate::runtime::Region {
            dom0_start: self.dom0_start,
            length: self.length,
            file_offset: self.file_offset,
            fd,
            writable: u32::from(self.writable()),
        }
    }

    fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.dom0_start) < self.length
    }
}

/// dom0's address space: which memory is where. The NIC's registers and the
/// driver stacks are no memory of dom0 and not in it.
#[derive(Clone, Debug)]
pub struct Space {
    sizes: Sizes,
    regions: Vec<Region>,
    heap: Range<u64>,
}

impl Space {
    /// The space of a dom0 that has these segments of images in it.
    ///
    /// # Errors
    /// [`LiveError::NoRoom`] if dom0's RAM is too small.
    pub fn new<'s>(
        sizes: Sizes,
        segments: impl Iterator<Item = &'s Segment>,
    ) -> Result<Space, LiveError> {
        let mut regions = Vec::new();
        let mut next = IMAGES_AT;
        let mut add = |dom0_start: u64, length: u64, protection| {
            regions.push(Region {
                dom0_start,
                length,
                file_offset: next,
                protection,
            });
            next += length;
        };
        add(VMEMMAP, sizes.vmemmap(), Protection::Writable);
        for segment in segments {
            let Range { start, end } = segment.addresses;
            add(start, end - start, segment.protection);
        }
        if next >= sizes.dom0 {
            return Err(LiveError::NoRoom {
                what: "dom0 with its modules".to_owned(),
                needed: next + PAGE,
                room: sizes.dom0,
            });
        }
        regions.push(Region {
            dom0_start: DIRECT_MAP,
            length: sizes.dom0,
            file_offset: 0,
            protection: Protection::Writable,
        });
        regions.sort_by_key(|region| region.dom0_start);
        Ok(Space {
            sizes,
            regions,
            heap: next..sizes.dom0,
        })
    }

    /// How much memory there is.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// All regions in address order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Machine addresses of the frames that kernel.o may allocate.
    pub fn heap(&self) -> Range<u64> {
        self.heap.clone()
    }

    /// Machine addresses that the NIC's DMA may reach: kernel.o's frames and the
    /// guests' RAM, but no code, percpu data or stacks.
    pub fn dma(&self) -> Range<u64> {
        self.heap.start..self.sizes.total()
    }

    /// The machine address of a dom0 address.
    pub fn machine_address(&self, dom0: u64) -> Option<u64> {
        let region = self.regions.iter().find(|region| region.holds(dom0))?;
        Some(region.file_offset + (dom0 - region.dom0_start))
    }

    /// The machine address of `length` bytes of dom0's that one region holds.
    pub fn machine_range(&self, dom0: u64, length: u64) -> Option<u64> {
        let region = self.regions.iter().find(|region| region.holds(dom0))?;
        let inside = dom0 - region.dom0_start;
        (length <= region.length - inside).then_some(region.file_offset + inside)
    }

    /// Maps dom0's memory, registers and driver stacks into this process at
    /// their dom0 addresses; the registers trap. For the dom0 process.
    ///
    /// # Errors
    /// A system call's, also if something is at one of the addresses.
    pub fn map(&self, machine: &Machine) -> Result<(), LiveError> {
        for region in &self.regions {
            map_at(
                region.dom0_start,
                region.length,
                protection_bits(region.protection),
                Some((machine.fd(), region.file_offset)),
                libc::MAP_FIXED_NOREPLACE,
            )?;
        }
        map_at(
            BAR,
            BAR_SIZE,
            libc::PROT_NONE,
            Some((machine.bar_fd(), 0)),
            libc::MAP_FIXED_NOREPLACE,
        )?;
        for cpu in 1..CPUS {
            let stack = driver_stack(cpu);
            let writable = libc::PROT_READ | libc::PROT_WRITE;
            // It replaces a stack block that the parent may have there.
            map_at(
                stack.start,
                stack.end - stack.start,
                writable,
                None,
                libc::MAP_FIXED,
            )?;
        }
        (0..CPUS).try_for_each(|cpu| protect(kernel_stack(cpu).start - PAGE, PAGE, libc::PROT_NONE))
    }
}

/// What an access to the NIC's registers does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarMode {
    /// It faults and is performed by the NIC's model.
    Trapped,
    /// It reads and writes the registers' memory.
    Open,
}

/// Sets what the NIC's registers do in this process, where [`Space::map`] was
/// used.
///
/// # Errors
/// A system call's.
pub fn set_bar(mode: BarMode) -> Result<(), LiveError> {
    let protection = match mode {
        BarMode::Trapped => libc::PROT_NONE,
        BarMode::Open => libc::PROT_READ | libc::PROT_WRITE,
    };
    protect(BAR, BAR_SIZE, protection)
}

fn protection_bits(protection: Protection) -> c_int {
    match protection {
        Protection::Code => libc::PROT_READ | libc::PROT_EXEC,
        Protection::ReadOnly => libc::PROT_READ,
        Protection::Writable => libc::PROT_READ | libc::PROT_WRITE,
    }
}

fn protect(address: u64, length: u64, protection: c_int) -> Result<(), LiveError> {
    // SAFETY: the callers name memory of dom0's, to which Rust code holds no
    // references.
    match unsafe { libc::mprotect(address as *mut c_void, length as usize, protection) } {
        0 => Ok(()),
        _ => Err(LiveError::last("protecting dom0's memory")),
    }
}

/// Maps a piece of a file, or new memory.
fn map_at(
    address: u64,
    length: u64,
    protection: c_int,
    file: Option<(RawFd, u64)>,
    fixed: c_int,
) -> Result<(), LiveError> {
    let (kind, fd, offset) = match file {
        Some((fd, offset)) => (libc::MAP_SHARED, fd, offset),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
    };
    // SAFETY: with FIXED_NOREPLACE nothing that exists is replaced; with FIXED
    // at most a driver stack, on which nothing runs in this process.
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
        Ok(())
    } else {
        Err(LiveError::last("mapping dom0's memory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_lie_in_dom0s_ram_and_below_the_heap_nothing() {
        let sizes = Sizes::default();
        let segment = Segment {
            protection: Protection::Code,
            addresses: DRIVER..DRIVER + 3 * PAGE,
        };
        let space = Space::new(sizes, std::iter::once(&segment)).expect("fits");
        let text = space.machine_address(DRIVER + PAGE).expect("mapped");
        assert_eq!(text, space.heap().start - 2 * PAGE);
        assert_eq!(space.machine_address(DIRECT_MAP + text), Some(text));
        assert_eq!(space.machine_range(DRIVER + PAGE, 2 * PAGE), Some(text));
        assert_eq!(space.machine_range(DRIVER + PAGE, 2 * PAGE + 1), None);
        assert_eq!(space.machine_address(VMEMMAP - 1), None);
    }

    #[test]
    fn too_little_memory_is_said() {
        let sizes = Sizes {
            dom0: 4 << 20,
            ..Sizes::default()
        };
        let segment = Segment {
            protection: Protection::Code,
            addresses: DRIVER..DRIVER + (2 << 20),
        };
        let error = Space::new(sizes, std::iter::once(&segment)).expect_err("too small");
        assert!(error.to_string().contains("live/memory.rs"), "{error}");
    }
}
