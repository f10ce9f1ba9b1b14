//! The driver alone ([`crate::replay`]), with its code, the hot routines' and the kernel's at
//! several distances of each other: what it costs depends on them ([`Shift`]).
//!
//! ```text
//! for each layout, in a process of its own:  boot ─> warm up ─> record, play by turns
//!                                                                     └─ pipe ─> Played
//! ```
//!
//! A process has one hypervisor instance, so a layout has a process. More layouts follow where
//! something shared the core in too many recordings ([`Alone`]).

use serde::{Deserialize, Serialize};

use super::alone::Alone;
use super::apart::apart;
use super::known::FEWEST;
use super::measured::Measured;
use super::{Load, Setup, warm_up_packets};
use crate::dom0::job::Look;
use crate::image::files::Files;
use crate::measure::profile::Component;
use crate::memory::Shift;
use crate::packets::round::{BATCH, PacketDirection};
use crate::paths::{PacketPath, Paths, Work};
use crate::replay::Turn;
use crate::system::SystemError;
use crate::traffic::source::Shape;

/// Recordings of a load and a direction, at most. The cost of a recording's packets
/// depends on where they lie in rings and pools; that of the rewritten driver, which
/// needs more of the TLB, depends more on it: single recordings differ by a third.
const RECORDINGS: u64 = 24;
/// Counted packets for each recording; a small run has two.
const PER_RECORDING: u64 = 256;
/// Layouts that these are divided among, at most.
const LAYOUTS: u64 = 12;
/// Recordings of each.
const OF_LAYOUT: u64 = 2;
/// So many times the layouts, at most, until half as many recordings as were wanted are
/// undisturbed. Whether one is does not depend on what it cost the drivers. A run that wants
/// too few for a figure has none, whatever disturbed it: it gets no more of them.
const PATIENCE: u64 = 3;
/// Packets of a recording, at most: some batches.
const RECORDED: u64 = 2 * BATCH as u64;
/// The same, of 64 KiB each.
const RECORDED_SEGMENTS: u64 = 2;

/// What a recording cost both drivers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Played {
    /// The load's number in the setup.
    pub(super) load: usize,
    direction: PacketDirection,
    packets: u64,
    /// Instructions, natively and rewritten.
    executed: [u64; 2],
    /// The same order; none without turns.
    turns: [Option<Turn>; 2],
}

/// Recordings of all loads, if the driver is to play alone. This process has no instance yet.
///
/// # Errors
/// [`SystemError`] of one of the processes.
pub(super) fn played(
    files: &Files,
    setup: &Setup,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Played>, SystemError> {
    if setup.turns == 0 || !setup.upcalls.is_empty() {
        return Ok(Vec::new());
    }
    let layouts = layouts(setup.packets);
    let mut all = Vec::new();
    for (number, shift) in Shift::first(most_layouts(setup.packets)).enumerate() {
        if number as u64 >= layouts && enough(&all, setup) {
            break;
        }
        all.extend(apart(|| in_layout(files, setup, shift))?);
        tell((1 + number as u64).min(layouts), layouts);
    }
    Ok(all)
}

/// Whether half of the recordings that were wanted, of each load and direction, are undisturbed.
fn enough(all: &[Played], setup: &Setup) -> bool {
    let wanted = recordings(setup.packets).div_ceil(2) as usize;
    let undisturbed = |load: usize, direction: PacketDirection| {
        let of_load = || all.iter().filter(move |played| played.load == load);
        let driver = |number| of_driver(of_load(), number, direction).unwrap_or_default();
        let rewritten = usize::from(has_rewritten(setup));
        driver(rewritten).undisturbed_with(&driver(0))
    };
    let mut loads = setup.loads.iter().enumerate();
    loads.all(|(load, what)| {
        let mut directions = what.directions.iter();
        directions.all(|direction| undisturbed(load, *direction) >= wanted)
    })
}

/// The cost of the driver that moves the packets of a measurement.
pub(super) fn alone<'p>(
    played: impl Iterator<Item = &'p Played>,
    measured: &Measured,
) -> Option<Alone> {
    let driver = usize::from(measured.path == PacketPath::Twin);
    of_driver(played, driver, measured.direction)
}

/// The cost of the native driver, 0, or the rewritten one, 1.
fn of_driver<'p>(
    played: impl Iterator<Item = &'p Played>,
    driver: usize,
    direction: PacketDirection,
) -> Option<Alone> {
    let mut alone = None;
    for played in played.filter(|played| played.direction == direction) {
        let alone: &mut Alone = alone.get_or_insert_default();
        alone.executed += played.executed[driver];
        alone.packets += played.packets;
        alone.turns.extend(played.turns[driver]);
    }
    alone
}

/// How many recordings a run of that many packets has.
fn recordings(packets: u64) -> u64 {
    (packets / PER_RECORDING).clamp(2, RECORDINGS)
}

fn layouts(packets: u64) -> u64 {
    recordings(packets).div_ceil(OF_LAYOUT).min(LAYOUTS)
}

/// Layouts that are tried, where something shares the core in too many recordings.
fn most_layouts(packets: u64) -> u64 {
    match OF_LAYOUT * layouts(packets) < FEWEST as u64 {
        true => layouts(packets),
        false => layouts(packets) * PATIENCE,
    }
}

/// All loads, in that layout.
fn in_layout(files: &Files, setup: &Setup, shift: Shift) -> Result<Vec<Played>, SystemError> {
    setup.booted(files, shift, |paths| all_loads(paths, setup))
}

fn all_loads(paths: &mut Paths<'_>, setup: &Setup) -> Result<Vec<Played>, SystemError> {
    let here = recordings(setup.packets).div_ceil(layouts(setup.packets)) as usize;
    let mut all = Vec::new();
    for (load, what) in setup.loads.iter().enumerate() {
        if paths.shape() != what.shape {
            paths.set_shape(what.shape)?;
        }
        warm_up(paths, setup, what)?;
        for _ in 0..here {
            for direction in &what.directions {
                let mut played = play(paths, setup, what, *direction)?;
                played.load = load;
                all.push(played);
            }
        }
    }
    Ok(all)
}

/// Whether the rewritten driver plays too.
fn has_rewritten(setup: &Setup) -> bool {
    setup.paths.contains(&PacketPath::Twin)
}

fn warm_up(paths: &mut Paths<'_>, setup: &Setup, load: &Load) -> Result<(), SystemError> {
    for direction in &load.directions {
        for path in [PacketPath::Native, PacketPath::Twin] {
            if path == PacketPath::Native || has_rewritten(setup) {
                let work = Work {
                    direction: *direction,
                    packets: warm_up_packets(load.shape, setup.packets),
                    look: Look::Cycles,
                };
                paths.run(path, work)?;
            }
        }
    }
    Ok(())
}

/// Records packets anew, and lets both drivers play them by turns.
fn play(
    paths: &mut Paths<'_>,
    setup: &Setup,
    load: &Load,
    direction: PacketDirection,
) -> Result<Played, SystemError> {
    let tape = paths.record(direction, recorded_packets(load.shape, setup.packets))?;
    let mut executed = [tape.instructions; 2];
    if has_rewritten(setup) {
        executed[1] = paths.count_rewritten(&tape)?.of(Component::Driver);
    }
    let mut drivers = [Vec::new(), Vec::new()];
    for _ in 0..setup.turns.div_ceil(recordings(setup.packets)) {
        drivers[0].push(paths.play_natively()?);
        if has_rewritten(setup) {
            drivers[1].push(paths.play_rewritten(&tape)?);
        }
    }
    Ok(Played {
        load: 0,
        direction,
        packets: tape.packets,
        executed,
        turns: drivers.map(|turns| Turn::undisturbed(&turns)),
    })
}

/// Packets of a recording. Each of their instructions is a signal, so there are few
/// where few are counted.
fn recorded_packets(shape: Shape, packets: u64) -> u64 {
    let most = match shape {
        Shape::Frames(_) => RECORDED,
        Shape::Segments(_) => RECORDED_SEGMENTS,
    };
    (packets / 8).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_two_recordings() {
        assert_eq!([1, 2000, 10_000].map(recordings), [2, 7, RECORDINGS]);
        assert_eq!([1, 2000, 10_000].map(layouts), [1, 4, LAYOUTS]);
    }

    #[test]
    fn no_load_of_the_machine_makes_a_figure_of_a_small_run() {
        for packets in [1, 8, 1279] {
            assert_eq!(most_layouts(packets), layouts(packets));
            assert!(OF_LAYOUT * most_layouts(packets) < FEWEST as u64);
        }
        assert_eq!(most_layouts(1280), PATIENCE * layouts(1280));
    }
}
