//! dom0's address space, and how a process gets it.

use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use elf_loader::link::{Protection, Segment};
use libc::{c_int, c_void};
use process_lab::mapping::{self, Backing};

use super::layout::{
    BAR, BAR_SIZE, CPUS, DIRECT_MAP, IMAGES_AT, PAGE, ROOM, Sizes, VMEMMAP, data_stack,
    data_stack_view, driver_stack, kernel_stack,
};
use super::machine::Machine;
use crate::error::LiveError;

/// A piece of dom0's address space. All numbers are multiples of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// dom0 address.
    pub dom0_start: u64,
    /// Bytes, a multiple of a page.
    pub length: u64,
    /// Machine address.
    pub file_offset: u64,
    /// dom0's access to it.
    pub protection: Protection,
}

impl Region {
    /// Whether it may be written.
    pub fn writable(&self) -> bool {
        self.protection == Protection::Writable
    }

    /// As the runtime's structure. `fd` is that of [`Machine::fd`].
    pub fn for_runtime(&self, fd: RawFd) -> process_lab::runtime::Region {
        process_lab::runtime::Region {
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
        fits("dom0's RAM", sizes.dom0)?;
        fits("struct page[]", sizes.vmemmap())?;
        let mut regions = Vec::new();
        let ram = sizes.ram();
        let mut next = ram.start + IMAGES_AT;
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
        if next >= ram.end {
            return Err(LiveError::NoRoom {
                what: "dom0 with its modules".to_owned(),
                needed: next + PAGE - ram.start,
                room: sizes.dom0,
            });
        }
        regions.push(Region {
            dom0_start: DIRECT_MAP,
            length: sizes.dom0,
            file_offset: ram.start,
            protection: Protection::Writable,
        });
        regions.sort_by_key(|region| region.dom0_start);
        Ok(Space {
            sizes,
            regions,
            heap: next..ram.end,
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

    /// dom0 address of machine address 0, were that dom0's: `page_offset_base`. So dom0's
    /// physical addresses are machine addresses, wherever its RAM begins.
    pub fn direct_map(&self) -> u64 {
        DIRECT_MAP - self.sizes.base
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
        self.map_memory(machine)?;
        (1..CPUS).try_for_each(|cpu| self.map_driver_stack(machine, cpu))
    }

    /// The same without the driver stacks: for a process that has its own there.
    ///
    /// # Errors
    /// A system call's, also if something is at one of the addresses.
    pub fn map_memory(&self, machine: &Machine) -> Result<(), LiveError> {
        for region in &self.regions {
            let backing = Backing::File {
                fd: machine.fd(),
                offset: region.file_offset,
            };
            let bits = protection_bits(region.protection);
            mapping::map(region.dom0_start, region.length, bits, backing).map_err(unmapped)?;
        }
        let registers = Backing::File {
            fd: machine.bar_fd(),
            offset: 0,
        };
        mapping::map(BAR, BAR_SIZE, libc::PROT_NONE, registers).map_err(unmapped)?;
        (0..CPUS).try_for_each(|cpu| protect(kernel_stack(cpu).start - PAGE, PAGE, libc::PROT_NONE))
    }

    /// A driver stack and the data stack above it.
    fn map_driver_stack(&self, machine: &Machine, cpu: usize) -> Result<(), LiveError> {
        let stack = driver_stack(cpu);
        // SAFETY: it replaces at most a stack block that the parent has there, on
        // which nothing runs in this process.
        unsafe { mapping::replace(stack.start, stack.end - stack.start) }.map_err(unmapped)?;
        let view = data_stack_view(cpu);
        let memory = Backing::File {
            fd: machine.fd(),
            offset: self.sizes.base + data_stack(cpu),
        };
        let writable = protection_bits(Protection::Writable);
        mapping::map(view.start, view.end - view.start, writable, memory).map_err(unmapped)?;
        Ok(())
    }
}

/// Whether its place is large enough.
fn fits(what: &str, needed: u64) -> Result<(), LiveError> {
    if needed <= ROOM {
        return Ok(());
    }
    Err(LiveError::NoRoom {
        what: what.to_owned(),
        needed,
        room: ROOM,
    })
}

/// The effect of an access to the NIC's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarMode {
    /// It faults and is performed by the NIC's model.
    Trapped,
    /// It reads and writes the registers' memory.
    Open,
}

/// Sets the effect of accesses to the NIC's registers in this process, where
/// [`Space::map`] was used.
pub fn set_bar(mode: BarMode) -> Result<(), LiveError> {
    let protection = match mode {
        BarMode::Trapped => libc::PROT_NONE,
        BarMode::Open => libc::PROT_READ | libc::PROT_WRITE,
    };
    protect(BAR, BAR_SIZE, protection)
}

/// The effect of an access to one page of the NIC's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMode {
    /// It faults and is performed by the NIC's model.
    Trapped,
    /// A read reads the registers' memory, a write faults.
    ReadOnly,
    /// It reads and writes the registers' memory.
    Open,
}

/// As [`set_bar`], for the page with the register at `offset`.
///
/// # Errors
/// A system call's.
pub fn set_bar_page(offset: u32, mode: PageMode) -> Result<(), LiveError> {
    let protection = match mode {
        PageMode::Trapped => libc::PROT_NONE,
        PageMode::ReadOnly => libc::PROT_READ,
        PageMode::Open => libc::PROT_READ | libc::PROT_WRITE,
    };
    protect(BAR + u64::from(offset) / PAGE * PAGE, PAGE, protection)
}

fn unmapped(source: io::Error) -> LiveError {
    LiveError::system("mapping dom0's memory")(source)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::DRIVER;

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
    fn too_much_memory_is_said() {
        let sizes = Sizes {
            dom0: ROOM + PAGE,
            ..Sizes::default()
        };
        let error = Space::new(sizes, std::iter::empty()).expect_err("too large");
        assert!(
            error.to_string().contains("dom0's RAM needs 0x10001000"),
            "{error}"
        );
    }

    #[test]
    fn low_halves_differ() {
        let last = CPUS - 1;
        let places = [
            DRIVER..crate::memory::FAR + crate::memory::IMAGE_ROOM,
            DIRECT_MAP..DIRECT_MAP + ROOM,
            VMEMMAP..VMEMMAP + ROOM,
            data_stack_view(1).start - twin_abi::stack::LOW..data_stack_view(last).end + PAGE,
            BAR..BAR + BAR_SIZE,
        ];
        let low = |address: u64| address & (twin_abi::window::SIZE - 1);
        let mut next = twin_abi::window::NULL_GUARD;
        for place in places {
            assert!(next <= low(place.start), "{place:#x?}");
            next = low(place.start) + (place.end - place.start);
        }
        assert!(next <= twin_abi::window::SIZE);
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
        assert!(error.to_string().contains("memory/layout.rs"), "{error}");
    }
}
