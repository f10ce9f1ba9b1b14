//! What the stage `aggregation` costs and saves a segment.

use std::fmt::Write;

use e1000_sim::live::price::Crossings;
use e1000_sim::live::rows::{ByLimit, Merging, RowName};
use serde::Serialize;

use super::pairs::Row;
use super::verdict::Verdict;

/// The least R^2 of `x + y / k` that the design sets for aggregation.
const FIT: f64 = 0.98;

/// Instructions of a segment as `each + packet / k`, for a limit of k (thesis, 3.6.2).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fit {
    each: f64,
    packet: f64,
    r2: f64,
}

impl Fit {
    /// The line of least squares in `1 / k`, of the limits with which segments are merged.
    pub fn of(by_limit: &[ByLimit]) -> Option<Fit> {
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

    /// For people.
    pub fn text(&self) -> String {
        let Fit { each, packet, r2 } = self;
        let verdict = Verdict::of(*r2 >= FIT).text();
        format!("{each:.0} + {packet:.0}/k, R^2 {r2:.4}: {verdict}")
    }
}

/// For people; `rows` have packets with the stage on.
pub fn text(merging: &Merging, rows: &[Row], crossings: &Crossings) -> String {
    let mut out = "\naggregation: segments a packet".to_owned();
    let rows = rows.iter().map(|row| &row.pair);
    for pair in rows.filter(|pair| pair.row == RowName::Aggregation) {
        let segments = pair.on.packets as f64 / pair.on.handed.max(1) as f64;
        let _ = write!(out, ", {} guests {segments:.1}", pair.guests);
    }
    for ended in &merging.ended {
        let _ = write!(
            out,
            "\n  ended with {} guests by {}",
            ended.guests,
            ended.counts.reasons()
        );
    }
    out += "\n  instructions a segment by its limit:";
    for by in &merging.by_limit {
        let _ = write!(out, "  {}: {:.0}", by.limit, by.instructions);
    }
    if let Some(fit) = Fit::of(&merging.by_limit) {
        let _ = write!(out, "\n  from 2 on {}", fit.text());
    }
    out.push('\n');
    let crossings = crossings.interrupt + crossings.virtual_interrupt;
    for (what, counts) in [
        ("a segment by itself", merging.lone),
        ("a byte by itself", merging.asked),
    ] {
        let _ = writeln!(out, "  {what}: {}", added(counts, crossings));
    }
    out
}

/// What the stage adds to a segment that nothing is merged with: instructions without it, and with it.
fn added([off, on]: [u64; 2], crossings: u64) -> String {
    let more = (on + crossings) as f64 / (off + crossings).max(1) as f64;
    format!(
        "{off} instructions without it, {on} with it; with both crossings {:.1}% more (at most 1: {})",
        (more - 1.0) * 100.0,
        Verdict::of(more <= 1.01).text()
    )
}
