//! The machine: its memory and the card's registers as files.

use std::os::fd::RawFd;

use process_lab::shared::Shared;

use super::frames::{Frames, Owner};
use super::layout::{BAR_SIZE, PAGE, Sizes};
use crate::error::LiveError;

/// The machine: its memory and the NIC's registers, each a file that is mapped
/// here as a whole, at an arbitrary address. Children inherit the mappings.
#[derive(Debug)]
pub struct Machine {
    sizes: Sizes,
    ram: Shared,
    bar: Shared,
    frames: Frames,
}

// SAFETY: other processes change the memory at any time anyway; it is reached
// by copies through raw pointers, never by references.
unsafe impl Sync for Machine {}

/// dom0's frames and the guests', from the sizes.
fn owned(sizes: Sizes) -> Result<Frames, LiveError> {
    let frames = Frames::new(sizes.total() / PAGE)?;
    let guests = (0..sizes.guests).map(|number| (sizes.guest(number), Owner::Guest(number)));
    for (range, owner) in guests.chain([(0..sizes.dom0, Owner::Dom0)]) {
        let given = frames.give(&range, Owner::Nobody, owner);
        given.expect("they were nobody's");
    }
    Ok(frames)
}

impl Machine {
    /// Zeroed memory.
    pub fn new(sizes: Sizes) -> Result<Machine, LiveError> {
        let failed = LiveError::system;
        let file = |length| Shared::new(length).map_err(failed("making the machine's memory"));
        Ok(Machine {
            sizes,
            ram: file(sizes.hypervisor().end)?,
            bar: file(BAR_SIZE)?,
            frames: owned(sizes)?,
        })
    }

    /// The owner of each frame.
    pub fn frames(&self) -> &Frames {
        &self.frames
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

    /// All memory in this process: up to the end of `sizes().hypervisor()` from machine
    /// address 0 on, which other processes change as well.
    pub fn ram(&self) -> *mut u8 {
        self.ram.as_ptr()
    }

    /// `length` bytes at a machine address in this process, if they exist.
    pub fn at(&self, machine: u64, length: u64) -> Option<*mut u8> {
        let end = machine.checked_add(length)?;
        // SAFETY: checked to be inside the mapping.
        (end <= self.sizes.hypervisor().end).then(|| unsafe { self.ram().add(machine as usize) })
    }

    /// Makes dom0's RAM and the NIC's registers zero again. Nothing uses them meanwhile.
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
        // SAFETY: `at` checked the source; no references into it exist.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Some(())
    }

    /// Copies bytes to a machine address; `None` if there is no such memory.
    pub fn write(&self, machine: u64, bytes: &[u8]) -> Option<()> {
        let to = self.at(machine, bytes.len() as u64)?;
        // SAFETY: `at` checked the target; no references into it exist.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Some(())
    }
}
