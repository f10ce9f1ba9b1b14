//! Experiments: what a packet costs on each path (paper, section 6.2).
//!
//! ```text
//! Setup ─> in each layout of code: boot ─> for each load: packets are recorded, and the
//!                                  driver plays them alone, by turns          its part
//!       ─> boot ─> for each load:  warm up
//!                                  rounds: every path and direction in turn   cycles
//!                                  single-stepped packets                     instructions
//!                  ─> Measured, one for each load, path and direction
//! ```
//!
//! Instructions, table look-ups and calls are counted one by one, on fewer packets.
//!
//! Another virtual machine may share the core: for seconds everything then takes half
//! as long again, and paths differ in how much. So paths take turns within each round
//! and are compared round by round, and so are drivers ([`Measured::against`]). What was
//! recorded while the core was shared does not count ([`Alone`]). Medians that are not
//! known within a tenth are no figures ([`Known`]).

mod alone;
pub mod apart;
mod known;
mod layouts;
mod measured;
mod routines;
mod spent;
mod spread;

use process_lab::program::Variant;
use process_lab::runtime::Statistics;

pub use alone::Alone;
pub use known::{Known, agree};
pub use measured::{Against, Measured, Missed};
pub use routines::{PAPER_ORDER, cumulative};
pub use spent::Spent;
pub use spread::Spread;

use std::collections::HashSet;

use super::memory::Shift;
use super::paths::{self, PacketPath, Paths};
use super::system::{Blueprint, SystemError};
use crate::dom0::interface::Feature;
use crate::dom0::job::Look;
use crate::image::files::Files;
use crate::measure::profile::Component;
use crate::measure::steps;
use crate::packets::round::{BATCH, PacketDirection};
use crate::stages::Stages;
use crate::traffic::source::Shape;
use crate::transport::rendezvous::Limits;

/// Rounds that a path's packets of one direction are divided into.
pub const ROUNDS: u64 = 20;
/// Most packets of 64 KiB that are single-stepped.
const STEPPED_SEGMENTS: u64 = 4;
/// Packets before anything is counted: rings and pools have gone round.
const WARM_UP: u64 = 4096;
/// The same, of 64 KiB each.
const WARM_UP_SEGMENTS: u64 = 256;

/// Packets of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What they are.
    pub shape: Shape,
    /// Each is measured by itself.
    pub directions: Vec<PacketDirection>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Setup {
    /// On which paths.
    pub paths: Vec<PacketPath>,
    /// Which packets, one load after the other.
    pub loads: Vec<Load>,
    /// How many each way on each path, counted ones only.
    pub packets: u64,
    /// How many of them, or of others like them, are single-stepped.
    pub stepped: u64,
    /// How many turns each driver gets alone; none if hot routines are upcalls, because
    /// then it is never alone.
    pub turns: u64,
    /// From how many guests, or programs in dom0.
    pub guests: u32,
    /// How the hypervisor instance is rewritten.
    pub variant: Variant,
    /// Hot routines that are upcalls nevertheless.
    pub upcalls: HashSet<String>,
    /// The driver's parameters, as insmod takes them.
    pub driver_args: String,
    /// Stages of the packet path through the hypervisor.
    pub stages: Stages,
    /// What the card does not do.
    pub without: Vec<Feature>,
}

impl Setup {
    /// Boots a system with its code at these distances, and runs `work` with its paths.
    fn booted<T>(
        &self,
        files: &Files,
        shift: Shift,
        work: impl FnOnce(&mut Paths<'_>) -> Result<T, SystemError>,
    ) -> Result<T, SystemError> {
        let blueprint = Blueprint::shifted(files, self.variant, &self.upcalls, shift)?
            .with_driver_args(&self.driver_args)
            .without(&self.without);
        let shape = self.loads.first().map_or(Shape::Frames(1514), |l| l.shape);
        blueprint.booted(Limits::default(), |system| {
            work(&mut Paths::with_stages(
                system, self.guests, shape, self.stages,
            )?)
        })
    }
}

/// Called with how much is done, and of how much.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);

/// Boots a system and measures. From here on this process and dom0 are kept on one
/// processor, so that cycles of both add up, and at a higher priority than others, if
/// that is permitted. Once in a process.
///
/// # Errors
/// [`SystemError`]; among them a driver that was aborted.
pub fn run(
    files: &Files,
    setup: &Setup,
    progress: Progress<'_>,
) -> Result<Vec<Measured>, SystemError> {
    paths::pin().map_err(|_| super::LiveError::last("keeping to one processor"))?;
    paths::hurry();
    let total = (setup.loads.len() as u64 + 1) * (ROUNDS + 2);
    // First, because it needs processes of its own, made of one that has no instance yet.
    let played = layouts::played(files, setup, &mut |done, all| {
        progress(done * (ROUNDS + 2) / all, total);
    })?;
    setup.booted(files, Shift::default(), |paths| {
        let mut all = Vec::new();
        for (number, load) in setup.loads.iter().enumerate() {
            let start = (number as u64 + 1) * (ROUNDS + 2);
            if paths.shape() != load.shape {
                paths.set_shape(load.shape)?;
            }
            let mut tell = |done| progress(start + done, total);
            let mut measurements = measure(paths, setup, load, &mut tell)?;
            let counts = paths.stage_counts();
            for measured in &mut measurements {
                if measured.path == PacketPath::Twin {
                    measured.stages = counts;
                }
                let of_load = played.iter().filter(|played| played.load == number);
                measured.alone = layouts::alone(of_load, measured);
            }
            all.extend(measurements);
        }
        Ok(all)
    })
}

/// Measures one load on all paths.
fn measure(
    paths: &mut Paths<'_>,
    setup: &Setup,
    load: &Load,
    tell: &mut dyn FnMut(u64),
) -> Result<Vec<Measured>, SystemError> {
    let mut measurements: Vec<Measured> = measurements(setup, load);
    for measured in &mut measurements {
        warm_up(paths, measured, setup.packets)?;
    }
    // Everything is warmed up from this point on.
    tell(1);
    let rounds: Vec<u64> = rounds(setup.packets).collect();
    for (number, packets) in rounds.iter().enumerate() {
        for measured in &mut measurements {
            count_cycles(paths, measured, *packets)?;
        }
        tell(2 + number as u64);
    }
    for measured in &mut measurements {
        measured.sum_up();
        count_steps(paths, measured, setup.stepped)?;
    }
    tell(ROUNDS + 2);
    Ok(measurements)
}

fn measurements(setup: &Setup, load: &Load) -> Vec<Measured> {
    let directions = load.directions.iter();
    let measurements = directions.flat_map(|direction| {
        let paths = setup.paths.iter();
        paths.map(|path| Measured::new(*path, load.shape, *direction))
    });
    measurements.collect()
}

/// A number of packets as rounds of whole batches, except for the last.
fn rounds(packets: u64) -> impl Iterator<Item = u64> {
    let batch = u64::from(BATCH);
    let size = packets.div_ceil(ROUNDS).next_multiple_of(batch).max(1);
    (0..packets.div_ceil(size)).map(move |round| size.min(packets - round * size))
}

fn warm_up(
    paths: &mut Paths<'_>,
    measured: &mut Measured,
    packets: u64,
) -> Result<(), SystemError> {
    let packets = warm_up_packets(measured.shape, packets);
    let seen = paths.run(measured.path, measured.work(Look::Cycles, packets))?;
    measured.add(&seen);
    Ok(())
}

/// A small run is warmed up too, because rings have 256 places.
fn warm_up_packets(shape: Shape, packets: u64) -> u64 {
    let most = match shape {
        Shape::Frames(_) => WARM_UP,
        Shape::Segments(_) => WARM_UP_SEGMENTS,
    };
    packets.clamp(WARM_UP_SEGMENTS, most)
}

fn count_cycles(
    paths: &mut Paths<'_>,
    measured: &mut Measured,
    packets: u64,
) -> Result<(), SystemError> {
    let seen = paths.run(measured.path, measured.work(Look::Cycles, packets))?;
    measured.add_steady(&seen);
    let round = seen.round;
    measured.upcalls += seen.upcalls;
    measured.packets += round.packets;
    measured.frames += round.frames;
    measured.bytes += round.bytes;
    measured.rounds.push(Spread {
        median: round.median,
        low: round.low,
        high: round.high,
    });
    for (sum, cycles) in measured.turns.iter_mut().zip(round.spent) {
        *sum += cycles;
    }
    Ok(())
}

fn count_steps(
    paths: &mut Paths<'_>,
    measured: &mut Measured,
    packets: u64,
) -> Result<(), SystemError> {
    let packets = match measured.shape {
        Shape::Frames(_) => packets,
        Shape::Segments(_) => packets.min(STEPPED_SEGMENTS),
    };
    if packets == 0 {
        return Ok(());
    }
    let (before, calls) = (paths.statistics(), steps::calls());
    let executed = steps::executed();
    let seen = paths.run(measured.path, measured.work(Look::Steps, packets))?;
    measured.add_steady(&seen);
    measured.stepped += seen.round.packets;
    measured.steps = measured.steps.plus(&seen.steps);
    measured.missed = missed(&before, &paths.statistics());
    if measured.path == PacketPath::Twin {
        let names = paths.system.blueprint().routines();
        let counts = steps::calls().into_iter().zip(calls);
        let counts = counts.map(|(now, before)| now - before);
        measured.calls = names.into_iter().zip(counts).collect();
        let times = steps::executed_since(&executed);
        measured.spent = spent::spent(&paths.system.blueprint().payload.driver, &times);
    }
    if measured.path.host() == Component::Hypervisor {
        paths.system.guard().switch_off(true);
        let unchecked = paths.run(measured.path, measured.work(Look::Steps, packets));
        paths.system.guard().switch_off(false);
        let unchecked = unchecked?;
        measured.add_steady(&unchecked);
        measured.unchecked = Some(unchecked.steps);
    }
    Ok(())
}

fn missed(before: &Statistics, after: &Statistics) -> Missed {
    Missed {
        fills: after.fills - before.fills,
        collisions: after.collisions - before.collisions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_whole_batches_and_all_packets() {
        for packets in [1, 31, 32, 1000, 12_345, 1_000_000] {
            let sizes: Vec<u64> = rounds(packets).collect();
            assert_eq!(sizes.iter().sum::<u64>(), packets);
            assert!(sizes.len() as u64 <= ROUNDS, "{packets}: {sizes:?}");
            let (_, whole) = sizes.split_last().expect("a round");
            assert!(whole.iter().all(|size| size % u64::from(BATCH) == 0));
        }
        assert_eq!(rounds(0).count(), 0);
    }
}
