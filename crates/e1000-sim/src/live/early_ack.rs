//! The row `early-ack`: how often the processor takes the card's interrupt, for the same frames, by
//! the order in which a hypervisor does its work.
//!
//! ```text
//! late    line ─ taken ─ noted ──────────────────── taken again ─ handler, polls
//! early   line ─ taken ─ acknowledged, masked ───────────────────  handler, polls
//! native  line ─ taken ─ handler masks ──────────────────────────  polls
//! ```
//!
//! Work is done a piece at a time, with interrupts on: guests that are told of packets, then what
//! was noted, then guests that send. A level line that nobody has acknowledged is taken once
//! when it rises, and again when the next piece begins: whoever ends an interrupt whose line is
//! asserted is sent it again. More often than once a piece would be possible: the counts of `late`
//! are the least. While there is no piece at all, since dom0 has its virtual interrupt flag
//! cleared and does not run, it is taken again and again.

use std::sync::atomic::Ordering;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::price::{Crossings, Price, QUOTED, SentPrice, counted};
use super::receive::wire_time;
use super::rig::Rig;
use super::rows::{prepare, with_rig};
use crate::experiment::Spread;
use crate::experiment::apart::apart;
use crate::image::files::Files;
use crate::packets::packet_loop::{Engine, Stop};
use crate::packets::round::PacketDirection;
use crate::stages::{Stage, Stages};
use crate::system::{Blueprint, SystemError};
use crate::transport::rendezvous::Limits;

const FULL: usize = crate::traffic::LONGEST;
/// Frames of a run.
const PACKETS: u64 = 2048;
/// Runs of each order, by turns.
const TURNS: usize = 5;
const US: u64 = 1_000;
/// Packets of the larger sample, where prices of sending are counted.
const MANY: u32 = 9;

twin_abi::listed! {
    /// When the card is acknowledged, and the handler runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Order {
        /// The handler acknowledges, when its turn comes.
        Late => "late",
        /// The stage `ack` acknowledges when the line rises; the handler's turn comes later.
        Early => "early",
        /// The handler runs when the line rises, as in a kernel by itself.
        Native => "native",
    }
}

/// dom0 does not run, and has left its virtual interrupt flag cleared, at the begin of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Nanoseconds from one to the next.
    pub period: u64,
    /// Nanoseconds of it.
    pub length: u64,
}

/// What is moved.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Load {
    /// Guests, by turns.
    pub guests: u32,
    /// Whether they send or receive.
    #[serde(rename = "sent")]
    pub direction: PacketDirection,
    /// Frames in all.
    pub packets: u64,
    /// Nanoseconds from one to the next.
    pub interval: u64,
    /// When dom0 lets no handler run.
    pub held: Option<Held>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// Frames that came to guests or were completed.
    pub packets: u64,
    /// Frames that were lost or changed.
    pub damage: u64,
    /// Times that the processor took the card's interrupt.
    pub interrupts: u64,
    /// Of these, while the handler was known to be due, or running.
    pub again: u64,
    /// Runs of handler and polls.
    pub served: u64,
    /// Nanoseconds.
    pub time: u64,
    /// Cycles of the machine that is played: counted instructions, quoted crossings.
    pub cycles: u64,
    /// Of which crossings.
    pub crossing_cycles: u64,
    /// Cycles of the processor here, without crossings.
    pub measured_cycles: u64,
}

impl Taken {
    /// Interrupts a frame.
    pub fn interrupts_a_packet(&self) -> f64 {
        self.interrupts as f64 / self.packets.max(1) as f64
    }

    /// Cycles a frame.
    pub fn cycles_a_packet(&self) -> f64 {
        self.cycles as f64 / self.packets.max(1) as f64
    }

    fn measured_a_packet(&self) -> f64 {
        (self.measured_cycles + self.crossing_cycles) as f64 / self.packets.max(1) as f64
    }
}

/// One load by all orders.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EarlyAck {
    /// What was moved.
    pub load: Load,
    /// By [`Order::ALL`]; the last run of each, whose counts are those of all.
    pub orders: [Taken; 3],
    /// Late divided by early, in cycles measured here and quoted crossings: tenth, half, nine tenths
    /// of the turns.
    pub measured: [f64; 3],
}

/// Measures all loads.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(files: &Files, variant: Variant) -> Result<Vec<EarlyAck>, SystemError> {
    apart(|| {
        let blueprint = Blueprint::new(files, variant, &Default::default())?
            .with_driver_args("InterruptThrottleRate=0");
        let limits = Limits::of_seconds(120);
        blueprint.booted(limits, |system| {
            with_rig(&system, limits, |rig| {
                prepare(rig)?;
                let prices = Prices::count(rig)?;
                loads()
                    .iter()
                    .map(|load| turns(rig, &prices, *load))
                    .collect()
            })
        })
    })
}

/// DBNet's rates of one guest, each way, and a gigabit for nine while dom0 keeps handlers waiting.
fn loads() -> [Load; 3] {
    let bits = FULL as u64 * 8;
    let one = |direction, interval| Load {
        guests: 1,
        direction,
        packets: PACKETS,
        interval,
        held: None,
    };
    [
        one(PacketDirection::Send, bits * 10 / 6),
        one(PacketDirection::Receive, bits * 100 / 54),
        Load {
            guests: 9,
            held: Some(Held {
                period: 1000 * US,
                length: 100 * US,
            }),
            ..one(PacketDirection::Receive, wire_time(FULL))
        },
    ]
}

fn turns(rig: &mut Rig<'_>, prices: &Prices, load: Load) -> Result<EarlyAck, SystemError> {
    let mut orders = [Taken::default(); 3];
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        for (order, taken) in Order::ALL.into_iter().zip(&mut orders) {
            *taken = run(rig, prices, &QUOTED, load, order)?;
        }
        let [late, early, _] = orders.map(|taken| taken.measured_a_packet());
        ratios.push(late / early);
    }
    let spread = Spread::of_values(ratios.into_iter());
    Ok(EarlyAck {
        load,
        orders,
        measured: [spread.low, spread.median, spread.high],
    })
}

/// Instructions by kind, as counted when the process begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prices {
    /// Received packets, without the stage and with it.
    received: [Price; 2],
    /// The handler alone: a part of `received[0].interrupt`.
    handler: u64,
    sent: SentPrice,
}

impl Prices {
    /// Counts them on a rig that has moved packets before.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn count(rig: &mut Rig<'_>) -> Result<Prices, Stop> {
        let mut received = [Price::default(); 2];
        for (early, price) in [false, true].into_iter().zip(&mut received) {
            set_early(rig, early);
            rig.arrive(0);
            rig.settle()?;
            *price = Price::count(rig)?;
        }
        set_early(rig, false);
        let handler = count_handler(rig)?;
        Ok(Prices {
            received,
            handler,
            sent: SentPrice::count(rig, MANY)?,
        })
    }
}

fn set_early(rig: &mut Rig<'_>, early: bool) {
    let others = rig
        .engine
        .stages()
        .list()
        .filter(|stage| *stage != Stage::Ack);
    let stages = Stages::of(others.chain(early.then_some(Stage::Ack)));
    rig.engine.set_stages(stages);
}

fn count_handler(rig: &mut Rig<'_>) -> Result<u64, Stop> {
    rig.arrive(0);
    rig.let_it_interrupt();
    let handler = counted(rig, Rig::handle)?;
    rig.poll()?;
    rig.settle()?;
    Ok(handler)
}

struct Run<'r, 's> {
    rig: &'r mut Rig<'s>,
    prices: &'r Prices,
    crossings: &'r Crossings,
    order: Order,
    load: Load,
    clock: Clock,
    card_start: u64,
    /// Frames that have arrived, or that guests were to send.
    offered: u64,
    /// Packets that guests have yet to send.
    ready: u64,
    /// None can be sent before the next poll.
    full: bool,
    /// The line's interrupt was taken since it rose.
    taken: bool,
    /// Handler or polls are due.
    noted: bool,
    outcome: Taken,
}

/// Moves frames in that order.
///
/// # Errors
/// The driver stopped.
pub fn run(
    rig: &mut Rig<'_>,
    prices: &Prices,
    crossings: &Crossings,
    load: Load,
    order: Order,
) -> Result<Taken, Stop> {
    set_early(rig, order == Order::Early);
    let (cycles, corrupted) = (rig.cycles(), rig.corrupted());
    let (sent, bad) = rig.sent();
    let flag = rig.engine.twin.virtual_interrupts().enabled;
    let mut run = Run {
        card_start: rig.card_time(),
        rig,
        prices,
        crossings,
        order,
        load,
        clock: Clock::default(),
        offered: 0,
        ready: 0,
        full: false,
        taken: false,
        noted: false,
        outcome: Taken::default(),
    };
    let done = loop {
        match run.step() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(stop) => break Err(stop),
        }
    };
    flag.store(1, Ordering::SeqCst);
    done?;
    let mut outcome = run.outcome;
    outcome.time = run.clock.now();
    outcome.cycles = run.clock.worked();
    let rig = run.rig;
    outcome.measured_cycles = rig.cycles() - cycles;
    let (sent_now, bad_now) = rig.sent();
    let on_cable = match load.direction {
        PacketDirection::Send => load.packets.abs_diff(sent_now - sent),
        PacketDirection::Receive => 0,
    };
    outcome.damage += (load.packets - outcome.packets.min(load.packets)) + on_cable;
    outcome.damage += rig.corrupted() - corrupted + bad_now - bad;
    set_early(rig, false);
    Ok(outcome)
}

impl Run<'_, '_> {
    /// One piece of work; false if nothing is left to do.
    fn step(&mut self) -> Result<bool, Stop> {
        self.arrivals();
        let held = self.held();
        let flag = self.rig.engine.twin.virtual_interrupts().enabled;
        flag.store(u32::from(!held), Ordering::SeqCst);
        self.rig.engine.set_time(self.clock.now());
        self.line(held)?;
        let can_send = self.ready > 0 && !self.full;
        if self.rig.engine.due(self.clock.now()) != 0 {
            self.begin();
            self.deliver()?;
        } else if self.noted && !held {
            self.begin();
            self.serve()?;
        } else if can_send {
            self.begin();
            self.send()?;
        } else if self.order == Order::Late && self.noted && self.rig.line() {
            // Nothing else is to be done, and interrupts are on.
            self.take_again();
        } else {
            let Some(next) = self.next_event(held) else {
                return Ok(false);
            };
            self.clock.idle_until(next);
        }
        Ok(true)
    }

    /// Whether dom0 lets no handler run now.
    fn held(&self) -> bool {
        let held = self.load.held;
        held.is_some_and(|held| self.clock.now() % held.period < held.length)
    }

    fn arrivals(&mut self) {
        while self.offered < self.load.packets {
            let at = self.offered * self.load.interval;
            if at > self.clock.now() {
                break;
            }
            self.card_time(at);
            let guest = (self.offered % u64::from(self.load.guests)) as u32;
            match self.load.direction {
                PacketDirection::Send => self.ready += 1,
                PacketDirection::Receive => _ = self.rig.arrive(guest),
            }
            self.offered += 1;
        }
        self.card_time(self.clock.now());
    }

    fn card_time(&mut self, now: u64) {
        let behind = (self.card_start + now).saturating_sub(self.rig.card_time());
        self.rig.tick(behind);
    }

    fn take(&mut self) {
        self.outcome.interrupts += 1;
        self.outcome.crossing_cycles += self.crossings.interrupt;
        self.clock.work(self.crossings.interrupt);
    }

    fn take_again(&mut self) {
        self.outcome.again += 1;
        self.take();
    }

    /// The line has risen.
    fn line(&mut self, held: bool) -> Result<(), Stop> {
        if !self.rig.line() {
            self.taken = false;
            return Ok(());
        }
        match self.order {
            Order::Late if self.taken => {}
            Order::Late => {
                self.taken = true;
                self.noted = true;
                self.take();
            }
            Order::Early => {
                self.take();
                self.rig.acknowledge()?;
                self.noted = true;
            }
            // dom0 by itself: its flag is the processor's.
            Order::Native if held => {}
            Order::Native => {
                self.take();
                if !self.rig.handle()? {
                    return Err(Stop::Stuck("dom0 keeps its virtual interrupts disabled"));
                }
                self.clock.work(self.prices.handler);
                self.noted = true;
            }
        }
        Ok(())
    }

    /// Interrupts are on when a piece of work begins.
    fn begin(&mut self) {
        if self.order == Order::Late && self.rig.line() {
            self.take_again();
        }
    }

    /// Handler and polls, or what is left of them.
    fn serve(&mut self) -> Result<(), Stop> {
        let before = self.rig.engine.arrived();
        let ran = match self.order {
            Order::Native => self.rig.poll().map(|()| true),
            Order::Late | Order::Early => self.rig.interrupt(),
        }?;
        if !ran {
            return Err(Stop::Stuck("dom0 keeps its virtual interrupts disabled"));
        }
        self.outcome.served += 1;
        let received = self.rig.engine.arrived() - before;
        let completed = self.rig.complete();
        self.outcome.packets += completed;
        let price = self.prices.received[usize::from(self.order == Order::Early)];
        let handled = match self.order {
            Order::Native => self.prices.handler,
            Order::Late | Order::Early => 0,
        };
        let work = price.interrupt.saturating_sub(handled) + received * price.packet;
        self.clock
            .work(work + completed * self.prices.sent.completed);
        self.noted = self.rig.engine.causes_wait();
        (self.taken, self.full) = (false, false);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Stop> {
        let guest = (self.offered % u64::from(self.load.guests)) as u32;
        let asked = self.ready.min(32) as u32;
        let sent = self.rig.send(guest, asked)?;
        self.clock
            .work(self.prices.sent.batch + u64::from(asked) * self.prices.sent.packet);
        self.ready -= u64::from(sent);
        self.full = sent < asked;
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), Stop> {
        let due = self.rig.engine.due(self.clock.now());
        let guests = u64::from(due.count_ones());
        let crossing = guests * self.crossings.virtual_interrupt;
        self.outcome.crossing_cycles += crossing;
        self.clock.work(crossing);
        let before = self.received();
        self.rig.deliver()?;
        let packets = self.received() - before;
        self.outcome.packets += packets;
        let price = self.prices.received[usize::from(self.order == Order::Early)];
        self.clock
            .work(price.round + guests * price.guest + packets * price.taken);
        Ok(())
    }

    fn received(&self) -> u64 {
        (0..self.load.guests)
            .map(|guest| self.rig.received(guest))
            .sum()
    }

    fn next_event(&self, held: bool) -> Option<u64> {
        let now = self.clock.now();
        let arrival = (self.offered < self.load.packets).then(|| self.offered * self.load.interval);
        let card = self.rig.card_event().map(|wait| now + wait.max(1));
        let wanted = held && (self.noted || self.rig.line());
        let allowed = self.load.held.filter(|_| wanted);
        let allowed = allowed.map(|held| now - now % held.period + held.length);
        [arrival, card, self.rig.engine.deadline(), allowed]
            .into_iter()
            .flatten()
            .min()
    }
}
