//! An I/O table of a context: which frames its DMA reaches.
//!
//! ```text
//! guest's tail ─> each new descriptor: its frames are the guest's? ─> mapped
//! card ─ DMA ─> mapped? ─> memory
//! written back ─> unmapped; an entry that becomes empty is invalidated
//! ```
//!
//! The card reads the guest's own ring, so what keeps a changed descriptor harmless is the table
//! alone: it may still name any frame that another of this guest's descriptors has mapped. Two
//! descriptors may name one frame (two buffers of 2 KiB), so an entry counts.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use process_lab::runtime::{self, DmaReport};
use process_lab::shared::Shared;

use crate::error::LiveError;
use crate::memory::{Machine, Owner, PAGE};
use crate::nic::{Bus, BusFault, Ring, RingPlace};

const RINGS: [Ring; 2] = [Ring::Transmit, Ring::Receive];
/// Most descriptors of a ring (8254x manual, 13.4.27).
const DESCRIPTORS: usize = 4096;
/// DEXT, and DTYP of a data descriptor (3.3.7), in a descriptor's second word.
const EXTENDED: u64 = 1 << 29;
const DATA: u64 = 1 << 20;
const TYPE: u64 = 0xf << 20;
/// RS and DD (3.3.3.1, 3.2.3.1).
const REPORT: u64 = 1 << 27;
const DONE: u64 = 1 << 32;

/// What was done to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Entries made, or used once more.
    pub maps: u64,
    /// Uses taken back.
    pub unmaps: u64,
    /// Entries that became empty: one invalidation each.
    pub invalidations: u64,
}

/// A ring as the hypervisor follows it.
#[repr(C)]
struct Followed {
    base: AtomicU64,
    count: AtomicU32,
    buffer: AtomicU32,
    /// Descriptors from `done` up to `tail` are the card's.
    done: AtomicU32,
    tail: AtomicU32,
    /// Machine address, and bytes, 0 for none, of each.
    slots: [(AtomicU64, AtomicU64); DESCRIPTORS],
}

/// All zeroes is an empty one.
#[repr(C)]
struct State {
    counts: [AtomicU64; 3],
    rings: [Followed; 2],
}

/// The table of one context, in memory that all processes of the hypervisor have.
pub struct IoTable<'m> {
    machine: &'m Machine,
    memory: Shared,
}

/// Frames that hold `length` bytes; none for no bytes.
fn frames_of(address: u64, length: u64) -> std::ops::Range<u64> {
    match length {
        0 => 0..0,
        _ => address / PAGE..address.saturating_add(length - 1) / PAGE + 1,
    }
}

impl<'m> IoTable<'m> {
    /// A table that maps nothing.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(machine: &'m Machine) -> Result<IoTable<'m>, LiveError> {
        let entries = machine.frames().count() * size_of::<AtomicU16>() as u64;
        let bytes = size_of::<State>() as u64 + entries;
        let memory = Shared::new(bytes.next_multiple_of(PAGE));
        Ok(IoTable {
            machine,
            memory: memory.map_err(LiveError::system("an I/O table"))?,
        })
    }

    fn state(&self) -> &State {
        // SAFETY: the mapping begins with it, aligned to a page.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    fn entry(&self, frame: u64) -> Option<&AtomicU16> {
        let at = size_of::<State>() + frame as usize * size_of::<AtomicU16>();
        let exists = frame < self.machine.frames().count();
        // SAFETY: an aligned entry inside of the mapping.
        exists.then(|| unsafe { &*self.memory.as_ptr().add(at).cast() })
    }

    /// What was done so far.
    pub fn counts(&self) -> IoCounts {
        let [maps, unmaps, invalidations] = self
            .state()
            .counts
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed));
        IoCounts {
            maps,
            unmaps,
            invalidations,
        }
    }

    /// Whether the card reaches all these bytes.
    pub fn allows(&self, address: u64, length: u64) -> bool {
        let mapped = |entry: &AtomicU16| entry.load(Ordering::Acquire) != 0;
        let mut frames = frames_of(address, length);
        frames.all(|frame| self.entry(frame).is_some_and(mapped))
    }

    fn map(&self, address: u64, length: u64) -> bool {
        let frames = frames_of(address, length);
        let own = |frame| self.machine.frames().owner(frame * PAGE) == Owner::Dom0;
        if !frames.clone().all(own) {
            return false;
        }
        self.state().counts[0].fetch_add(frames.end - frames.start, Ordering::Relaxed);
        for entry in frames.filter_map(|frame| self.entry(frame)) {
            entry.fetch_add(1, Ordering::Release);
        }
        true
    }

    fn unmap(&self, address: u64, length: u64) {
        let frames = frames_of(address, length);
        self.state().counts[1].fetch_add(frames.end - frames.start, Ordering::Relaxed);
        for entry in frames.filter_map(|frame| self.entry(frame)) {
            if entry.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.state().counts[2].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// From here on the table follows these rings; what the card has of them is handed over by
    /// the first [`IoTable::hand_over`]. The rings themselves are mapped as long.
    pub fn take(&self, places: [RingPlace; 2], buffer: u32) -> bool {
        for (ring, place) in self.state().rings.iter().zip(places) {
            ring.base.store(place.base, Ordering::Relaxed);
            ring.count.store(place.count, Ordering::Relaxed);
            ring.buffer.store(buffer, Ordering::Relaxed);
            ring.done.store(place.head, Ordering::Relaxed);
            ring.tail.store(place.head, Ordering::Relaxed);
            let fits = place.count as usize <= DESCRIPTORS;
            if !fits || !self.map(place.base, u64::from(place.count) * 16) {
                return false;
            }
        }
        true
    }

    /// The table maps nothing any more.
    pub fn give_back(&self) {
        for kind in RINGS {
            let ring = &self.state().rings[kind as usize];
            let tail = ring.tail.load(Ordering::Relaxed);
            self.release(ring, tail);
            let count = ring.count.swap(0, Ordering::Relaxed);
            self.unmap(ring.base.load(Ordering::Relaxed), u64::from(count) * 16);
        }
    }

    /// Maps what descriptors up to the guest's tails name.
    ///
    /// # Errors
    /// The violation, as of a checked copy; then the card does not see that tail.
    pub fn hand_over(&self, tails: [u32; 2]) -> Result<(), DmaReport> {
        RINGS
            .into_iter()
            .try_for_each(|kind| self.hand_over_one(kind, tails[kind as usize]))
    }

    fn hand_over_one(&self, kind: Ring, tail: u32) -> Result<(), DmaReport> {
        let ring = &self.state().rings[kind as usize];
        let count = ring.count.load(Ordering::Relaxed);
        let mut index = ring.tail.load(Ordering::Relaxed);
        let refused = |fault, index, address| DmaReport {
            fault,
            kind: kind as u32,
            index,
            zero: 0,
            address,
        };
        if index == tail {
            return Ok(());
        }
        if tail >= count {
            return Err(refused(runtime::DMA_TAIL, index, tail.into()));
        }
        let steps = |from: u32, to: u32| (to + count - from) % count;
        let done = ring.done.load(Ordering::Relaxed);
        if steps(done, index) + steps(index, tail) >= count {
            return Err(refused(runtime::DMA_OVERRUN, index, tail.into()));
        }
        while index != tail {
            let (address, control) = self.descriptor(ring, index);
            let length = self.length(ring, kind, control);
            let mapped = self.map(address, length);
            let slot = &ring.slots[index as usize];
            slot.0.store(address, Ordering::Relaxed);
            slot.1
                .store(if mapped { length } else { 0 }, Ordering::Relaxed);
            index = if index + 1 == count { 0 } else { index + 1 };
            // What was mapped is unmapped with the ring.
            ring.tail.store(index, Ordering::Relaxed);
            if !mapped {
                return Err(refused(runtime::DMA_FOREIGN, index, address));
            }
        }
        Ok(())
    }

    fn length(&self, ring: &Followed, kind: Ring, control: u64) -> u64 {
        match kind {
            Ring::Receive => ring.buffer.load(Ordering::Relaxed).into(),
            Ring::Transmit if control & EXTENDED == 0 => control & 0xffff,
            Ring::Transmit if control & TYPE == DATA => control & 0xf_ffff,
            Ring::Transmit => 0,
        }
    }

    /// Two words, each read once: the guest may change them meanwhile.
    fn descriptor(&self, ring: &Followed, index: u32) -> (u64, u64) {
        let base = ring.base.load(Ordering::Relaxed);
        let at = self.machine.at(base + u64::from(index) * 16, 16);
        // SAFETY: `take` mapped the ring, which is aligned memory of the machine.
        at.map_or((0, 0), |at| unsafe {
            let words = at.cast::<u64>();
            (words.read_volatile(), words.add(1).read_volatile())
        })
    }

    /// Unmaps what the card has written back.
    pub fn take_back(&self) {
        for kind in RINGS {
            let ring = &self.state().rings[kind as usize];
            self.release(ring, self.written_back(ring, kind));
        }
    }

    /// The card works in order: for transmission one with DD ends all before it.
    fn written_back(&self, ring: &Followed, kind: Ring) -> u32 {
        let count = ring.count.load(Ordering::Relaxed);
        let tail = ring.tail.load(Ordering::Relaxed);
        let mut index = ring.done.load(Ordering::Relaxed);
        let mut done = index;
        while index != tail {
            let (_, control) = self.descriptor(ring, index);
            index = if index + 1 == count { 0 } else { index + 1 };
            match control & DONE != 0 {
                true => done = index,
                false if kind == Ring::Receive || control & REPORT != 0 => break,
                false => {}
            }
        }
        done
    }

    fn release(&self, ring: &Followed, until: u32) {
        let count = ring.count.load(Ordering::Relaxed);
        let mut index = ring.done.load(Ordering::Relaxed);
        while index != until {
            let slot = &ring.slots[index as usize];
            let address = slot.0.load(Ordering::Relaxed);
            self.unmap(address, slot.1.swap(0, Ordering::Relaxed));
            index = if index + 1 == count { 0 } else { index + 1 };
        }
        ring.done.store(until, Ordering::Relaxed);
    }
}

/// Memory as DMA of a context reaches it.
pub struct Translated<'t, B> {
    /// Memory without a table.
    pub bus: B,
    /// The table; `None`: there is no IOMMU.
    pub table: Option<&'t IoTable<'t>>,
}

impl<B> Translated<'_, B> {
    fn check(&self, address: u64, length: usize) -> Result<(), BusFault> {
        let length = length as u64;
        match self.table {
            Some(table) if !table.allows(address, length) => Err(BusFault { address, length }),
            _ => Ok(()),
        }
    }
}

impl<B: Bus> Bus for Translated<'_, B> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BusFault> {
        self.check(address, into.len())?;
        self.bus.read(address, into)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault> {
        self.check(address, bytes.len())?;
        self.bus.write(address, bytes)
    }
}
