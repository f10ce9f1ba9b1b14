//! What a packet costs a guest that has a context, beside one that goes through dom0 (thesis,
//! 5.3), and how fairly eight contexts share the cable.
//!
//! ```text
//! through dom0   front end, back end, dom0's driver        ─┐ by turns, on one processor;
//! off            the guest's driver                         │ instructions counted one by one
//! copies         the same, and the hypervisor's check       │
//! table          the same, and the I/O table               ─┘
//! ```
//!
//! Crossings are counted, and priced as quoted ([`QUOTED`]): a trapped tail costs what a trap does. A hypercall of dom0's
//! is priced as counted in Xen ([`HYPERCALL`]).

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::ContextId;
use super::iommu::IoCounts;
use super::protection::Protection;
use super::rig::{Grounds, Rig, Tally};
use crate::dom0::job::Look;
use crate::experiment::Spread;
use crate::experiment::apart::{apart, apart_on_one};
use crate::image::files::Files;
use crate::live::price::{HYPERCALL, QUOTED};
use crate::packets::packet_loop::Stop;
use crate::packets::round::{BATCH, PacketDirection, incoming};
use crate::paths::{PacketPath, Paths, Work};
use crate::system::{Blueprint, SystemError};
use crate::traffic::source::Shape;
use crate::traffic::{Datagrams, LONGEST};
use crate::transport::rendezvous::Limits;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Packets of a round.
    pub packets: u64,
    /// Packets whose instructions are counted.
    pub stepped: u64,
    /// Rounds of each path and protection, by turns.
    pub turns: usize,
}

/// That of the row.
pub const ROW: Extent = Extent {
    packets: 2048,
    stepped: 64,
    turns: 5,
};
/// Guests that share the cable.
pub const GUESTS: usize = 8;
/// The guest that is measured: the thesis has one (5.3.2).
const ALONE: ContextId = ContextId(0);

/// What a packet costs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Instructions of all that takes part.
    pub instructions: f64,
    /// Of them, the hypervisor's, where they are known apart.
    pub hypervisor: f64,
    /// The card's interrupts a thousand packets.
    pub interrupts: f64,
    /// Interrupts for guests, and dom0, a thousand packets.
    pub virtual_interrupts: f64,
    /// Tails that trap, a thousand packets.
    pub traps: f64,
    /// dom0's hypercalls, a thousand packets.
    #[serde(default)]
    pub hypercalls: f64,
}

impl Cost {
    /// Instructions, one a cycle, and crossings as quoted.
    pub fn cycles(&self) -> f64 {
        let traps = (self.interrupts + self.traps) * QUOTED.interrupt as f64;
        let virtual_interrupts = self.virtual_interrupts * QUOTED.virtual_interrupt as f64;
        let hypercalls = self.hypercalls * HYPERCALL as f64;
        self.instructions + (traps + virtual_interrupts + hypercalls) / 1000.0
    }

    fn of(tally: &Tally, protection: Protection) -> Cost {
        let packets = tally.packets.max(1) as f64;
        let [hypervisor, guest] = tally.instructions.map(|count| count as f64 / packets);
        let rate = |count: u64| count as f64 * 1000.0 / packets;
        Cost {
            instructions: hypervisor + guest,
            hypervisor,
            interrupts: rate(tally.interrupts),
            virtual_interrupts: rate(tally.virtual_interrupts),
            traps: match protection {
                Protection::Off => 0.0,
                Protection::Copies | Protection::Table => rate(tally.tails),
            },
            hypercalls: 0.0,
        }
    }

    /// Through dom0, in batches. Sent: the guest tells dom0, the card interrupts, dom0 is told, the
    /// guest is told. Received: the guest tells dom0 nothing.
    fn through_dom0(instructions: f64, hypercalls: f64, direction: PacketDirection) -> Cost {
        let rate = 1000.0 / f64::from(BATCH);
        let told = match direction {
            PacketDirection::Send => 3.0,
            PacketDirection::Receive => 2.0,
        };
        Cost {
            instructions,
            hypervisor: 0.0,
            interrupts: rate,
            virtual_interrupts: told * rate,
            traps: 0.0,
            hypercalls,
        }
    }
}

/// A context under one protection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Column {
    /// What stands between guest and card.
    pub protection: Protection,
    /// Counted.
    pub cost: Cost,
    /// The path through dom0 divided by this, in cycles measured here: tenth, half, nine tenths
    /// of the turns.
    pub measured: [f64; 3],
    /// Entries of the I/O table that were made, taken back, invalidated, a packet.
    pub table: [f64; 3],
}

/// One direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByContext {
    /// Which way packets go.
    #[serde(rename = "sent")]
    pub direction: PacketDirection,
    /// Through dom0.
    pub dom0: Cost,
    /// By a context, by [`Protection::ALL`].
    pub columns: Vec<Column>,
    /// Frames that were lost or changed.
    pub damage: u64,
}

impl ByContext {
    /// The column of a protection.
    pub fn column(&self, protection: Protection) -> Option<&Column> {
        self.columns
            .iter()
            .find(|column| column.protection == protection)
    }

    /// Through dom0, divided by a context with checked copies: instructions, and with crossings.
    pub fn ratios(&self) -> [f64; 2] {
        let cost = self.column(Protection::Copies).map(|column| column.cost);
        let cost = cost.unwrap_or_default();
        [
            self.dom0.instructions / cost.instructions,
            self.dom0.cycles() / cost.cycles(),
        ]
    }

    /// What a protection adds to a packet without any: a part of it, instructions and with
    /// crossings.
    pub fn added(&self, protection: Protection) -> [f64; 2] {
        let cost = |protection| self.column(protection).map(|column| column.cost);
        let (with, without) = (cost(protection), cost(Protection::Off));
        let (with, without) = (with.unwrap_or_default(), without.unwrap_or_default());
        [
            with.instructions / without.instructions - 1.0,
            with.cycles() / without.cycles() - 1.0,
        ]
    }
}

/// How eight guests share the cable, one of which sends more than it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fairness {
    /// Frames of the guest that got least.
    pub least: u64,
    /// And most.
    pub most: u64,
    /// Frames of all that were lost or changed.
    pub damage: u64,
}

/// All of the row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Sent and received.
    pub ways: Vec<ByContext>,
    /// Eight guests.
    pub fairness: Fairness,
}

/// Measures it.
///
/// # Errors
/// [`SystemError`] of one of the processes.
pub fn measure(files: &Files, variant: Variant, extent: Extent) -> Result<Seen, SystemError> {
    Ok(Seen {
        ways: apart_on_one(|| ways(files, variant, extent))?,
        fairness: apart(|| with_guests(files, GUESTS, Protection::Copies, fairness))?,
    })
}

fn limits() -> Limits {
    Limits {
        spin: 0,
        ..Limits::of_seconds(120)
    }
}

fn with_guests<T>(
    files: &Files,
    guests: usize,
    protection: Protection,
    work: impl FnOnce(&mut Rig<'_>) -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    let grounds = Grounds::new(files, guests)?;
    let hypervisors = grounds.hypervisors()?;
    let posts = grounds.posts(&hypervisors);
    let mut rig = Rig::start(&grounds, &posts, LONGEST, protection, limits())?;
    work(&mut rig)
}

fn ways(files: &Files, variant: Variant, extent: Extent) -> Result<Vec<ByContext>, SystemError> {
    let blueprint = Blueprint::new(files, variant, &HashSet::new())?;
    blueprint.booted(limits(), |system| {
        let mut paths = Paths::new(system, 1, Shape::Frames(LONGEST))?;
        with_guests(files, 1, Protection::Off, |rig| {
            let directions = [PacketDirection::Send, PacketDirection::Receive];
            directions
                .map(|direction| one_way(&mut paths, rig, direction, extent))
                .into_iter()
                .collect()
        })
    })
}

/// A round through dom0.
struct ByDom0 {
    /// Cycles a packet.
    cycles: f64,
    /// Instructions a packet.
    instructions: f64,
    /// dom0's hypercalls, a thousand packets.
    hypercalls: f64,
    damage: u64,
}

fn through_dom0(
    paths: &mut Paths<'_>,
    direction: PacketDirection,
    packets: u64,
    look: Look,
) -> Result<ByDom0, SystemError> {
    let work = Work {
        direction,
        packets,
        look,
    };
    let hypercalls = |paths: &mut Paths<'_>| -> Result<u64, SystemError> {
        let counts = paths.guest()?.packet_loop.engine.back_counts();
        Ok(counts.grants.hypercalls)
    };
    let before = hypercalls(paths)?;
    let seen = paths.run(PacketPath::Guest, work)?;
    let asked = hypercalls(paths)? - before;
    Ok(ByDom0 {
        cycles: seen.round.median,
        instructions: seen.steps.costs() as f64 / seen.round.packets as f64,
        hypercalls: asked as f64 * 1000.0 / seen.round.packets as f64,
        damage: seen.round.lost + seen.round.corrupted,
    })
}

fn one_way(
    paths: &mut Paths<'_>,
    rig: &mut Rig<'_>,
    direction: PacketDirection,
    extent: Extent,
) -> Result<ByContext, SystemError> {
    let mut ratios = vec![Vec::new(); Protection::ALL.len()];
    let mut damage = 0;
    // The first turn warms rings and pools up.
    for turn in 0..=extent.turns {
        let dom0 = through_dom0(paths, direction, extent.packets, Look::Cycles)?;
        damage += dom0.damage;
        for (protection, ratios) in Protection::ALL.into_iter().zip(&mut ratios) {
            rig.set_protection(protection)?;
            let (cycles, _) = round(rig, direction, extent.packets)?;
            if turn > 0 {
                ratios.push(dom0.cycles / cycles);
            }
        }
    }
    let dom0 = through_dom0(paths, direction, extent.stepped, Look::Steps)?;
    damage += dom0.damage;
    let mut columns = Vec::new();
    for (protection, ratios) in Protection::ALL.into_iter().zip(ratios) {
        rig.set_protection(protection)?;
        // It warms the new rings up.
        round(rig, direction, extent.stepped)?;
        let before = rig.hypervisor(ALONE).table.counts();
        rig.look = Look::Steps;
        let (_, tally) = round(rig, direction, extent.stepped)?;
        rig.look = Look::Cycles;
        let after = rig.hypervisor(ALONE).table.counts();
        let spread = Spread::of_values(ratios.into_iter());
        columns.push(Column {
            protection,
            cost: Cost::of(&tally, protection),
            measured: [spread.low, spread.median, spread.high],
            table: a_packet(&before, &after, tally.packets),
        });
    }
    Ok(ByContext {
        direction,
        dom0: Cost::through_dom0(dom0.instructions, dom0.hypercalls, direction),
        columns,
        damage: damage + damage_of(rig),
    })
}

fn a_packet(before: &IoCounts, after: &IoCounts, packets: u64) -> [f64; 3] {
    [
        after.maps - before.maps,
        after.unmaps - before.unmaps,
        after.invalidations - before.invalidations,
    ]
    .map(|count| count as f64 / packets.max(1) as f64)
}

/// Frames that were lost or changed, so far.
fn damage_of(rig: &Rig<'_>) -> u64 {
    let wire = rig.wire.corrupted + rig.wire.strangers;
    let each = rig.ids().map(|id| {
        let report = rig.report(id);
        let arrived = rig.wire.flows[id.0];
        let lost = report.sent.abs_diff(arrived.packets) + report.sent.abs_diff(report.completed);
        lost + arrived.missing + report.damaged + report.bad_completions + report.refused
    });
    wire + each.sum::<u64>()
}

/// A round of the one guest, in batches: cycles a packet, of the median batch, and the sums.
fn round(
    rig: &mut Rig<'_>,
    direction: PacketDirection,
    packets: u64,
) -> Result<(f64, Tally), SystemError> {
    let mut costs = Vec::new();
    let mut all = Tally::default();
    rig.take_tally();
    let first = rig.report(ALONE).received;
    let mut peer = Datagrams::new(incoming(0), LONGEST);
    let mut done = 0;
    while done < packets {
        let batch = (packets - done).min(BATCH.into());
        match direction {
            PacketDirection::Send => send(rig, ALONE, batch)?,
            PacketDirection::Receive => {
                for number in 0..batch {
                    if rig.receive(peer.finished(first + done + number)) != 1 {
                        return Err(Stop::Stuck("a context takes no frames").into());
                    }
                }
                rig.settle()?;
            }
        }
        let tally = rig.take_tally();
        costs.push(tally.cycles as f64 / tally.packets.max(1) as f64);
        all.add(&tally);
        done += batch;
    }
    costs.sort_by(f64::total_cmp);
    Ok((costs[costs.len() / 2], all))
}

/// Sends all of them, in as many batches as the driver wants.
///
/// # Errors
/// Its driver stopped, or takes nothing.
pub fn send(rig: &mut Rig<'_>, id: ContextId, packets: u64) -> Result<(), SystemError> {
    let mut left = packets;
    while left > 0 {
        let taken = rig.send(id, left.min(BATCH.into()))?;
        if taken == 0 {
            return Err(Stop::Stuck("a driver takes no packets").into());
        }
        left -= taken;
        rig.serve(u64::MAX);
        rig.settle()?;
    }
    Ok(())
}

/// Rounds in which guests send as fast as the cable takes it.
const ROUNDS: u32 = 40;
/// Frames that the cable takes in a round: a fifth of what it is offered.
const CABLE: u64 = 64 * LONGEST as u64;

/// All guests send: the first keeps its ring full, the others offer a batch, four times their share,
/// each round.
///
/// # Errors
/// A driver stopped.
pub fn fairness(rig: &mut Rig<'_>) -> Result<Fairness, SystemError> {
    // The kernel's limit of queued bytes grows with the first ones.
    for id in rig.ids() {
        send(rig, id, 8 * u64::from(BATCH))?;
    }
    let frames = |rig: &Rig<'_>| -> Vec<u64> {
        let each = rig.ids().map(|id| rig.card.sent(id).frames.into());
        each.collect()
    };
    let before = frames(rig);
    for _ in 0..ROUNDS {
        for id in rig.ids() {
            rig.send(id, if id == ALONE { 256 } else { BATCH.into() })?;
        }
        rig.serve(CABLE);
        rig.interrupts()?;
        // A gigabit a second.
        rig.card.tick(CABLE * 8);
    }
    let shares = frames(rig).into_iter().zip(before);
    let shares = shares.map(|(after, before)| after - before);
    let (least, most) = (shares.clone().min(), shares.max());
    rig.serve(u64::MAX);
    rig.settle()?;
    Ok(Fairness {
        least: least.unwrap_or(0),
        most: most.unwrap_or(0),
        damage: damage_of(rig),
    })
}
