//! A guest: its front end, in a process that has its own pages and its channel. Packets are those of a
//! [`TrafficSource`], as on the other paths.
//!
//! ```text
//! its memory   | packets to send, until they are answered | buffers for what comes in |
//! ```
//!
//! A guest trusts the hypervisor, as each guest does.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::channel::{Channel, EVENT_ANSWERS, EVENT_ARRIVALS, REFUSED, RING};
use crate::measure::profile::{Component, enter_phase};
use crate::measure::steps;
use crate::memory::Machine;
use crate::packets::rings::Sent;
use crate::packets::round::outgoing;
use crate::traffic::source::{Landed, Prepared, Shape, TrafficSource};

/// Bytes of a buffer: a frame, and what keeps buffers in lines of the cache.
pub const BUFFER: u64 = 2048;

twin_abi::listed! {
    /// What a guest does when it is entered, besides what it is told.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u32)]
    pub enum Order {
        /// Nothing.
        Rest = 0,
        /// So many packets are made, which is the test's work.
        Prepare = 1,
        /// It sends what is made, with one kick.
        Send = 2,
        /// The same, with a kick for each packet.
        SendEach = 3,
        /// What came in is checked, and everything reported, which is the test's work.
        Check = 4,
        /// It is to be told of each answer (argument 1), or when half a ring was answered (0).
        Tell = 5,
        /// From now on its instructions are counted (argument 1), or not any more (0).
        Count = 6,
    }
}

impl Order {
    fn of_word(word: u32) -> Order {
        let known = Order::ALL.iter().find(|order| **order as u32 == word);
        known.copied().unwrap_or(Order::Rest)
    }
}

/// Why a guest was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// [`EVENT_ANSWERS`], [`EVENT_ARRIVALS`].
    pub events: u32,
    /// What it is to do.
    pub order: Order,
    /// How often, or how many.
    pub argument: u32,
}

/// What a guest has seen. The test reads it; nobody relies on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets that were sent, by their answers.
    pub completed: u64,
    /// Answers to nothing that it had asked.
    pub bad_answers: u64,
    /// Packets that were refused.
    pub refused: u64,
    /// Packets that are made and not sent.
    pub ready: u64,
    /// Packets without an answer.
    pub unanswered: u64,
    /// Packets that came in, as they were sent.
    pub received: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Packets that came in changed, or of a stranger.
    pub corrupted: u64,
    /// Packets of its flow that did not come in, by the numbers of those that did.
    pub missing: u64,
    /// Buffers that were refused.
    pub refused_buffers: u64,
    /// Instructions of its own work, while they were counted.
    pub instructions: u64,
}

impl Report {
    const WORDS: usize = 11;

    fn words(&self) -> [u64; Report::WORDS] {
        [
            self.completed,
            self.bad_answers,
            self.refused,
            self.ready,
            self.unanswered,
            self.received,
            self.bytes,
            self.corrupted,
            self.missing,
            self.refused_buffers,
            self.instructions,
        ]
    }

    /// What a guest has reported last.
    pub fn read(channel: &Channel) -> Report {
        let word = |at: usize| channel.desk.report[at].load(Ordering::Acquire);
        Report {
            completed: word(0),
            bad_answers: word(1),
            refused: word(2),
            ready: word(3),
            unanswered: word(4),
            received: word(5),
            bytes: word(6),
            corrupted: word(7),
            missing: word(8),
            refused_buffers: word(9),
            instructions: word(10),
        }
    }
}

/// What an honest guest does each time that it is entered.
pub fn honest(front: &mut Front<'_>, entry: Entry) {
    front.act(entry);
}

/// The front end.
pub struct Front<'m> {
    /// What it shares with the hypervisor.
    pub channel: &'m Channel,
    /// Its packets, and the check of those that come in.
    pub source: TrafficSource<'m>,
    /// Its memory, as machine addresses.
    pub memory: Range<u64>,
    /// Its number.
    pub guest: u32,
    ready: VecDeque<Prepared>,
    /// What waits for an answer, by its cookie.
    asked: Vec<Option<Prepared>>,
    requests: u32,
    answers: u32,
    posted: u32,
    arrivals: u32,
    buffers: Vec<u64>,
    /// Buffers by their place in the ring.
    places: [u64; RING as usize],
    /// Buffers whose packets are not checked yet.
    full: Vec<u64>,
    each: bool,
    counted: bool,
    refused_buffers: u64,
    bad_answers: u64,
    instructions: u64,
}

impl<'m> Front<'m> {
    /// The front end of a guest of `flows`, with its buffers posted.
    pub fn new(
        machine: &'m Machine,
        channel: &'m Channel,
        guest: u32,
        shape: Shape,
        flows: u32,
    ) -> Front<'m> {
        let memory = machine.sizes().guest(guest);
        let half = memory.start + (memory.end - memory.start) / 2;
        let to_send = memory.start..half;
        let buffers = (half..memory.end).step_by(BUFFER as usize);
        let mut front = Front {
            channel,
            source: TrafficSource::new(machine, outgoing(guest), to_send, shape, flows as usize),
            guest,
            ready: VecDeque::new(),
            asked: Vec::new(),
            requests: 0,
            answers: 0,
            posted: 0,
            arrivals: 0,
            buffers: buffers.collect(),
            places: [0; RING as usize],
            full: Vec::new(),
            each: true,
            counted: false,
            refused_buffers: 0,
            bad_answers: 0,
            instructions: 0,
            memory,
        };
        front.tell();
        front.post();
        front
    }

    /// Why the guest was entered.
    pub fn entry(&self) -> Entry {
        let desk = &self.channel.desk;
        Entry {
            events: self.channel.events.load(Ordering::Acquire),
            order: Order::of_word(desk.order.load(Ordering::Acquire)),
            argument: desk.argument.load(Ordering::Acquire),
        }
    }

    /// What an honest guest does.
    pub fn act(&mut self, entry: Entry) {
        match entry.order {
            Order::Rest | Order::Send | Order::SendEach => self.work(entry),
            Order::Prepare => {
                let made = (0..entry.argument).map_while(|_| self.source.prepare());
                self.ready.extend(made);
            }
            Order::Check => self.check(),
            Order::Tell => {
                self.each = entry.argument != 0;
                self.tell();
            }
            Order::Count => self.counted = entry.argument != 0,
        }
    }

    /// The guest's own work, counted if it is to be.
    fn work(&mut self, entry: Entry) {
        if !self.counted {
            return self.own_work(entry);
        }
        let counted = steps::count(|| {
            enter_phase(Component::Guest);
            self.own_work(entry);
            enter_phase(Component::Idle);
        });
        if let Ok(((), steps)) = counted {
            self.instructions += steps.costs();
        }
    }

    fn own_work(&mut self, entry: Entry) {
        if entry.events & EVENT_ANSWERS != 0 {
            let turned_away = self.take_answers();
            self.tell();
            if turned_away {
                self.send(false);
            }
        }
        if entry.events & EVENT_ARRIVALS != 0 {
            self.take_arrivals();
        }
        match entry.order {
            Order::Send => self.send(false),
            Order::SendEach => self.send(true),
            Order::Rest | Order::Prepare | Order::Check | Order::Tell | Order::Count => {}
        }
    }

    /// Sends what is made, as far as the ring has room. What is answered is taken by the way.
    fn send(&mut self, each: bool) {
        self.take_answers();
        self.tell();
        let before = self.requests;
        while self.requests.wrapping_sub(self.answers) < RING {
            let Some(packet) = self.ready.pop_front() else {
                break;
            };
            let last = self.requests;
            self.ask(packet);
            if each && self.kick_if_wanted(last) {
                // What follows waits, too: packets stay in order.
                if self.take_answers() {
                    break;
                }
            }
        }
        if !each && self.requests != before {
            self.kick_if_wanted(before);
        }
    }

    /// Kicks for the requests since `before`, if the hypervisor wants to be told; whether it did.
    fn kick_if_wanted(&self, before: u32) -> bool {
        let wanted = self.channel.is_kick_wanted(before, self.requests);
        if wanted {
            self.kick();
        }
        wanted
    }

    fn ask(&mut self, packet: Prepared) {
        // SAFETY: its own place, which the hypervisor reads only.
        let request = unsafe { &mut *self.channel.request(self.requests) };
        self.source.describe(&packet, request);
        let cookie = request.cookie as usize;
        if self.asked.len() <= cookie {
            self.asked.resize(cookie + 1, None);
        }
        self.asked[cookie] = Some(packet);
        self.requests = self.requests.wrapping_add(1);
        self.channel
            .requests
            .store(self.requests, Ordering::Release);
    }

    /// A hypercall: whoever executes is not this guest meanwhile.
    pub fn kick(&self) {
        enter_phase(Component::Idle);
        self.channel.turn.kick();
        enter_phase(Component::Guest);
    }

    /// Takes answers; whether there was one to a packet that the driver could not take. It is made ready again.
    fn take_answers(&mut self) -> bool {
        let answers = self.channel.answers.load(Ordering::Acquire);
        let mut again = Vec::new();
        while self.answers != answers {
            let slot = &self.channel.answer[(self.answers % RING) as usize];
            let cookie = slot.cookie.load(Ordering::Relaxed);
            let result = slot.result.load(Ordering::Relaxed);
            self.answers = self.answers.wrapping_add(1);
            let asked = self.asked.get_mut(cookie as usize).and_then(Option::take);
            let Some(packet) = asked else {
                self.bad_answers += 1;
                continue;
            };
            match Sent::from_word(result) {
                Sent::Sent => self.source.complete(cookie),
                Sent::Busy | Sent::NoBuffer | Sent::Down => again.push(packet),
                Sent::Foreign | Sent::Spoofed | Sent::Invalid => self.source.refused(&packet),
            }
        }
        let turned_away = !again.is_empty();
        // In their order, before what was made later.
        again
            .into_iter()
            .rev()
            .for_each(|packet| self.ready.push_front(packet));
        turned_away
    }

    /// Says of which answer it wants to be told.
    fn tell(&self) {
        let further = if self.each { 1 } else { RING / 2 };
        let at = self.answers.wrapping_add(further);
        self.channel.told_at.store(at, Ordering::Release);
    }

    fn take_arrivals(&mut self) {
        let arrivals = self.channel.arrivals.load(Ordering::Acquire);
        while self.arrivals != arrivals {
            let at = (self.arrivals % RING) as usize;
            let length = self.channel.arrival[at].length.load(Ordering::Relaxed);
            let segments = self.channel.arrival[at].segments.load(Ordering::Relaxed);
            self.arrivals = self.arrivals.wrapping_add(1);
            let buffer = self.places[at];
            if length == REFUSED {
                self.refused_buffers += 1;
                self.buffers.push(buffer);
                continue;
            }
            let part = Landed { at: buffer, length };
            self.source
                .landed(&[part], segments as u16, (segments >> 16) as u16);
            self.full.push(buffer);
        }
        self.post();
    }

    /// Gives the hypervisor buffers, as many as the ring has room for.
    fn post(&mut self) {
        while self.posted.wrapping_sub(self.arrivals) < RING {
            let Some(buffer) = self.buffers.pop() else {
                break;
            };
            let at = (self.posted % RING) as usize;
            self.places[at] = buffer;
            self.channel.post[at]
                .address
                .store(buffer, Ordering::Relaxed);
            self.channel.post[at]
                .length
                .store(BUFFER as u32, Ordering::Relaxed);
            self.posted = self.posted.wrapping_add(1);
        }
        self.channel.posted.store(self.posted, Ordering::Release);
    }

    fn check(&mut self) {
        self.take_answers();
        self.source.check();
        self.buffers.append(&mut self.full);
        self.post();
        let received = &self.source.received;
        let report = Report {
            completed: self.source.completed,
            bad_answers: self.bad_answers + self.source.bad_completions,
            refused: self.source.refused,
            ready: self.ready.len() as u64,
            unanswered: self.asked.iter().flatten().count() as u64,
            received: received.packets(),
            bytes: received.bytes(),
            corrupted: received.corrupted + received.strangers,
            missing: received.flows.iter().map(|flow| flow.missing).sum(),
            refused_buffers: self.refused_buffers,
            instructions: self.instructions,
        };
        let words = self.channel.desk.report.iter().zip(report.words());
        words.for_each(|(to, word)| to.store(word, Ordering::Release));
    }
}
