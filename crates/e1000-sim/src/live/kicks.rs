//! Kicks that a guest need not make: guests that are processes, and send at a rate, with each kick served, and with rings that
//! the hypervisor looks at ([`crate::guests::looks`]), by turns in one process.
//!
//! ```text
//! a guest's burst, at its time ─> its ring ─┬─ kick ──────────────────> driver, card
//!                                           └─ look: card's interrupt, timer ─┘
//! ```
//!
//! One processor does all of it: the card's interrupts first, then the timer, then guests. Work and crossings advance the clock. What
//! work costs is counted of the real processes when a run begins, instruction by instruction; crossings are as quoted. So a request's wait
//! is the played clock's, and the same in each run.

use std::collections::{HashSet, VecDeque};

use process_lab::packet_path::Latency;
use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::price::{HYPERCALL, QUOTED};
use super::receive::wire_time;
use crate::dom0::job::{Look, observe};
use crate::experiment::apart::apart_on_one;
use crate::guests::crossing::{Guests, Loop};
use crate::guests::front::Order;
use crate::guests::looks::{LookCounts, Pace};
use crate::hypervisor::time_limit;
use crate::image::files::Files;
use crate::memory::{Machine, Sizes};
use crate::packets::packet_loop::{Card, Stop};
use crate::packets::round::Round;
use crate::paths;
use crate::stages::notify::split;
use crate::stages::{Stage, Stages};
use crate::system::{Blueprint, System, SystemError};
use crate::traffic::LONGEST;
use crate::traffic::source::Shape;
use crate::transport::mailbox::Mailbox;
use crate::transport::rendezvous::Limits;

/// The most guests: all have rings, whether they send or not.
const GUESTS: u32 = 8;
/// Nanoseconds that a sent packet may wait, for the look and for the card's interrupt together.
const BUDGET: u64 = 500_000;
/// Interrupts of the card in a second, as Dong has them (5.2): the driver's parameter.
const THROTTLE: &str = "InterruptThrottleRate=4000";
/// Nanoseconds of that throttle.
const THROTTLE_TIME: u64 = 250_000;
/// A little more: while the card interrupts, the timer does not end.
const RIDING: u64 = THROTTLE_TIME * 5 / 4;
/// Kicks in a window that wake the hypervisor up.
const BUSY: u32 = 4;
/// Packets of the larger of two samples of a price.
const MANY: u32 = 9;
/// Rounds before prices are counted: Linux' limit of bytes in the queue grows with what was sent.
const WARM: u32 = 64;
/// Packets of each of these.
const BATCH: u32 = 32;
/// Enough for each of the card's delays.
const LONG: u64 = 20_000_000;
/// Nobody spins, because all are on one processor; single steps are slow.
const WAIT: Limits = Limits {
    time: std::time::Duration::from_secs(120),
    spin: 0,
};

/// What guests send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Guests, by turns: 0 to `guests` - 1.
    pub guests: u32,
    /// Packets that a guest makes each time that it has the processor.
    pub burst: u32,
    /// Megabits a second of all guests, of what fills a cable of a gigabit.
    pub rate: u32,
}

impl Sending {
    /// Nanoseconds from one burst to the next.
    fn interval(&self) -> u64 {
        wire_time(LONGEST) * u64::from(self.burst) * 1_000 / u64::from(self.rate)
    }
}

/// The row's: 32 packets of all guests together at a full cable, as in the row `crossings`; packets by themselves; and slower ones.
pub const ROW: [Sending; 7] = [
    sending(1, 32, 1_000),
    sending(8, 4, 1_000),
    sending(8, 4, 500),
    sending(1, 1, 1_000),
    sending(8, 1, 1_000),
    sending(8, 4, 100),
    sending(8, 1, 100),
];

const fn sending(guests: u32, burst: u32, rate: u32) -> Sending {
    Sending {
        guests,
        burst,
        rate,
    }
}

/// Packets of each run of the row.
pub const PACKETS: u64 = 4096;

/// Instructions of work, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KickPrice {
    /// A guest that sends, and each packet of it.
    pub guest: [u64; 2],
    /// A kick, without its crossing, and each packet of it: the hypervisor's part and the driver's.
    pub kick: [u64; 2],
    /// The card's interrupt, without its crossing, and each packet that is found sent.
    pub interrupt: [u64; 2],
    /// A look at all rings that finds something, each guest of which it does, and each packet.
    pub look: [u64; 3],
    /// A look that finds nothing, with the second one after rings are armed.
    pub nothing: u64,
}

impl KickPrice {
    /// What an interrupt of the card costs whatever it finds.
    fn card(&self) -> u64 {
        self.interrupt[0] + QUOTED.interrupt
    }

    /// What a look by the timer costs whatever it finds.
    fn timer(&self) -> u64 {
        self.look[0] + QUOTED.interrupt
    }

    /// The budget, split by Dong's formula 4. One look is for all guests, whatever their number.
    fn split(&self) -> Latency {
        split(BUDGET, 1, self.card() as u32, self.timer() as u32)
    }

    fn of_look(&self, guests: u64, packets: u64) -> u64 {
        match packets {
            0 => self.nothing,
            _ => self.look[0] + guests * self.look[1] + packets * self.look[2],
        }
    }
}

twin_abi::listed! {
    /// How rings are looked at.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Way {
        /// Not at all: each kick is served.
        Kicks => "kicks",
        /// With a delay by Dong's formula, as if looks had nothing to do with the card's interrupts.
        Formula => "formula",
        /// With one that is longer than the card's throttle, so that most looks are the card's interrupts.
        Riding => "riding",
        /// The same, and one packet in a window is enough to stay awake.
        Eager => "eager",
    }
}

impl Way {
    fn pace(self, price: &KickPrice) -> Option<Pace> {
        let pace = |delay, busy| Some(Pace { delay, busy });
        match self {
            Way::Kicks => None,
            Way::Formula => pace(price.split().guest, BUSY),
            Way::Riding => pace(RIDING, BUSY),
            Way::Eager => pace(RIDING, 1),
        }
    }
}

/// What became of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Packets that the driver got.
    pub packets: u64,
    /// Kicks.
    pub kicks: u64,
    /// Looks without a kick.
    pub looks: LookCounts,
    /// Interrupts of the card.
    pub interrupts: u64,
    /// Notifications of guests.
    pub notifications: u64,
    /// Cycles of the machine that is played: counted instructions, crossings as quoted, a kick as a hypercall.
    pub cycles: u64,
    /// Of which crossings.
    pub crossing_cycles: u64,
    /// Nanoseconds from the ring to the card: half of the packets took less.
    pub latency_median: u64,
    /// One in a hundred took more.
    pub latency_p99: u64,
    /// The longest.
    pub latency_most: u64,
}

impl Sent {
    /// Kicks a packet.
    pub fn kicks_a_packet(&self) -> f64 {
        self.a_packet(self.kicks)
    }

    /// Of something, a packet.
    pub fn a_packet(&self, of: u64) -> f64 {
        of as f64 / self.packets.max(1) as f64
    }

    /// Instructions a packet, without crossings.
    pub fn instructions(&self) -> f64 {
        self.a_packet(self.cycles - self.crossing_cycles)
    }

    /// Cycles a packet, a kick as a hypercall.
    pub fn priced(&self) -> f64 {
        self.a_packet(self.cycles)
    }

    /// Cycles a packet, a kick as a trap: of a guest whose accesses to a card's registers are caught.
    pub fn priced_with_traps(&self) -> f64 {
        self.a_packet(self.cycles + self.kicks * (QUOTED.interrupt - HYPERCALL))
    }
}

/// A load, in one way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ByLooks {
    /// How.
    pub way: Way,
    /// What came of it.
    pub sent: Sent,
}

/// A load, in each way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// What was sent.
    pub sending: Sending,
    /// In the order of [`Way::ALL`].
    pub ways: Vec<ByLooks>,
}

impl Loaded {
    /// What came of a way.
    pub fn by(&self, way: Way) -> Option<&Sent> {
        let found = self.ways.iter().find(|seen| seen.way == way);
        found.map(|seen| &seen.sent)
    }
}

/// All that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kicks {
    /// What work costs.
    pub price: KickPrice,
    /// Nanoseconds from a look to the next one, by the formula, and of the card's throttle, which has [`THROTTLE`].
    pub formula: [u64; 2],
    /// Nanoseconds from a look to the next one, if most are the card's interrupts.
    pub riding: u64,
    /// Each load.
    pub loads: Vec<Loaded>,
    /// Frames that were lost or changed.
    pub damage: u64,
}

/// Measures these loads.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(
    files: &Files,
    variant: Variant,
    loads: &[Sending],
    packets: u64,
) -> Result<Kicks, SystemError> {
    apart_on_one(|| {
        // Else each switch between two of them could let another process run.
        paths::hurry();
        let machine = Machine::new(Sizes::default())?;
        let shape = Shape::Frames(LONGEST);
        // Before there is anything else that they could have copies of.
        let guests = Guests::start(&machine, GUESTS, shape, WAIT)?;
        let blueprint = Blueprint::new(files, variant, &HashSet::new())?.with_driver_args(THROTTLE);
        let mailbox = Mailbox::new()?;
        let limits = Limits::of_seconds(120);
        let system = System::start(&blueprint, &machine, mailbox.get(), limits)?;
        let stages = Stages::of([Stage::Bridge, Stage::Notify]);
        let mut engine = system.staged(limits, GUESTS, stages)?;
        engine.play_time();
        let runner = system.staged_runner(engine, GUESTS, shape)?;
        paths::declare(system.blueprint());
        let mut rig = Rig {
            guests,
            packets: runner.packet_loop,
            now: 0,
        };
        rig.guests.tell_each(&mut rig.packets, false)?;
        let price = rig.price()?;
        let before = rig.arrived()?;
        let loads: Vec<Loaded> = loads
            .iter()
            .map(|sending| rig.loaded(*sending, packets, &price))
            .collect::<Result<_, _>>()?;
        let after = rig.arrived()?;
        let asked = packets * (Way::ALL.len() * loads.len()) as u64;
        let latency = price.split();
        Ok(Kicks {
            price,
            formula: [latency.guest, latency.card],
            riding: RIDING,
            loads,
            damage: asked.abs_diff(after[0] - before[0]) + after[1] - before[1],
        })
    })
}

/// The machine.
struct Rig<'s> {
    guests: Guests<'s>,
    packets: Loop<'s>,
    /// Nanoseconds, of all runs together.
    now: u64,
}

impl Rig<'_> {
    /// Frames that arrived whole, and damage.
    fn arrived(&mut self) -> Result<[u64; 2], Stop> {
        self.guests.check(&mut self.packets)?;
        let wire = &self.packets.card.sent;
        let reports = self.guests.reports();
        let bad = reports.iter().map(|report| {
            report.corrupted + report.bad_answers + report.refused + report.unanswered
        });
        Ok([
            wire.packets(),
            wire.corrupted + wire.strangers + bad.sum::<u64>(),
        ])
    }

    /// It is so many nanoseconds later, for the card as well.
    fn pass(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.packets.card.tick(nanoseconds);
        self.packets.engine.set_time(self.now);
        self.guests.set_time(self.now);
    }

    fn burst(&mut self, guest: u32, count: u32) -> Result<(), Stop> {
        self.guests.prepare(&mut self.packets, guest, count)?;
        self.guests.schedule(&mut self.packets, guest, Order::Send)
    }

    /// All that was sent is found sent.
    fn settle(&mut self) -> Result<(), Stop> {
        while self.guests.in_flight() > 0 {
            self.pass(LONG);
            if self.packets.card.interrupt() {
                self.guests.interrupt(&mut self.packets)?;
            }
        }
        Ok(())
    }

    /// Counts what work costs, when rings and pools have gone round.
    fn price(&mut self) -> Result<KickPrice, SystemError> {
        for _ in 0..WARM {
            self.burst(0, BATCH)?;
            self.settle()?;
        }
        self.packets.engine.limit_time(WAIT.time)?;
        let [one, many] = [1, MANY].map(|count| self.kick_sample(count));
        let (one, many) = (one?, many?);
        let [some, more, spread, none] = [(1, 1), (1, MANY), (GUESTS, 1), (0, 0)]
            .map(|(guests, count)| self.look_sample(guests, count));
        let (some, more, spread, nothing) = (some?, more?, spread?, none?);
        self.packets.engine.limit_time(time_limit::DEFAULT)?;
        let each =
            |one: u64, many: u64, further: u32| many.saturating_sub(one) / u64::from(further);
        let both = |of: fn(&KickSample) -> u64| {
            let packet = each(of(&one), of(&many), MANY - 1);
            [of(&one).saturating_sub(packet), packet]
        };
        let packet = each(some, more, MANY - 1);
        let guest = each(some, spread, GUESTS - 1).saturating_sub(packet);
        Ok(KickPrice {
            guest: both(|sample| sample.guest),
            kick: both(|sample| sample.kick),
            interrupt: both(|sample| sample.interrupt),
            look: [some.saturating_sub(guest + packet), guest, packet],
            nothing,
        })
    }

    fn kick_sample(&mut self, count: u32) -> Result<KickSample, SystemError> {
        self.guests.prepare(&mut self.packets, 0, count)?;
        let [kick, guest] =
            self.counted(|rig| rig.guests.schedule(&mut rig.packets, 0, Order::Send))?;
        self.pass(LONG);
        let [interrupt, _] = self.counted(|rig| rig.guests.interrupt(&mut rig.packets))?;
        self.settle()?;
        Ok(KickSample {
            guest,
            kick,
            interrupt,
        })
    }

    /// Instructions of a look that finds `count` packets of each of so many guests.
    fn look_sample(&mut self, guests: u32, count: u32) -> Result<u64, SystemError> {
        let pace = Pace { delay: 1, busy: 1 };
        self.guests.set_pace(&mut self.packets, Some(pace))?;
        // The first kick wakes it up.
        self.burst(0, 1)?;
        for guest in 0..guests {
            self.burst(guest, count)?;
        }
        self.pass(LONG);
        let mut found = 0;
        let [look, _] = self.counted(|rig| {
            found = rig.guests.timer(&mut rig.packets)?;
            Ok(())
        })?;
        if found != guests * count {
            return Err(Stop::Stuck("a look does not find what guests sent").into());
        }
        self.guests.set_pace(&mut self.packets, None)?;
        self.settle()?;
        Ok(look)
    }

    /// Instructions of this process, and of guests.
    fn counted(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<[u64; 2], SystemError> {
        self.guests.count_steps(&mut self.packets, true)?;
        let before = self.guests_instructions()?;
        let (_, steps) = observe(Look::Steps, || {
            work(self)?;
            Ok(Round::default())
        })?;
        let guests = self.guests_instructions()? - before;
        self.guests.count_steps(&mut self.packets, false)?;
        Ok([steps.costs(), guests])
    }

    fn guests_instructions(&mut self) -> Result<u64, Stop> {
        self.guests.check(&mut self.packets)?;
        let reports = self.guests.reports();
        Ok(reports.iter().map(|report| report.instructions).sum())
    }

    fn loaded(
        &mut self,
        sending: Sending,
        packets: u64,
        price: &KickPrice,
    ) -> Result<Loaded, SystemError> {
        let run = |way: &Way| {
            self.guests.set_pace(&mut self.packets, way.pace(price))?;
            let sent = Run::of(self, sending, packets, price)?;
            self.guests.set_pace(&mut self.packets, None)?;
            self.settle()?;
            Ok::<_, SystemError>(ByLooks { way: *way, sent })
        };
        Ok(Loaded {
            sending,
            ways: Way::ALL.iter().map(run).collect::<Result<_, _>>()?,
        })
    }
}

struct KickSample {
    guest: u64,
    kick: u64,
    interrupt: u64,
}

/// A run.
struct Run<'r, 's> {
    rig: &'r mut Rig<'s>,
    price: &'r KickPrice,
    sending: Sending,
    bursts: u64,
    clock: Clock,
    /// The rig's time when the clock was 0.
    start: u64,
    done: u64,
    /// When the packets that a guest has in its ring were put there.
    waiting: Vec<VecDeque<u64>>,
    /// How far each ring had been read.
    taken: Vec<u32>,
    /// When those were that work has taken which is not charged yet.
    leaving: Vec<u64>,
    latencies: Vec<u64>,
    kicks: u64,
    notifications: u64,
    seen: Sent,
}

/// What a piece of work did.
struct Did {
    kicks: u64,
    /// Guests of which it took packets, and packets.
    guests: u64,
    packets: u64,
    /// By kicks: the rest was found by looks.
    looks: LookCounts,
}

impl Run<'_, '_> {
    fn of(
        rig: &mut Rig<'_>,
        sending: Sending,
        packets: u64,
        price: &KickPrice,
    ) -> Result<Sent, Stop> {
        let counts = rig.guests.counts();
        let looks = rig.guests.look_counts();
        let mut run = Run {
            start: rig.now,
            taken: (0..sending.guests)
                .map(|guest| rig.guests.back(guest).taken())
                .collect(),
            rig,
            price,
            sending,
            bursts: packets / u64::from(sending.burst),
            clock: Clock::default(),
            done: 0,
            waiting: vec![VecDeque::new(); sending.guests as usize],
            leaving: Vec::new(),
            latencies: Vec::new(),
            kicks: counts.kicks,
            notifications: counts.notifications,
            seen: Sent::default(),
        };
        while run.step()? {}
        let mut seen = run.seen;
        seen.cycles = run.clock.worked();
        run.latencies.sort_unstable();
        let last = run.latencies.len().saturating_sub(1) as f64;
        let at = |part: f64| run.latencies.get((last * part) as usize).copied();
        [seen.latency_median, seen.latency_p99, seen.latency_most] =
            [0.5, 0.99, 1.0].map(|part| at(part).unwrap_or(0));
        let after = run.rig.guests.counts();
        seen.kicks = after.kicks - counts.kicks;
        seen.notifications = after.notifications - counts.notifications;
        seen.looks = run.rig.guests.look_counts().since(looks);
        Ok(seen)
    }

    /// One thing; false if nothing is left to do.
    fn step(&mut self) -> Result<bool, Stop> {
        self.play();
        let now = self.clock.now();
        let timer = self.rig.guests.deadline();
        let timer = timer.map(|deadline| deadline.saturating_sub(self.start));
        let burst = (self.done < self.bursts).then(|| self.done * self.sending.interval());
        if self.rig.packets.card.interrupt() {
            self.interrupt()?;
        } else if timer.is_some_and(|timer| timer <= now) {
            self.timer()?;
        } else if burst.is_some_and(|burst| burst <= now) {
            self.burst()?;
        } else {
            let card = self.rig.packets.card.next_event();
            let card = card.map(|wait| now + wait.max(1));
            let Some(next) = [timer, burst, card].into_iter().flatten().min() else {
                return Ok(false);
            };
            self.clock.idle_until(next);
        }
        Ok(true)
    }

    /// The machine's time is the clock's.
    fn play(&mut self) {
        let behind = (self.start + self.clock.now()).saturating_sub(self.rig.now);
        self.rig.pass(behind);
    }

    fn crossings(&mut self, cycles: u64) {
        self.seen.crossing_cycles += cycles;
        self.clock.work(cycles);
    }

    /// A guest has the processor.
    fn burst(&mut self) -> Result<(), Stop> {
        let guest = (self.done % u64::from(self.sending.guests)) as u32;
        let count = u64::from(self.sending.burst);
        self.done += 1;
        self.clock
            .work(self.price.guest[0] + count * self.price.guest[1]);
        self.play();
        let now = self.clock.now();
        self.waiting[guest as usize].extend((0..count).map(|_| now));
        let did = self.during(|rig| rig.burst(guest, count as u32))?;
        self.charge(&did);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.seen.interrupts += 1;
        self.crossings(QUOTED.interrupt);
        self.play();
        let before = self.rig.guests.in_flight();
        let did = self.during(|rig| rig.guests.interrupt(&mut rig.packets))?;
        let sent = u64::from(before) + did.packets - u64::from(self.rig.guests.in_flight());
        self.clock
            .work(self.price.interrupt[0] + sent * self.price.interrupt[1]);
        self.charge(&did);
        Ok(())
    }

    fn timer(&mut self) -> Result<(), Stop> {
        self.crossings(QUOTED.interrupt);
        self.play();
        let did = self.during(|rig| rig.guests.timer(&mut rig.packets).map(|_| ()))?;
        self.charge(&did);
        Ok(())
    }

    /// Does something, and says what came of it.
    fn during(&mut self, work: impl FnOnce(&mut Rig<'_>) -> Result<(), Stop>) -> Result<Did, Stop> {
        let looks = self.rig.guests.look_counts();
        work(self.rig)?;
        let counts = self.rig.guests.counts();
        let kicks = counts.kicks - std::mem::replace(&mut self.kicks, counts.kicks);
        let told = counts.notifications;
        let told = told - std::mem::replace(&mut self.notifications, told);
        self.crossings(kicks * HYPERCALL + told * QUOTED.virtual_interrupt);
        let fresh = self.fresh();
        Ok(Did {
            kicks,
            guests: fresh.iter().filter(|fresh| **fresh > 0).count() as u64,
            packets: fresh.iter().map(|fresh| u64::from(*fresh)).sum(),
            looks: self.rig.guests.look_counts().since(looks),
        })
    }

    /// Requests that were read of each guest since this was asked.
    fn fresh(&mut self) -> Vec<u32> {
        let rig = &mut *self.rig;
        let of = |(guest, taken): (usize, &mut u32)| {
            let now = rig.guests.back(guest as u32).taken();
            now.wrapping_sub(std::mem::replace(taken, now))
        };
        let fresh: Vec<u32> = self.taken.iter_mut().enumerate().map(of).collect();
        self.seen.packets += fresh.iter().map(|fresh| u64::from(*fresh)).sum::<u64>();
        for (waiting, fresh) in self.waiting.iter_mut().zip(&fresh) {
            // They are with the card when the work of this is done.
            self.leaving
                .extend(waiting.drain(..(*fresh as usize).min(waiting.len())));
        }
        fresh
    }

    /// The hypervisor's work for what kicks and looks have brought.
    fn charge(&mut self, did: &Did) {
        let found = did.looks.found;
        let by_kicks = did.packets.saturating_sub(found);
        self.clock
            .work(did.kicks * self.price.kick[0] + by_kicks * self.price.kick[1]);
        let looks = did.looks.timed + did.looks.riding + did.looks.overdue;
        if looks > 0 {
            self.clock.work(self.price.of_look(did.guests, found));
        }
        let now = self.clock.now();
        self.latencies
            .extend(self.leaving.drain(..).map(|put| now - put));
    }
}
