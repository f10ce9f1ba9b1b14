//! The row `acknowledgements`: a TCP stream in a closed loop, with the acknowledgements that its guest
//! sends, with and without what Menon's thesis saves of both (3.5, 3.6).
//!
//! ```text
//! neither      segments by themselves, an acknowledgement for every second
//! aggregation  segments of a poll are one packet, the acknowledgements are the same
//! templates    the acknowledgements of a packet are one template (runtime/hot/acks.c)
//! ```
//!
//! The card has all that a window allows before it interrupts, as under full load.

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::rows::ByLimit;
use crate::engines::twin::TwinEngine;
use crate::experiment::Spread;
use crate::experiment::apart::apart;
use crate::hypervisor::time_limit;
use crate::image::files::Files;
use crate::measure::steps;
use crate::packets::packet_loop::Stop;
use crate::packets::streams::{Load, SendTemplate, Streamed, Streams};
use crate::stages::aggregate::{AggregateCounts, LIMIT};
use crate::system::{Blueprint, SystemError};
use crate::traffic::tcp::MSS;
use crate::transport::rendezvous::Limits;

/// Segments between two interrupts, in a window of as many.
const BURST: u32 = 64;
/// Segments of a run, and of one whose instructions are counted.
const SEGMENTS: u64 = 4096;
const STEPPED: u64 = 256;
/// Runs of each way, by turns.
const TURNS: usize = 5;

twin_abi::listed! {
    /// What is saved.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Way {
        /// Nothing.
        Neither => "neither",
        /// Packets up to the guest.
        Aggregation => "aggregation",
        /// These, and requests for acknowledgements.
        Templates => "templates",
    }
}

/// What one way came to.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ByWay {
    /// Instructions a segment, acknowledgements included.
    pub instructions: f64,
    /// Segments, packets of them, acknowledgements on the wire.
    pub counted: [u64; 3],
    /// Why these packets ended.
    #[serde(default)]
    pub ended: AggregateCounts,
    /// Cycles a segment here: half of the turns took less.
    pub cycles: f64,
}

/// The row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Acknowledgements {
    /// By [`Way::ALL`].
    pub ways: [ByWay; 3],
    /// Neither divided by aggregation, and by templates, in cycles measured here: tenth, half, nine
    /// tenths of the turns.
    pub measured: [[f64; 3]; 2],
    /// With templates, by the limit of segments.
    pub by_limit: Vec<ByLimit>,
    /// Bytes that came changed, out of order, or not at all.
    pub damage: u64,
}

/// Measures all ways.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(files: &Files, variant: Variant) -> Result<Acknowledgements, SystemError> {
    apart(|| {
        let blueprint = Blueprint::new(files, variant, &Default::default())?;
        let limits = Limits::of_seconds(120);
        blueprint.booted(limits, |system| {
            let engine = system.twin(limits)?;
            system.take_interrupts();
            crate::paths::declare(system.blueprint());
            let load = Load {
                guests: 1,
                window: BURST,
                payload: MSS,
                burst: BURST,
            };
            let card = system.card(load.guests)?;
            let streams = Streams::new(system.machine(), engine, card, load, |engine, source| {
                engine.attach(source);
            });
            let mut bench = Bench { streams, damage: 0 };
            Ok(bench.row()?)
        })
    })
}

struct Bench<'s> {
    streams: Streams<'s, TwinEngine<'s>>,
    damage: u64,
}

impl<'s> Bench<'s> {
    fn row(&mut self) -> Result<Acknowledgements, Stop> {
        let mut row = Acknowledgements::default();
        let mut cycles = [[0.0; TURNS]; 3];
        for turn in 0..TURNS {
            for (way, cycles) in Way::ALL.into_iter().zip(&mut cycles) {
                self.set(way, LIMIT);
                let seen = self.run(SEGMENTS)?;
                cycles[turn] = seen.cycles as f64 / seen.segments as f64;
            }
        }
        let [neither, rest @ ..] = &cycles;
        for (measured, cycles) in row.measured.iter_mut().zip(rest) {
            let ratios = neither.iter().zip(cycles).map(|(off, on)| off / on);
            let spread = Spread::of_values(ratios);
            *measured = [spread.low, spread.median, spread.high];
        }
        for ((way, by_way), cycles) in Way::ALL.into_iter().zip(&mut row.ways).zip(cycles) {
            self.set(way, LIMIT);
            *by_way = self.count()?;
            by_way.cycles = Spread::of_values(cycles.into_iter()).median;
        }
        for limit in [2, 4, 8, 16, 32] {
            self.set(Way::Templates, limit);
            let instructions = self.count()?.instructions;
            row.by_limit.push(ByLimit {
                limit,
                instructions,
            });
        }
        row.damage = self.damage;
        Ok(row)
    }

    fn set(&mut self, way: Way, limit: u32) {
        let template: SendTemplate<TwinEngine<'s>> = TwinEngine::transmit_template;
        let (segments, template) = match way {
            Way::Neither => (0, None),
            Way::Aggregation => (limit, None),
            Way::Templates => (limit, Some(template)),
        };
        self.streams.packet_loop.engine.set_aggregate(segments);
        self.streams.set_template(template);
    }

    fn run(&mut self, segments: u64) -> Result<Streamed, Stop> {
        let seen = self.streams.run(segments)?;
        self.damage += seen.wrong;
        Ok(seen)
    }

    /// The way that is set, step by step.
    fn count(&mut self) -> Result<ByWay, Stop> {
        // All of it is warm, and what belongs to another way has come to its end.
        self.run(u64::from(4 * BURST))?;
        self.limit_time(std::time::Duration::from_secs(120))?;
        let before = self.counts();
        let counted = steps::count(|| self.run(STEPPED));
        self.limit_time(time_limit::DEFAULT)?;
        let (seen, steps) = counted.map_err(|error| Stop::Driver(error.to_string()))?;
        let seen = seen?;
        Ok(ByWay {
            instructions: steps.costs() as f64 / seen.segments as f64,
            counted: [seen.segments, seen.packets, seen.acknowledgements],
            ended: self.counts().since(before),
            cycles: 0.0,
        })
    }

    fn counts(&self) -> AggregateCounts {
        AggregateCounts::read(|name| self.streams.packet_loop.engine.counter(name))
    }

    fn limit_time(&self, limit: std::time::Duration) -> Result<(), Stop> {
        let set = self.streams.packet_loop.engine.instance.limit_time(limit);
        set.map_err(|error| Stop::Driver(error.to_string()))
    }
}
