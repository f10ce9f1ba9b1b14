//! What guests send by cards, simulated.
//!
//! ```text
//! serve a queue   lock ─ take ─ unlock ─ lock of the card ─ check, driver ─ unlock, up to 64 times
//! visit a card    [interrupt] handler, poll ─ what was sent ─ interrupts of its guests
//! ```
//!
//! Or, with cards' queues ([`super::handing`], whose instructions are counted):
//!
//! ```text
//! serve a guest's queue   lock ─ take 64 ─ unlock ─ check ─ each card's: lock ─ put ─ unlock
//!                                                           the held ones again, at the end
//! serve a card's queue    lock ─ take 64 ─ unlock ─ driver
//! ```
//!
//! Each flow has packets on the way, together as many as a card's ring has descriptors, and its guest gives
//! another for each that was sent. What a guest executes to send is in the price and on the processor
//! that serves it; its own time besides is not simulated. A card has one transmit ring, so whoever
//! sends by it takes its lock, or is the card's processor.

use std::collections::{BTreeMap, VecDeque};

use super::card::{THROTTLE, WINDOW};
use super::handing;
use super::model::{Locks, Machine, Outcome, Traffic};
use super::queues::{ProcessorId, QueueId};
use super::simulation::{Left, Locked, Setting, Simulation, WEIGHT, Way};
use super::work::{Batch, Handing, WorkPrice};
use crate::live::price::Crossings;
use crate::live::receive::wire_time;

/// Lets guests send by a machine and follows each packet to its cable. `traffic.flood` has no meaning
/// here.
///
/// # Panics
/// If a machine without processors, cards, guests or queues, or traffic without flows, is given.
pub fn simulate(
    machine: &Machine,
    traffic: &Traffic,
    price: &WorkPrice,
    crossings: &Crossings,
) -> Outcome {
    let setting = Setting {
        machine,
        traffic,
        price,
        crossings,
    };
    let mut all = Simulation::new(setting, None);
    let mut sending = Sending {
        gap: wire_time(traffic.size),
        cards: (0..machine.cards).map(|_| Card::default()).collect(),
        next: vec![0; all.routes.len()],
    };
    let window = (WINDOW / traffic.flows).max(1);
    for flow in 0..all.routes.len() as u32 {
        for _ in 0..window {
            sending.give(&mut all, flow, 0);
        }
    }
    all.run(&mut sending)
}

const _: () = assert!(WEIGHT as usize == handing::WEIGHT && WINDOW as usize == handing::CARD_ROOM);

struct Sending {
    /// Nanoseconds of a packet on the cable.
    gap: u64,
    cards: Vec<Card>,
    /// The number of each flow's next packet, as its guest gives it.
    next: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: u32,
    /// In its flow.
    number: u64,
}

/// What a processor is at.
enum Doing {
    Send(Send),
    Hand(Hand),
}

/// Each card's packets of a batch.
type Groups = VecDeque<(u32, Vec<Packet>)>;

/// It hands what it took.
struct Hand {
    /// Not tried yet.
    fresh: Groups,
    /// Their locks were held.
    held: Groups,
}

/// It may take so many packets more from a queue.
#[derive(Clone, Copy)]
struct Send {
    queue: QueueId,
    left: u32,
    /// One that its card is to send.
    packet: Option<Packet>,
}

/// A card's transmit half.
#[derive(Debug, Default)]
struct Card {
    /// When the cable is free.
    free_at: u64,
    /// When each packet was on the cable, and what it is, until a poll finds it.
    sent: VecDeque<(u64, Packet)>,
    /// When it may interrupt again.
    ready: u64,
}

type All<'a> = Simulation<'a, Sending>;

impl Way for Sending {
    type Packet = Packet;
    type Doing = Doing;

    fn due(&self, card: usize) -> Option<u64> {
        let card = &self.cards[card];
        card.sent.front().map(|(at, _)| (*at).max(card.ready))
    }

    /// The back end begins with a queue.
    fn serve(&mut self, all: &mut All<'_>, on: ProcessorId, queue: QueueId) -> Left<Sending> {
        if let Some(card) = all.card_of(queue) {
            self.drive(all, on, queue, card);
            return None;
        }
        match all.setting.machine.locks {
            Locks::Handed => Some(Doing::Hand(sort(all, on, queue))),
            Locks::One | Locks::Queues => {
                let batch = all.setting.price.sent.batch;
                all.seen.batches += 1;
                all.clock(on).work(batch);
                Some(Doing::Send(Send {
                    queue,
                    left: WEIGHT,
                    packet: None,
                }))
            }
        }
    }

    /// The card's interrupt: a poll finds what was sent, and its guests are told.
    fn visit(&mut self, all: &mut All<'_>, on: ProcessorId, card: usize) -> Left<Sending> {
        let Setting {
            machine,
            price,
            crossings,
            ..
        } = all.setting;
        let began = all.clock(on).now();
        all.seen.visits += 1;
        all.seen.interrupts += 1;
        let done = self.cards[card].completed(began);
        let guest = |packet: &Packet| all.routes[packet.flow as usize].guest;
        let mut guests: Vec<_> = done.iter().map(guest).collect();
        guests.sort_unstable();
        guests.dedup();
        let told = guests.len() as u64 * crossings.virtual_interrupt;
        let found = price.driver.interrupt + done.len() as u64 * price.sent.completed;
        all.seen.deliveries += guests.len() as u64;
        let work = crossings.interrupt + found + told;
        match machine.locks {
            Locks::One => all.hold(on, Locked::Card(card), work),
            Locks::Queues | Locks::Handed => all.clock(on).work(work),
        }
        let now = all.clock(on).now();
        for packet in done {
            self.give(all, packet.flow, now);
        }
        None
    }

    fn go_on(&mut self, all: &mut All<'_>, on: ProcessorId, doing: Doing) -> Left<Sending> {
        match doing {
            Doing::Hand(hand) => hand.step(all, on).map(Doing::Hand),
            Doing::Send(send @ Send { packet: None, .. }) => take(all, on, send).map(Doing::Send),
            Doing::Send(
                send @ Send {
                    packet: Some(packet),
                    ..
                },
            ) => {
                self.send(all, on, packet);
                Some(Doing::Send(Send {
                    packet: None,
                    ..send
                }))
            }
        }
    }
}

impl Sending {
    /// A guest gives a packet of that flow.
    fn give(&mut self, all: &mut All<'_>, flow: u32, now: u64) {
        if now >= all.setting.traffic.time {
            return;
        }
        let next = &mut self.next[flow as usize];
        let number = *next;
        *next += 1;
        all.seen.sent += 1;
        let queue = all.routes[flow as usize].queue;
        all.put(queue, Packet { flow, number }, now, None);
    }

    /// Its card gets it.
    fn send(&mut self, all: &mut All<'_>, on: ProcessorId, packet: Packet) {
        let Setting { traffic, price, .. } = all.setting;
        let number = (packet.flow / traffic.flows) as usize;
        all.hold(on, Locked::Card(number), price.sent.packet);
        self.ring(all, on, number, packet);
    }

    /// A packet is in the card's ring.
    fn ring(&mut self, all: &mut All<'_>, on: ProcessorId, card: usize, packet: Packet) {
        let now = all.clock(on).now();
        let card = &mut self.cards[card];
        card.free_at = card.free_at.max(now) + self.gap;
        card.sent.push_back((card.free_at, packet));
        all.arrived(packet.flow, packet.number, card.free_at);
    }

    /// The card's processor gives its driver what was handed. The doorbell is the last packet's.
    fn drive(&mut self, all: &mut All<'_>, on: ProcessorId, queue: QueueId, card: usize) {
        let WorkPrice { sent, handing, .. } = *all.setting.price;
        let packets = take_many(all, on, queue, handing.take);
        all.seen.batches += 1;
        let each = handing.described + sent.packet - sent.guest;
        let driver = sent.batch + packets.len() as u64 * each;
        all.clock(on).work(driver);
        for packet in packets {
            self.ring(all, on, card, packet);
        }
    }
}

/// Takes packets under one lock.
fn take_many(all: &mut All<'_>, on: ProcessorId, queue: QueueId, price: Batch) -> Vec<Packet> {
    let count = all.waiting(queue).min(WEIGHT as usize);
    all.hold(on, Locked::Queue(queue), price.of(count as u64));
    (0..count).filter_map(|_| all.take(queue)).collect()
}

/// Takes a guest's packets, checks them, and sorts them by card.
fn sort(all: &mut All<'_>, on: ProcessorId, queue: QueueId) -> Hand {
    let WorkPrice { sent, handing, .. } = *all.setting.price;
    all.seen.rounds += 1;
    let packets = take_many(all, on, queue, handing.take);
    let checked = handing.round + packets.len() as u64 * (handing.check + sent.guest);
    all.clock(on).work(checked);
    let mut groups: BTreeMap<u32, Vec<Packet>> = BTreeMap::new();
    for packet in packets {
        let card = packet.flow / all.setting.traffic.flows;
        groups.entry(card).or_default().push(packet);
    }
    Hand {
        fresh: groups.into_iter().collect(),
        held: Groups::new(),
    }
}

impl Hand {
    /// One card's packets to its queue, unless another has its lock and others' can go first.
    fn step(mut self, all: &mut All<'_>, on: ProcessorId) -> Option<Hand> {
        let first = self.fresh.pop_front();
        let is_fresh = first.is_some();
        let (card, packets) = first.or_else(|| self.held.pop_front())?;
        let queue = all.card_queue(card);
        let Handing { put, tried, .. } = all.setting.price.handing;
        if is_fresh && all.is_held(on, Locked::Queue(queue)) {
            all.seen.held += 1;
            all.clock(on).work(tried);
            self.held.push_back((card, packets));
            return Some(self);
        }
        all.seen.handed += 1;
        all.hold(on, Locked::Queue(queue), put.of(packets.len() as u64));
        let now = all.clock(on).now();
        for packet in packets {
            all.put(queue, packet, now, Some(on));
        }
        Some(self)
    }
}

/// Takes a packet from the queue, or leaves it.
fn take(all: &mut All<'_>, on: ProcessorId, send: Send) -> Option<Send> {
    if send.left == 0 || all.waiting(send.queue) == 0 {
        return None;
    }
    all.hold(on, Locked::Queue(send.queue), all.setting.price.take);
    Some(Send {
        packet: Some(all.take(send.queue)?),
        left: send.left - 1,
        ..send
    })
}

impl Card {
    /// A poll: what was on the cable by then. The card interrupts again after its throttle.
    fn completed(&mut self, now: u64) -> Vec<Packet> {
        self.ready = now + THROTTLE;
        let count = self.sent.iter().take_while(|(at, _)| *at <= now).count();
        let done = self.sent.drain(..count);
        done.map(|(_, packet)| packet).collect()
    }
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
