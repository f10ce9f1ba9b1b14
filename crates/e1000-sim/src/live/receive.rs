//! Frames arrive at a rate, whatever the machine does meanwhile.
//!
//! ```text
//! frames, at their times ─> card ─ its throttle ─> interrupt ─> handler, polls
//!                                                                  └─ notify
//!            guests <─ virtual interrupt, when due <───────────────────┘
//! ```
//!
//! One processor does all of it, guests that are due before the card's next interrupt:
//! otherwise a card that always has frames would leave them nothing. Its work and its crossings advance the clock ([`super::price`]); frames that arrive
//! meanwhile are in the card's ring afterwards, or lost if that is full.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::price::{Crossings, Price};
use super::rig::Rig;
use crate::packets::packet_loop::{Engine, Stop};
use crate::stages::aggregate::Merged;

/// Preamble, frame check sequence and gap of a frame, in bytes (IEEE 802.3, 4.4.2).
const AROUND: u64 = 8 + 4 + 12;

/// Nanoseconds of a frame on a cable of a gigabit a second.
pub fn wire_time(size: usize) -> u64 {
    (size as u64 + AROUND) * 8
}

/// What is sent to the machine.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// Guests, by turns: 0 to `guests` - 1.
    pub guests: u32,
    /// Frames in all.
    pub packets: u64,
    /// Nanoseconds from one to the next.
    pub interval: u64,
    /// Guests have timers of their own, by which they look for packets: nanoseconds from one to
    /// the next. Each costs what a notification does, whether it finds packets or not.
    pub timer: Option<u64>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Frames that guests got.
    pub packets: u64,
    /// Packets that they were when they were handed on: fewer, if segments were merged.
    #[serde(default)]
    pub handed: u64,
    /// Frames for which the card had no room.
    pub missed: u64,
    /// Frames that the card had and no guest got: a guest's queue was full.
    pub dropped: u64,
    /// Frames that came as they were not sent.
    pub corrupted: u64,
    /// Interrupts of the card.
    pub interrupts: u64,
    /// Interrupts of guests.
    pub virtual_interrupts: u64,
    /// Nanoseconds from the first frame to the last delivery.
    pub time: u64,
    /// Cycles of the machine that is played: counted instructions, quoted crossings.
    pub cycles: u64,
    /// Of which crossings.
    pub crossing_cycles: u64,
    /// Cycles of the processor here, without crossings.
    pub measured_cycles: u64,
    /// Nanoseconds from the cable to the guest: half of the frames took less.
    pub latency_median: u64,
    /// One in a hundred took more.
    pub latency_p99: u64,
    /// The longest.
    pub latency_most: u64,
}

impl Outcome {
    /// Part of the time that the processor worked.
    pub fn load(&self) -> f64 {
        self.cycles as f64 / super::clock::HZ as f64 / (self.time.max(1) as f64 / 1e9)
    }

    /// Cycles a packet that arrived.
    pub fn cycles_a_packet(&self) -> f64 {
        self.cycles as f64 / self.packets.max(1) as f64
    }

    /// The same with what the processor here took in place of counted instructions.
    pub fn measured_a_packet(&self) -> f64 {
        (self.measured_cycles + self.crossing_cycles) as f64 / self.packets.max(1) as f64
    }
}

/// A run.
struct Run<'r, 's> {
    rig: &'r mut Rig<'s>,
    price: &'r Price,
    crossings: &'r Crossings,
    clock: Clock,
    offered: Offered,
    sent: u64,
    /// The card's time when the clock was 0.
    card_start: u64,
    /// When guests look by themselves next, if they do.
    timers: Vec<u64>,
    /// When the frames that a guest is to get arrived.
    waiting: Vec<VecDeque<u64>>,
    latencies: Vec<u64>,
    /// What was merged that no delivery has been charged for.
    unread: Merged,
    outcome: Outcome,
}

/// Sends frames and follows them to their guests.
///
/// # Errors
/// The driver stopped.
pub fn receive(
    rig: &mut Rig<'_>,
    offered: Offered,
    price: &Price,
    crossings: &Crossings,
) -> Result<Outcome, Stop> {
    let (corrupted, cycles) = (rig.corrupted(), rig.cycles());
    let mut run = Run {
        card_start: rig.card_time(),
        rig,
        price,
        crossings,
        clock: Clock::default(),
        offered,
        sent: 0,
        timers: timers(&offered),
        waiting: vec![VecDeque::new(); offered.guests as usize],
        latencies: Vec::new(),
        unread: Merged::default(),
        outcome: Outcome::default(),
    };
    while run.step()? {}
    let mut outcome = run.outcome;
    outcome.time = run.clock.now();
    outcome.cycles = run.clock.worked();
    run.latencies.sort_unstable();
    let at = |part: f64| {
        let last = run.latencies.len().saturating_sub(1) as f64;
        run.latencies.get((last * part) as usize).copied()
    };
    [
        outcome.latency_median,
        outcome.latency_p99,
        outcome.latency_most,
    ] = [0.5, 0.99, 1.0].map(|part| at(part).unwrap_or(0));
    outcome.dropped = run.waiting.iter().map(|waiting| waiting.len() as u64).sum();
    outcome.corrupted = run.rig.corrupted() - corrupted;
    outcome.measured_cycles = run.rig.cycles() - cycles;
    Ok(outcome)
}

/// When each guest looks first: their timers know nothing of each other.
fn timers(offered: &Offered) -> Vec<u64> {
    let Some(period) = offered.timer else {
        return Vec::new();
    };
    let guests = u64::from(offered.guests);
    (1..=guests).map(|guest| guest * period / guests).collect()
}

impl Run<'_, '_> {
    /// One thing; false if nothing is left to do.
    fn step(&mut self) -> Result<bool, Stop> {
        self.arrivals();
        self.timers_end();
        if self.rig.engine.due(self.clock.now()) != 0 {
            self.deliver()?;
        } else if self.rig.line() || self.rig.engine.causes_wait() {
            self.interrupt()?;
        } else {
            let Some(next) = self.next_event() else {
                return Ok(false);
            };
            self.clock.idle_until(next);
        }
        Ok(true)
    }

    /// Frames up to now, each at its time.
    fn arrivals(&mut self) {
        while self.sent < self.offered.packets {
            let at = self.sent * self.offered.interval;
            if at > self.clock.now() {
                break;
            }
            self.card_time(at);
            let guest = (self.sent % u64::from(self.offered.guests)) as u32;
            match self.rig.arrive(guest) {
                true => self.waiting[guest as usize].push_back(at),
                false => self.outcome.missed += 1,
            }
            self.sent += 1;
        }
        self.card_time(self.clock.now());
    }

    /// The card's time is the clock's.
    fn card_time(&mut self, now: u64) {
        let behind = (self.card_start + now).saturating_sub(self.rig.card_time());
        self.rig.tick(behind);
    }

    fn next_event(&self) -> Option<u64> {
        let now = self.clock.now();
        let arrival = (self.sent < self.offered.packets).then(|| self.sent * self.offered.interval);
        let card = self.rig.card_event().map(|wait| now + wait.max(1));
        let guests = self.rig.engine.deadline();
        [arrival, card, guests, self.next_timer()]
            .into_iter()
            .flatten()
            .min()
    }

    /// A guest's, while it may find anything: they do not run for ever.
    fn next_timer(&self) -> Option<u64> {
        let wanted = self.sent < self.offered.packets
            || self.waiting.iter().any(|waiting| !waiting.is_empty());
        let next = self.timers.iter().copied().min();
        next.filter(|_| wanted)
    }

    /// Guests whose timers have ended look by themselves.
    fn timers_end(&mut self) {
        let Some(period) = self.offered.timer else {
            return;
        };
        let now = self.clock.now();
        for (guest, timer) in self.timers.iter_mut().enumerate() {
            if *timer <= now {
                self.rig.engine.comes(1 << guest);
                // One that is late has missed those in between.
                *timer += (now - *timer) / period * period + period;
            }
        }
    }

    fn crossing(&mut self, cycles: u64) {
        self.outcome.crossing_cycles += cycles;
        self.clock.work(cycles);
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.outcome.interrupts += 1;
        self.crossing(self.crossings.interrupt);
        self.rig.engine.set_time(self.clock.now());
        let before = self.rig.engine.arrived();
        let merged_before = self.rig.engine.merged();
        if !self.rig.interrupt()? {
            return Err(Stop::Stuck("dom0 keeps its virtual interrupts disabled"));
        }
        let packets = self.rig.engine.arrived() - before;
        let merged = self.rig.engine.merged().since(merged_before);
        self.outcome.handed += packets - merged.segments + merged.aggregates;
        self.unread = self.unread.plus(merged);
        self.clock.work(self.price.of_interrupt(packets, merged));
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), Stop> {
        let due = self.rig.engine.due(self.clock.now());
        let guests = u64::from(due.count_ones());
        self.outcome.virtual_interrupts += guests;
        self.crossing(guests * self.crossings.virtual_interrupt);
        self.rig.engine.set_time(self.clock.now());
        let before = self.taken();
        self.rig.deliver()?;
        let after = self.taken();
        let packets: u64 = after.iter().sum::<u64>() - before.iter().sum::<u64>();
        let merged = std::mem::take(&mut self.unread);
        self.clock
            .work(self.price.of_delivery(guests, packets, merged));
        self.outcome.packets += packets;
        for (waiting, taken) in self.waiting.iter_mut().zip(after.iter().zip(before)) {
            for _ in 0..taken.0 - taken.1 {
                let arrived = waiting.pop_front().unwrap_or(self.clock.now());
                self.latencies.push(self.clock.now() - arrived);
            }
        }
        Ok(())
    }

    fn taken(&self) -> Vec<u64> {
        (0..self.offered.guests)
            .map(|g| self.rig.received(g))
            .collect()
    }
}
