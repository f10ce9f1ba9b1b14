//! A deterministic simulation of processors that share guests' queues, whichever way packets go.
//!
//! ```text
//! processor: its queues, then its cards, one after the other, for ever
//!   a queue in which packets wait   what is done then is the way's:
//!   a card that is due              receiving, sending
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

use super::card::{Route, routes};
use super::model::{BackEnd, Locks, Machine, Outcome, Traffic};
use super::queues::{ProcessorId, QueueId};
use super::work::WorkPrice;
use crate::live::clock::{Clock, HZ};
use crate::live::price::Crossings;

/// Packets of one job: the driver's weight (e1000_main.c, `netif_napi_add`).
pub(super) const WEIGHT: u32 = 64;

/// What processors do with queues and cards.
pub(super) trait Way: Sized {
    /// What waits in queues.
    type Packet;
    /// What a processor is at, between two steps of a job.
    type Doing;

    /// When a card's processor is to look at it, if ever.
    fn due(&self, card: usize) -> Option<u64>;

    /// The first step with a queue in which packets wait; what is left to do, if anything.
    fn serve(
        &mut self,
        all: &mut Simulation<'_, Self>,
        on: ProcessorId,
        queue: QueueId,
    ) -> Left<Self>;

    /// The first step with a card that is due.
    fn visit(&mut self, all: &mut Simulation<'_, Self>, on: ProcessorId, card: usize)
    -> Left<Self>;

    /// The next step of what was left.
    fn go_on(
        &mut self,
        all: &mut Simulation<'_, Self>,
        on: ProcessorId,
        doing: Self::Doing,
    ) -> Left<Self>;
}

/// What it is at after the step; `None` if that was its job's last.
pub(super) type Left<W> = Option<<W as Way>::Doing>;

/// What is simulated, and what it costs.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) machine: &'a Machine,
    pub(super) traffic: &'a Traffic,
    pub(super) price: &'a WorkPrice,
    pub(super) crossings: &'a Crossings,
}

/// What a lock is of; with [`Locks::One`] it is the same for all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Locked {
    Queue(QueueId),
    /// A card's transmit ring.
    Card(usize),
}

/// A lock as a resource.
#[derive(Clone, Copy, Debug, Default)]
struct Lock {
    /// Nanoseconds.
    free_at: u64,
    last: Option<ProcessorId>,
}

/// One thing that a processor does next.
#[derive(Clone, Copy, Debug)]
enum Job {
    Serve(QueueId),
    Visit(usize),
}

struct Processor<D> {
    clock: Clock,
    doing: Option<D>,
    jobs: VecDeque<Job>,
    /// The back end's thread runs, or is due to.
    awake: bool,
    /// Nanoseconds.
    locked_out: u64,
    cards: Vec<usize>,
    queues: Vec<QueueId>,
}

/// When the first packet of a queue was put there, in nanoseconds, and by whom.
#[derive(Clone, Copy, Debug)]
struct Since {
    at: u64,
    /// `None`: by its guest.
    by: Option<ProcessorId>,
}

struct Queue<P> {
    packets: VecDeque<P>,
    since: Option<Since>,
}

pub(super) struct Simulation<'a, W: Way> {
    pub(super) setting: Setting<'a>,
    pub(super) routes: Vec<Route>,
    pub(super) seen: Outcome,
    /// Guests', then cards', if they have some.
    queues: Vec<Queue<W::Packet>>,
    /// One; or one for each queue, and one for each card whose driver has one.
    locks: Vec<Lock>,
    processors: Vec<Processor<W::Doing>>,
    /// The number of each flow's next packet, where it ends.
    expected: Vec<u64>,
}

impl<'a, W: Way> Simulation<'a, W> {
    /// At the begin of time. Nobody serves the queues of a guest that is `asleep`.
    pub(super) fn new(setting: Setting<'a>, asleep: Option<u32>) -> Simulation<'a, W> {
        let Setting {
            machine, traffic, ..
        } = setting;
        let routes = routes(machine, traffic);
        let (guests, cards) = (guest_queues(machine), machine.cards as usize);
        let (queues, locks) = match machine.locks {
            Locks::One => (guests, 1),
            Locks::Queues => (guests, guests + cards),
            Locks::Handed => (guests + cards, guests + cards),
        };
        let processors = (0..machine.processors).map(ProcessorId);
        Simulation {
            setting,
            queues: (0..queues).map(|_| Queue::default()).collect(),
            locks: vec![Lock::default(); locks],
            processors: processors
                .map(|number| Processor::new(number, machine, asleep))
                .collect(),
            expected: vec![0; routes.len()],
            routes,
            seen: Outcome {
                in_time: vec![0; machine.guests as usize],
                ..Outcome::default()
            },
        }
    }

    /// Until nothing is left to do.
    pub(super) fn run(mut self, way: &mut W) -> Outcome {
        while self.step(way) {}
        Outcome {
            waiting: self.queues.iter().map(|q| q.packets.len() as u64).sum(),
            time: self.seen.time.max(self.setting.traffic.time),
            worked: self.processors.iter().map(|p| p.clock.worked()).collect(),
            locked_out: self.processors.iter().map(|p| p.locked_out).sum(),
            ..self.seen
        }
    }

    /// One step of the processor that is furthest behind; false if nothing is left to do.
    fn step(&mut self, way: &mut W) -> bool {
        let all = (0..self.processors.len() as u32).map(ProcessorId);
        let times = all.filter_map(|on| Some((self.next_time(way, on)?, on)));
        let Some((at, on)) = times.min() else {
            return false;
        };
        let left = match self.processor(on).doing.take() {
            None => self.begin(way, on, at),
            Some(doing) => way.go_on(self, on, doing),
        };
        self.processor(on).doing = left;
        true
    }

    /// When a processor goes on, if it has anything to do.
    fn next_time(&self, way: &W, on: ProcessorId) -> Option<u64> {
        let processor = &self.processors[on.0 as usize];
        let now = processor.clock.now();
        if processor.doing.is_some() || !processor.jobs.is_empty() {
            return Some(now);
        }
        let queues = processor.queues.iter();
        let queues = queues.filter_map(|queue| Some(self.queues[queue.0 as usize].since?.at));
        let cards = processor.cards.iter();
        let cards = cards.filter_map(|card| way.due(*card));
        queues.chain(cards).min().map(|then| then.max(now))
    }

    /// The next job; of a processor without one, all that there is to do now.
    fn begin(&mut self, way: &mut W, on: ProcessorId, now: u64) -> Left<W> {
        self.look_for_jobs(on, now);
        let processor = self.processor(on);
        let idle = processor.clock.now() < now;
        processor.clock.idle_until(now);
        while let Some(job) = self.processor(on).jobs.pop_front() {
            match job {
                Job::Visit(card) => {
                    if way.due(card).is_some_and(|due| due <= now) {
                        return way.visit(self, on, card);
                    }
                }
                Job::Serve(queue) => {
                    if let Some(since) = self.waits(queue, now) {
                        self.wake(on, idle && since.by != Some(on));
                        return way.serve(self, on, queue);
                    }
                }
            }
        }
        None
    }

    fn look_for_jobs(&mut self, on: ProcessorId, now: u64) {
        let processor = &self.processors[on.0 as usize];
        if !processor.jobs.is_empty() {
            return;
        }
        let mut queues = processor.queues.iter();
        let any = queues.any(|queue| self.waits(*queue, now).is_some());
        let queues = processor.queues.iter().copied().map(Job::Serve);
        let cards = processor.cards.iter().copied().map(Job::Visit);
        let jobs = queues.chain(cards).collect();
        let processor = self.processor(on);
        processor.jobs = jobs;
        processor.awake &= any;
    }

    /// Since when packets wait in a queue, if they do.
    fn waits(&self, queue: QueueId, now: u64) -> Option<Since> {
        let since = self.queues[queue.0 as usize].since;
        since.filter(|since| since.at <= now)
    }

    /// Somebody tells a processor that packets wait, if it has to be told; and it switches to the
    /// back end's thread, if that sleeps, and back.
    fn wake(&mut self, on: ProcessorId, told: bool) {
        let Setting {
            machine, crossings, ..
        } = self.setting;
        if told {
            self.seen.wakes += 1;
            self.clock(on).work(crossings.interrupt);
        }
        if let BackEnd::Threads { switch } = machine.back_end
            && !std::mem::replace(&mut self.processor(on).awake, true)
        {
            self.seen.switches += 2;
            self.clock(on).work(2 * switch);
        }
    }

    fn processor(&mut self, on: ProcessorId) -> &mut Processor<W::Doing> {
        &mut self.processors[on.0 as usize]
    }

    /// A processor's clock.
    pub(super) fn clock(&mut self, on: ProcessorId) -> &mut Clock {
        &mut self.processor(on).clock
    }

    /// A processor waits for a lock and holds it for so many cycles, and for those of a transfer if
    /// another one had it last.
    pub(super) fn hold(&mut self, on: ProcessorId, what: Locked, cycles: u64) {
        let Machine {
            locks, transfer, ..
        } = *self.setting.machine;
        let lock = self.lock_of(what);
        let of_card = lock >= guest_queues(self.setting.machine);
        let lock = &mut self.locks[lock];
        let processor = &mut self.processors[on.0 as usize];
        let clock = &mut processor.clock;
        let wait = lock.free_at.saturating_sub(clock.now());
        processor.locked_out += wait;
        if of_card && locks != Locks::One {
            self.seen.locked_out_of_cards += wait;
            self.seen.longest_wait = self.seen.longest_wait.max(wait * HZ / 1_000_000_000);
        }
        clock.idle_until(lock.free_at);
        let moved = lock.last.is_some_and(|last| last != on);
        clock.work(cycles + if moved { transfer } else { 0 });
        (lock.free_at, lock.last) = (clock.now(), Some(on));
    }

    fn lock_of(&self, what: Locked) -> usize {
        match (self.setting.machine.locks, what) {
            (Locks::One, _) => 0,
            (Locks::Queues | Locks::Handed, Locked::Queue(queue)) => queue.0 as usize,
            (Locks::Queues | Locks::Handed, Locked::Card(card)) => {
                guest_queues(self.setting.machine) + card
            }
        }
    }

    /// Whether a processor would have to wait for a lock.
    pub(super) fn is_held(&self, on: ProcessorId, what: Locked) -> bool {
        let now = self.processors[on.0 as usize].clock.now();
        self.locks[self.lock_of(what)].free_at > now
    }

    /// The queue of a card.
    pub(super) fn card_queue(&self, card: u32) -> QueueId {
        QueueId(guest_queues(self.setting.machine) as u32 + card)
    }

    /// The card whose queue that is, if it is none of a guest's.
    pub(super) fn card_of(&self, queue: QueueId) -> Option<usize> {
        (queue.0 as usize).checked_sub(guest_queues(self.setting.machine))
    }

    /// Puts a packet into a queue at that time; `by` a processor, or its guest.
    pub(super) fn put(
        &mut self,
        queue: QueueId,
        packet: W::Packet,
        at: u64,
        by: Option<ProcessorId>,
    ) {
        let queue = &mut self.queues[queue.0 as usize];
        queue.packets.push_back(packet);
        queue.since.get_or_insert(Since { at, by });
    }

    /// Takes a queue's first packet.
    pub(super) fn take(&mut self, queue: QueueId) -> Option<W::Packet> {
        let queue = &mut self.queues[queue.0 as usize];
        let packet = queue.packets.pop_front();
        if queue.packets.is_empty() {
            queue.since = None;
        }
        packet
    }

    /// Packets in a queue.
    pub(super) fn waiting(&self, queue: QueueId) -> usize {
        self.queues[queue.0 as usize].packets.len()
    }

    /// A flow's packet of that number is where it was to be.
    pub(super) fn arrived(&mut self, flow: u32, number: u64, at: u64) {
        let guest = self.routes[flow as usize].guest as usize;
        let expected = &mut self.expected[flow as usize];
        self.seen.reordered += u64::from(number < *expected);
        *expected = number + 1;
        self.seen.packets += 1;
        self.seen.time = self.seen.time.max(at);
        self.seen.in_time[guest] += u64::from(at <= self.setting.traffic.time);
    }
}

fn guest_queues(machine: &Machine) -> usize {
    (machine.guests * machine.queues) as usize
}

impl<D> Processor<D> {
    fn new(number: ProcessorId, machine: &Machine, asleep: Option<u32>) -> Processor<D> {
        let spread = machine.spread();
        let cards = (number.0..machine.cards).step_by(machine.processors as usize);
        let queues = spread.of(number);
        let queues = queues.filter(|queue| Some(spread.guest(*queue)) != asleep);
        let own = (number.0..machine.cards).step_by(machine.processors as usize);
        let own = own.map(|card| QueueId(guest_queues(machine) as u32 + card));
        let own = own.filter(|_| machine.locks == Locks::Handed);
        Processor {
            clock: Clock::default(),
            doing: None,
            jobs: VecDeque::new(),
            awake: false,
            locked_out: 0,
            cards: cards.map(|card| card as usize).collect(),
            queues: queues.chain(own).collect(),
        }
    }
}

impl<P> Default for Queue<P> {
    fn default() -> Queue<P> {
        Queue {
            packets: VecDeque::new(),
            since: None,
        }
    }
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
pub(super) mod tests;
