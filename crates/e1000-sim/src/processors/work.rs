//! What the simulated processors' work costs: counted here, one instruction after the other,
//! of the rewritten driver and of the queues' own code.
//!
//! ```text
//! interrupt + k * (packet + hash + put)     a card's processor: handler, poll, into queues
//! round + guest + k * (take + taken)        a queue's processor: out of it, to its guest
//! batch + k * (take + packet)               a queue's processor: out of it, to its card
//! interrupt + k * completed                 a card's processor: what was sent
//!                     └ under the queue's lock: put, take
//!
//! round + take(k) + k * check + cards: put(k of a card)      handing (`handing`)
//! batch + take(k) + k * (described + packet - guest's part)  a card's processor: queue to driver
//! ```

use std::collections::VecDeque;
use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::handing::{CARD_ROOM, Hander, Outgoing, Outward, WEIGHT};
use super::hash::flow_hash;
use super::queues::{ProcessorId, Queue, QueueId, ROOM, Spread};
use crate::error::LiveError;
use crate::live::price::{Price, SentPrice};
use crate::measure::profile::Component;
use crate::measure::steps;
use crate::packets::rings::Request;
use crate::transport::mailbox::SharedPages;

/// Instructions of each kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPrice {
    /// Of the rewritten driver, the switch and the guests.
    pub driver: Price,
    /// Of what guests send.
    pub sent: SentPrice,
    /// Hashing a frame.
    pub hash: u64,
    /// Putting a packet into a queue whose lock is free.
    pub put: u64,
    /// Taking one out.
    pub take: u64,
    /// Handing packets to cards' processors.
    pub handing: Handing,
}

/// Instructions of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Of a batch, however small.
    pub one: u64,
    /// Of each packet.
    pub each: u64,
}

impl Batch {
    /// Of so many packets.
    pub fn of(&self, packets: u64) -> u64 {
        self.one + packets * self.each
    }

    /// From counts of one packet and of [`MANY`].
    fn from(one: u64, many: u64) -> Batch {
        let each = many.saturating_sub(one) / (MANY as u64 - 1);
        Batch {
            one: one.saturating_sub(each),
            each,
        }
    }
}

/// Instructions of handing ([`super::handing`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handing {
    /// Serving a guest's queue, without all that follows.
    pub round: u64,
    /// Checking a packet, and keeping it for its card.
    pub check: u64,
    /// Taking packets from a queue, under its lock.
    pub take: Batch,
    /// Putting a card's packets into its queue, under its lock.
    pub put: Batch,
    /// Finding a card's lock held.
    pub tried: u64,
    /// Describing a packet to the driver, on the card's processor.
    pub described: u64,
}

/// Packets of the larger sample of a batch.
const MANY: usize = 33;
const ONE_GUEST: Spread = Spread {
    guests: 1,
    queues: 1,
    processors: 1,
};

impl Handing {
    /// Counts the code that hands, on queues of its own.
    ///
    /// # Errors
    /// No memory, or no single steps.
    pub fn count(frame: &[u8]) -> Result<Handing, LiveError> {
        let pages = SharedPages::<Outward>::new()?;
        let outward = pages.get();
        let queue = QueueId(0);
        let mut hander = Hander::new(outward, ONE_GUEST, ProcessorId(0), 1);
        let mut room = Vec::with_capacity(CARD_ROOM);
        let mut serve = |packets: usize| {
            give(outward, queue, frame, packets);
            let counted = beyond_nothing(&mut || hander.serve_queue(queue));
            outward.take(0, &mut room, CARD_ROOM);
            let (handed, given) = (room.len(), packets);
            room.clear();
            assert_eq!(handed, given, "what is counted hands all");
            counted
        };
        // The thread's number is asked for once.
        serve(1)?;
        let served = Batch::from(serve(1)?, serve(MANY)?);
        let (take, put) = (count_take(outward, frame)?, count_put(outward, frame)?);
        let part = |whole: u64, parts: u64| whole.saturating_sub(parts);
        Ok(Handing {
            round: part(served.one, take.one + put.one),
            check: part(served.each, take.each + put.each),
            take,
            put,
            tried: count_tried(outward, frame)?,
            described: count_described(frame)?,
        })
    }
}

fn give(outward: &Outward, queue: QueueId, frame: &[u8], packets: usize) {
    for _ in 0..packets {
        let given = outward.put(queue, &Outgoing::new(0, 0, 0, frame));
        assert_eq!(given, Ok(()), "the queue is empty before");
    }
}

fn count_take(outward: &Outward, frame: &[u8]) -> Result<Batch, LiveError> {
    let mut room = Vec::with_capacity(ROOM);
    let mut take = |packets| {
        give(outward, QueueId(0), frame, packets);
        room.clear();
        beyond_nothing(&mut || outward.guest(QueueId(0)).take_into(&mut room, WEIGHT))
    };
    Ok(Batch::from(take(1)?, take(MANY)?))
}

fn count_put(outward: &Outward, frame: &[u8]) -> Result<Batch, LiveError> {
    let packet = Outgoing::new(0, 0, 0, frame);
    let mut room = Vec::with_capacity(CARD_ROOM);
    let mut put = |packets| {
        let mut kept: VecDeque<_> = (0..packets).map(|_| packet).collect();
        let counted = beyond_nothing(&mut || _ = outward.card(0).put_from(&mut kept, 1));
        outward.take(0, &mut room, CARD_ROOM);
        counted
    };
    Ok(Batch::from(put(1)?, put(MANY)?))
}

fn count_tried(outward: &Outward, frame: &[u8]) -> Result<u64, LiveError> {
    let mut kept = VecDeque::from([Outgoing::new(0, 0, 0, frame)]);
    let _held = outward.card(0).hold();
    beyond_nothing(&mut || _ = black_box(outward.card(0).put_from(&mut kept, 1)))
}

fn count_described(frame: &[u8]) -> Result<u64, LiveError> {
    let packet = Outgoing::new(0, 0, 0, frame);
    let mut request = Request::default();
    beyond_nothing(&mut || black_box(&packet).describe(black_box(&mut request)))
}

/// Instructions of work beyond those of none.
fn beyond_nothing(work: &mut dyn FnMut()) -> Result<u64, LiveError> {
    let (nothing, all) = (instructions(|| {})?, instructions(&mut *work)?);
    Ok(all.saturating_sub(nothing))
}

/// What a queue of the runtime has of a packet: the buffer's address, and its length.
type Descriptor = [u64; 2];

impl WorkPrice {
    /// Counts hash and queue, beside a driver's price: of a received frame, and of one of guest 0's that
    /// is handed and fits into a request's linear part.
    ///
    /// # Errors
    /// No memory, or no single steps.
    pub fn count(
        driver: Price,
        sent: SentPrice,
        frame: &[u8],
        handed: &[u8],
    ) -> Result<WorkPrice, LiveError> {
        let pages = SharedPages::<Queue<Descriptor>>::new()?;
        let queue = pages.get();
        // The thread's number is asked for once.
        queue.waiting();
        let counted = beyond_nothing;
        Ok(WorkPrice {
            driver,
            sent,
            hash: counted(&mut || _ = black_box(flow_hash(black_box(frame))))?,
            put: counted(&mut || _ = black_box(queue.put(black_box(&[1, 2]))))?,
            take: counted(&mut || _ = black_box(queue.take()))?,
            handing: Handing::count(handed)?,
        })
    }

    /// Of a card's visit that brings so many packets, without its interrupt's crossing.
    pub fn visit(&self, packets: u64) -> u64 {
        self.driver.interrupt + packets * (self.driver.packet + self.hash + self.put)
    }

    /// Of a guest that takes so many packets, without its interrupt's crossing.
    pub fn delivery(&self, packets: u64) -> u64 {
        self.driver.round + self.driver.guest + packets * (self.take + self.driver.taken)
    }
}

fn instructions(work: impl FnOnce()) -> Result<u64, LiveError> {
    let ((), steps) = steps::count(work)?;
    Ok(Component::ALL.iter().map(|part| steps.of(*part)).sum())
}
