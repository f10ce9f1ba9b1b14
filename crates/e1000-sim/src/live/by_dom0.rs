//! A guest's packets by way of dom0, and by way of the hypervisor with a bridge (DBNet, 5.2 and
//! 5.3), by turns in one process.
//!
//! dom0's path has grants and a bridge of dom0's; it lacks netfilter, queueing disciplines and the crossings of
//! hypercalls (`engines/guest`). What is between guest and dom0 are two processes that wake each other, for each batch
//! of 32 packets.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use crate::dom0::job::Look;
use crate::experiment::Spread;
use crate::experiment::apart::apart_on_one;
use crate::image::files::Files;
use crate::packets::round::PacketDirection;
use crate::paths::{PacketPath, Paths, Work};
use crate::stages::{Stage, Stages};
use crate::system::{Blueprint, SystemError};
use crate::traffic::source::Shape;
use crate::transport::rendezvous::Limits;

const GUESTS: u32 = 8;
/// Packets of a round, and those whose instructions are counted.
const PACKETS: u64 = 2048;
const STEPPED: u64 = 64;
/// Rounds of each path, by turns.
const TURNS: usize = 5;
const BOTH: [PacketPath; 2] = [PacketPath::Guest, PacketPath::Twin];

/// One direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByDom0 {
    /// Which way packets go.
    #[serde(rename = "sent")]
    pub direction: PacketDirection,
    /// Instructions a packet: by way of dom0, of the hypervisor. A change between processes is none.
    pub instructions: [f64; 2],
    /// The first divided by the second, in cycles measured here: tenth, half, nine tenths of the
    /// turns.
    pub measured: [f64; 3],
    /// Frames that were lost or changed.
    pub damage: u64,
}

/// Measures both directions.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(files: &Files, variant: Variant) -> Result<Vec<ByDom0>, SystemError> {
    apart_on_one(|| {
        let blueprint = Blueprint::new(files, variant, &HashSet::new())?;
        blueprint.booted(Limits::of_seconds(120), |system| {
            let stages = Stages::of([Stage::Bridge, Stage::Notify]);
            let shape = Shape::Frames(crate::traffic::LONGEST);
            let mut paths = Paths::with_stages(system, GUESTS, shape, stages)?;
            let directions = [PacketDirection::Send, PacketDirection::Receive];
            directions
                .map(|direction| one_way(&mut paths, direction))
                .into_iter()
                .collect()
        })
    })
}

fn one_way(paths: &mut Paths<'_>, direction: PacketDirection) -> Result<ByDom0, SystemError> {
    let mut damage = 0;
    let mut run = |path, packets, look| {
        let work = Work {
            direction,
            packets,
            look,
        };
        let seen = paths.run(path, work)?;
        damage += seen.round.lost + seen.round.corrupted;
        Ok::<_, SystemError>(seen)
    };
    let mut ratios = Vec::new();
    // The first one warms rings and pools up.
    for turn in 0..=TURNS {
        let [dom0, twin] = BOTH.map(|path| run(path, PACKETS, Look::Cycles));
        let ratio = dom0?.round.median / twin?.round.median;
        if turn > 0 {
            ratios.push(ratio);
        }
    }
    let mut instructions = [0.0; 2];
    for (path, instructions) in BOTH.into_iter().zip(&mut instructions) {
        let seen = run(path, STEPPED, Look::Steps)?;
        *instructions = seen.steps.costs() as f64 / seen.round.packets as f64;
    }
    let spread = Spread::of_values(ratios.into_iter());
    Ok(ByDom0 {
        direction,
        instructions,
        measured: [spread.low, spread.median, spread.high],
        damage,
    })
}
