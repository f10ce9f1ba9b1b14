//! The simulation of what guests send: the same processors, queues and cards, the other way.
//!
//! ```text
//! processor: its queues, then its cards, one after the other, for ever
//!   serve a queue   lock ─ take ─ unlock ─ lock of the card ─ check, driver ─ unlock, up to 64 times
//!   visit a card    [interrupt] handler, poll ─ what was sent ─ interrupts of its guests
//! ```
//!
//! Each flow has packets on the way, together as many as a card's ring has descriptors, and its guest gives
//! another for each that was sent. What a guest executes to send is in the price and on the processor
//! that serves it; its own time besides is not simulated. A card has one transmit ring, so whoever
//! sends by it takes its lock.

use std::collections::VecDeque;

use super::card::{Route, THROTTLE, WINDOW, routes};
use super::model::{BackEnd, Locks, Machine, Outcome, Traffic};
use super::queues::{ProcessorId, QueueId};
use super::simulation::{Lock, WEIGHT, hold};
use super::work::WorkPrice;
use crate::live::clock::Clock;
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
    let mut sending = Sending::new(machine, traffic, price, crossings);
    while sending.step() {}
    sending.outcome()
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: u32,
    /// In its flow.
    number: u64,
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Serve(QueueId),
    Visit(usize),
}

/// What a processor is at.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Nothing,
    /// Takes packets from a queue, so many still.
    Serve {
        queue: QueueId,
        left: u32,
    },
    /// Has one that its card is to send.
    Send {
        packet: Packet,
        queue: QueueId,
        left: u32,
    },
}

#[derive(Debug)]
struct Processor {
    clock: Clock,
    doing: Doing,
    jobs: VecDeque<Job>,
    /// The back end's thread runs, or is due to.
    awake: bool,
    locked_out: u64,
    cards: Vec<usize>,
    queues: Vec<QueueId>,
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

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Packet>,
    /// Since when packets wait.
    since: Option<u64>,
}

struct Sending<'a> {
    machine: &'a Machine,
    traffic: &'a Traffic,
    price: &'a WorkPrice,
    crossings: &'a Crossings,
    /// Nanoseconds of a packet on the cable.
    gap: u64,
    routes: Vec<Route>,
    cards: Vec<Card>,
    queues: Vec<Queue>,
    /// One; or one for each queue, and one for each card.
    locks: Vec<Lock>,
    processors: Vec<Processor>,
    /// The number of each flow's next packet, as its guest gives it, and as the cable has it.
    next: Vec<u64>,
    expected: Vec<u64>,
    seen: Outcome,
}

impl<'a> Sending<'a> {
    fn new(
        machine: &'a Machine,
        traffic: &'a Traffic,
        price: &'a WorkPrice,
        crossings: &'a Crossings,
    ) -> Sending<'a> {
        let spread = machine.spread();
        let routes = routes(machine, traffic);
        let queues = (machine.guests * machine.queues) as usize;
        let locks = match machine.locks {
            Locks::One => 1,
            Locks::Queues => queues + machine.cards as usize,
        };
        let processor = |number: u32| Processor {
            clock: Clock::default(),
            doing: Doing::Nothing,
            jobs: VecDeque::new(),
            awake: false,
            locked_out: 0,
            cards: (number..machine.cards)
                .step_by(machine.processors as usize)
                .map(|card| card as usize)
                .collect(),
            queues: spread.of(ProcessorId(number)).collect(),
        };
        let mut sending = Sending {
            machine,
            traffic,
            price,
            crossings,
            gap: wire_time(traffic.size),
            cards: (0..machine.cards).map(|_| Card::default()).collect(),
            queues: (0..queues).map(|_| Queue::default()).collect(),
            locks: vec![Lock::default(); locks],
            processors: (0..machine.processors).map(processor).collect(),
            next: vec![0; routes.len()],
            expected: vec![0; routes.len()],
            routes,
            seen: Outcome {
                in_time: vec![0; machine.guests as usize],
                ..Outcome::default()
            },
        };
        let window = (WINDOW / traffic.flows).max(1);
        for flow in 0..sending.routes.len() {
            for _ in 0..window {
                sending.give(flow as u32, 0);
            }
        }
        sending
    }

    /// A guest gives a packet of that flow.
    fn give(&mut self, flow: u32, now: u64) {
        if now >= self.traffic.time {
            return;
        }
        let number = &mut self.next[flow as usize];
        let packet = Packet {
            flow,
            number: *number,
        };
        *number += 1;
        self.seen.sent += 1;
        let queue = &mut self.queues[self.routes[flow as usize].queue.0 as usize];
        queue.packets.push_back(packet);
        queue.since.get_or_insert(now);
    }

    /// One step of the processor that is furthest behind; false if nothing is left to do.
    fn step(&mut self) -> bool {
        let times = (0..self.processors.len()).filter_map(|p| Some((self.next_time(p)?, p)));
        let Some((at, p)) = times.min() else {
            return false;
        };
        match std::mem::replace(&mut self.processors[p].doing, Doing::Nothing) {
            Doing::Nothing => self.begin(p, at),
            Doing::Serve { queue, left } => self.take(p, queue, left),
            Doing::Send {
                packet,
                queue,
                left,
            } => self.send(p, packet, queue, left),
        }
        true
    }

    /// When a processor goes on, if it has anything to do.
    fn next_time(&self, p: usize) -> Option<u64> {
        let processor = &self.processors[p];
        let now = processor.clock.now();
        if !matches!(processor.doing, Doing::Nothing) || !processor.jobs.is_empty() {
            return Some(now);
        }
        let queues = processor.queues.iter();
        let queues = queues.filter_map(|queue| self.queues[queue.0 as usize].since);
        let cards = processor.cards.iter();
        let cards = cards.filter_map(|card| self.cards[*card].due());
        queues.chain(cards).min().map(|then| then.max(now))
    }

    fn waits(&self, queue: QueueId, now: u64) -> bool {
        let since = self.queues[queue.0 as usize].since;
        since.is_some_and(|since| since <= now)
    }

    /// The next job; of a processor without one, all that there is to do now.
    fn begin(&mut self, p: usize, now: u64) {
        if self.processors[p].jobs.is_empty() {
            let any = self.processors[p].queues.iter();
            let any = any.copied().any(|queue| self.waits(queue, now));
            let processor = &mut self.processors[p];
            let queues = processor.queues.iter().copied().map(Job::Serve);
            let cards = processor.cards.iter().copied().map(Job::Visit);
            processor.jobs = queues.chain(cards).collect();
            processor.awake &= any;
        }
        let processor = &mut self.processors[p];
        let idle = processor.clock.now() < now;
        processor.clock.idle_until(now);
        while let Some(job) = self.processors[p].jobs.pop_front() {
            match job {
                Job::Serve(queue) if self.waits(queue, now) => return self.serve(p, queue, idle),
                Job::Visit(card) if self.cards[card].due().is_some_and(|due| due <= now) => {
                    return self.visit(p, card);
                }
                Job::Serve(_) | Job::Visit(_) => {}
            }
        }
    }

    /// The back end begins with a queue. One that was idle is told by its guest.
    fn serve(&mut self, p: usize, queue: QueueId, idle: bool) {
        let processor = &mut self.processors[p];
        if idle {
            self.seen.wakes += 1;
            processor.clock.work(self.crossings.interrupt);
        }
        if let BackEnd::Threads { switch } = self.machine.back_end
            && !std::mem::replace(&mut processor.awake, true)
        {
            // To the thread, and back.
            self.seen.switches += 2;
            processor.clock.work(2 * switch);
        }
        self.seen.batches += 1;
        processor.clock.work(self.price.sent.batch);
        processor.doing = Doing::Serve {
            queue,
            left: WEIGHT,
        };
    }

    fn lock(&self, of: usize) -> usize {
        match self.machine.locks {
            Locks::One => 0,
            Locks::Queues => of,
        }
    }

    fn hold(&mut self, p: usize, lock: usize, cycles: u64) {
        let lock = self.lock(lock);
        let Processor {
            clock, locked_out, ..
        } = &mut self.processors[p];
        let lock = &mut self.locks[lock];
        *locked_out += hold(lock, clock, p, cycles, self.machine.transfer);
    }

    /// Takes a packet from the queue, or leaves it.
    fn take(&mut self, p: usize, queue: QueueId, left: u32) {
        let at = queue.0 as usize;
        if left == 0 || self.queues[at].packets.is_empty() {
            return;
        }
        self.hold(p, at, self.price.take);
        let waiting = &mut self.queues[at];
        let Some(packet) = waiting.packets.pop_front() else {
            return;
        };
        if waiting.packets.is_empty() {
            waiting.since = None;
        }
        self.processors[p].doing = Doing::Send {
            packet,
            queue,
            left: left - 1,
        };
    }

    /// Its card gets it.
    fn send(&mut self, p: usize, packet: Packet, queue: QueueId, left: u32) {
        let card = (packet.flow / self.traffic.flows) as usize;
        self.hold(p, self.queues.len() + card, self.price.sent.packet);
        let now = self.processors[p].clock.now();
        let card = &mut self.cards[card];
        card.free_at = card.free_at.max(now) + self.gap;
        card.sent.push_back((card.free_at, packet));
        let expected = &mut self.expected[packet.flow as usize];
        self.seen.reordered += u64::from(packet.number < *expected);
        *expected = packet.number + 1;
        self.seen.packets += 1;
        self.seen.time = self.seen.time.max(card.free_at);
        let guest = self.routes[packet.flow as usize].guest as usize;
        self.seen.in_time[guest] += u64::from(card.free_at <= self.traffic.time);
        self.processors[p].doing = Doing::Serve { queue, left };
    }

    /// The card's interrupt: a poll finds what was sent, and its guests are told.
    fn visit(&mut self, p: usize, card: usize) {
        let began = self.processors[p].clock.now();
        self.seen.visits += 1;
        self.seen.interrupts += 1;
        let done = &mut self.cards[card].sent;
        let count = done.iter().take_while(|(at, _)| *at <= began).count();
        let done: Vec<_> = done.drain(..count).map(|(_, packet)| packet).collect();
        self.cards[card].ready = began + THROTTLE;
        let guest = |packet: &Packet| self.routes[packet.flow as usize].guest;
        let mut guests: Vec<_> = done.iter().map(guest).collect();
        guests.sort_unstable();
        guests.dedup();
        let told = guests.len() as u64 * self.crossings.virtual_interrupt;
        let found = self.price.driver.interrupt + count as u64 * self.price.sent.completed;
        self.seen.deliveries += guests.len() as u64;
        let work = self.crossings.interrupt + found + told;
        match self.machine.locks {
            Locks::One => self.hold(p, 0, work),
            Locks::Queues => self.processors[p].clock.work(work),
        }
        let now = self.processors[p].clock.now();
        for packet in done {
            self.give(packet.flow, now);
        }
    }

    fn outcome(self) -> Outcome {
        let processors = &self.processors;
        Outcome {
            waiting: self.queues.iter().map(|q| q.packets.len() as u64).sum(),
            time: self.seen.time.max(self.traffic.time),
            worked: processors.iter().map(|p| p.clock.worked()).collect(),
            locked_out: processors.iter().map(|p| p.locked_out).sum(),
            ..self.seen
        }
    }
}

impl Card {
    /// When it interrupts next.
    fn due(&self) -> Option<u64> {
        self.sent.front().map(|(at, _)| (*at).max(self.ready))
    }
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
