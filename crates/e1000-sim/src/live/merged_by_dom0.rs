//! What it saves to merge received TCP segments in dom0, before the bridge and the back end (Menon's thesis, 3.6).
//!
//! The driver, the hot routines and dom0's kernel are dom0's, unmodified. A burst of segments of one stream comes at once,
//! for one guest, off and on by turns in one process. Instructions are counted one by one, of guest,
//! hypervisor and dom0 together.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use crate::dom0::job::Look;
use crate::experiment::Spread;
use crate::experiment::apart::apart_on_one;
use crate::image::files::Files;
use crate::measure::steps::Steps;
use crate::packets::round::{Round, incoming};
use crate::paths::Paths;
use crate::system::{Blueprint, SystemError};
use crate::traffic::LONGEST;
use crate::traffic::source::Shape;
use crate::traffic::tcp::{MSS, Peer};
use crate::transport::rendezvous::Limits;

/// The thesis' limit (3.6.2), which is a burst here.
const LIMIT: u32 = 20;
/// Bursts of a round, and those whose instructions are counted.
const BURSTS: usize = 64;
const STEPPED: usize = 3;
/// Rounds of each, by turns.
const TURNS: usize = 5;
/// More than all rounds send.
const WINDOW: u32 = 1 << 30;

/// Segments received by way of dom0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MergedByDom0 {
    /// Segments of a burst, and the limit of an aggregate.
    pub limit: u32,
    /// Instructions a segment: off, on.
    pub instructions: [f64; 2],
    /// Packets that the back end gave to the guest, of as many segments: off, on.
    pub packets: [u64; 2],
    /// Off divided by on, in cycles measured here: tenth, half, nine tenths of the turns.
    pub measured: [f64; 3],
    /// Segments that were lost or changed.
    pub damage: u64,
}

/// Measures it.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(files: &Files, variant: Variant) -> Result<MergedByDom0, SystemError> {
    apart_on_one(|| {
        let blueprint = Blueprint::new(files, variant, &HashSet::new())?;
        blueprint.booted(Limits::of_seconds(120), |system| {
            let mut paths = Paths::new(system, 1, Shape::Frames(LONGEST))?;
            let mut peer = Peer::new(incoming(0), WINDOW, MSS);
            by_turns(&mut paths, &mut peer)
        })
    })
}

/// What a round came to.
struct Seen {
    cycles: f64,
    steps: Steps,
    packets: u64,
    damage: u64,
}

/// Bursts of a stream, with aggregates of at most `limit` segments.
fn round(
    paths: &mut Paths<'_>,
    peer: &mut Peer,
    limit: u32,
    bursts: usize,
    look: Look,
) -> Result<Seen, SystemError> {
    paths.system.mailbox().net.set_aggregate(limit);
    let segments = bursts * LIMIT as usize;
    let frames: Vec<Vec<u8>> = std::iter::from_fn(|| peer.segment())
        .take(segments)
        .collect();
    let sink = |paths: &mut Paths<'_>| -> Result<(u64, u64), SystemError> {
        let received = &paths.guest()?.sources[0].received;
        Ok((received.bytes(), received.corrupted + received.strangers))
    };
    let (bytes, bad) = sink(paths)?;
    let before = paths.guest()?.packet_loop.engine.back_counts().received;
    let mut costs = Vec::new();
    let (_, steps) = paths.by_dom0(look, |runner| {
        for burst in frames.chunks(LIMIT as usize) {
            let start = runner.packet_loop.meter.costs();
            let burst = burst.iter().map(Vec::as_slice);
            runner.packet_loop.receive(&mut runner.sources, burst)?;
            costs.push(runner.packet_loop.meter.costs() - start);
        }
        Ok(Round::default())
    })?;
    let after = paths.guest()?.packet_loop.engine.back_counts().received;
    let (bytes_now, bad_now) = sink(paths)?;
    let payload = (segments * MSS) as u64;
    costs.sort_unstable();
    Ok(Seen {
        cycles: costs[costs.len() / 2] as f64,
        steps,
        packets: after - before,
        // Each segment's payload, whatever headers came with it.
        damage: bad_now - bad + u64::from(bytes_now - bytes < payload),
    })
}

fn by_turns(paths: &mut Paths<'_>, peer: &mut Peer) -> Result<MergedByDom0, SystemError> {
    let mut ratios = Vec::new();
    let mut damage = 0;
    // The first one warms rings and pools up.
    for turn in 0..=TURNS {
        let off = round(paths, peer, 0, BURSTS, Look::Cycles)?;
        let on = round(paths, peer, LIMIT, BURSTS, Look::Cycles)?;
        damage += off.damage + on.damage;
        if turn > 0 {
            ratios.push(off.cycles / on.cycles);
        }
    }
    let mut instructions = [0.0; 2];
    let mut packets = [0; 2];
    for (index, limit) in [0, LIMIT].into_iter().enumerate() {
        let seen = round(paths, peer, limit, STEPPED, Look::Steps)?;
        damage += seen.damage;
        packets[index] = seen.packets;
        let segments = STEPPED as u64 * u64::from(LIMIT);
        instructions[index] = seen.steps.costs() as f64 / segments as f64;
    }
    let spread = Spread::of_values(ratios.into_iter());
    Ok(MergedByDom0 {
        limit: LIMIT,
        instructions,
        packets,
        measured: [spread.low, spread.median, spread.high],
        damage,
    })
}
