//! The row `hlvi`: guests that send packets of 64 KiB in place of frames.

use std::fmt::Write;

use e1000_sim::live::high_level::HighLevel;
use serde::Serialize;

use super::verdict::Verdict;

/// What a high interface saves on one path, with one card.
#[derive(Debug, Serialize)]
pub struct Level {
    #[serde(flatten)]
    pub seen: HighLevel,
    /// Low divided by high, in counted instructions.
    pub ratio: f64,
    /// What the paper reports, by way of dom0; the design's goal, of the hypervisor.
    pub wanted: f64,
    verdict: Verdict,
}

impl Level {
    /// What was measured, judged.
    pub fn new(seen: HighLevel) -> Level {
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

/// For people.
pub fn text(levels: &[Level]) -> String {
    let mut out = "\nhlvi: instructions a byte that is sent, in frames whose checksums the guest computes, and in \
                   packets of 64 KiB\n"
        .to_owned();
    for level in levels {
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
