//! Interrupt bit vectors (thesis, 5.1.2): which contexts have news since the last interrupt.
//!
//! ```text
//! card ── a vector, then `produced` ──> | produced | consumed | vector 0 | vector 1 | ...
//!                                             hypervisor <── vectors, then `consumed`
//! ```
//!
//! The ring is in the hypervisor's memory. While it is full the card keeps the bits that it
//! would have written, all in one vector, and writes that when there is room: nothing is lost,
//! and a context that has news twice is named once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::memory::Machine;
use crate::nic::{Bus, BusFault};

use super::ContextId;

/// Bytes of a ring's memory.
pub const BYTES: u64 = 4096;
/// Where the first vector is.
const FIRST: u64 = 64;
/// Vectors of the ring.
pub const ENTRIES: u32 = 16;
const PRODUCED: u64 = 0;
const CONSUMED: u64 = 4;

fn vector(base: u64, number: u32) -> u64 {
    base + FIRST + u64::from(number % ENTRIES) * 8
}

/// The card's end.
#[derive(Debug)]
pub struct Producer {
    base: u64,
    produced: u32,
    /// Bits that are in no vector yet.
    pending: u64,
    /// Times that the ring was full.
    pub full: u64,
}

impl Producer {
    /// An empty ring at a machine address.
    pub fn new(base: u64) -> Producer {
        Producer {
            base,
            produced: 0,
            pending: 0,
            full: 0,
        }
    }

    /// A context has news.
    pub fn note(&mut self, context: ContextId) {
        self.pending |= context.bit();
    }

    /// Writes a vector, if there is anything to say and room; whether it did.
    ///
    /// # Errors
    /// The ring is not in memory.
    pub fn transfer<B: Bus + ?Sized>(&mut self, bus: &mut B) -> Result<bool, BusFault> {
        if self.pending == 0 {
            return Ok(false);
        }
        let mut consumed = [0; 4];
        bus.read(self.base + CONSUMED, &mut consumed)?;
        let waiting = self.produced.wrapping_sub(u32::from_le_bytes(consumed));
        if waiting >= ENTRIES {
            self.full += 1;
            return Ok(false);
        }
        bus.write(
            vector(self.base, self.produced),
            &self.pending.to_le_bytes(),
        )?;
        self.produced = self.produced.wrapping_add(1);
        bus.write(self.base + PRODUCED, &self.produced.to_le_bytes())?;
        self.pending = 0;
        Ok(true)
    }
}

/// The hypervisor's end.
pub struct Consumer<'m> {
    produced: &'m AtomicU32,
    consumed: &'m AtomicU32,
    vectors: &'m [AtomicU64],
}

impl<'m> Consumer<'m> {
    /// The ring at a machine address; `None` if there is no memory.
    pub fn new(machine: &'m Machine, base: u64) -> Option<Consumer<'m>> {
        let at = machine.at(base, BYTES)?;
        if !base.is_multiple_of(8) {
            return None;
        }
        // SAFETY: aligned words inside of the mapping, which lives as long as the machine; the
        // card's model stores them whole.
        unsafe {
            Some(Consumer {
                produced: AtomicU32::from_ptr(at.add(PRODUCED as usize).cast()),
                consumed: AtomicU32::from_ptr(at.add(CONSUMED as usize).cast()),
                vectors: std::slice::from_raw_parts(
                    at.add(FIRST as usize).cast(),
                    ENTRIES as usize,
                ),
            })
        }
    }

    /// All contexts that the vectors name, which are then free.
    pub fn drain(&self) -> u64 {
        let mut bits = 0;
        let mut next = self.consumed.load(Ordering::Relaxed);
        let end = self.produced.load(Ordering::Acquire);
        while next != end {
            bits |= self.vectors[(next % ENTRIES) as usize].load(Ordering::Relaxed);
            next = next.wrapping_add(1);
        }
        self.consumed.store(end, Ordering::Release);
        bits
    }
}
