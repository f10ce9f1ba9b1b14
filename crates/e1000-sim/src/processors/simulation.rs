//! A deterministic simulation of processors that share guests' queues.
//!
//! ```text
//! processor: its queues, then its cards, one after the other, for ever
//!   visit a card     [interrupt] handler, poll: up to 64 frames ─ hash ─ lock ─ put ─ unlock
//!   give from queue  lock ─ take ─ unlock, for each ─ the guest's interrupt ─ its packets
//! ```
//!
//! Each processor has a clock that its work advances, by instructions counted of the real driver
//! ([`super::work`]), one a cycle, and by crossings as quoted. The one whose clock is furthest
//! behind goes next, one step at a time, so that locks are taken in the order of time. A lock is
//! held for the instructions of what is done under it; who finds it held waits.
//!
//! What is not simulated: caches, memory's bandwidth, two threads of one core, and the guests'
//! own processors, which Dong's guests have, too. With those the figures would be lower.

use std::collections::VecDeque;

use super::card::{Card, Frame, Route, routes};
use super::model::{BackEnd, Locks, Machine, Outcome, Traffic};
use super::queues::{ProcessorId, QueueId};
use super::work::WorkPrice;
use crate::live::clock::Clock;
use crate::live::price::Crossings;

/// Frames of one visit: the driver's weight (e1000_main.c, `netif_napi_add`).
pub(super) const WEIGHT: u32 = 64;

/// Sends frames to a machine and follows each to its guest.
///
/// # Panics
/// If a machine without processors, cards, guests or queues, or traffic without flows, is given.
pub fn simulate(
    machine: &Machine,
    traffic: &Traffic,
    price: &WorkPrice,
    crossings: &Crossings,
) -> Outcome {
    let mut simulation = Simulation::new(machine, traffic, price, crossings);
    while simulation.step() {}
    simulation.outcome()
}

/// One thing that a processor does next.
#[derive(Clone, Copy, Debug)]
enum Job {
    Visit(usize),
    Give(QueueId),
}

/// What a processor is at.
#[derive(Debug)]
enum Doing {
    Nothing,
    /// At a card; with a frame that is to be put into its queue.
    Visit {
        card: usize,
        began: u64,
        left: u32,
        frame: Option<Frame>,
    },
    /// Out of a queue, so many still.
    Take {
        queue: QueueId,
        left: usize,
        taken: Vec<Frame>,
    },
    /// They are the guest's at this time.
    Given(Vec<Frame>),
}

#[derive(Debug)]
struct Processor {
    clock: Clock,
    doing: Doing,
    jobs: VecDeque<Job>,
    /// The back end's thread runs, or is due to.
    awake: bool,
    /// Nanoseconds.
    locked_out: u64,
    cards: Vec<usize>,
    queues: Vec<QueueId>,
}

/// A lock as a resource.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lock {
    free_at: u64,
    last: Option<usize>,
}

/// Processor `p` waits for a lock and holds it for so many cycles, and `transfer` more if another one
/// had it last. How many nanoseconds it waited.
pub(super) fn hold(
    lock: &mut Lock,
    clock: &mut Clock,
    p: usize,
    cycles: u64,
    transfer: u64,
) -> u64 {
    let waited = lock.free_at.saturating_sub(clock.now());
    clock.idle_until(lock.free_at);
    let moved = lock.last.is_some_and(|last| last != p);
    clock.work(cycles + if moved { transfer } else { 0 });
    (lock.free_at, lock.last) = (clock.now(), Some(p));
    waited
}

#[derive(Debug, Default)]
struct SimulatedQueue {
    packets: VecDeque<Frame>,
    /// When the first was put, by whom.
    since: Option<(u64, usize)>,
}

struct Simulation<'a> {
    machine: &'a Machine,
    traffic: &'a Traffic,
    price: &'a WorkPrice,
    crossings: &'a Crossings,
    routes: Vec<Route>,
    cards: Vec<Card>,
    queues: Vec<SimulatedQueue>,
    /// One, or one for each queue.
    locks: Vec<Lock>,
    processors: Vec<Processor>,
    /// The number that each flow's guest expects.
    next: Vec<u64>,
    seen: Outcome,
}

impl<'a> Simulation<'a> {
    fn new(
        machine: &'a Machine,
        traffic: &'a Traffic,
        price: &'a WorkPrice,
        crossings: &'a Crossings,
    ) -> Simulation<'a> {
        let spread = machine.spread();
        let routes = routes(machine, traffic);
        let queues = (machine.guests * machine.queues) as usize;
        let locks = match machine.locks {
            Locks::One => 1,
            Locks::Queues => queues,
        };
        let asleep = |queue: &QueueId| Some(spread.guest(*queue)) == traffic.flood;
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
            queues: spread
                .of(ProcessorId(number))
                .filter(|queue| !asleep(queue))
                .collect(),
        };
        Simulation {
            machine,
            traffic,
            price,
            crossings,
            cards: (0..machine.cards)
                .map(|card| Card::new(card, traffic))
                .collect(),
            queues: (0..queues).map(|_| SimulatedQueue::default()).collect(),
            locks: vec![Lock::default(); locks],
            processors: (0..machine.processors).map(processor).collect(),
            next: vec![0; routes.len()],
            routes,
            seen: Outcome {
                in_time: vec![0; machine.guests as usize],
                ..Outcome::default()
            },
        }
    }

    /// One step of the processor that is furthest behind; false if nothing is left to do.
    fn step(&mut self) -> bool {
        let times = (0..self.processors.len()).filter_map(|p| Some((self.next_time(p)?, p)));
        let Some((at, p)) = times.min() else {
            return false;
        };
        match std::mem::replace(&mut self.processors[p].doing, Doing::Nothing) {
            Doing::Nothing => self.begin(p, at),
            Doing::Visit {
                card,
                began,
                left,
                frame,
            } => match frame {
                Some(frame) => {
                    self.put(p, frame);
                    self.visit(p, card, began, left);
                }
                None => self.poll(p, card, began, left),
            },
            Doing::Take { queue, left, taken } => self.take(p, queue, left, taken),
            Doing::Given(frames) => self.given(p, &frames),
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
        let queues = queues.filter_map(|queue| Some(self.queues[queue.0 as usize].since?.0));
        let cards = processor.cards.iter();
        let cards = cards.filter_map(|card| self.cards[*card].due());
        queues.chain(cards).min().map(|then| then.max(now))
    }

    /// The next job; of a processor without one, all that there is to do now.
    fn begin(&mut self, p: usize, now: u64) {
        let waits = |queue: &QueueId| {
            let since = self.queues[queue.0 as usize].since;
            since.is_some_and(|(since, _)| since <= now)
        };
        let any = self.processors[p].queues.iter().any(waits);
        let processor = &mut self.processors[p];
        if processor.jobs.is_empty() {
            processor.awake &= any;
            let queues = processor.queues.iter().copied().map(Job::Give);
            let cards = processor.cards.iter().copied().map(Job::Visit);
            processor.jobs = queues.chain(cards).collect();
        }
        let idle = processor.clock.now() < now;
        processor.clock.idle_until(now);
        while let Some(job) = self.processors[p].jobs.pop_front() {
            match job {
                Job::Visit(card) if self.cards[card].due().is_some_and(|due| due <= now) => {
                    return self.arrive_at(p, card);
                }
                Job::Give(queue) => {
                    let waits = self.queues[queue.0 as usize].since;
                    let Some((_, by)) = waits.filter(|(since, _)| *since <= now) else {
                        continue;
                    };
                    if idle && by != p {
                        self.seen.wakes += 1;
                        self.processors[p].clock.work(self.crossings.interrupt);
                    }
                    self.switch(p);
                    return self.give(p, queue);
                }
                Job::Visit(_) => {}
            }
        }
    }

    /// To the back end's thread, if it sleeps, and back.
    fn switch(&mut self, p: usize) {
        let processor = &mut self.processors[p];
        if let BackEnd::Threads { switch } = self.machine.back_end
            && !std::mem::replace(&mut processor.awake, true)
        {
            self.seen.switches += 2;
            processor.clock.work(2 * switch);
        }
    }

    /// The card's interrupt, and its handler.
    fn arrive_at(&mut self, p: usize, card: usize) {
        let clock = &mut self.processors[p].clock;
        let began = clock.now();
        self.seen.visits += 1;
        if !self.cards[card].polled {
            self.seen.interrupts += 1;
            clock.work(self.crossings.interrupt);
        }
        clock.work(self.price.driver.interrupt);
        self.visit(p, card, began, WEIGHT);
    }

    fn visit(&mut self, p: usize, card: usize, began: u64, left: u32) {
        self.processors[p].doing = Doing::Visit {
            card,
            began,
            left,
            frame: None,
        };
    }

    /// The driver takes a frame, or the visit ends.
    fn poll(&mut self, p: usize, card: usize, began: u64, left: u32) {
        let clock = &mut self.processors[p].clock;
        let frame = match left {
            0 => None,
            _ => self.cards[card].take(clock.now()),
        };
        let Some(frame) = frame else {
            self.cards[card].leave(began, left == 0);
            return;
        };
        clock.work(self.price.driver.packet + self.price.hash);
        self.processors[p].doing = Doing::Visit {
            card,
            began,
            left: left - 1,
            frame: Some(frame),
        };
    }

    /// Waits for a queue's lock and holds it for so many cycles.
    fn hold(&mut self, p: usize, queue: QueueId, cycles: u64) {
        let lock = match self.machine.locks {
            Locks::One => &mut self.locks[0],
            Locks::Queues => &mut self.locks[queue.0 as usize],
        };
        let Processor {
            clock, locked_out, ..
        } = &mut self.processors[p];
        *locked_out += hold(lock, clock, p, cycles, self.machine.transfer);
    }

    fn put(&mut self, p: usize, frame: Frame) {
        let route = self.routes[frame.flow as usize];
        self.hold(p, route.queue, self.price.put);
        let now = self.processors[p].clock.now();
        let queue = &mut self.queues[route.queue.0 as usize];
        if queue.packets.len() >= self.machine.room {
            self.seen.dropped += 1;
            self.cards[frame.card as usize].done(now);
            return;
        }
        queue.packets.push_back(frame);
        queue.since.get_or_insert((now, p));
        if Some(route.guest) == self.traffic.flood {
            self.cards[frame.card as usize].done(now);
        }
    }

    /// All that is in the queue goes to its guest.
    fn give(&mut self, p: usize, queue: QueueId) {
        let left = self.queues[queue.0 as usize].packets.len();
        match self.machine.locks {
            Locks::Queues => self.take(p, queue, left, Vec::with_capacity(left)),
            Locks::One => {
                let interrupt = self.crossings.virtual_interrupt;
                let cycles = self.price.delivery(left as u64) + interrupt;
                self.hold(p, queue, cycles);
                let taken = (0..left).filter_map(|_| self.pop(queue)).collect();
                self.processors[p].doing = Doing::Given(taken);
            }
        }
    }

    fn pop(&mut self, queue: QueueId) -> Option<Frame> {
        let queue = &mut self.queues[queue.0 as usize];
        let frame = queue.packets.pop_front();
        if queue.packets.is_empty() {
            queue.since = None;
        }
        frame
    }

    /// Takes a packet, or gives what was taken.
    fn take(&mut self, p: usize, queue: QueueId, left: usize, mut taken: Vec<Frame>) {
        if left > 0 {
            self.hold(p, queue, self.price.take);
            taken.extend(self.pop(queue));
            let left = left - 1;
            self.processors[p].doing = Doing::Take { queue, left, taken };
            return;
        }
        let under_locks = taken.len() as u64 * self.price.take;
        let cycles = self.price.delivery(taken.len() as u64) - under_locks;
        let processor = &mut self.processors[p];
        let crossing = self.crossings.virtual_interrupt;
        processor.clock.work(cycles + crossing);
        processor.doing = Doing::Given(taken);
    }

    /// The guest has them.
    fn given(&mut self, p: usize, frames: &[Frame]) {
        let now = self.processors[p].clock.now();
        self.seen.deliveries += 1;
        self.seen.time = self.seen.time.max(now);
        for frame in frames {
            let guest = self.routes[frame.flow as usize].guest as usize;
            let next = &mut self.next[frame.flow as usize];
            self.seen.reordered += u64::from(frame.number < *next);
            *next = frame.number + 1;
            self.seen.packets += 1;
            self.seen.in_time[guest] += u64::from(now <= self.traffic.time);
            self.cards[frame.card as usize].done(now);
        }
    }

    fn outcome(self) -> Outcome {
        let processors = &self.processors;
        Outcome {
            sent: self.cards.iter().map(Card::sent).sum(),
            missed: self.cards.iter().map(|card| card.missed).sum(),
            waiting: self.queues.iter().map(|q| q.packets.len() as u64).sum(),
            time: self.seen.time.max(self.traffic.time),
            worked: processors.iter().map(|p| p.clock.worked()).collect(),
            locked_out: processors.iter().map(|p| p.locked_out).sum(),
            ..self.seen
        }
    }
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
pub(super) mod tests;
