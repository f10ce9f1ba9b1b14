//! What real processors move at once, beside what one of them moves: by turns, with the same
//! frames for each.
//!
//! Time is the wall's, of the whole process: the card's model, the making and the checking of
//! frames are in it, for one processor and for several. It differs from run to run.

use std::collections::HashSet;
use std::time::Instant;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::exchange::Exchange;
use super::queues::Spread;
use super::real::{self, Done, Processor, SentDone, Shared, allowed, with_processor};
use crate::experiment::Spread as Tenths;
use crate::experiment::apart::together;
use crate::image::files::Files;
use crate::packets::packet_loop::Stop;
use crate::system::{Blueprint, SystemError};
use crate::traffic::LONGEST;
use crate::transport::mailbox::SharedPages;
use crate::transport::rendezvous::Limits;

/// Processors at most; the machine may have fewer.
const MOST: usize = 4;
const GUESTS: u32 = 4;
const QUEUES: u32 = 2;
const FLOWS: u32 = 16;
/// Of each processor and turn: some 50 ms.
const FRAMES: u32 = 20_000;
const TURNS: usize = 5;

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Processors at once.
    pub processors: u32,
    /// Frames a second of one.
    pub alone: f64,
    /// Frames a second of all, divided by that of one: tenth, half, nine tenths of the turns.
    pub ratio: [f64; 3],
    /// How often a queue was full whose processor was yet to take from it.
    pub waits: u64,
    /// Frames that were lost, changed, repeated, or out of order.
    pub damage: u64,
    /// The same of what guests send, of frames of 128 bytes, by cards' queues.
    pub sent: MeasuredSent,
}

/// What was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasuredSent {
    /// Frames a second of one.
    pub alone: f64,
    /// Frames a second of all, divided by that of one: tenth, half, nine tenths of the turns.
    pub ratio: [f64; 3],
    /// Times that a card's queue was locked to put packets there.
    pub batches: u64,
    /// Times that it was held by another then.
    pub held: u64,
    /// Frames that were lost, changed, repeated, or out of order.
    pub damage: u64,
}

/// A processor's part: nanoseconds of each turn, alone and together.
#[derive(Serialize, Deserialize)]
struct Part {
    turns: Vec<[u64; 2]>,
    sent_turns: Vec<[u64; 2]>,
    done: Done,
    sent: SentDone,
}

/// Measures as many processors as this process may use, four at most; `None` with fewer than two.
///
/// # Errors
/// [`SystemError`] of one of the processes.
pub fn measure(files: &Files, variant: Variant) -> Result<Option<Measured>, SystemError> {
    let processors = allowed().len().min(MOST) as u32;
    if processors < 2 {
        return Ok(None);
    }
    let blueprint = Blueprint::new(files, variant, &HashSet::new())?;
    let pages = SharedPages::<Exchange>::new()?;
    let spread = Spread {
        guests: GUESTS,
        queues: QUEUES,
        processors,
    };
    let shared = Shared::new(pages.get(), spread, FLOWS, LONGEST);
    let limits = Limits::of_seconds(120);
    let parts = together(processors, |number| {
        real::keep_to(number);
        with_processor(&blueprint, shared, number, limits, |processor| {
            Ok(part(processor, number, processors)?)
        })
    })?;
    Ok(Some(summary(processors, &parts)))
}

fn part(processor: &mut Processor<'_, '_>, number: u32, all: u32) -> Result<Part, Stop> {
    let turns = turns(processor, number, all, |processor, _, _| {
        processor.receive(FRAMES)
    })?;
    let sent_turns = self::turns(processor, number, all, |processor, turn, active| {
        // Of each flow so far: those of processor 0 are sent by it alone as well.
        let together = turn as u64 + u64::from(active > 1);
        let of = |flow: u32| {
            let alone = if flow < FLOWS { turn as u64 + 1 } else { 0 };
            (alone + together) * u64::from(FRAMES / FLOWS)
        };
        processor.send(of(number * FLOWS), |outward| {
            (0..active * FLOWS).all(|flow| outward.sent(flow) >= of(flow))
        })
    })?;
    Ok(Part {
        turns,
        sent_turns,
        done: Done::of(processor),
        sent: SentDone::of(processor),
    })
}

/// Nanoseconds of `work` by one processor and by all, by turns.
fn turns<'s, 'x>(
    processor: &mut Processor<'s, 'x>,
    number: u32,
    all: u32,
    mut work: impl FnMut(&mut Processor<'s, 'x>, usize, u32) -> Result<(), Stop>,
) -> Result<Vec<[u64; 2]>, Stop> {
    let mut turns = Vec::new();
    // The first turn warms rings and pools up.
    for turn in 0..=TURNS {
        let mut both = [0; 2];
        for (time, active) in both.iter_mut().zip([1, all]) {
            processor.share_among(active);
            processor.port.meet()?;
            let start = Instant::now();
            if number < active {
                work(processor, turn, active)?;
            }
            processor.port.meet()?;
            *time = start.elapsed().as_nanos() as u64;
            // Nobody changes whose queues are whose before all have served.
            processor.port.meet()?;
        }
        if turn > 0 {
            turns.push(both);
        }
    }
    Ok(turns)
}

/// Frames a second of one, and of all divided by that.
fn ratio(processors: u32, turns: &[&[[u64; 2]]]) -> (f64, [f64; 3]) {
    let slowest = |turn: usize, which: usize| {
        let times = turns.iter().map(|part| part[turn][which]);
        times.max().unwrap_or(1) as f64
    };
    let rates: Vec<[f64; 2]> = (0..TURNS)
        .map(|turn| {
            let one = f64::from(FRAMES) * 1e9 / slowest(turn, 0);
            let all = f64::from(FRAMES * processors) * 1e9 / slowest(turn, 1);
            [one, all]
        })
        .collect();
    let ratio = Tenths::of_values(rates.iter().map(|[one, all]| all / one));
    let alone = Tenths::of_values(rates.iter().map(|[one, _]| *one));
    (alone.median, [ratio.low, ratio.median, ratio.high])
}

fn summary(processors: u32, parts: &[Part]) -> Measured {
    let turns: Vec<_> = parts.iter().map(|part| part.turns.as_slice()).collect();
    let (alone, ratio) = ratio(processors, &turns);
    let done: Vec<Done> = parts.iter().map(|part| part.done.clone()).collect();
    let done = Done::sum(&done);
    let disorder = done.flows.iter().map(|[_, _, reordered]| reordered);
    Measured {
        processors,
        alone,
        ratio,
        waits: done.counts.waits,
        damage: all_frames(processors).abs_diff(done.counts.taken)
            + done.corrupted
            + disorder.sum::<u64>(),
        sent: summary_sent(processors, parts),
    }
}

/// Of all turns.
fn all_frames(processors: u32) -> u64 {
    u64::from(FRAMES) * (TURNS as u64 + 1) * u64::from(processors + 1)
}

fn summary_sent(processors: u32, parts: &[Part]) -> MeasuredSent {
    let turns: Vec<_> = parts
        .iter()
        .map(|part| part.sent_turns.as_slice())
        .collect();
    let (alone, ratio) = ratio(processors, &turns);
    let flows = parts.iter().flat_map(|part| &part.sent.flows);
    // A flow changes its card with the turns, so a card does not have all numbers.
    let (packets, reordered) = flows.fold((0, 0), |(all, bad), [packets, _, reordered]| {
        (all + packets, bad + reordered)
    });
    let corrupted = parts.iter().map(|part| part.sent.corrupted);
    MeasuredSent {
        alone,
        ratio,
        batches: parts.iter().map(|part| part.sent.counts.batches).sum(),
        held: parts.iter().map(|part| part.sent.counts.held).sum(),
        damage: all_frames(processors).abs_diff(packets) + reordered + corrupted.sum::<u64>(),
    }
}
