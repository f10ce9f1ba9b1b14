//! The machine: its memory and the card's registers as files.

use std::os::fd::RawFd;
use std::rc::Rc;

use process_lab::shared::Shared;

use super::frames::{Frames, Owner};
use super::layout::{BAR_SIZE, PAGE, Sizes};
use crate::error::LiveError;

/// The machine: its memory and the NIC's registers, each a file that is mapped
/// here as a whole, at an arbitrary address. Children inherit the mappings.
#[derive(Debug)]
pub struct Machine {
    sizes: Sizes,
    /// Of all parts of it.
    ram: Rc<Shared>,
    bar: Shared,
    frames: Frames,
}

// SAFETY: other processes change the memory at any time anyway; it is reached
// by copies through raw pointers, never by references.
unsafe impl Sync for Machine {}

fn file(length: u64) -> Result<Shared, LiveError> {
    Shared::new(length).map_err(LiveError::system("making the machine's memory"))
}

/// dom0's frames and the guests', from the sizes, of a machine with so many frames.
fn owned(sizes: Sizes, frames: u64) -> Result<Frames, LiveError> {
    let frames = Frames::new(frames)?;
    let guests = (0..sizes.guests).map(|number| (sizes.guest(number), Owner::Guest(number)));
    for (range, owner) in guests.chain([(sizes.ram(), Owner::Dom0)]) {
        let given = frames.give(&range, Owner::Nobody, owner);
        given.expect("they were nobody's");
    }
    Ok(frames)
}

impl Machine {
    /// Zeroed memory.
    pub fn new(sizes: Sizes) -> Result<Machine, LiveError> {
        let ram = Rc::new(file(sizes.hypervisor().end)?);
        Machine::part(sizes, ram, sizes.total() / PAGE)
    }

    /// Zeroed memory of `length` bytes that several domains have parts of, one after the
    /// other. Each sees all of it by the same machine addresses, and has registers of a card and
    /// a table of frames of its own: what is in no part of its is nobody's there.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn divided(parts: &[Sizes], length: u64) -> Result<Vec<Machine>, LiveError> {
        let ram = Rc::new(file(length)?);
        let part = |sizes: &Sizes| Machine::part(*sizes, Rc::clone(&ram), length / PAGE);
        parts.iter().map(part).collect()
    }

    fn part(sizes: Sizes, ram: Rc<Shared>, frames: u64) -> Result<Machine, LiveError> {
        Ok(Machine {
            sizes,
            ram,
            bar: file(BAR_SIZE)?,
            frames: owned(sizes, frames)?,
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

    /// All memory in this process: from machine address 0 on, up to the end of
    /// `sizes().hypervisor()`, or of all parts. Other processes change it as well.
    pub fn ram(&self) -> *mut u8 {
        self.ram.as_ptr()
    }

    /// `length` bytes at a machine address in this process, if they exist.
    pub fn at(&self, machine: u64, length: u64) -> Option<*mut u8> {
        let end = machine.checked_add(length)?;
        // SAFETY: checked to be inside the mapping.
        (end <= self.ram.length() as u64).then(|| unsafe { self.ram().add(machine as usize) })
    }

    /// Makes dom0's RAM and the NIC's registers zero again. Nothing uses them meanwhile.
    pub fn erase_dom0(&self) -> Result<(), LiveError> {
        let ram = self.sizes.ram();
        for (fd, bytes) in [(self.fd(), ram), (self.bar_fd(), 0..BAR_SIZE)] {
            let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let length = bytes.end - bytes.start;
            let range = [bytes.start, length].map(|bytes| bytes as libc::off_t);
            // SAFETY: plain system call on our own file.
            if unsafe { libc::fallocate(fd, how, range[0], range[1]) } != 0 {
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
