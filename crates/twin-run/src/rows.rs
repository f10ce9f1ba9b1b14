//! `--experiment rows`: stages off and on by turns, beside the papers' figures, as a table
//! and as JSON. `docs/packet-path.md` explains each row.

use std::fmt::Write;
use std::path::Path;

use command_line::failure::Failure;
use command_line::output::{self, Destination, Pending};
use command_line::text::number;
use e1000_sim::contexts::row as contexts;
use e1000_sim::image::files::Files;
use e1000_sim::live::acknowledgements;
use e1000_sim::live::by_dom0::{self, ByDom0};
use e1000_sim::live::channel;
use e1000_sim::live::clock::HZ;
use e1000_sim::live::crossing;
use e1000_sim::live::early_ack;
use e1000_sim::live::emulated;
use e1000_sim::live::high_level::{self, HighLevel};
use e1000_sim::live::merged_by_dom0;
use e1000_sim::live::price::{Crossings, Price, QUOTED, QUOTED_FROM};
use e1000_sim::live::receive::Outcome;
use e1000_sim::live::rows::{
    self, Added, BUDGET, ByLimit, Merging, Pair, Point, RowName, STEP, Seen,
};
use e1000_sim::system::SystemError;
use process_lab::program::Variant;
use serde::Serialize;

use crate::ack_rows::AckRow;
use crate::context_rows::Cdna;
use crate::crossing_rows::{self, Crossed};
use crate::dom0_rows::Dom0Rows;
use crate::early_rows::{self, Early};
use crate::emulated_rows::EmulatedRows;
use crate::processor::Processor;
use crate::progress::Progress;
use crate::row_charts;
use crate::run::{Job, failed};
use crate::vrss::{self, Vrss};

/// What the design sets for `bridge` and `notify` together, in cycles a packet of 60 bytes.
const ADDED_AT_MOST: u64 = 100;

/// The least R^2 of `x + y / k` that the design sets for aggregation.
pub(crate) const FIT: f64 = 0.98;

/// What a row came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At least the paper's figure, or the design's.
    Reached,
    /// Less than that.
    Missed,
    /// The paper's figure is of something that this testbed does not have.
    NotComparable,
}

impl Verdict {
    /// Reached or missed.
    pub(crate) fn of(reached: bool) -> Verdict {
        match reached {
            true => Verdict::Reached,
            false => Verdict::Missed,
        }
    }

    /// In the table.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Verdict::Reached => "reached",
            Verdict::Missed => "missed",
            Verdict::NotComparable => "not comparable",
        }
    }
}

/// A pair with the paper's figure.
#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub(crate) pair: Pair,
    /// Off divided by on, in counted instructions and quoted crossings: the same in each run.
    pub(crate) ratio: f64,
    paper: &'static str,
    /// The least ratio.
    pub(crate) wanted: Option<f64>,
    verdict: Verdict,
}

/// The splits of the budget for a number of guests.
#[derive(Debug, Serialize)]
pub struct Split {
    pub(crate) guests: u32,
    /// They look by timers of their own; else they are told.
    pub(crate) timer: bool,
    /// Microseconds of the card's throttle that cost least, of those tried.
    best: u64,
    /// By the formula, from the counted price.
    pub(crate) formula: f64,
    /// The best of the paper's measurements.
    pub(crate) paper: u64,
    verdict: Verdict,
    pub(crate) points: Vec<Point>,
}

/// Instructions of a segment as `each + packet / k`, for a limit of k (thesis, 3.6.2).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fit {
    pub(crate) each: f64,
    pub(crate) packet: f64,
    pub(crate) r2: f64,
}

impl Fit {
    /// The line of least squares in `1 / k`, of the limits with which segments are merged.
    pub(crate) fn of(by_limit: &[ByLimit]) -> Option<Fit> {
        let merged = by_limit.iter().filter(|by| by.limit > 1);
        let points: Vec<(f64, f64)> = merged
            .map(|by| (1.0 / f64::from(by.limit), by.instructions))
            .collect();
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| {
            points.iter().map(of).sum::<f64>() / points.len() as f64
        };
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let (xx, yy) = (mean(&|p| (p.0 - x).powi(2)), mean(&|p| (p.1 - y).powi(2)));
        let xy = mean(&|p| (p.0 - x) * (p.1 - y));
        let packet = xy / xx;
        let r2 = xy * xy / (xx * yy);
        r2.is_finite().then_some(Fit {
            each: y - packet * x,
            packet,
            r2,
        })
    }
}

/// All rows.
#[derive(Debug, Serialize)]
pub struct Rows {
    processor: Processor,
    crossings: Crossings,
    crossings_from: &'static str,
    /// Cycles a second of the machine that is played.
    hz: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) two_layer: Vec<Split>,
    /// Counted when each process began: one for each throttle of the card.
    prices: Vec<Price>,
    added: Option<Added>,
    pub(crate) merging: Option<Merging>,
    /// Of that, by its limits.
    fit: Option<Fit>,
    pub(crate) hlvi: Vec<Level>,
    pub(crate) dbnet_bridge: Vec<Way>,
    pub(crate) vrss: Vrss,
    pub(crate) emulated: EmulatedRows,
    pub(crate) cdna: Cdna,
    pub(crate) by_dom0: Dom0Rows,
    early_ack: Vec<Early>,
    acknowledgements: AckRow,
    /// Guests as processes.
    by_process: Vec<Crossed>,
}

/// Packets by way of dom0 and of the hypervisor, with the paper's figure.
#[derive(Debug, Serialize)]
pub struct Way {
    #[serde(flatten)]
    pub(crate) seen: ByDom0,
    pub(crate) wanted: f64,
    /// Of the median of measured cycles: a switch between processes is no instruction.
    verdict: Verdict,
}

impl Way {
    fn new(seen: ByDom0) -> Way {
        let wanted = if seen.sent { 1.4 } else { 1.24 };
        Way {
            verdict: Verdict::of(seen.measured[1] >= wanted && seen.damage == 0),
            seen,
            wanted,
        }
    }
}

/// What a high interface saves on one path, with one card.
#[derive(Debug, Serialize)]
pub struct Level {
    #[serde(flatten)]
    pub(crate) seen: HighLevel,
    /// Low divided by high, in counted instructions.
    pub(crate) ratio: f64,
    /// What the paper reports, by way of dom0; the design's goal, of the hypervisor.
    pub(crate) wanted: f64,
    verdict: Verdict,
}

impl Level {
    fn new(seen: HighLevel) -> Level {
        let wanted = match (seen.twin, seen.lacking.is_empty()) {
            (false, true) => 3.73,
            (false, false) => 1.95,
            (true, true) => 8.0,
            (true, false) => 3.0,
        };
        let ratio = seen.ratio();
        Level {
            verdict: Verdict::of(ratio >= wanted && seen.damage == 0),
            seen,
            ratio,
            wanted,
        }
    }
}

/// Measures; leaves `rows.json`, `rows.txt` and the pictures ([`row_charts`]) in the directory.
///
/// # Errors
/// The driver stopped, or the files cannot be written.
pub fn make(job: &Job<'_>, directory: &Path) -> Result<(String, Rows), Failure> {
    output::create_dir(directory)?;
    let progress = Progress::new("rows");
    let (files, variant) = (job.files, job.setup.variant);
    let seen = measure(files, variant, &mut |done, all| progress.set(done, all));
    drop(progress);
    let rows = Rows::new(seen.map_err(|error| failed(job.module, &error))?);
    let text = rows.text();
    let json = serde_json::to_vec_pretty(&rows)
        .map_err(|error| Failure::access(directory.display(), error))?;
    let mut files = vec![
        ("rows.json".to_owned(), json),
        ("rows.txt".to_owned(), text.clone().into_bytes()),
    ];
    for (name, chart) in row_charts::of(&rows) {
        files.push((format!("{name}.svg"), chart.svg()?.into_bytes()));
    }
    for (name, bytes) in files {
        Pending::create(&Destination::File(directory.join(name)))?.finish_with(&bytes)?;
    }
    Ok((text, rows))
}

/// All that was measured.
struct Measured {
    levels: Vec<HighLevel>,
    ways: Vec<ByDom0>,
    vrss: Vrss,
    emulated: EmulatedRows,
    cdna: Cdna,
    by_dom0: Dom0Rows,
    early_ack: Vec<Early>,
    acknowledgements: AckRow,
    by_process: Vec<Crossed>,
    seen: Seen,
}

fn measure(
    files: &Files,
    variant: Variant,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Measured, SystemError> {
    Ok(Measured {
        levels: high_level::measure(files, variant)?,
        ways: by_dom0::measure(files, variant)?,
        vrss: vrss::measure(files, variant)?,
        emulated: EmulatedRows::new(emulated::measure::measure(files, variant)?),
        cdna: Cdna::new(contexts::measure(files, variant, contexts::ROW)?),
        by_dom0: Dom0Rows::new(
            channel::measure(files, variant)?,
            merged_by_dom0::measure(files, variant)?,
        ),
        early_ack: early_ack::measure(files, variant)?
            .into_iter()
            .map(Early::new)
            .collect(),
        acknowledgements: AckRow::new(acknowledgements::measure(files, variant)?),
        by_process: crossing::measure(files, variant, crossing::ROW)?
            .into_iter()
            .map(Crossed::new)
            .collect(),
        // Last, because it keeps to one processor.
        seen: rows::measure(files, variant, tell)?,
    })
}

/// The paper's figure of a pair, and the least ratio if it can be compared.
fn paper(pair: &Pair) -> (&'static str, Option<f64>) {
    match (pair.row, pair.guests, pair.knob.as_str()) {
        (RowName::Batching, _, knob) if knob.starts_with("500") => (
            "DBNet: received at 540 Mb/s with 20% less processor",
            Some(1.25),
        ),
        (RowName::Batching, _, knob) if knob.starts_with("200") => {
            ("DBNet: of packets sent, 45 to 39% of a processor", None)
        }
        (RowName::Batching, ..) => ("DBNet: its TCP falls to 450 Mb/s", None),
        (RowName::Bvic, 9, _) => ("Dong: TCP, 200 to 129% of a processor", Some(1.55)),
        (RowName::Bvic, 1, _) => ("Dong: UDP 3.3% less, TCP 14.5%", Some(1.0 / 0.967)),
        (RowName::Bvic | RowName::Fvic, 3 | 6, _) => ("Dong: only drawn", None),
        (RowName::Fvic, ..) => ("Dong: slightly ahead of bvic", None),
        (RowName::Bvic, ..) => ("Dong: only drawn", None),
        (RowName::Aggregation, 1, _) => ("Menon: 45% more, by way of dom0", Some(1.45)),
        (RowName::Aggregation, ..) => ("Menon: one stream a card", None),
    }
}

/// Dong et al., 5.3, figures 12 to 15.
fn papers_best(guests: u32) -> u64 {
    if guests < 6 { 500 } else { 250 }
}

impl Row {
    fn new(pair: Pair) -> Row {
        let ratio = pair.off.cycles_a_packet() / pair.on.cycles_a_packet();
        let (paper, wanted) = paper(&pair);
        let lost = |of: &Outcome| of.missed + of.dropped + of.corrupted;
        let whole = lost(&pair.on) + lost(&pair.off) == 0;
        let verdict = wanted.map_or(Verdict::NotComparable, |wanted| {
            Verdict::of(ratio >= wanted && whole)
        });
        Row {
            pair,
            ratio,
            paper,
            wanted,
            verdict,
        }
    }
}

impl Split {
    fn new((guests, timer): (u32, bool), points: Vec<Point>, price: &Price) -> Option<Split> {
        let cost = |point: &&Point| point.outcome.cycles;
        let best = points.iter().min_by_key(cost)?.card;
        let formula = rows::formula(guests, price, &QUOTED);
        let near = (best as f64 - formula).abs() <= STEP as f64;
        Some(Split {
            guests,
            timer,
            best,
            formula,
            paper: papers_best(guests),
            verdict: Verdict::of(near),
            points,
        })
    }
}

impl Rows {
    fn new(all: Measured) -> Rows {
        let Measured {
            seen,
            levels,
            ways,
            vrss,
            emulated,
            cdna,
            by_dom0,
            early_ack,
            acknowledgements,
            by_process,
        } = all;
        let of = |point: &Point| (point.guests, point.timer);
        let mut kinds: Vec<_> = seen.points.iter().map(of).collect();
        kinds.sort_unstable_by_key(|(guests, timer)| (*timer, *guests));
        kinds.dedup();
        let price = seen.prices.first().copied().unwrap_or_default();
        let splits = kinds.into_iter().filter_map(|kind| {
            let points = seen.points.iter().filter(|point| of(point) == kind);
            Split::new(kind, points.copied().collect(), &price)
        });
        Rows {
            processor: Processor::this(),
            crossings: QUOTED,
            crossings_from: QUOTED_FROM,
            hz: HZ,
            two_layer: splits.collect(),
            rows: seen.pairs.into_iter().map(Row::new).collect(),
            prices: seen.prices,
            added: seen.added,
            fit: seen
                .merging
                .as_ref()
                .and_then(|merging| Fit::of(&merging.by_limit)),
            merging: seen.merging,
            hlvi: levels.into_iter().map(Level::new).collect(),
            dbnet_bridge: ways.into_iter().map(Way::new).collect(),
            vrss,
            emulated,
            cdna,
            by_dom0,
            early_ack,
            acknowledgements,
            by_process,
        }
    }

    /// Packets lost or corrupted where nothing may be.
    pub fn damage(&self) -> (u64, u64) {
        let pairs = self
            .rows
            .iter()
            .flat_map(|row| [&row.pair.off, &row.pair.on]);
        let points = self.two_layer.iter().flat_map(|split| &split.points);
        let points = points.map(|point| &point.outcome);
        let levels = self.hlvi.iter().map(|level| level.seen.damage);
        let ways = self.dbnet_bridge.iter().map(|way| way.seen.damage);
        let (lost, corrupted) = self.emulated.damage();
        let levels: u64 = levels
            .chain(ways)
            .chain([
                self.vrss.damage(),
                self.cdna.damage(),
                self.by_dom0.damage(),
            ])
            .chain(self.early_ack.iter().map(Early::damage))
            .chain([self.acknowledgements.damage()])
            .chain(self.by_process.iter().map(Crossed::damage))
            .sum();
        pairs
            .chain(points)
            .fold((levels + lost, corrupted), |(lost, bad), outcome| {
                let missed = outcome.missed + outcome.dropped;
                (lost + missed, bad + outcome.corrupted)
            })
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{}\nfrom counted instructions, one a cycle of {:.1} GHz; an interrupt of the card \
             {} cycles,\nof a guest {}: {QUOTED_FROM}\n\n",
            self.processor.text(),
            HZ as f64 / 1e9,
            number(self.crossings.interrupt),
            number(self.crossings.virtual_interrupt),
        );
        out += &self.pairs();
        out += &self.splits();
        out += &self.prices();
        out += &self.merging();
        out += &self.levels();
        out += &self.ways();
        out += &early_rows::text(&self.early_ack);
        out += &self.acknowledgements.text();
        out += &crossing_rows::text(&self.by_process);
        out + &self.vrss.text() + &self.emulated.text() + &self.cdna.text() + &self.by_dom0.text()
    }

    fn pairs(&self) -> String {
        let mut out = format!(
            "{:<15}{:>7}  {:<19}{:>8}{:>8}{:>7}  {:<18}{:>15}{:>15}  {}\n",
            "row",
            "guests",
            "delay, count",
            "off",
            "on",
            "ratio",
            "measured p10..p90",
            "interrupts",
            "of guests",
            "paper"
        );
        for row in &self.rows {
            let Pair { off, on, .. } = &row.pair;
            let [low, half, high] = row.pair.measured;
            let both =
                |of: &dyn Fn(&Outcome) -> u64| format!("{} {}", number(of(off)), number(of(on)));
            let _ = writeln!(
                out,
                "{:<15}{:>7}  {:<19}{:>8.0}{:>8.0}{:>7.2}  {:<18}{:>15}{:>15}  {}: {}",
                row.pair.row.as_str(),
                row.pair.guests,
                row.pair.knob,
                off.cycles_a_packet(),
                on.cycles_a_packet(),
                row.ratio,
                format!("{half:.2} ({low:.2}..{high:.2})"),
                both(&|outcome| outcome.interrupts),
                both(&|outcome| outcome.virtual_interrupts),
                row.paper,
                row.verdict.text(),
            );
        }
        out
    }

    fn splits(&self) -> String {
        let mut out = format!(
            "\ntwo-layer: {} us in all; load by microseconds of the card's throttle\n",
            number(BUDGET)
        );
        for split in &self.two_layer {
            let loads: Vec<String> = split
                .points
                .iter()
                .map(|point| {
                    let Point { card, outcome, .. } = point;
                    format!("{card}: {:.2}%", outcome.load() * 100.0)
                })
                .collect();
            let _ = writeln!(
                out,
                "{:>2} guests, {:<9}  {}   best {}, formula {:.0}, paper {}: {}",
                split.guests,
                if split.timer { "own timer" } else { "told" },
                loads.join("  "),
                split.best,
                split.formula,
                split.paper,
                split.verdict.text()
            );
        }
        out
    }

    fn merging(&self) -> String {
        let Some(merging) = &self.merging else {
            return String::new();
        };
        let mut out = "\naggregation: segments a packet".to_owned();
        let rows = self.rows.iter().map(|row| &row.pair);
        for pair in rows.filter(|pair| pair.row == RowName::Aggregation) {
            let segments = pair.on.packets as f64 / pair.on.handed.max(1) as f64;
            let _ = write!(out, ", {} guests {segments:.1}", pair.guests);
        }
        out += "\n  instructions a segment by its limit:";
        for by in &merging.by_limit {
            let _ = write!(out, "  {}: {:.0}", by.limit, by.instructions);
        }
        if let Some(fit) = self.fit {
            let _ = write!(
                out,
                "\n  from 2 on {:.0} + {:.0}/k, R^2 {:.4}: {}",
                fit.each,
                fit.packet,
                fit.r2,
                Verdict::of(fit.r2 >= FIT).text()
            );
        }
        let [off, on] = merging.lone;
        let crossings = self.crossings.interrupt + self.crossings.virtual_interrupt;
        let more = (on + crossings) as f64 / (off + crossings).max(1) as f64;
        let _ = writeln!(
            out,
            "\n  a segment by itself: {off} instructions without it, {on} with it; with both crossings \
             {:.1}% more (at most 1: {})",
            (more - 1.0) * 100.0,
            Verdict::of(more <= 1.01).text()
        );
        out
    }

    fn levels(&self) -> String {
        let mut out = "\nhlvi: instructions a byte that is sent, in frames whose checksums the guest computes, and in \
                       packets of 64 KiB\n"
            .to_owned();
        for level in &self.hlvi {
            let [low, high] = level.seen.instructions;
            let [least, half, most] = level.seen.measured;
            let _ = writeln!(
                out,
                "  {:<19}{:<24}{low:>6.2}{high:>6.2}{:>7.2}  {:<20}  {} {}: {}",
                if level.seen.twin {
                    "by the hypervisor"
                } else {
                    "by dom0"
                },
                if level.seen.lacking.is_empty() {
                    "the card does all"
                } else {
                    "the card does nothing"
                },
                level.ratio,
                format!("{half:.2} ({least:.2}..{most:.2})"),
                if level.seen.twin { "design" } else { "Menon" },
                level.wanted,
                level.verdict.text(),
            );
        }
        out
    }

    fn ways(&self) -> String {
        let mut out = "\ndbnet-bridge: a frame of 1,514 bytes by way of dom0, and of the hypervisor with a bridge; the \
                       ratio of measured cycles\n"
            .to_owned();
        for way in &self.dbnet_bridge {
            let [dom0, twin] = way.seen.instructions;
            let [least, half, most] = way.seen.measured;
            let _ = writeln!(
                out,
                "  {:<9} {dom0:.0} and {twin:.0} instructions, cycles {half:.2} ({least:.2}..{most:.2}); DBNet {}: {}",
                if way.seen.sent { "sent" } else { "received" },
                way.wanted,
                way.verdict.text(),
            );
        }
        out
    }

    fn prices(&self) -> String {
        let mut out = String::new();
        if let Some(price) = self.prices.first() {
            let _ = writeln!(
                out,
                "\ninstructions: an interrupt {}, a packet {}; a delivery {}, a guest {}, a packet {}",
                price.interrupt, price.packet, price.round, price.guest, price.taken
            );
        }
        if let Some(added) = self.added {
            let [plain, staged] = added.received;
            let [taken, told] = added.taken;
            let more = (staged + told).saturating_sub(plain + taken);
            let _ = writeln!(
                out,
                "bridge and notify, a packet of 60 bytes: {more} instructions more than without \
                 (at most {ADDED_AT_MOST}: {})",
                Verdict::of(more <= ADDED_AT_MOST).text()
            );
        }
        out
    }
}
