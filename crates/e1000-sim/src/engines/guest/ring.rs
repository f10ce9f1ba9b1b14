//! The memory that front and back end share: a rendezvous for kicks and events, and for each guest an interface with its
//! rings and its table of grants.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::slots::{SLOTS, SlotRing};
use crate::grants::operations::GrantCounts;
use crate::grants::table::Table;
use crate::packets::rings::HEADER;
use crate::traffic::Mac;
use crate::transport::rendezvous::Rendezvous;

/// Guests that may have an interface.
pub const INTERFACES: usize = 9;

/// The front end's commands to the back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Ask {
    /// There are requests.
    Transmit = 1,
    /// The card has interrupted.
    Interrupt = 2,
    End = 3,
}

/// The answer of a back end that failed.
pub(super) const FAILED: u64 = u64::MAX;
/// The answer to an interrupt that was put off.
pub(super) const DEFERRED: u64 = 2;

twin_abi::listed! {
    /// How the bytes of a packet that a guest sends get to dom0 (thesis, 3.4).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Channel {
        /// As Linux' back end has it: the first 128 bytes by a copy of the hypervisor's, the rest mapped.
        Copied => "copied",
        /// Each page is mapped, and dom0 reads headers there: the thesis' Xen before its channel.
        Mapped => "mapped",
        /// The first 128 bytes travel in the ring; the rest is made known to the card and not mapped.
        InRing => "in-ring",
    }
}

impl Channel {
    pub(super) fn of_word(word: u32) -> Channel {
        match word {
            1 => Channel::Mapped,
            2 => Channel::InRing,
            _ => Channel::Copied,
        }
    }
}

/// Bit of a generation: its guest is gone.
const GONE: u32 = 1 << 31;

/// A connection of an interface; a later one is another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Generation(u32);

impl Generation {
    /// Whether there is a guest.
    pub fn is_connected(self) -> bool {
        self.0 != 0 && self.0 & GONE == 0
    }
}

/// What the back end has counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackCounts {
    /// The hypervisor's part.
    pub grants: GrantCounts,
    /// Packets that were sent and are completed.
    pub sent: u64,
    /// Packets refused: a page was not the guest's to send.
    pub refused: u64,
    /// Packets dropped: malformed, or the interface was down.
    pub malformed: u64,
    /// Packets given to guests, aggregates once.
    pub received: u64,
    /// Packets that a guest's page could not take.
    pub lost: u64,
    /// Packets from guest to guest.
    pub local: u64,
    /// Of these, dropped: the receiver has no page for them.
    pub local_dropped: u64,
    /// Packets that waited until the driver took them.
    pub waited: u64,
    /// Completions that were of no packet.
    pub unknown: u64,
}

/// A guest's interface. All zeroes is none.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Interface {
    /// Grows with each connection; 0: there was none.
    generation: AtomicU32,
    zero: u32,
    /// The guest's address, the first byte lowest.
    pub mac: AtomicU64,
    /// What it sends.
    pub tx: SlotRing,
    /// What comes in.
    pub rx: SlotRing,
    /// The first bytes of packets, with [`Channel::InRing`], by the number of their slot.
    headers: UnsafeCell<[[u8; HEADER]; SLOTS as usize]>,
}

impl Interface {
    /// The present connection.
    pub fn generation(&self) -> Generation {
        Generation(self.generation.load(Ordering::Acquire))
    }

    /// The header area of a slot. Whoever has the turn uses it.
    pub fn header(&self, index: u32) -> *mut u8 {
        let first = self.headers.get().cast::<[u8; HEADER]>();
        first.wrapping_add((index % SLOTS) as usize).cast()
    }
}

/// The memory that front and back end share. All zeroes is an empty one.
#[repr(C)]
pub struct NetRing {
    pub(super) meet: Rendezvous,
    pub(super) ask: AtomicU64,
    pub(super) answer: AtomicU64,
    /// Cycles that the back end has worked, waits and hypercalls excepted.
    pub(super) served: AtomicU64,
    /// [`Channel`] of the next packets.
    pub(super) channel: AtomicU32,
    /// Most segments of an aggregate that dom0's hot routines make; below 2: none are made.
    pub(super) aggregate: AtomicU32,
    pub(super) failure: UnsafeCell<Failure>,
    pub(super) counts: UnsafeCell<BackCounts>,
    pub(super) interfaces: [Interface; INTERFACES],
    pub(super) tables: [Table; INTERFACES],
}

// SAFETY: used by turns, which the rendezvous gives; tables and rings are atomics.
unsafe impl Sync for NetRing {}

/// An address as a number, its first byte lowest.
pub(super) fn mac_word(mac: Mac) -> u64 {
    let bytes = mac.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Why the back end failed, as text.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Failure {
    length: u64,
    text: [u8; 504],
}

impl Failure {
    /// Keeps as much of the text as there is room for.
    pub fn set(&mut self, text: &str) {
        let length = text.len().min(self.text.len());
        self.text[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length = length as u64;
    }

    /// The text.
    pub fn get(&self) -> String {
        let length = (self.length as usize).min(self.text.len());
        String::from_utf8_lossy(&self.text[..length]).into_owned()
    }
}

impl std::fmt::Debug for NetRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NetRing")
    }
}

impl NetRing {
    /// Sets the process that serves.
    pub fn enlist(&self, server: libc::pid_t) {
        self.meet.enlist(server);
    }

    /// How the next packets travel. Only between rounds.
    pub fn set_channel(&self, channel: Channel) {
        self.channel.store(channel as u32, Ordering::Relaxed);
    }

    /// The most segments of an aggregate that guests by way of dom0 get, from the next round on;
    /// below 2: none are made.
    pub fn set_aggregate(&self, segments: u32) {
        self.aggregate.store(segments, Ordering::Relaxed);
    }

    pub(crate) fn aggregate(&self) -> u32 {
        self.aggregate.load(Ordering::Relaxed)
    }

    /// The tables of grants, of guest 0 and on.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// All words of rings and grants that a guest can write whatever it likes to.
    pub fn guests_words(&self, guest: usize) -> impl Iterator<Item = &AtomicU32> {
        let Interface { tx, rx, .. } = &self.interfaces[guest];
        let entries = self.tables[guest].0.iter();
        let entries = entries.flat_map(|entry| [&entry.header, &entry.frame]);
        tx.words().chain(rx.words()).chain(entries)
    }

    /// What the back end has counted. Not while it serves.
    pub fn counts(&self) -> BackCounts {
        // SAFETY: the back end waits, and writes them in its turns only.
        unsafe { *self.counts.get() }
    }

    pub(super) fn put_counts(&self, counts: &BackCounts) {
        // SAFETY: the back end's turn.
        unsafe { *self.counts.get() = *counts };
    }

    /// Connects a guest's interface anew: its rings are empty, the back end forgets what it had of it.
    pub(super) fn connect(&self, guest: usize, mac: Mac) -> &Interface {
        let interface = &self.interfaces[guest];
        interface.tx.reset();
        interface.rx.reset();
        interface.mac.store(mac_word(mac), Ordering::Relaxed);
        let last = interface.generation.load(Ordering::Relaxed) & !GONE;
        let next = (last + 1) % GONE;
        interface.generation.store(next.max(1), Ordering::Release);
        interface
    }

    /// The guest is gone: the back end forgets what it has of it, as soon as it is asked anything.
    pub(super) fn disconnect(&self, guest: usize) {
        let generation = &self.interfaces[guest].generation;
        generation.fetch_or(GONE, Ordering::Release);
    }
}
