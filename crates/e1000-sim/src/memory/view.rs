//! dom0's memory by dom0 addresses, in any process: for trusted code that reads data
//! of dom0 and the driver.
//!
//! dom0 changes its memory at any time, and what is in it is not trusted: each
//! access is a copy, and every address is checked.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::image::KernelPlan;
use crate::memory::{self, DIRECT_MAP, Machine, Space};

/// dom0's memory.
#[derive(Clone, Copy, Debug)]
pub struct View<'m> {
    space: &'m Space,
    machine: &'m Machine,
}

impl<'m> View<'m> {
    /// The memory of a dom0 with this address space.
    pub fn new(space: &'m Space, machine: &'m Machine) -> View<'m> {
        View { space, machine }
    }

    /// `length` bytes of dom0's in this process, if one region has them all.
    pub fn pointer(&self, dom0: u64, length: u64) -> Option<*mut u8> {
        let direct = dom0.wrapping_sub(DIRECT_MAP);
        let ram = self.space.sizes().dom0;
        if direct < ram && length <= ram - direct {
            return self.machine.at(self.space.sizes().base + direct, length);
        }
        let at = self.space.machine_range(dom0, length)?;
        self.machine.at(at, length)
    }

    /// Copies bytes out.
    pub fn read(&self, dom0: u64, into: &mut [u8]) -> Option<()> {
        let from = self.pointer(dom0, into.len() as u64)?;
        // SAFETY: `pointer` checked the source; no references into it exist.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Some(())
    }

    /// Copies bytes in.
    pub fn write(&self, dom0: u64, bytes: &[u8]) -> Option<()> {
        let to = self.pointer(dom0, bytes.len() as u64)?;
        // SAFETY: `pointer` checked the target; no references into it exist.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Some(())
    }

    /// A word that dom0 may change at the same time; aligned.
    pub fn word32(&self, dom0: u64) -> Option<&'m AtomicU32> {
        let at = self.pointer(dom0, 4).filter(|_| dom0.is_multiple_of(4))?;
        // SAFETY: four aligned bytes, mapped as long as the machine.
        Some(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// A word that dom0 may change at the same time; aligned.
    pub fn word64(&self, dom0: u64) -> Option<&'m AtomicU64> {
        let at = self.pointer(dom0, 8).filter(|_| dom0.is_multiple_of(8))?;
        // SAFETY: eight aligned bytes, mapped as long as the machine.
        Some(unsafe { AtomicU64::from_ptr(at.cast()) })
    }
}

impl KernelPlan<'_> {
    /// dom0's memory in `machine`.
    pub fn view<'m>(&'m self, machine: &'m Machine) -> View<'m> {
        View::new(self.space(), machine)
    }

    /// The dom0 address of a percpu variable of `cpu`.
    pub fn percpu_symbol(&self, name: &str, cpu: usize) -> Option<u64> {
        let offset = self.symbol(name)?;
        (offset < memory::PERCPU_SIZE).then(|| memory::percpu(cpu) + offset)
    }
}
