//! The rows of the emulated card beside the thesis' figures (Maffione, tables 3.1, 3.2, 4.1, 4.3).

use std::fmt::Write;

use command_line::text::number;
use e1000_sim::live::emulated::measure::{Emulated, Measure, Overload, Point, Prices, RINGS};
use e1000_sim::live::emulated::order::Price;
use e1000_sim::packets::round::PacketDirection;
use serde::Serialize;

use super::charts;
use super::verdict::Verdict;
use crate::plot::{Chart, Series};

/// Most interrupts a second with the throttle, in thousands: ITR counts in 256 ns, which makes
/// 4,002 of 4,000.
const INTERRUPTS_KHZ: f64 = 4.01;

/// What the thesis reports of a measure, with one virtual CPU.
#[derive(Clone, Copy, Debug, Serialize)]
struct Wanted {
    /// Packets a second, divided by those without anything.
    ratio: f64,
    /// Trapped accesses a packet; for moderation what its table gives, for batching what the
    /// design sets.
    traps: f64,
}

fn wanted(measure: Measure, direction: PacketDirection) -> Option<Wanted> {
    use PacketDirection::{Receive, Send};
    let (ratio, traps) = match (measure, direction) {
        (Measure::Base, _) | (Measure::Batching, Receive) => return None,
        (Measure::Moderation, Send) => (2.3, 1.40),
        (Measure::Batching, Send) => (7.9, 0.07),
        (Measure::StatusBlock, Send) => (8.9, 0.0087),
        (Measure::Moderation, Receive) => (9.5, 0.22),
        (Measure::StatusBlock, Receive) => (22.0, 0.036),
    };
    Some(Wanted { ratio, traps })
}

/// A run, with what it is compared with.
#[derive(Debug, Serialize)]
pub struct EmulatedRow {
    #[serde(flatten)]
    point: Point,
    kpps: f64,
    traps_a_packet: f64,
    interrupts_khz: f64,
    /// Packets a second, divided by those of the run without anything by the same costs.
    ratio: f64,
    wanted: Option<Wanted>,
    /// Traps, interrupts, and every packet whole.
    counts: Option<Verdict>,
    /// In the played clock.
    rate: Option<Verdict>,
}

/// All of them.
#[derive(Debug, Serialize)]
pub struct EmulatedRows {
    prices: Vec<Price>,
    rows: Vec<EmulatedRow>,
    overload: Vec<Overload>,
}

impl EmulatedRow {
    fn new(point: Point, all: &[Point]) -> EmulatedRow {
        let outcome = &point.outcome;
        let is_base = |other: &&Point| {
            let of = |point: &Point| (point.direction, point.descriptors, point.prices);
            other.measure == Measure::Base && of(other) == of(&point)
        };
        let base = all.iter().find(is_base);
        let ratio = base.map_or(0.0, |base| outcome.kpps() / base.outcome.kpps());
        let wanted = wanted(point.measure, point.direction);
        let (traps, interrupts) = (outcome.traps_a_packet(), outcome.interrupts_khz());
        let counts = wanted.map(|wanted| {
            let few = traps <= wanted.traps && interrupts <= INTERRUPTS_KHZ;
            Verdict::of(few && outcome.damage() == 0)
        });
        EmulatedRow {
            kpps: outcome.kpps(),
            traps_a_packet: traps,
            interrupts_khz: interrupts,
            ratio,
            counts,
            rate: wanted.map(|wanted| Verdict::of(ratio >= wanted.ratio)),
            wanted,
            point,
        }
    }

    fn name(&self) -> &'static str {
        match self.point.measure {
            Measure::Base => "everything traps",
            Measure::Moderation => "moderation",
            Measure::Batching => "and batching",
            Measure::StatusBlock => "and status block",
        }
    }

    /// The direction, and the receive ring if it is not the driver's own.
    fn way(&self) -> String {
        let way = self.point.direction.as_str();
        match (self.point.direction, self.point.descriptors) {
            (PacketDirection::Receive, count) if count != RINGS[0] => format!("{way}, {count}"),
            _ => way.to_owned(),
        }
    }

    fn line(&self) -> String {
        let outcome = &self.point.outcome;
        let mut line = format!(
            "  {:<14}{:<17}{:>9.1}{:>10.4}{:>8.2}{:>9}{:>8.2}",
            self.way(),
            self.name(),
            self.kpps,
            self.traps_a_packet,
            self.interrupts_khz,
            number(outcome.rearmed),
            self.ratio,
        );
        if let (Some(wanted), Some(counts), Some(rate)) = (self.wanted, self.counts, self.rate) {
            let _ = write!(
                line,
                "  at most {}: {}; at least {}: {}",
                wanted.traps,
                counts.text(),
                wanted.ratio,
                rate.text()
            );
        }
        line + "\n"
    }
}

impl EmulatedRows {
    /// From what was measured.
    pub fn new(seen: Emulated) -> EmulatedRows {
        let rows = seen.points.iter();
        EmulatedRows {
            rows: rows
                .map(|point| EmulatedRow::new(*point, &seen.points))
                .collect(),
            prices: seen.prices,
            overload: seen.overload,
        }
    }

    /// Packets lost and corrupted in the rows; frames of an overload are lost by intention.
    pub fn damage(&self) -> (u64, u64) {
        let outcomes = self.rows.iter().map(|row| &row.point.outcome);
        outcomes.fold((0, 0), |(lost, bad), outcome| {
            let all = outcome.damage() - outcome.corrupted;
            (lost + all, bad + outcome.corrupted)
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out =
            "\nemulated card: 60 bytes, stock driver; counts decide, ratios are of a played clock\n"
                .to_owned();
        for prices in [Prices::Quoted, Prices::Thesis] {
            out += &self.list(prices);
        }
        if let Some(price) = self.prices.first() {
            let _ = writeln!(
                out,
                "  the driver's instructions: a packet sent {}, an interrupt {}, a packet cleaned {}, \
                 received {}",
                price.transmit, price.interrupt, price.cleaned, price.received
            );
        }
        let _ = writeln!(
            out,
            "  received, {}: the stock driver's parameter RxDescriptors, in each of its lines; else it has its own {}",
            RINGS[1], RINGS[0]
        );
        out + &self.livelock()
    }

    fn list(&self, prices: Prices) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.point.prices == prices)
            .collect();
        let from = match prices {
            Prices::Quoted => "Dong's costs, a fast back end (assumed), no application",
            Prices::Thesis => "costs that the thesis' own tables imply",
        };
        let mut out = format!(
            "  {from}\n  {:<31}{:>9}{:>10}{:>8}{:>9}{:>8}\n",
            "", "kpps", "traps/p", "irq/ms", "re-arms", "ratio"
        );
        let lists = [(PacketDirection::Send, RINGS[0])].into_iter();
        let received = RINGS.map(|ring| (PacketDirection::Receive, ring));
        for list in lists.chain(received) {
            let of = |row: &&&EmulatedRow| (row.point.direction, row.point.descriptors) == list;
            let of = rows.iter().filter(of);
            if let Some(row) = of.clone().next() {
                let costs = &row.point.costs;
                let _ = writeln!(
                    out,
                    "  cycles: a trap {}, an interrupt {}, a frame in the back end {}, a packet in the \
                     application {}",
                    number(costs.trap),
                    number(costs.interrupt),
                    number(costs.frame),
                    number(costs.application)
                );
            }
            out.extend(of.map(|row| row.line()));
        }
        out
    }

    fn livelock(&self) -> String {
        let mut out =
            "  overload on one processor, thousand a second: offered, and what the application \
                       gets meanwhile\n"
                .to_owned();
        for (bounded, name) in [(true, "bursts of 256"), (false, "no limit")] {
            let _ = write!(out, "    {name:<15}");
            for point in self
                .overload
                .iter()
                .filter(|p| p.burst.is_some() == bounded)
            {
                let _ = write!(out, "{:>7.0}: {:<4.0}", point.offered, point.kpps);
            }
            out += "\n";
        }
        out
    }

    /// The rows' ratios, and the overload.
    pub fn charts(&self) -> [(&'static str, Chart); 2] {
        [
            ("rows-emulated", self.ratios()),
            ("rows-livelock", self.overload()),
        ]
    }

    fn ratios(&self) -> Chart {
        let of = |prices| {
            let compared =
                move |row: &&EmulatedRow| row.point.prices == prices && row.wanted.is_some();
            self.rows.iter().filter(compared)
        };
        let name = |row: &EmulatedRow| format!("{}, {}", row.way(), row.name());
        let mut chart = charts::chart(
            "An emulated card",
            "packets a second, divided by those where everything traps",
            "what is done about it",
            of(Prices::Quoted).map(name).collect(),
        );
        let ratios = |prices| of(prices).map(|row| row.ratio).collect();
        let wanted = of(Prices::Quoted).filter_map(|row| row.wanted);
        chart.series = vec![
            Series::exact("Dong's costs", ratios(Prices::Quoted)),
            Series::exact("costs that the thesis implies", ratios(Prices::Thesis)),
            Series::exact("thesis", wanted.map(|wanted| wanted.ratio).collect()),
        ];
        chart.notes =
            "Frames of 60 bytes, counted traps and instructions, the same in each run.".to_owned();
        chart
    }

    fn overload(&self) -> Chart {
        let of = |bounded: bool| {
            let of = move |point: &&Overload| point.burst.is_some() == bounded;
            self.overload.iter().filter(of)
        };
        let mut chart = charts::chart(
            "More frames than one processor can take",
            "thousand packets a second in the application",
            "thousand frames a second that arrive",
            of(true)
                .map(|point| format!("{:.0}", point.offered))
                .collect(),
        );
        chart.decimals = 0;
        let kpps = |bounded| of(bounded).map(|point| point.kpps).collect();
        chart.series = vec![
            Series::exact("bursts of 256 frames", kpps(true)),
            Series::exact("no limit", kpps(false)),
        ];
        chart.notes = "Status block; the guest shares the device side's processor.".to_owned();
        chart
    }
}
