//! The rows `channel` and `aggregation-dom0`: what dom0's path saves by not mapping pages, and by merging segments before its
//! bridge.

use std::fmt::Write;

use e1000_sim::live::channel::{ByChannel, ChannelCost};
use e1000_sim::live::merged_by_dom0::MergedByDom0;
use serde::Serialize;

use super::verdict::Verdict;

/// Less a packet with the header in the ring: 2,794 to 3,230 Mb/s (thesis, 3.4).
const CHANNEL: f64 = 1.157;
/// What the design aims at.
const CHANNEL_GOAL: f64 = 1.3;
/// Aggregation alone, by way of dom0 (thesis, 3.6).
const MERGED: f64 = 1.45;

/// Packets of one shape, with the thesis's figure.
#[derive(Debug, Serialize)]
pub struct Channel {
    #[serde(flatten)]
    seen: ByChannel,
    /// Mapped divided by copied, and by in the ring, in counted instructions.
    ratios: [f64; 2],
    wanted: f64,
    /// Of in the ring, in counted instructions.
    verdict: Verdict,
}

/// Merged segments, with the thesis's figure.
#[derive(Debug, Serialize)]
pub struct Merged {
    #[serde(flatten)]
    seen: MergedByDom0,
    /// Off divided by on, in counted instructions.
    ratio: f64,
    wanted: f64,
    verdict: Verdict,
}

/// Both rows.
#[derive(Debug, Serialize)]
pub struct Dom0Rows {
    channel: Vec<Channel>,
    aggregation: Merged,
}

impl Dom0Rows {
    /// What was measured, judged.
    pub fn new(channel: Vec<ByChannel>, merged: MergedByDom0) -> Dom0Rows {
        let [off, on] = merged.instructions;
        let ratio = off / on;
        Dom0Rows {
            channel: channel
                .into_iter()
                .map(|seen| {
                    let ratios = seen.ratios();
                    let without_maps = seen.twin.maps == 0.0 && seen.damage == 0;
                    Channel {
                        ratios,
                        wanted: CHANNEL,
                        verdict: Verdict::of(ratios[1] >= CHANNEL && without_maps),
                        seen,
                    }
                })
                .collect(),
            aggregation: Merged {
                ratio,
                wanted: MERGED,
                verdict: Verdict::of(ratio >= MERGED && merged.damage == 0),
                seen: merged,
            },
        }
    }

    /// Frames that were lost or changed.
    pub fn damage(&self) -> u64 {
        let channel = self.channel.iter().map(|row| row.seen.damage);
        channel.sum::<u64>() + self.aggregation.seen.damage
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = "\nchannel: packets sent by way of dom0, one guest; instructions, pages mapped, copies a packet, \
                       hypercalls a thousand\n"
            .to_owned();
        for row in &self.channel {
            row.write(&mut out);
        }
        self.aggregation.write(&mut out);
        out
    }
}

fn cost(out: &mut String, name: &str, cost: &ChannelCost) {
    let _ = writeln!(
        out,
        "    {name:<18}{:>7.0} instructions, {:>7.0} with hypercalls; {:.2} mapped, {:.2} for the card only, {:.2} copies, \
         {:.0} hypercalls",
        cost.instructions,
        cost.cycles(),
        cost.maps,
        cost.device_maps,
        cost.copies,
        cost.hypercalls,
    );
}

impl Channel {
    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "  {} bytes", self.seen.bytes);
        for (name, of) in ["mapped", "header copied", "header in the ring"]
            .into_iter()
            .zip(&self.seen.costs)
        {
            cost(out, name, of);
        }
        cost(out, "by the hypervisor", &self.seen.twin);
        let [copied, in_ring] = self.ratios;
        let [[_, cycles_copied, _], [low, half, high]] = self.seen.measured;
        let _ = writeln!(
            out,
            "    mapped / copied {copied:.3}, / in the ring {in_ring:.3}; cycles {cycles_copied:.2}, {half:.2} \
             ({low:.2}..{high:.2}); Menon {}: {}, goal {CHANNEL_GOAL}: {}",
            self.wanted,
            self.verdict.text(),
            Verdict::of(in_ring >= CHANNEL_GOAL).text(),
        );
    }
}

impl Merged {
    fn write(&self, out: &mut String) {
        let [off, on] = self.seen.instructions;
        let [one, few] = self.seen.packets;
        let [low, half, high] = self.seen.measured;
        let _ = writeln!(
            out,
            "\naggregation by dom0: bursts of {} segments for one guest\n  {off:.0} and {on:.0} instructions a segment \
             ({one} and {few} packets): {:.2}, cycles {half:.2} ({low:.2}..{high:.2}); Menon {}: {}",
            self.seen.limit,
            self.ratio,
            self.wanted,
            self.verdict.text(),
        );
    }
}
