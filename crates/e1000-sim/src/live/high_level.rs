//! What a high interface saves a guest that sends by way of dom0, or of the hypervisor
//! (Menon's thesis, 3.3).
//!
//! ```text
//! low    frames of 1,514 bytes, whose checksums the guest computes
//! high   packets of 64 KiB in pages: who cuts and sums them is below
//!           └ a card that can: the card   one that cannot: the stage `offload`
//! ```
//!
//! Both by turns in one process for each card. Instructions are counted one by one, of guest,
//! hypervisor and dom0 together; a switch between two of them is none.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use crate::dom0::interface::Feature;
use crate::dom0::job::Look;
use crate::experiment::Spread;
use crate::experiment::apart::apart_on_one;
use crate::image::files::Files;
use crate::packets::round::PacketDirection;
use crate::paths::{PacketPath, Paths, RoundResult, Work};
use crate::stages::{Stage, Stages};
use crate::system::{Blueprint, SystemError};
use crate::traffic::source::Shape;
use crate::transport::rendezvous::Limits;

/// The guests of the paths' figures.
const GUESTS: u32 = 8;
/// What a guest has without the interface, and with it.
const SHAPES: [Shape; 2] = [
    Shape::Frames(crate::traffic::LONGEST),
    Shape::Segments(64_240),
];
/// Packets of a round, and those whose instructions are counted: some 4 MiB, some batches.
const PACKETS: [u64; 2] = [2048, 64];
const STEPPED: [u64; 2] = [64, 8];
/// Rounds of each, by turns.
const TURNS: usize = 5;

/// One card and one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HighLevel {
    /// By way of the hypervisor; else of dom0.
    pub twin: bool,
    /// What the card does not do.
    pub lacking: Vec<String>,
    /// Instructions a byte on the wire: low, high.
    pub instructions: [f64; 2],
    /// Low divided by high, in cycles measured here: tenth, half, nine tenths of the turns.
    pub measured: [f64; 3],
    /// Frames that were lost or changed.
    pub damage: u64,
}

impl HighLevel {
    /// Low divided by high, in instructions.
    pub fn ratio(&self) -> f64 {
        self.instructions[0] / self.instructions[1]
    }
}

/// A card that does all, and one that does nothing.
const CARDS: [&[Feature]; 2] = [
    &[],
    &[
        Feature::Segmentation,
        Feature::ScatterGather,
        Feature::Checksums,
    ],
];

/// Measures both cards on both paths.
///
/// # Errors
/// [`SystemError`] of one of the processes.
pub fn measure(files: &Files, variant: Variant) -> Result<Vec<HighLevel>, SystemError> {
    let mut all = Vec::new();
    for lacking in CARDS {
        all.extend(apart_on_one(|| with_card(files, variant, lacking))?);
    }
    Ok(all)
}

fn with_card(
    files: &Files,
    variant: Variant,
    lacking: &[Feature],
) -> Result<Vec<HighLevel>, SystemError> {
    let blueprint = Blueprint::new(files, variant, &HashSet::new())?.without(lacking);
    blueprint.booted(Limits::of_seconds(120), |system| {
        let stages = Stages::of([Stage::Offload]);
        let mut paths = Paths::with_stages(system, GUESTS, SHAPES[0], stages)?;
        let both = [PacketPath::Guest, PacketPath::Twin];
        both.map(|path| on_path(&mut paths, path, lacking))
            .into_iter()
            .collect()
    })
}

/// Low or high; a guest that has the low interface computes checksums.
fn run(
    paths: &mut Paths<'_>,
    path: PacketPath,
    level: usize,
    packets: u64,
    look: Look,
) -> Result<RoundResult, SystemError> {
    paths.set_shape(SHAPES[level])?;
    paths.guests_compute_checksums(level == 0)?;
    let work = Work {
        direction: PacketDirection::Send,
        packets,
        look,
    };
    paths.run(path, work)
}

fn on_path(
    paths: &mut Paths<'_>,
    path: PacketPath,
    lacking: &[Feature],
) -> Result<HighLevel, SystemError> {
    let mut damage = 0;
    let mut ratios = Vec::new();
    // The first one warms rings and pools up.
    for turn in 0..=TURNS {
        let mut cycles = [0.0; 2];
        for (level, cycles) in cycles.iter_mut().enumerate() {
            let round = run(paths, path, level, PACKETS[level], Look::Cycles)?.round;
            damage += round.lost + round.corrupted;
            *cycles = round.median * PACKETS[level] as f64 / round.bytes as f64;
        }
        if turn > 0 {
            ratios.push(cycles[0] / cycles[1]);
        }
    }
    let mut instructions = [0.0; 2];
    for (level, instructions) in instructions.iter_mut().enumerate() {
        let seen = run(paths, path, level, STEPPED[level], Look::Steps)?;
        damage += seen.round.lost + seen.round.corrupted;
        *instructions = seen.steps.costs() as f64 / seen.round.bytes as f64;
    }
    let spread = Spread::of_values(ratios.into_iter());
    Ok(HighLevel {
        twin: path == PacketPath::Twin,
        lacking: lacking.iter().map(|f| format!("{f:?}")).collect(),
        instructions,
        measured: [spread.low, spread.median, spread.high],
        damage,
    })
}
