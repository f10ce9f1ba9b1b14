//! What guests send by cards, simulated.
//!
//! ```text
//! serve a queue   lock ─ take ─ unlock ─ lock of the card ─ check, driver ─ unlock, up to 64 times
//! visit a card    [interrupt] handler, poll ─ what was sent ─ interrupts of its guests
//! ```
//!
//! Each flow has packets on the way, together as many as a card's ring has descriptors, and its guest gives
//! another for each that was sent. What a guest executes to send is in the price and on the processor
//! that serves it; its own time besides is not simulated. A card has one transmit ring, so whoever
//! sends by it takes its lock.

use std::collections::VecDeque;

use super::card::{THROTTLE, WINDOW};
use super::model::{Locks, Machine, Outcome, Traffic};
use super::queues::{ProcessorId, QueueId};
use super::simulation::{Left, Locked, Setting, Simulation, WEIGHT, Way};
use super::work::WorkPrice;
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

/// What a processor is at: it may take so many packets more from a queue.
#[derive(Clone, Copy)]
struct Doing {
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
        let batch = all.setting.price.sent.batch;
        all.seen.batches += 1;
        all.clock(on).work(batch);
        Some(Doing {
            queue,
            left: WEIGHT,
            packet: None,
        })
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
            Locks::Queues => all.clock(on).work(work),
        }
        let now = all.clock(on).now();
        for packet in done {
            self.give(all, packet.flow, now);
        }
        None
    }

    fn go_on(&mut self, all: &mut All<'_>, on: ProcessorId, doing: Doing) -> Left<Sending> {
        match doing.packet {
            None => take(all, on, doing),
            Some(packet) => {
                self.send(all, on, packet);
                Some(Doing {
                    packet: None,
                    ..doing
                })
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
        let now = all.clock(on).now();
        let card = &mut self.cards[number];
        card.free_at = card.free_at.max(now) + self.gap;
        card.sent.push_back((card.free_at, packet));
        all.arrived(packet.flow, packet.number, card.free_at);
    }
}

/// Takes a packet from the queue, or leaves it.
fn take(all: &mut All<'_>, on: ProcessorId, doing: Doing) -> Option<Doing> {
    if doing.left == 0 || all.waiting(doing.queue) == 0 {
        return None;
    }
    all.hold(on, Locked::Queue(doing.queue), all.setting.price.take);
    Some(Doing {
        packet: Some(all.take(doing.queue)?),
        left: doing.left - 1,
        ..doing
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
