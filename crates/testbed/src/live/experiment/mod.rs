//! Experiments: what a packet costs on each path (paper, section 6.2).
//!
//! ```text
//! Setup ─> boot ─> for each load:  warm up
//!                                  rounds: every path and direction in turn   cycles
//!                                          ... and again, profiled            shares
//!                                  single-stepped packets                     instructions
//!                  ─> Measured, one for each load, path and direction
//! ```
//!
//! Cycles are counted without the profiler; it only says whose they are.
//! Instructions, table look-ups and calls are counted one by one, on fewer packets.

mod routines;
mod spread;

pub use routines::{PAPER_ORDER, cumulative};
pub use spread::Spread;

use std::collections::HashSet;

use super::endpoint::Shape;
use super::files::Files;
use super::job::Look;
use super::mailbox::Mailbox;
use super::memory::{Machine, Sizes};
use super::paths::{self, Path, Paths, Seen, Work};
use super::profile::{Component, Samples};
use super::rendezvous::Limits;
use super::round::{BATCH, Direction};
use super::steps::{self, Steps};
use super::system::{Blueprint, System, SystemError};
use crate::program::Variant;
use crate::runtime::Statistics;

/// Rounds that a path's packets of one direction are divided into.
pub const ROUNDS: u64 = 20;
/// Samples that shares of components come from, at least.
const SAMPLES: u64 = 1000;
/// Profiled rounds, at most: a path that costs nothing has no shares.
const PROFILED: u64 = 100;
/// Most packets of a profiled round.
const PROFILED_PACKETS: u64 = 4096;
/// Likewise, of 64 KiB each.
const PROFILED_SEGMENTS: u64 = 256;
/// Most packets of 64 KiB that are single-stepped.
const STEPPED_SEGMENTS: u64 = 4;
/// Packets before anything is counted: rings and pools have gone round.
const WARM_UP: u64 = 4096;
/// Likewise, of 64 KiB each.
const WARM_UP_SEGMENTS: u64 = 256;

/// Packets of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What they are.
    pub shape: Shape,
    /// Which ways.
    pub directions: Vec<Direction>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Setup {
    /// On which paths.
    pub paths: Vec<Path>,
    /// Which packets, one load after the other.
    pub loads: Vec<Load>,
    /// How many each way on each path, counted ones only.
    pub packets: u64,
    /// How many of them, or of others like them, are single-stepped.
    pub stepped: u64,
    /// From how many guests, or programs in dom0.
    pub guests: u32,
    /// How the hypervisor instance is rewritten.
    pub variant: Variant,
    /// Hot routines that are upcalls nevertheless.
    pub upcalls: HashSet<String>,
}

/// What one path costs in one direction.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which path.
    pub path: Path,
    /// Which packets.
    pub shape: Shape,
    /// Which way.
    pub direction: Direction,
    /// Packets whose cycles were counted; a segment that the card cuts is one.
    pub packets: u64,
    /// Frames that they made on the wire.
    pub frames: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Frames that did not arrive, of all rounds, also of those not counted.
    pub lost: u64,
    /// Frames that arrived not as sent, likewise.
    pub corrupted: u64,
    /// Cycles a packet, the card excepted.
    pub cycles: Spread,
    /// Whose turn it was in these cycles.
    pub spent: [u64; 7],
    /// Samples of other rounds, by component: whose the host's turns were.
    pub samples: Samples,
    /// Upcalls made for the packets whose cycles were counted.
    pub upcalls: u64,
    /// Packets after the warm-up, the profiled and the single-stepped ones too.
    pub steady: u64,
    /// Upcalls made for these.
    pub steady_upcalls: u64,
    /// Packets that were single-stepped.
    pub stepped: u64,
    /// Their instructions and table look-ups.
    pub steps: Steps,
    /// Look-ups of these that found no entry, and those that found another's.
    pub missed: Missed,
    /// Calls of each hot routine for these by the driver, if it is rewritten.
    pub calls: Vec<(String, u64)>,
}

/// Table look-ups that were not hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// The page had to be mapped.
    pub fills: u64,
    /// The page was mapped, but its entry taken by another.
    pub collisions: u64,
}

impl Measured {
    fn new(path: Path, shape: Shape, direction: Direction) -> Measured {
        Measured {
            path,
            shape,
            direction,
            packets: 0,
            frames: 0,
            bytes: 0,
            lost: 0,
            corrupted: 0,
            cycles: Spread::default(),
            spent: [0; 7],
            samples: Samples::default(),
            upcalls: 0,
            steady: 0,
            steady_upcalls: 0,
            stepped: 0,
            steps: Steps::default(),
            missed: Missed::default(),
            calls: Vec::new(),
        }
    }

    /// Cycles a packet of one component; all of them add up to what a packet costs.
    /// Turns are counted, and what driver and hot routines take of the host's
    /// turns is their share of the samples there.
    pub fn cycles_of(&self, component: Component) -> f64 {
        let costs = Component::COSTS.iter();
        let all: u64 = costs.map(|cost| self.spent[*cost as usize]).sum();
        let of_turn = |turn: Component| {
            self.cycles.median * self.spent[turn as usize] as f64 / all.max(1) as f64
        };
        match (self.sharers().contains(&component), self.samples_of_host()) {
            (true, 1..) => {
                let share = self.samples.of(component) as f64 / self.samples_of_host() as f64;
                of_turn(self.path.host()) * share
            }
            (true, 0) | (false, _) => of_turn(component),
        }
    }

    /// Those that share the host's turns.
    fn sharers(&self) -> [Component; 3] {
        [Component::Driver, Component::Support, self.path.host()]
    }

    /// Samples that their shares come from.
    pub fn samples_of_host(&self) -> u64 {
        self.sharers()
            .map(|sharer| self.samples.of(sharer))
            .iter()
            .sum()
    }

    /// Instructions a packet of one component.
    pub fn instructions_of(&self, component: Component) -> f64 {
        self.steps.of(component) as f64 / self.stepped.max(1) as f64
    }

    /// Table look-ups of the single-stepped packets that were hits.
    pub fn hits(&self) -> u64 {
        let missed = self.missed.fills + self.missed.collisions;
        self.steps.lookups.saturating_sub(missed)
    }

    fn work(&self, look: Look, packets: u64) -> Work {
        Work {
            direction: self.direction,
            packets,
            look,
        }
    }

    /// What every round adds.
    fn add(&mut self, seen: &Seen) {
        self.lost += seen.round.lost;
        self.corrupted += seen.round.corrupted;
    }

    fn add_steady(&mut self, seen: &Seen) {
        self.add(seen);
        self.steady += seen.round.packets;
        self.steady_upcalls += seen.upcalls;
    }
}

/// Told how much is done, and of how much.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);

/// Boots a system and measures. This process and dom0 are kept on one processor
/// from here on, so that cycles of both add up. Once in a process.
///
/// # Errors
/// [`SystemError`]; among them a driver that was aborted.
pub fn run(
    files: &Files,
    setup: &Setup,
    progress: Progress<'_>,
) -> Result<Vec<Measured>, SystemError> {
    paths::pin().map_err(|_| super::LiveError::last("keeping to one processor"))?;
    let blueprint = Blueprint::new(files, setup.variant, &setup.upcalls)?;
    let machine = Machine::new(Sizes::default())?;
    let mailbox = Mailbox::new()?;
    let system = System::start(&blueprint, &machine, mailbox.get(), Limits::default())?;
    let shape = setup.loads.first().map_or(Shape::Frames(1514), |l| l.shape);
    let mut paths = Paths::new(system, setup.guests, shape)?;
    let mut all = Vec::new();
    let total = setup.loads.len() as u64 * (ROUNDS + 2);
    for (number, load) in setup.loads.iter().enumerate() {
        let start = number as u64 * (ROUNDS + 2);
        if paths.shape() != load.shape {
            paths.set_shape(load.shape)?;
        }
        let mut tell = |done| progress(start + done, total);
        all.extend(measure(&mut paths, setup, load, &mut tell)?);
    }
    Ok(all)
}

/// Measures one load on all paths.
fn measure(
    paths: &mut Paths<'_>,
    setup: &Setup,
    load: &Load,
    tell: &mut dyn FnMut(u64),
) -> Result<Vec<Measured>, SystemError> {
    let mut lanes: Vec<Measured> = lanes(setup, load);
    for lane in &mut lanes {
        warm_up(paths, lane, setup.packets)?;
    }
    tell(1);
    // Nothing is new to anybody beyond this point.
    let mut costs = vec![Vec::new(); lanes.len()];
    for (number, packets) in rounds(setup.packets).enumerate() {
        for (lane, costs) in lanes.iter_mut().zip(&mut costs) {
            costs.push(count_cycles(paths, lane, packets)?);
            profile(paths, lane, packets)?;
        }
        tell(2 + number as u64);
    }
    for (lane, costs) in lanes.iter_mut().zip(costs) {
        lane.cycles = Spread::of(&costs);
        profile_more(paths, lane)?;
        count_steps(paths, lane, setup.stepped)?;
    }
    tell(ROUNDS + 2);
    Ok(lanes)
}

fn lanes(setup: &Setup, load: &Load) -> Vec<Measured> {
    let directions = load.directions.iter();
    let lanes = directions.flat_map(|direction| {
        let paths = setup.paths.iter();
        paths.map(|path| Measured::new(*path, load.shape, *direction))
    });
    lanes.collect()
}

/// So many packets as rounds of whole batches, but for the last.
fn rounds(packets: u64) -> impl Iterator<Item = u64> {
    let batch = u64::from(BATCH);
    let size = packets.div_ceil(ROUNDS).next_multiple_of(batch).max(1);
    (0..packets.div_ceil(size)).map(move |round| size.min(packets - round * size))
}

fn warm_up(paths: &mut Paths<'_>, lane: &mut Measured, packets: u64) -> Result<(), SystemError> {
    let most = match lane.shape {
        Shape::Frames(_) => WARM_UP,
        Shape::Segments(_) => WARM_UP_SEGMENTS,
    };
    // A small run is warmed up too, for rings have 256 places.
    let packets = packets.clamp(WARM_UP_SEGMENTS, most);
    let seen = paths.run(lane.path, lane.work(Look::Cycles, packets))?;
    lane.add(&seen);
    Ok(())
}

/// Gives what the round's packets cost.
fn count_cycles(
    paths: &mut Paths<'_>,
    lane: &mut Measured,
    packets: u64,
) -> Result<Spread, SystemError> {
    let seen = paths.run(lane.path, lane.work(Look::Cycles, packets))?;
    lane.add_steady(&seen);
    let round = seen.round;
    lane.upcalls += seen.upcalls;
    lane.packets += round.packets;
    lane.frames += round.frames;
    lane.bytes += round.bytes;
    for (sum, spent) in lane.spent.iter_mut().zip(round.spent) {
        *sum += spent;
    }
    Ok(Spread {
        median: round.median,
        low: round.low,
        high: round.high,
    })
}

fn profile(paths: &mut Paths<'_>, lane: &mut Measured, packets: u64) -> Result<(), SystemError> {
    let packets = packets.min(match lane.shape {
        Shape::Frames(_) => PROFILED_PACKETS,
        Shape::Segments(_) => PROFILED_SEGMENTS,
    });
    let seen = paths.run(lane.path, lane.work(Look::Profile, packets))?;
    lane.add_steady(&seen);
    lane.samples = lane.samples.plus(&seen.round.samples);
    Ok(())
}

fn profile_more(paths: &mut Paths<'_>, lane: &mut Measured) -> Result<(), SystemError> {
    for _ in 0..PROFILED {
        if lane.samples_of_host() >= SAMPLES {
            break;
        }
        profile(paths, lane, PROFILED_PACKETS)?;
    }
    Ok(())
}

fn count_steps(
    paths: &mut Paths<'_>,
    lane: &mut Measured,
    packets: u64,
) -> Result<(), SystemError> {
    let packets = match lane.shape {
        Shape::Frames(_) => packets,
        Shape::Segments(_) => packets.min(STEPPED_SEGMENTS),
    };
    let (before, calls) = (paths.statistics(), steps::calls());
    let seen = paths.run(lane.path, lane.work(Look::Steps, packets))?;
    lane.add_steady(&seen);
    lane.stepped += seen.round.packets;
    lane.steps = lane.steps.plus(&seen.steps);
    lane.missed = missed(&before, &paths.statistics());
    if lane.path == Path::Twin {
        let names = paths.system.blueprint().routines();
        let counts = steps::calls().into_iter().zip(calls);
        let counts = counts.map(|(now, before)| now - before);
        lane.calls = names.into_iter().zip(counts).collect();
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

    #[test]
    fn cycles_are_shared_out_by_samples() {
        let mut measured = Measured::new(Path::Domu, Shape::Frames(60), Direction::Send);
        measured.cycles.median = 1000.0;
        measured.spent[Component::Dom0 as usize] = 6000;
        measured.spent[Component::Hypervisor as usize] = 3000;
        measured.spent[Component::Guest as usize] = 1000;
        // The card's time is nobody's cost.
        measured.spent[Component::Card as usize] = 50_000;
        // Not sampled, it is all the host's.
        assert_eq!(measured.cycles_of(Component::Dom0), 600.0);
        measured.samples.0[Component::Driver as usize] = 20;
        measured.samples.0[Component::Support as usize] = 10;
        measured.samples.0[Component::Dom0 as usize] = 30;
        // Where the profiler makes itself felt: other turns are counted without it.
        measured.samples.0[Component::Idle as usize] = 900;
        measured.samples.0[Component::Hypervisor as usize] = 70;
        assert_eq!(measured.cycles_of(Component::Driver), 200.0);
        assert_eq!(measured.cycles_of(Component::Support), 100.0);
        assert_eq!(measured.cycles_of(Component::Dom0), 300.0);
        assert_eq!(measured.cycles_of(Component::Hypervisor), 300.0);
        assert_eq!(measured.cycles_of(Component::Guest), 100.0);
        let all = Component::COSTS
            .iter()
            .map(|cost| measured.cycles_of(*cost));
        assert_eq!(all.sum::<f64>(), measured.cycles.median);
    }
}
