//! The row `two-layer`: a budget of latency, divided between the card's throttle and the guests'.

use std::fmt::Write;

use command_line::text::number;
use e1000_sim::live::price::{Price, QUOTED};
use e1000_sim::live::rows::{BUDGET, Point, STEP, formula};
use serde::Serialize;

use super::verdict::Verdict;

/// The splits of the budget for a number of guests.
#[derive(Debug, Serialize)]
pub struct Split {
    pub guests: u32,
    /// They look by timers of their own; else they are told.
    pub timer: bool,
    /// Microseconds of the card's throttle that cost least, of those tried.
    best: u64,
    /// By the formula, from the counted price.
    pub formula: f64,
    /// The best of the paper's measurements.
    pub paper: u64,
    verdict: Verdict,
    pub points: Vec<Point>,
}

impl Split {
    fn new((guests, timer): (u32, bool), points: Vec<Point>, price: &Price) -> Option<Split> {
        let cost = |point: &&Point| point.outcome.cycles;
        let best = points.iter().min_by_key(cost)?.card;
        let formula = formula(guests, price, &QUOTED);
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

/// Dong et al., 5.3, figures 12 to 15.
fn papers_best(guests: u32) -> u64 {
    if guests < 6 { 500 } else { 250 }
}

/// The splits that were tried, by guests and by how these are told.
pub fn all(points: &[Point], price: &Price) -> Vec<Split> {
    let of = |point: &Point| (point.guests, point.timer);
    let mut kinds: Vec<_> = points.iter().map(of).collect();
    kinds.sort_unstable_by_key(|(guests, timer)| (*timer, *guests));
    kinds.dedup();
    let splits = kinds.into_iter().filter_map(|kind| {
        let points = points.iter().filter(|point| of(point) == kind);
        Split::new(kind, points.copied().collect(), price)
    });
    splits.collect()
}

/// For people.
pub fn text(splits: &[Split]) -> String {
    let mut out = format!(
        "\ntwo-layer: {} us in all; load by microseconds of the card's throttle\n",
        number(BUDGET)
    );
    for split in splits {
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
