//! Rows: a stage off and on by turns in one run, with the figure of the paper beside it.
//!
//! ```text
//! for each throttle of the card, in a process of its own:
//!     boot ─> warm up ─> count the price ─> off, on, off, on, ... ─> Pair
//! pairs, sweeps ─> Row: ratio, spread, counts, the paper's figure, verdict
//! ```
//!
//! The throttle is the stock driver's parameter `InterruptThrottleRate`, which it reads when
//! it is loaded: so each has a process.

use std::collections::HashSet;

use process_lab::packet_path::NotifyLimits;
use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::price::{Crossings, Price, QUOTED, sample};
use super::receive::{Offered, Outcome, receive, wire_time};
use super::rig::Rig;
use crate::experiment::Spread;
use crate::experiment::apart::apart;
use crate::image::files::Files;
use crate::packets::round::sources;
use crate::paths;
use crate::stages::aggregate::AggregateCounts;
use crate::stages::notify::{AT_ONCE, split};
use crate::stages::{Stage, Stages, aggregate};
use crate::system::{Blueprint, System, SystemError};
use crate::traffic::source::Shape;
use crate::transport::rendezvous::Limits;

/// Guests of the largest row: the papers'.
const GUESTS: u32 = 9;
const FULL: usize = crate::traffic::LONGEST;
const SMALL: usize = crate::traffic::SHORTEST;
/// Frames of a run: 50 ms at full speed.
const PACKETS: u64 = 4096;
/// Pairs of runs, off and on by turns.
const TURNS: usize = 5;
const US: u64 = 1_000;
/// Segments that come at once, where instructions are counted by the limit.
pub const BURST: u32 = 32;
/// Packets that may wait for all guests: the driver's pool has 512 buffers, its ring 256.
const MOST: u32 = 192;
/// Dong et al., 5.3: the budget of both layers, and its steps.
pub const BUDGET: u64 = 1_250;
/// Microseconds between two splits.
pub const STEP: u64 = 250;

/// Off and on by turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// The row that it belongs to.
    pub row: RowName,
    /// Guests that receive.
    pub guests: u32,
    /// What differs, for people.
    pub knob: String,
    /// The last run of each: counts are the same in all.
    pub off: Outcome,
    /// With the stage.
    pub on: Outcome,
    /// Off divided by on, in cycles measured here and quoted crossings: tenth, half, nine
    /// tenths of the turns.
    pub measured: [f64; 3],
}

twin_abi::listed! {
    /// What is compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum RowName {
        /// DBNet, 5.4: batches by delay and count.
        Batching => "dbnet-batching",
        /// Dong et al., 5.2: virtual interrupts a thousand times a second.
        Bvic => "bvic",
        /// Dong et al., 5.2: guests that look a thousand times a second, and are not told.
        Fvic => "fvic",
        /// Menon, 3.6: TCP segments of one poll as one packet.
        Aggregation => "aggregation",
    }
}

/// One split of the budget.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Guests that receive.
    pub guests: u32,
    /// They look by timers of their own; else they are told.
    pub timer: bool,
    /// Microseconds of the card's throttle; the rest is the guests' delay.
    pub card: u64,
    /// What it came to.
    pub outcome: Outcome,
}

/// What two stages add to a packet of 60 bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Added {
    /// Instructions of a received packet without stages, and with `bridge` and `notify`.
    pub received: [u64; 2],
    /// Instructions of the guest's part.
    pub taken: [u64; 2],
}

/// Instructions of a segment by the stage `aggregate`'s limit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ByLimit {
    /// Most segments of a packet; 1: the stage is off.
    pub limit: u32,
    /// Of a segment, up to its guest, when [`BURST`] come at once.
    pub instructions: f64,
}

/// What the stage `aggregate` costs, counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Merging {
    /// Of segments without it, and with it.
    pub prices: [Price; 2],
    /// Off, then by the limit.
    pub by_limit: Vec<ByLimit>,
    /// Instructions of a segment that comes by itself, without it and with it.
    pub lone: [u64; 2],
    /// The same of a request or an answer: one byte, with PSH.
    pub asked: [u64; 2],
    /// Why packets ended, in the last run with each number of guests.
    #[serde(default)]
    pub ended: Vec<Ended>,
}

/// Why packets of several segments ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Guests that received by turns.
    pub guests: u32,
    /// What was counted.
    pub counts: AggregateCounts,
}

/// All that was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Off and on.
    pub pairs: Vec<Pair>,
    /// Splits of the budget.
    pub points: Vec<Point>,
    /// The price of each process.
    pub prices: Vec<Price>,
    /// Of the first process.
    pub added: Option<Added>,
    /// Of the process whose card interrupts 4,000 times a second.
    pub merging: Option<Merging>,
}

/// What the card's throttle is in a process: interrupts a second, 0 for none.
const THROTTLES: [u32; 5] = [0, 4000, 2000, 1333, 1000];

/// Measures all rows.
///
/// # Errors
/// [`SystemError`] of one of the processes.
pub fn measure(
    files: &Files,
    variant: Variant,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Seen, SystemError> {
    paths::pin().map_err(|_| crate::LiveError::last("keeping to one processor"))?;
    paths::hurry();
    let mut all = Seen::default();
    for (number, throttle) in THROTTLES.into_iter().enumerate() {
        let seen = apart(|| with_throttle(files, variant, throttle))?;
        all.pairs.extend(seen.pairs);
        all.points.extend(seen.points);
        all.prices.extend(seen.prices);
        all.added = all.added.or(seen.added);
        all.merging = all.merging.or(seen.merging);
        tell(number as u64 + 1, THROTTLES.len() as u64);
    }
    Ok(all)
}

fn with_throttle(files: &Files, variant: Variant, throttle: u32) -> Result<Seen, SystemError> {
    let blueprint = Blueprint::new(files, variant, &HashSet::new())?
        .with_driver_args(&format!("InterruptThrottleRate={throttle}"));
    let limits = Limits::of_seconds(120);
    blueprint.booted(limits, |system| {
        with_rig(&system, limits, |rig| {
            let price = prepare(rig)?;
            let mut bench = Bench {
                rig,
                price,
                crossings: QUOTED,
                seen: Seen::default(),
            };
            bench.seen.prices.push(price);
            match throttle {
                0 => {
                    bench.batching()?;
                    bench.added()?;
                }
                4000 => {
                    bench.bvic()?;
                    bench.fvic()?;
                }
                _ => {}
            }
            if throttle != 0 {
                bench.splits(1_000_000 / u64::from(throttle) / STEP * STEP)?;
            }
            if throttle == 4000 {
                bench.aggregation()?;
            }
            Ok(bench.seen)
        })
    })
}

/// Both stages on, guests told at once.
///
/// # Errors
/// [`SystemError`].
pub fn with_rig<T>(
    system: &System<'_>,
    limits: Limits,
    work: impl FnOnce(&mut Rig<'_>) -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    let stages = Stages::of([Stage::Bridge, Stage::Notify]);
    let mut engine = system.staged(limits, GUESTS, stages)?;
    engine.play_time();
    let sources = sources(system.machine(), GUESTS, Shape::Frames(FULL));
    for source in &sources {
        engine.attach(source);
    }
    system.take_interrupts();
    let card = system.card(GUESTS)?;
    let mut rig = Rig::new(engine, card, sources, FULL);
    paths::declare(system.blueprint());
    work(&mut rig)
}

/// Rings and pools go round, then the price is counted.
pub(crate) fn prepare(rig: &mut Rig<'_>) -> Result<Price, SystemError> {
    receive(rig, full_speed(GUESTS), &Price::default(), &QUOTED)?;
    Ok(Price::count(rig)?)
}

/// Off and on by turns.
struct Turns {
    both: [Outcome; 2],
    measured: [f64; 3],
}

/// Runs with the stage off and on, [`TURNS`] times.
fn turns(mut run: impl FnMut(bool) -> Result<Outcome, SystemError>) -> Result<Turns, SystemError> {
    let mut both = [Outcome::default(); 2];
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        both = [run(false)?, run(true)?];
        let [off, on] = both.map(|outcome| outcome.measured_a_packet());
        ratios.push(off / on);
    }
    let spread = Spread::of_values(ratios.into_iter());
    Ok(Turns {
        both,
        measured: [spread.low, spread.median, spread.high],
    })
}

impl Turns {
    fn of(self, row: RowName, guests: u32, knob: String) -> Pair {
        let [off, on] = self.both;
        Pair {
            row,
            guests,
            knob,
            off,
            on,
            measured: self.measured,
        }
    }
}

/// A gigabit a second.
fn full_speed(guests: u32) -> Offered {
    Offered {
        guests,
        packets: PACKETS,
        interval: wire_time(FULL),
        timer: None,
    }
}

/// Guests are told so long after the first packet, in nanoseconds.
fn told_after(delay: u64) -> NotifyLimits {
    NotifyLimits {
        delay,
        count: 0,
        most: MOST,
    }
}

/// Guests look by themselves, and are told only before the driver's pool is empty.
const NOT_TOLD: NotifyLimits = NotifyLimits {
    delay: u64::MAX / 2,
    count: 0,
    most: MOST,
};

struct Bench<'r, 's> {
    rig: &'r mut Rig<'s>,
    price: Price,
    crossings: Crossings,
    seen: Seen,
}

impl Bench<'_, '_> {
    fn run(&mut self, offered: Offered, limits: NotifyLimits) -> Result<Outcome, SystemError> {
        self.rig.engine.set_limits(limits);
        let outcome = receive(self.rig, offered, &self.price, &self.crossings)?;
        self.rig.engine.set_limits(AT_ONCE);
        Ok(outcome)
    }

    fn pair(
        &mut self,
        row: RowName,
        knob: String,
        offered: Offered,
        limits: NotifyLimits,
    ) -> Result<(), SystemError> {
        let turns = turns(|on| self.run(offered, if on { limits } else { AT_ONCE }))?;
        self.seen.pairs.push(turns.of(row, offered.guests, knob));
        Ok(())
    }

    /// DBNet: 540 Mb/s for one guest, on a card without a throttle.
    fn batching(&mut self) -> Result<(), SystemError> {
        let offered = Offered {
            guests: 1,
            packets: PACKETS,
            interval: FULL as u64 * 8 * 100 / 54,
            timer: None,
        };
        for (delay, count) in [(200, 3), (500, 0), (1000, 25)] {
            let limits = NotifyLimits {
                delay: delay * US,
                count,
                most: MOST,
            };
            let count = match count {
                0 => "any number".to_owned(),
                count => count.to_string(),
            };
            let knob = format!("{delay} us, {count}");
            self.pair(RowName::Batching, knob, offered, limits)?;
        }
        Ok(())
    }

    /// A gigabit a second, 4,000 interrupts of the card, 1,000 of each guest.
    fn bvic(&mut self) -> Result<(), SystemError> {
        for guests in [1, 3, 6, 9] {
            let limits = told_after(1000 * US);
            let knob = "1,000 us".to_owned();
            self.pair(RowName::Bvic, knob, full_speed(guests), limits)?;
        }
        Ok(())
    }

    /// The same by timers of the guests' own.
    fn fvic(&mut self) -> Result<(), SystemError> {
        for guests in [1, 3, 6, 9] {
            let told = full_speed(guests);
            let by_itself = Offered {
                timer: Some(1000 * US),
                ..told
            };
            let turns = turns(|on| match on {
                true => self.run(by_itself, NOT_TOLD),
                false => self.run(told, AT_ONCE),
            })?;
            let pair = turns.of(RowName::Fvic, guests, "own timer, 1,000 us".to_owned());
            self.seen.pairs.push(pair);
        }
        Ok(())
    }

    /// The budget, of which the card has `card` microseconds: guests are told, or look.
    fn splits(&mut self, card: u64) -> Result<(), SystemError> {
        let rest = (BUDGET - card) * US;
        for (guests, timer) in [1, 3, 6, 9]
            .map(|guests| [(guests, false), (guests, true)])
            .concat()
        {
            let mut offered = full_speed(guests);
            let mut limits = told_after(rest);
            if timer {
                offered.timer = Some(rest);
                limits = NOT_TOLD;
            }
            let outcome = self.run(offered, limits)?;
            self.seen.points.push(Point {
                guests,
                timer,
                card,
                outcome,
            });
        }
        Ok(())
    }

    /// A gigabit a second of TCP segments, 4,000 interrupts of the card: some twenty segments
    /// each, of all guests.
    fn aggregation(&mut self) -> Result<(), SystemError> {
        let off = self.rig.engine.stages();
        let on = Stages::of(off.list().chain([Stage::Aggregate]));
        self.rig.stream(true);
        let without = Price::count(self.rig)?;
        self.rig.engine.set_stages(on);
        let with = Price::count_merged(self.rig)?;
        let mut ended = Vec::new();
        for guests in [1, 3, 9] {
            let offered = full_speed(guests);
            let mut counts = AggregateCounts::default();
            let pair = turns(|merge| {
                let (stages, price) = if merge { (on, &with) } else { (off, &without) };
                self.rig.engine.set_stages(stages);
                let before = self.rig.engine.counts().aggregate;
                let outcome = receive(self.rig, offered, price, &self.crossings)?;
                if let (Some(before), Some(after)) = (before, self.rig.engine.counts().aggregate) {
                    counts = after.since(before);
                }
                Ok(outcome)
            })?;
            ended.push(Ended { guests, counts });
            let knob = format!("at most {} segments", aggregate::LIMIT);
            self.seen
                .pairs
                .push(pair.of(RowName::Aggregation, guests, knob));
        }
        let merging = self.merging(off, on, [without, with])?;
        self.seen.merging = Some(Merging { ended, ..merging });
        self.rig.engine.set_stages(off);
        self.rig.stream(false);
        Ok(())
    }

    fn merging(
        &mut self,
        off: Stages,
        on: Stages,
        prices: [Price; 2],
    ) -> Result<Merging, SystemError> {
        let mut by_limit = Vec::new();
        for limit in [1, 2, 4, 8, 16, 32] {
            self.rig.engine.set_stages(if limit > 1 { on } else { off });
            self.rig.engine.set_segments(limit);
            let instructions = self.counted(BURST)? as f64 / f64::from(BURST);
            by_limit.push(ByLimit {
                limit,
                instructions,
            });
        }
        self.rig.engine.set_segments(aggregate::LIMIT);
        let (mut lone, mut asked) = ([0; 2], [0; 2]);
        for (index, stages) in [off, on].into_iter().enumerate() {
            self.rig.engine.set_stages(stages);
            lone[index] = self.counted(1)?;
            self.rig.stream_of(1);
            asked[index] = self.sampled(1)?;
        }
        Ok(Merging {
            prices,
            by_limit,
            lone,
            asked,
            ended: Vec::new(),
        })
    }

    /// Instructions of so many segments for one guest, from a stream's begin.
    fn counted(&mut self, segments: u32) -> Result<u64, SystemError> {
        self.rig.stream(true);
        self.sampled(segments)
    }

    /// Instructions of so many frames for one guest.
    fn sampled(&mut self, frames: u32) -> Result<u64, SystemError> {
        let sample = sample(self.rig, frames, 1)?;
        Ok(sample.interrupt + sample.deliver)
    }

    /// A packet of 60 bytes without stages and with both.
    fn added(&mut self) -> Result<(), SystemError> {
        self.rig.resize(SMALL);
        self.rig.settle()?;
        let stages = self.rig.engine.stages();
        let with = Price::count(self.rig)?;
        self.rig.engine.set_stages(Stages::NONE);
        // The first one finds other code, which is not warm.
        sample(self.rig, 1, 1)?;
        let without = Price::count(self.rig)?;
        self.rig.engine.set_stages(stages);
        self.rig.resize(FULL);
        self.seen.added = Some(Added {
            received: [without.packet, with.packet],
            taken: [without.taken, with.taken],
        });
        Ok(())
    }
}

/// The formula's split for that many guests, in microseconds of the card, from a price.
pub fn formula(guests: u32, price: &Price, crossings: &Crossings) -> f64 {
    let cost = |cycles: u64| u32::try_from(cycles).unwrap_or(u32::MAX);
    let card = cost(price.card(crossings));
    let guest = cost(price.wake(crossings));
    split(BUDGET * US, guests, card, guest).card as f64 / US as f64
}
