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
use super::real::{self, Done, Processor, Shared, allowed, with_processor};
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
}

/// A processor's part: nanoseconds of each turn, alone and together.
#[derive(Serialize, Deserialize)]
struct Part {
    turns: Vec<[u64; 2]>,
    done: Done,
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
    let mut turns = Vec::new();
    // The first turn warms rings and pools up.
    for turn in 0..=TURNS {
        let mut both = [0; 2];
        for (time, active) in both.iter_mut().zip([1, all]) {
            processor.port.spread.processors = active;
            processor.port.meet()?;
            let start = Instant::now();
            if number < active {
                processor.receive(FRAMES)?;
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
    Ok(Part {
        turns,
        done: Done::of(processor),
    })
}

fn summary(processors: u32, parts: &[Part]) -> Measured {
    let slowest = |turn: usize, which: usize| {
        let times = parts.iter().map(|part| part.turns[turn][which]);
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
    let sent = u64::from(FRAMES) * (TURNS as u64 + 1) * u64::from(processors + 1);
    let done: Vec<Done> = parts.iter().map(|part| part.done.clone()).collect();
    let done = Done::sum(&done);
    let disorder = done.flows.iter().map(|[_, _, reordered]| reordered);
    Measured {
        processors,
        alone: alone.median,
        ratio: [ratio.low, ratio.median, ratio.high],
        waits: done.counts.waits,
        damage: sent.abs_diff(done.counts.taken) + done.corrupted + disorder.sum::<u64>(),
    }
}
