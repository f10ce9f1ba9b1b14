//! What guests send, handed to the processor whose card it goes by: nobody waits for a driver.
//!
//! ```text
//! guest's queue ─ take ─ check ─ by card ─┬─ put ─> card's queue ─ take ─> its processor's driver
//!    64 at most, one lock                 └─ kept, if the lock is held or there is no room
//! ```
//!
//! A card's driver runs on one processor, so it needs no lock; locks are of queues, held while packets
//! are copied. A card's lock is taken once for all packets of a batch. One that is held is left, and
//! other cards' packets go first; what is left is tried once more, for longer, and kept if that fails.
//!
//! A flow has one queue, which has one taker; a card's packets are kept and handed in the order in
//! which they were taken, and its queue has one taker, too. So the packets of a flow stay in order.
//!
//! Guests have so many packets on the way as [`CARD_ROOM`] holds, for each card. Whoever keeps to that
//! loses nothing, and of a card that takes nothing no more than these wait. What is more is dropped:
//! so a queue is never blocked by one of its cards.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::exchange::QUEUES;
use super::queues::{Full, Held, ProcessorId, Queue, QueueId, ROOM, Spread};
use crate::packets::rings::{HEADER, Request};
use crate::packets::round::guest_mac;
use crate::transport::mailbox::Zeroed;

/// Most cards.
pub const CARDS: usize = 4;
/// Packets that a card's queue holds, and that are kept for it: as many as its ring has descriptors.
pub const CARD_ROOM: usize = 256;
/// Most flows of all guests.
pub const FLOWS: usize = 64;
/// Packets that are taken at once.
pub const WEIGHT: usize = 64;
/// How often a card's lock is polled when all else has been handed. It is held while [`WEIGHT`] packets
/// are copied.
pub const POLLS: u32 = 4096;
/// Instructions of a poll at least: compare and exchange, pause, count, jump.
pub const POLL: u32 = 4;
/// How often, if that was once in vain: who has it is stuck, but may die yet.
const POLLS_OF_STUCK: u32 = 2;
/// Bytes of Ethernet's header.
const ETHERNET: u32 = 14;

/// A packet that fits into a request's linear part.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The card that is to send it.
    pub card: u32,
    /// Whose it is.
    pub guest: u32,
    /// Its flow, which is told when it is sent.
    pub flow: u32,
    length: u32,
    bytes: [u8; HEADER],
}

impl Outgoing {
    /// A guest's frame.
    ///
    /// # Panics
    /// If it has more than [`HEADER`] bytes.
    pub fn new(card: u32, guest: u32, flow: u32, frame: &[u8]) -> Outgoing {
        let mut bytes = [0; HEADER];
        bytes[..frame.len()].copy_from_slice(frame);
        Outgoing {
            card,
            guest,
            flow,
            length: frame.len() as u32,
            bytes,
        }
    }

    /// Whether it is a packet of that guest, for one of so many cards.
    fn is_sound(&self, guest: u32, cards: u32) -> bool {
        self.card < cards
            && self.guest == guest
            && (self.flow as usize) < FLOWS
            && (ETHERNET..=HEADER as u32).contains(&self.length)
            && self.bytes[6..12] == guest_mac(guest)
    }

    /// Describes it to the driver; the flow is the cookie.
    pub fn describe(&self, request: &mut Request) {
        request.cookie = self.flow.into();
        request.guest = self.guest;
        request.header_length = self.length as u16;
        request.fragments = 0;
        (request.gso_size, request.gso_type) = (0, 0);
        (request.checksum_start, request.checksum_offset) = (0, 0);
        (request.vlan_tag, request.flags) = (0, 0);
        request.header = self.bytes;
    }
}

/// The shared memory.
#[repr(C)]
pub struct Outward {
    guests: [Queue<Outgoing>; QUEUES],
    cards: [Queue<Outgoing, CARD_ROOM>; CARDS],
    sent: [AtomicU64; FLOWS],
}

// SAFETY: zeroed queues are empty ones, the others are plain words.
unsafe impl Zeroed for Outward {}

impl Outward {
    /// A guest puts a packet into its queue.
    ///
    /// # Errors
    /// [`Full`].
    pub fn put(&self, queue: QueueId, packet: &Outgoing) -> Result<(), Full> {
        self.guests[queue.0 as usize].put(packet)
    }

    /// Packets of a flow that were sent, or will never be.
    pub fn sent(&self, flow: u32) -> u64 {
        self.sent[flow as usize].load(Ordering::SeqCst)
    }

    /// A flow's packet is sent. Flows that do not exist are nobody's.
    pub fn note_sent(&self, flow: u64) {
        let flow = usize::try_from(flow).ok();
        if let Some(sent) = flow.and_then(|flow| self.sent.get(flow)) {
            sent.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Packets in a card's queue.
    pub fn waiting(&self, card: u32) -> u64 {
        self.cards[card as usize].waiting()
    }

    /// A card's processor takes packets, so many at most.
    pub fn take(&self, card: u32, packets: &mut Vec<Outgoing>, most: usize) {
        self.cards[card as usize].take_into(packets, most);
    }

    /// Whether nobody holds a lock.
    pub fn all_free(&self) -> bool {
        self.guests.iter().all(Queue::is_free) && self.cards.iter().all(Queue::is_free)
    }

    /// A card's queue.
    pub(super) fn card(&self, card: u32) -> &Queue<Outgoing, CARD_ROOM> {
        &self.cards[card as usize]
    }

    /// A guest's queue.
    pub(super) fn guest(&self, queue: QueueId) -> &Queue<Outgoing> {
        &self.guests[queue.0 as usize]
    }
}

/// Counts of what a processor has handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HandedCounts {
    /// Taken from guests' queues.
    pub taken: u64,
    /// Of these, put into cards' queues.
    pub handed: u64,
    /// No packets of their guests.
    pub refused: u64,
    /// More than their card's senders may have on the way.
    pub dropped: u64,
    /// Times that a card's lock was taken for packets.
    pub batches: u64,
    /// Times that it was held by another, and other cards' packets went first.
    pub held: u64,
}

/// A processor's end of it.
pub struct Hander<'x> {
    outward: &'x Outward,
    pub(super) spread: Spread,
    number: ProcessorId,
    /// By card, in the order in which they were taken.
    kept: Vec<VecDeque<Outgoing>>,
    taken: Vec<Outgoing>,
    /// Cards, as bits, whose lock was polled in vain.
    stuck: u32,
    /// So far.
    pub counts: HandedCounts,
}

impl<'x> Hander<'x> {
    /// A processor's end, for so many cards.
    ///
    /// # Panics
    /// If there are more cards than [`CARDS`].
    pub fn new(outward: &'x Outward, spread: Spread, number: ProcessorId, cards: u32) -> Self {
        assert!(cards as usize <= CARDS, "{cards} cards, of {CARDS}");
        Hander {
            outward,
            spread,
            number,
            kept: vec![VecDeque::with_capacity(CARD_ROOM); cards as usize],
            taken: Vec::with_capacity(ROOM.max(WEIGHT)),
            stuck: 0,
            counts: HandedCounts::default(),
        }
    }

    /// Takes once from each of its guests' queues and hands what it took and kept; whether there was
    /// anything to take.
    pub fn serve(&mut self) -> bool {
        let before = self.counts.taken;
        for queue in self.spread.of(self.number) {
            self.serve_queue(queue);
        }
        self.counts.taken > before
    }

    /// The same with one queue.
    pub fn serve_queue(&mut self, queue: QueueId) {
        let mut taken = std::mem::take(&mut self.taken);
        self.outward.guest(queue).take_into(&mut taken, WEIGHT);
        let guest = self.spread.guest(queue);
        for packet in &taken {
            self.keep(guest, packet);
        }
        taken.clear();
        self.taken = taken;
        self.hand();
    }

    /// Of a guest, whatever the packet says whose it is.
    fn keep(&mut self, guest: u32, packet: &Outgoing) {
        self.counts.taken += 1;
        if !packet.is_sound(guest, self.kept.len() as u32) {
            self.counts.refused += 1;
            return;
        }
        let kept = &mut self.kept[packet.card as usize];
        if kept.len() == CARD_ROOM {
            self.counts.dropped += 1;
            return;
        }
        kept.push_back(*packet);
    }

    /// Each card's packets to its queue, those first whose lock is free.
    fn hand(&mut self) {
        let mut held = 0u32;
        for card in 0..self.kept.len() as u32 {
            if self.hand_to(card, 1).is_err() {
                held |= 1 << card;
            }
        }
        self.counts.held += u64::from(held.count_ones());
        for card in (0..u32::BITS).filter(|card| held >> card & 1 != 0) {
            let polls = match self.stuck >> card & 1 {
                0 => POLLS,
                _ => POLLS_OF_STUCK,
            };
            if self.hand_to(card, polls).is_err() {
                self.stuck |= 1 << card;
            }
        }
    }

    fn hand_to(&mut self, card: u32, polls: u32) -> Result<(), Held> {
        let kept = &mut self.kept[card as usize];
        if kept.is_empty() {
            return Ok(());
        }
        let before = kept.len();
        self.outward.card(card).put_from(kept, polls)?;
        self.stuck &= !(1 << card);
        self.counts.batches += 1;
        self.counts.handed += (before - kept.len()) as u64;
        Ok(())
    }

    /// Packets that are kept for a card.
    pub fn kept(&self, card: u32) -> usize {
        self.kept[card as usize].len()
    }
}

#[cfg(test)]
#[path = "handing_tests.rs"]
mod tests;
