//! Numbers of descriptors (Willmann et al., HPCA 2007: CDNA's sequence numbers): the hypervisor
//! writes one beside each descriptor that it copies, one more each time, and the card takes a
//! descriptor only with the number that comes next.
//!
//! ```text
//! | transmit: 4096 numbers | receive: 4096 | next number, next index, length of each ring |
//! ```
//!
//! A tail that passes what was copied last leads the card to descriptors of the round before.
//! Their numbers are old: the card stops the context, and sends nothing of it. With the tail in
//! the hypervisor's hands, as here, that cannot happen without an error of the
//! hypervisor's own; a card whose tails guests write (thesis, 5.2) needs it.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::memory::Machine;
use crate::nic::{Bus, BusFault, Ring, RingPlace};

/// Most descriptors of a ring (8254x manual, 13.4.27).
const DESCRIPTORS: u32 = 4096;
/// Bytes of one guest's numbers.
pub const BYTES: u64 = 9 * 4096;
const NEXT: usize = 2 * DESCRIPTORS as usize;
const UNTIL: usize = NEXT + 2;
const LENGTH: usize = UNTIL + 2;
const WORDS: usize = LENGTH + 2;

/// The place of a descriptor's number.
fn place(ring: Ring, index: u32) -> usize {
    ring as usize * DESCRIPTORS as usize + (index % DESCRIPTORS) as usize
}

/// The hypervisor's end.
pub struct Stamper<'m> {
    words: &'m [AtomicU32],
}

impl<'m> Stamper<'m> {
    /// Numbers at a machine address; `None` if there is no memory.
    pub fn new(machine: &'m Machine, base: u64) -> Option<Stamper<'m>> {
        let at = machine.at(base, BYTES)?;
        // SAFETY: whole pages inside of the mapping, which lives as long as the machine.
        let words = unsafe { std::slice::from_raw_parts(at.cast(), WORDS) };
        base.is_multiple_of(4).then_some(Stamper { words })
    }

    /// From here on descriptors of these rings are numbered, from 0, beginning at their heads.
    pub fn begin(&self, rings: [RingPlace; 2]) {
        for (ring, place) in rings.into_iter().enumerate() {
            self.words[NEXT + ring].store(0, Ordering::Relaxed);
            self.words[UNTIL + ring].store(place.head, Ordering::Relaxed);
            self.words[LENGTH + ring].store(place.count, Ordering::Relaxed);
        }
    }

    /// Numbers the descriptors of a ring up to a tail that was checked.
    pub fn stamp(&self, ring: Ring, tail: u32) {
        let until = &self.words[UNTIL + ring as usize];
        let mut index = until.load(Ordering::Relaxed);
        if index == tail {
            return;
        }
        let count = self.words[LENGTH + ring as usize].load(Ordering::Relaxed);
        let next = &self.words[NEXT + ring as usize];
        let mut number = next.load(Ordering::Relaxed);
        // In runs that end at the ring's end.
        while index != tail {
            let end = if tail > index { tail } else { count };
            let run = place(ring, index)..place(ring, index) + (end - index) as usize;
            number = number_all(&self.words[run], number);
            index = if end == count { 0 } else { end };
        }
        next.store(number, Ordering::Relaxed);
        until.store(index, Ordering::Release);
    }
}

/// Numbers all of them, from that number on; gives the next. Four at a time: it is done for each
/// descriptor.
fn number_all(words: &[AtomicU32], from: u32) -> u32 {
    let (fours, rest) = words.as_chunks::<4>();
    let mut number = from;
    for four in fours {
        for (word, step) in four.iter().zip(0..) {
            word.store(number.wrapping_add(step), Ordering::Relaxed);
        }
        number = number.wrapping_add(4);
    }
    for word in rest {
        word.store(number, Ordering::Relaxed);
        number = number.wrapping_add(1);
    }
    number
}

/// The card's end, for one ring.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    number: u32,
    until: u32,
}

impl Expected {
    /// Descriptors from a head on have numbers from 0.
    pub fn begin(head: u32) -> Expected {
        Expected {
            number: 0,
            until: head,
        }
    }

    /// Takes the descriptors of a ring of `count` up to a tail, whose numbers are at `base`:
    /// the index of the first that has another number than it should, if any.
    ///
    /// # Errors
    /// The numbers are not in memory.
    pub fn take<B: Bus + ?Sized>(
        &mut self,
        base: u64,
        ring: Ring,
        count: u32,
        tail: u32,
        bus: &B,
    ) -> Result<Option<u32>, BusFault> {
        while self.until != tail && count != 0 {
            let mut seen = [0; 4];
            bus.read(base + place(ring, self.until) as u64 * 4, &mut seen)?;
            if u32::from_le_bytes(seen) != self.number {
                return Ok(Some(self.until));
            }
            self.number = self.number.wrapping_add(1);
            self.until = if self.until + 1 >= count {
                0
            } else {
                self.until + 1
            };
        }
        Ok(None)
    }
}
