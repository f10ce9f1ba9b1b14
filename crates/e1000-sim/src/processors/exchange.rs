//! What processors share: guests' queues, who has come to where, and which guests sleep.
//!
//! A full queue is waited for, because its processor takes from it; so nothing is lost on the
//! way. Only of a guest that takes nothing are packets dropped, as a switch drops them. Whoever
//! waits serves its own queues meanwhile: two that wait for each other both go on.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::handing::Outward;
use super::queues::{Full, ProcessorId, Queue, QueueId, Spread};
use crate::packets::packet_loop::Stop;
use crate::traffic::{LONGEST, Sink};
use crate::transport::mailbox::Zeroed;

/// Most queues of all guests.
pub const QUEUES: usize = 16;
/// How long a processor that has nothing to do sleeps before it looks again.
const NAP: Duration = Duration::from_micros(20);

/// A frame.
#[repr(C)]
#[derive(Clone, Copy)]
struct Packet {
    length: u32,
    bytes: [u8; LONGEST],
}

/// The shared memory.
#[repr(C)]
pub struct Exchange {
    queues: [Queue<Packet>; QUEUES],
    arrivals: AtomicU64,
    failures: AtomicU32,
    /// As bits.
    sleepers: AtomicU32,
    /// What guests send.
    pub outward: Outward,
}

// SAFETY: zeroed queues are empty ones, the others are plain words.
unsafe impl Zeroed for Exchange {}

impl Exchange {
    /// Whether a guest takes packets from now on.
    ///
    /// # Panics
    /// If there is no guest of such a number: they are bits of a word.
    pub fn sleep(&self, guest: u32, sleeps: bool) {
        assert!(guest < u32::BITS, "guests are bits");
        match sleeps {
            true => self.sleepers.fetch_or(1 << guest, Ordering::SeqCst),
            false => self.sleepers.fetch_and(!(1 << guest), Ordering::SeqCst),
        };
    }

    fn sleeps(&self, guest: u32) -> bool {
        self.sleepers.load(Ordering::SeqCst) >> guest & 1 != 0
    }

    /// Packets that wait in a guest's queues.
    pub fn waiting(&self, spread: &Spread, guest: u32) -> u64 {
        let queues = (0..spread.guests * spread.queues).map(QueueId);
        let own = queues.filter(|queue| spread.guest(*queue) == guest);
        own.map(|queue| self.queues[queue.0 as usize].waiting())
            .sum()
    }

    /// Whether nobody holds a queue's lock.
    pub fn all_free(&self) -> bool {
        self.queues.iter().all(Queue::is_free) && self.outward.all_free()
    }
}

/// Counts of a processor's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Frames that came in by its card, and that the driver gave on.
    pub put: u64,
    /// Of these, for a guest that takes nothing and whose queue is full.
    pub dropped: u64,
    /// Taken from its queues, for their guests.
    pub taken: u64,
    /// How often it found a queue full whose processor was yet to take from it.
    pub waits: u64,
}

/// A processor's end of it.
pub struct Port<'x> {
    pub(super) exchange: &'x Exchange,
    /// Which queue is whose.
    pub spread: Spread,
    number: ProcessorId,
    /// Processors that meet, whether they take part in the spread or not.
    parties: u64,
    /// What guests got whose queues are this processor's.
    pub received: Sink,
    /// So far.
    pub counts: Counts,
}

/// Says that its processor ended before its work was done.
struct Alarm<'x>(&'x Exchange);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.failures.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs a processor's work. If it fails, the others do not wait for it.
///
/// # Errors
/// The work's.
pub fn attended<T, E>(exchange: &Exchange, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let alarm = Alarm(exchange);
    let done = work()?;
    std::mem::forget(alarm);
    Ok(done)
}

impl<'x> Port<'x> {
    /// A processor's end, for packets of flows below `flows`.
    ///
    /// # Panics
    /// If there are more queues than [`QUEUES`].
    pub fn new(exchange: &'x Exchange, spread: Spread, number: ProcessorId, flows: u32) -> Self {
        let queues = (spread.guests * spread.queues) as usize;
        assert!(queues <= QUEUES, "{queues} queues, of {QUEUES}");
        Port {
            exchange,
            spread,
            number,
            parties: spread.processors.into(),
            received: Sink::new(flows as usize),
            counts: Counts::default(),
        }
    }

    /// Puts a guest's frame into its queue.
    ///
    /// # Errors
    /// Another processor has failed.
    pub fn put(&mut self, guest: u32, frame: &[u8]) -> Result<(), Stop> {
        let mut packet = Packet {
            length: frame.len() as u32,
            bytes: [0; LONGEST],
        };
        packet.bytes[..frame.len()].copy_from_slice(frame);
        let queue = &self.exchange.queues[self.spread.queue_of(guest, frame).0 as usize];
        self.counts.put += 1;
        while let Err(Full) = queue.put(&packet) {
            if self.exchange.sleeps(guest) {
                self.counts.dropped += 1;
                return Ok(());
            }
            self.counts.waits += 1;
            self.idle()?;
        }
        Ok(())
    }

    /// Gives all that is in its queues to their guests; whether there was anything.
    pub fn serve(&mut self) -> bool {
        let before = self.counts.taken;
        for queue in self.spread.of(self.number) {
            if self.exchange.sleeps(self.spread.guest(queue)) {
                continue;
            }
            while let Some(packet) = self.exchange.queues[queue.0 as usize].take() {
                let length = (packet.length as usize).min(LONGEST);
                self.received.take(&packet.bytes[..length]);
                self.counts.taken += 1;
            }
        }
        self.counts.taken > before
    }

    /// Serves, or sleeps a little.
    ///
    /// # Errors
    /// Another processor has failed.
    pub(super) fn idle(&mut self) -> Result<(), Stop> {
        if self.exchange.failures.load(Ordering::SeqCst) != 0 {
            return Err(Stop::Stuck("another processor has failed"));
        }
        if !self.serve() {
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    /// Waits until all processors have come here as often as this one, and serves meanwhile.
    /// What was put before is with the guests then.
    ///
    /// # Errors
    /// Another processor has failed.
    pub fn meet(&mut self) -> Result<(), Stop> {
        let mine = self.exchange.arrivals.fetch_add(1, Ordering::SeqCst);
        let all = (mine / self.parties + 1) * self.parties;
        while self.exchange.arrivals.load(Ordering::SeqCst) < all {
            self.idle()?;
        }
        self.serve();
        Ok(())
    }
}
