//! The row `acknowledgements`: a TCP stream with its acknowledgements, beside the thesis's figure.

use std::fmt::Write;

use e1000_sim::live::acknowledgements::{Acknowledgements, Way};
use serde::Serialize;

use super::merging::Fit;
use super::verdict::Verdict;

/// Menon's thesis, 3.6: 86% more by its text, for aggregation and templates together.
const TEXT: f64 = 1.86;
/// By its own numbers: 1,877 divided by 1,088 Mb/s.
const NUMBERS: f64 = 1.725;

/// The row with the thesis's figure.
#[derive(Debug, Serialize)]
pub struct AckRow {
    #[serde(flatten)]
    seen: Acknowledgements,
    /// Neither divided by aggregation, and by templates: instructions.
    ratios: [f64; 2],
    wanted: f64,
    by_numbers: f64,
    verdict: Verdict,
    /// Of a segment, by the limit, with templates.
    fit: Option<Fit>,
}

impl AckRow {
    /// What was measured, judged.
    pub fn new(seen: Acknowledgements) -> AckRow {
        let [neither, aggregation, templates] = seen.ways.map(|way| way.instructions);
        let ratio = neither / templates;
        AckRow {
            ratios: [neither / aggregation, ratio],
            wanted: TEXT,
            by_numbers: NUMBERS,
            verdict: Verdict::of(ratio >= TEXT && seen.damage == 0),
            fit: Fit::of(&seen.by_limit),
            seen,
        }
    }

    /// Bytes that were lost or changed.
    pub fn damage(&self) -> u64 {
        self.seen.damage
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = "\nacknowledgements: a TCP stream in a closed loop, every second segment acknowledged; \
                       instructions a segment, both directions\n"
            .to_owned();
        for (way, by) in Way::ALL.into_iter().zip(&self.seen.ways) {
            let [segments, packets, acknowledgements] = by.counted;
            let _ = write!(
                out,
                "  {:<12}{:>6.0} instructions, {:.0} cycles; {segments} segments in {packets} packets, \
                 {acknowledgements} acknowledgements",
                way.as_str(),
                by.instructions,
                by.cycles,
            );
            out += &match by.ended.reasons() {
                reasons if reasons.is_empty() => "\n".to_owned(),
                reasons => format!("; ended by {reasons}\n"),
            };
        }
        let [aggregation, templates] = self.ratios;
        let [[_, first, _], [low, second, high]] = self.seen.measured;
        let _ = writeln!(
            out,
            "  neither / aggregation {aggregation:.2}, cycles {first:.2}; neither / templates {templates:.2}, \
             cycles {second:.2} ({low:.2}..{high:.2}); Menon {TEXT} (by numbers {NUMBERS}), by way of dom0: {}",
            self.verdict.text()
        );
        if let Some(fit) = self.fit {
            let _ = writeln!(out, "  with templates {}", fit.text());
        }
        out
    }
}
