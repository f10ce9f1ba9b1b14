//! The memory that front and back end share: commands and answers, requests and
//! completions, and packets for guests.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::packets::rings::{Dom0Memory, Done, RELEASE, REQUESTS, Request, Rings, TX_DONE};
use crate::transport::rendezvous::Rendezvous;

/// Packets that wait for guests.
const SLOTS: u32 = 512;
/// Bytes of a slot.
const SLOT: usize = 2040;

/// The front end's commands to the back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Ask {
    /// Send that many requests.
    Transmit = 1,
    /// The card has interrupted.
    Interrupt = 2,
    End = 3,
}

/// The answer of a back end that failed.
pub(super) const FAILED: u64 = u64::MAX;
/// The answer to an interrupt that was put off.
pub(super) const DEFERRED: u64 = 2;

/// A packet for a guest.
#[repr(C)]
struct Slot {
    length: u64,
    data: [u8; SLOT],
}

/// The memory that front and back end share. All zeroes is an empty one.
#[repr(C)]
pub struct NetRing {
    pub(super) meet: Rendezvous,
    pub(super) ask: AtomicU64,
    pub(super) count: AtomicU64,
    pub(super) answer: AtomicU64,
    /// Cycles that the back end has worked, waits excepted.
    pub(super) served: AtomicU64,
    pub(super) failure: UnsafeCell<Failure>,
    rx_produce: AtomicU32,
    rx_consume: AtomicU32,
    /// Packets dropped because no slot was free.
    pub rx_dropped: AtomicU64,
    shared: UnsafeCell<[u64; 64]>,
    pub(super) requests: UnsafeCell<[Request; REQUESTS]>,
    done: UnsafeCell<[Done; TX_DONE]>,
    release: UnsafeCell<[u64; RELEASE]>,
    slots: UnsafeCell<[Slot; SLOTS as usize]>,
}

// SAFETY: used by turns, which the rendezvous gives.
unsafe impl Sync for NetRing {}

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

    pub fn get(&self) -> String {
        let length = (self.length as usize).min(self.text.len());
        String::from_utf8_lossy(&self.text[..length]).into_owned()
    }
}

/// Words of `hot_shared` that [`NetRing::rings`] fills.
const REQUESTS_WORD: usize = 0;
const DONE_WORD: usize = 1;
const RELEASE_WORD: usize = 2;
/// Words that hold the produce and consume counters of the completions.
const PRODUCE_WORD: usize = 8;
const CONSUME_WORD: usize = 16;

impl std::fmt::Debug for NetRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NetRing")
    }
}

impl Dom0Memory for &NetRing {
    fn dom0(&self, address: u64, length: u64) -> Option<*mut u8> {
        let start = std::ptr::from_ref(*self) as u64;
        let end = start + size_of::<NetRing>() as u64;
        let inside = address >= start && address.checked_add(length)? <= end;
        inside.then_some(address as *mut u8)
    }
}

impl NetRing {
    /// Sets the process that serves.
    pub fn enlist(&self, server: libc::pid_t) {
        self.meet.enlist(server);
    }

    /// The front end's view: a ring as the hot routines have one.
    pub(super) fn rings(&self) -> Rings {
        let words = self.shared.get().cast::<u64>();
        // SAFETY: before the first turn; inside the array.
        unsafe {
            words.add(REQUESTS_WORD).write(self.requests.get() as u64);
            words.add(DONE_WORD).write(self.done.get() as u64);
            words.add(RELEASE_WORD).write(self.release.get() as u64);
        }
        Rings::new(&self, words as u64, 0).expect("its own memory")
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: inside the array, aligned; only ever used as an atomic.
        unsafe {
            &*self
                .shared
                .get()
                .cast::<u64>()
                .add(index)
                .cast::<AtomicU32>()
        }
    }

    pub(super) fn put_done(&self, done: Done) {
        let produce = self.word(PRODUCE_WORD).load(Ordering::Relaxed);
        if produce.wrapping_sub(self.word(CONSUME_WORD).load(Ordering::Acquire)) < TX_DONE as u32 {
            let at = self.done.get().cast::<Done>();
            // SAFETY: inside the ring; the back end's turn.
            unsafe { at.add(produce as usize % TX_DONE).write(done) };
            self.word(PRODUCE_WORD)
                .store(produce.wrapping_add(1), Ordering::Release);
        }
    }

    pub(super) fn put_packet(&self, packet: &[u8]) {
        let produce = self.rx_produce.load(Ordering::Relaxed);
        let full = produce.wrapping_sub(self.rx_consume.load(Ordering::Acquire)) == SLOTS;
        if full || packet.len() > SLOT {
            self.rx_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: inside the ring; the back end's turn.
        unsafe {
            let slot = self
                .slots
                .get()
                .cast::<Slot>()
                .add((produce % SLOTS) as usize);
            (*slot).length = packet.len() as u64;
            std::ptr::copy_nonoverlapping(packet.as_ptr(), (*slot).data.as_mut_ptr(), packet.len());
        }
        self.rx_produce
            .store(produce.wrapping_add(1), Ordering::Release);
    }

    pub(super) fn take_packets(&self, mut take: impl FnMut(&[u8])) {
        let mut consume = self.rx_consume.load(Ordering::Relaxed);
        while consume != self.rx_produce.load(Ordering::Acquire) {
            // SAFETY: between produce and consume a slot is the front end's.
            let slot = unsafe {
                &*self
                    .slots
                    .get()
                    .cast::<Slot>()
                    .add((consume % SLOTS) as usize)
            };
            take(&slot.data[..(slot.length as usize).min(SLOT)]);
            consume = consume.wrapping_add(1);
            self.rx_consume.store(consume, Ordering::Release);
        }
    }
}
