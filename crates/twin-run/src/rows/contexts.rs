//! The row `cdna`: a context of the card for each guest, beside the thesis's figures.

use std::fmt::Write;

use e1000_sim::contexts::protection::Protection;
use e1000_sim::contexts::row::{ByContext, Column, Seen};
use e1000_sim::packets::round::PacketDirection;
use serde::Serialize;

use super::charts;
use super::verdict::Verdict;
use crate::plot::{Chart, Series};

/// Part of the most that the guest with the fewest frames must get.
const FAIR: f64 = 0.95;
/// What the design aims at for protection: a part of the time without it.
const GOAL: f64 = 0.10;

/// One direction with the thesis's figures.
#[derive(Debug, Serialize)]
pub struct Way {
    #[serde(flatten)]
    seen: ByContext,
    /// Through dom0 divided by a context: instructions; with crossings as quoted.
    ratios: [f64; 2],
    /// Less processor a bit (thesis, tables 5.1 and 5.2).
    wanted: f64,
    /// Of the median of measured cycles: a switch between processes is no instruction.
    verdict: Verdict,
    /// What checked copies add, and the I/O table: instructions; with crossings.
    added: [[f64; 2]; 2],
    /// The most that protection adds in the thesis.
    at_most: f64,
    /// Of checked copies, with crossings.
    protection: Verdict,
}

/// The row.
#[derive(Debug, Serialize)]
pub struct Cdna {
    ways: Vec<Way>,
    /// Least and most frames of eight guests.
    fairness: [u64; 2],
    /// Their verdict: within 5%.
    fair: Verdict,
    damage: u64,
}

impl Way {
    fn new(seen: ByContext) -> Way {
        let (wanted, at_most) = match seen.direction {
            PacketDirection::Send => (2.30, 0.24),
            PacketDirection::Receive => (2.71, 0.19),
        };
        let measured = seen
            .column(Protection::Copies)
            .map_or(0.0, |column| column.measured[1]);
        let added = [Protection::Copies, Protection::Table].map(|column| seen.added(column));
        Way {
            ratios: seen.ratios(),
            wanted,
            verdict: Verdict::of(measured >= wanted && seen.damage == 0),
            added,
            at_most,
            protection: Verdict::of(added[0][1] <= at_most && seen.damage == 0),
            seen,
        }
    }

    fn text(&self) -> String {
        let mut out = format!(
            "  {}: through dom0 {:.0} instructions a packet, {:.0} cycles with crossings\n",
            self.seen.direction.as_str(),
            self.seen.dom0.instructions,
            self.seen.dom0.cycles(),
        );
        for column in &self.seen.columns {
            let [least, half, most] = column.measured;
            let _ = writeln!(
                out,
                "    {:<8}{:>6.0} instructions (hypervisor {:.0}), {:.0} cycles with crossings \
                 ({:.0} traps, {:.0} and {:.0} interrupts a thousand packets); dom0 / this, cycles \
                 measured: {half:.2} ({least:.2}..{most:.2})",
                column.protection.as_str(),
                column.cost.instructions,
                column.cost.hypervisor,
                column.cost.cycles(),
                column.cost.traps,
                column.cost.interrupts,
                column.cost.virtual_interrupts,
            );
            if column.protection == Protection::Table {
                let [maps, unmaps, invalidations] = column.table;
                let _ = writeln!(
                    out,
                    "            {maps:.1} maps, {unmaps:.1} unmaps, {invalidations:.1} \
                     invalidations a packet"
                );
            }
        }
        let [instructions, crossings] = self.ratios;
        let [copies, table] = self.added.map(|added| added.map(|part| part * 100.0));
        let _ = writeln!(
            out,
            "    dom0 / copies: {instructions:.2} in instructions, {crossings:.2} with crossings; by \
             measured cycles, thesis {}: {}\n    protection adds {:.0}% (instructions alone \
             {:.0}%), thesis {:.0}%: {}, goal {:.0}%: {}; the table {:.0}% ({:.0}%)",
            self.wanted,
            self.verdict.text(),
            copies[1],
            copies[0],
            self.at_most * 100.0,
            self.protection.text(),
            GOAL * 100.0,
            Verdict::of(copies[1] <= GOAL * 100.0).text(),
            table[1],
            table[0],
        );
        out
    }
}

impl Cdna {
    /// What was measured, judged.
    pub fn new(seen: Seen) -> Cdna {
        let (least, most) = (seen.fairness.least, seen.fairness.most);
        let ways: Vec<Way> = seen.ways.into_iter().map(Way::new).collect();
        Cdna {
            damage: seen.fairness.damage + ways.iter().map(|way| way.seen.damage).sum::<u64>(),
            fair: Verdict::of(least as f64 >= most as f64 * FAIR && seen.fairness.damage == 0),
            fairness: [least, most],
            ways,
        }
    }

    /// Frames that were lost or changed.
    pub fn damage(&self) -> u64 {
        self.damage
    }

    /// What each way and protection saves, beside the thesis's figures for checked copies.
    pub fn chart(&self) -> Chart {
        let bars = || {
            let columns = |way: &Way| way.seen.columns.clone();
            self.ways
                .iter()
                .flat_map(move |way| columns(way).into_iter().map(move |column| (way, column)))
        };
        let name = |(way, column): (&Way, Column)| {
            let direction = way.seen.direction.as_str();
            format!("{direction}, {}", column.protection.as_str())
        };
        let mut chart = charts::chart(
            "A context of the card for each guest",
            "cycles a packet, through dom0 divided by a context",
            "direction, and what stands between guest and card",
            bars().map(name).collect(),
        );
        let counted = |(way, column): (&Way, Column)| way.seen.dom0.cycles() / column.cost.cycles();
        let wanted = |(way, column): (&Way, Column)| match column.protection {
            Protection::Copies => way.wanted,
            Protection::Off | Protection::Table => 0.0,
        };
        let measured: Vec<_> = bars().map(|(_, column)| column.measured).collect();
        chart.series = vec![
            Series::exact("counted, with crossings", bars().map(counted).collect()),
            charts::measured(measured.iter()),
            Series::exact("thesis", bars().map(wanted).collect()),
        ];
        chart.notes = "Frames of 1,514 bytes. Lines: from the 10th to the 90th percentile of turns. The thesis has \
                       one protection."
            .to_owned();
        chart
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out =
            "\ncdna: a context of the card for each guest, stock driver, frames of 1,514 \
                       bytes in batches of 32\n"
                .to_owned();
        for way in &self.ways {
            out += &way.text();
        }
        let [least, most] = self.fairness;
        let _ = writeln!(
            out,
            "  eight guests, one floods: {least} to {most} frames, within 5%: {}",
            self.fair.text()
        );
        out
    }
}
