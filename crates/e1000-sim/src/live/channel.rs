//! What it saves not to map a guest's page for each packet that it sends by way of dom0 (Menon's thesis, 3.4).
//!
//! ```text
//! mapped    each page is mapped at a page of dom0's, which reads headers there, and unmapped
//! copied    the hypervisor copies 128 bytes, the rest is mapped: Linux' back end
//! in-ring   128 bytes travel in the ring, the rest is named to the card only
//! ```
//!
//! By turns in one process, with one guest. Instructions are counted one by one, of guest, hypervisor and dom0
//! together. Beside them is the hypervisor's path, which has neither maps nor hypercalls.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use crate::dom0::job::Look;
use crate::engines::guest::Channel;
use crate::experiment::Spread;
use crate::experiment::apart::apart_on_one;
use crate::image::files::Files;
use crate::live::price::HYPERCALL;
use crate::packets::round::PacketDirection;
use crate::paths::{PacketPath, Paths, Work};
use crate::system::{Blueprint, SystemError};
use crate::traffic::LONGEST;
use crate::traffic::source::Shape;
use crate::transport::rendezvous::Limits;

/// What is sent: as small as an acknowledgement, full frames, and what a high interface sends.
const SHAPES: [(Shape, u64, u64); 3] = [
    (Shape::Frames(60), 2048, 64),
    (Shape::Frames(LONGEST), 2048, 64),
    (Shape::Segments(64_240), 128, 16),
];
/// Rounds of each, by turns.
const TURNS: usize = 5;

/// One way for a packet's bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ChannelCost {
    /// Instructions a packet.
    pub instructions: f64,
    /// Pages mapped at dom0's, a packet.
    pub maps: f64,
    /// Pages named to the card only, a packet.
    pub device_maps: f64,
    /// Copies by the hypervisor, a packet.
    pub copies: f64,
    /// Hypercalls of dom0's, a thousand packets.
    pub hypercalls: f64,
}

impl ChannelCost {
    /// Instructions, one a cycle, and hypercalls as counted in Xen.
    pub fn cycles(&self) -> f64 {
        self.instructions + self.hypercalls * HYPERCALL as f64 / 1000.0
    }
}

/// Packets of one shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByChannel {
    /// Bytes of a packet.
    pub bytes: usize,
    /// Mapped, copied, in the ring.
    pub costs: [ChannelCost; 3],
    /// By way of the hypervisor: no grants.
    pub twin: ChannelCost,
    /// Mapped divided by copied, and by in the ring, in cycles measured here: tenth, half, nine tenths of the turns.
    pub measured: [[f64; 3]; 2],
    /// Frames that were lost or changed.
    pub damage: u64,
}

impl ByChannel {
    /// Mapped divided by copied and by in the ring, in instructions.
    pub fn ratios(&self) -> [f64; 2] {
        let [mapped, others @ ..] = &self.costs;
        others.map(|cost| mapped.instructions / cost.instructions)
    }
}

/// The order of [`ByChannel::costs`].
const CHANNELS: [Channel; 3] = [Channel::Mapped, Channel::Copied, Channel::InRing];

/// Measures all shapes.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(files: &Files, variant: Variant) -> Result<Vec<ByChannel>, SystemError> {
    apart_on_one(|| {
        let blueprint = Blueprint::new(files, variant, &HashSet::new())?;
        blueprint.booted(Limits::of_seconds(120), |system| {
            let mut paths = Paths::new(system, 1, SHAPES[0].0)?;
            let all = SHAPES.into_iter();
            all.map(|(shape, packets, stepped)| of_shape(&mut paths, shape, packets, stepped))
                .collect()
        })
    })
}

/// A round: cycles a packet, and what was counted.
fn round(
    paths: &mut Paths<'_>,
    path: PacketPath,
    packets: u64,
    look: Look,
    damage: &mut u64,
) -> Result<(f64, ChannelCost), SystemError> {
    let work = Work {
        direction: PacketDirection::Send,
        packets,
        look,
    };
    let before = paths.guest()?.packet_loop.engine.back_counts().grants;
    let seen = paths.run(path, work)?;
    let after = paths.guest()?.packet_loop.engine.back_counts().grants;
    *damage += seen.round.lost + seen.round.corrupted;
    let each = |before: u64, after: u64| (after - before) as f64 / packets as f64;
    let cost = ChannelCost {
        instructions: seen.steps.costs() as f64 / packets as f64,
        maps: each(before.maps, after.maps),
        device_maps: each(before.device_maps, after.device_maps),
        copies: each(before.copies, after.copies),
        hypercalls: each(before.hypercalls, after.hypercalls) * 1000.0,
    };
    Ok((seen.round.median, cost))
}

fn of_shape(
    paths: &mut Paths<'_>,
    shape: Shape,
    packets: u64,
    stepped: u64,
) -> Result<ByChannel, SystemError> {
    paths.set_shape(shape)?;
    let mut damage = 0;
    let mut ratios = [Vec::new(), Vec::new()];
    // The first one warms rings and pools up.
    for turn in 0..=TURNS {
        let mut cycles = [0.0; CHANNELS.len()];
        for (channel, cycles) in CHANNELS.into_iter().zip(&mut cycles) {
            paths.guest()?.packet_loop.engine.set_channel(channel);
            (*cycles, _) = round(paths, PacketPath::Guest, packets, Look::Cycles, &mut damage)?;
        }
        if turn > 0 {
            ratios[0].push(cycles[0] / cycles[1]);
            ratios[1].push(cycles[0] / cycles[2]);
        }
    }
    let mut costs = [ChannelCost::default(); CHANNELS.len()];
    for (channel, cost) in CHANNELS.into_iter().zip(&mut costs) {
        paths.guest()?.packet_loop.engine.set_channel(channel);
        (_, *cost) = round(paths, PacketPath::Guest, stepped, Look::Steps, &mut damage)?;
    }
    paths
        .guest()?
        .packet_loop
        .engine
        .set_channel(Channel::Copied);
    round(paths, PacketPath::Twin, packets, Look::Cycles, &mut damage)?;
    let (_, twin) = round(paths, PacketPath::Twin, stepped, Look::Steps, &mut damage)?;
    let bytes = match shape {
        Shape::Frames(bytes) => bytes,
        Shape::Segments(payload) => payload + crate::traffic::SEGMENT_HEADERS,
    };
    Ok(ByChannel {
        bytes,
        costs,
        twin,
        measured: ratios.map(|ratios| {
            let spread = Spread::of_values(ratios.into_iter());
            [spread.low, spread.median, spread.high]
        }),
        damage,
    })
}
