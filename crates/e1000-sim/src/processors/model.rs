//! What is simulated: cards, guests, processors and locks, and what is sent to them.

use serde::{Deserialize, Serialize};

use super::queues::Spread;
use crate::live::clock::HZ;

/// What is under which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locks {
    /// One for all guests, held by whoever gives packets to one: the back end is one thread
    /// (Dong et al., 3.2), whichever processor it has.
    One,
    /// One for each queue, held while a packet is put or taken (vRSS). Whoever sends a packet holds its
    /// card's besides, for the driver.
    Queues,
    /// One for each queue. A card has a queue, too: packets are handed to the card's processor, which
    /// alone runs its driver ([`super::handing`]). Nothing else where guests receive.
    Handed,
}

/// What serves the queues on a processor (Dong et al., 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackEnd {
    /// A tasklet, in whatever the interrupt came to: it costs nothing to begin.
    Tasklets,
    /// A thread of high priority, bound to the processor. It sleeps when its queues are empty. To
    /// go on it costs two switches of so many cycles each: to the thread, and back when it sleeps.
    Threads {
        /// Cycles.
        switch: u64,
    },
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors. Card `c` interrupts processor `c` modulo them.
    pub processors: u32,
    /// Cards, of a gigabit a second each.
    pub cards: u32,
    /// Guests.
    pub guests: u32,
    /// Queues of each guest.
    pub queues: u32,
    /// What is under which lock.
    pub locks: Locks,
    /// What serves the queues.
    pub back_end: BackEnd,
    /// Packets that a queue holds.
    pub room: usize,
    /// Cycles more for a lock, and what it protects, that another processor had last.
    pub transfer: u64,
}

impl Machine {
    /// Its queues.
    pub fn spread(&self) -> Spread {
        Spread {
            guests: self.guests,
            queues: self.queues,
            processors: self.processors,
        }
    }
}

/// Whose frames a card has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frames {
    /// Card `c` those of guest `c` modulo the guests (Dong et al., 5.1).
    OneGuest,
    /// Each card those of all guests, by turns.
    AllGuests,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes of a frame, without FCS.
    pub size: usize,
    /// Flows on each card.
    pub flows: u32,
    /// Whose they are.
    pub frames: Frames,
    /// Nanoseconds after which nothing more is sent.
    pub time: u64,
    /// A card whose sender does not wait for its guest, and a guest that takes nothing: the
    /// sender's card and the guest have that number.
    pub flood: Option<u32>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that guests got, until all was done.
    pub packets: u64,
    /// Frames that guests got while frames were sent, by guest.
    pub in_time: Vec<u64>,
    /// Frames for which a card had no room.
    pub missed: u64,
    /// Frames for which a queue had no room.
    pub dropped: u64,
    /// Frames that still wait for the guest that takes nothing.
    pub waiting: u64,
    /// Frames that a guest got before an earlier one of their flow, or twice.
    pub reordered: u64,
    /// Interrupts of cards.
    pub interrupts: u64,
    /// Visits of cards, with an interrupt or because frames were left.
    pub visits: u64,
    /// Deliveries, each with an interrupt of a guest.
    pub deliveries: u64,
    /// Interrupts of idle processors, because a packet is in a queue of theirs.
    pub wakes: u64,
    /// Times that a driver began to send, or a processor to take packets to send from a queue.
    pub batches: u64,
    /// Times that packets were taken from a guest's queue to be handed.
    pub rounds: u64,
    /// Times that a card's queue was locked to put packets there.
    pub handed: u64,
    /// Times that it was held by another, and other cards' packets went first.
    pub held: u64,
    /// Switches to a back end's thread, and from it.
    pub switches: u64,
    /// Nanoseconds in which nothing more was sent, and the last frame taken.
    pub time: u64,
    /// Cycles that each processor worked until the last frame.
    pub worked: Vec<u64>,
    /// Nanoseconds that processors waited for locks, of all together.
    pub locked_out: u64,
    /// The part of it that was for cards' locks, or those of cards' queues.
    pub locked_out_of_cards: u64,
    /// The longest wait for one of these, in cycles.
    pub longest_wait: u64,
}

impl Outcome {
    /// Frames a second, while frames were sent.
    pub fn rate(&self, traffic: &Traffic) -> f64 {
        self.in_time.iter().sum::<u64>() as f64 * 1e9 / traffic.time as f64
    }

    /// Bits a second of frames, without what is around them.
    pub fn bits(&self, traffic: &Traffic) -> f64 {
        self.rate(traffic) * traffic.size as f64 * 8.0
    }

    /// Frames that a machine without a flood may not lose, or reorder.
    pub fn damage(&self) -> u64 {
        let lost = self.missed + self.dropped + self.waiting;
        lost + self.reordered + self.sent.abs_diff(self.packets)
    }

    /// Processors' time that was worked, in hundredths of a processor's.
    pub fn load(&self) -> f64 {
        let cycles = self.time.max(1) as f64 / 1e9 * HZ as f64;
        self.worked.iter().sum::<u64>() as f64 / cycles * 100.0
    }

    /// Part of all processors' time that went into waiting for locks.
    pub fn lock_share(&self) -> f64 {
        self.locked_out as f64 / self.all_time()
    }

    /// The same of cards' locks.
    pub fn card_lock_share(&self) -> f64 {
        self.locked_out_of_cards as f64 / self.all_time()
    }

    fn all_time(&self) -> f64 {
        self.time.max(1) as f64 * self.worked.len().max(1) as f64
    }
}
