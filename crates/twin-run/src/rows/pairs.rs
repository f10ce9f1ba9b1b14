//! The rows `dbnet-batching`, `bvic`, `fvic` and `aggregation`: stages off and on by turns, with guests that receive.

use std::fmt::Write;

use command_line::text::number;
use e1000_sim::live::receive::Outcome;
use e1000_sim::live::rows::{Pair, RowName};
use serde::Serialize;

use super::verdict::Verdict;

/// A pair with the paper's figure.
#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub pair: Pair,
    /// Off divided by on, in counted instructions and quoted crossings: the same in each run.
    pub ratio: f64,
    paper: &'static str,
    /// The least ratio.
    pub wanted: Option<f64>,
    verdict: Verdict,
}

impl Row {
    /// What was measured, judged.
    pub fn new(pair: Pair) -> Row {
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

/// For people.
pub fn text(rows: &[Row]) -> String {
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
    for row in rows {
        let Pair { off, on, .. } = &row.pair;
        let [low, half, high] = row.pair.measured;
        let both = |of: &dyn Fn(&Outcome) -> u64| format!("{} {}", number(of(off)), number(of(on)));
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
