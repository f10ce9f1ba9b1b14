//! The rows as pictures: each beside its paper's figure, or the design's.

use e1000_sim::live::rows::{ByLimit, Pair};

use super::Rows;
use super::levels::Level;
use super::pairs::Row;
use super::splits::Split;
use crate::plot::{Chart, Scale, Series};

/// File name and chart of each picture.
pub fn of(rows: &Rows) -> Vec<(&'static str, Chart)> {
    let mut all = vec![
        ("rows", pairs(&rows.rows)),
        ("rows-hlvi", levels(&rows.hlvi)),
        ("rows-vrss", rows.vrss.chart()),
        ("rows-cdna", rows.cdna.chart()),
    ];
    for (name, timer) in [("rows-told", false), ("rows-timers", true)] {
        let splits = rows.two_layer.iter().filter(|split| split.timer == timer);
        all.push((name, two_layer(splits, timer)));
    }
    let limits = rows.merging.as_ref().map(|merging| &merging.by_limit[..]);
    all.extend(limits.map(|limits| ("rows-aggregation", by_limit(limits))));
    all.extend(rows.emulated.charts());
    all
}

pub fn chart(title: &str, unit: &str, axis: &str, categories: Vec<String>) -> Chart {
    Chart {
        title: title.to_owned(),
        unit: unit.to_owned(),
        decimals: 2,
        scale: Scale::Linear,
        stacked: false,
        axis: axis.to_owned(),
        categories,
        series: Vec::new(),
        notes: String::new(),
    }
}

/// What turns by turns came to: its median, with the tenths.
pub fn measured<'m>(all: impl Iterator<Item = &'m [f64; 3]> + Clone) -> Series {
    Series {
        name: "measured here".to_owned(),
        values: all.clone().map(|[_, median, _]| *median).collect(),
        spread: all.map(|[low, _, high]| (*low, *high)).collect(),
    }
}

/// A ratio that is not known is no bar.
fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(0.0)
}

fn pairs(rows: &[Row]) -> Chart {
    let name = |Pair {
                    row, guests, knob, ..
                }: &Pair| {
        let knob = knob.split(' ').next().unwrap_or_default();
        match row.as_str() {
            "dbnet-batching" => format!("dbnet {knob}"),
            "aggregation" => format!("aggr. {guests}"),
            row => format!("{row} {guests}"),
        }
    };
    let names = rows.iter().map(|row| name(&row.pair)).collect();
    let mut chart = chart(
        "Stages off and on",
        "cycles a packet, off divided by on",
        "row, and guests that receive; of dbnet-batching, microseconds of delay",
        names,
    );
    chart.series = vec![
        Series::exact("counted", rows.iter().map(|row| row.ratio).collect()),
        measured(rows.iter().map(|row| &row.pair.measured)),
        Series::exact("paper", rows.iter().map(|row| known(row.wanted)).collect()),
    ];
    chart.notes = "Counted: instructions, one a cycle, and crossings as quoted; the same in each run. Lines: from the \
                   10th to the 90th percentile of turns. No bar: the paper's figure is of something else."
        .to_owned();
    chart
}

fn levels(levels: &[Level]) -> Chart {
    let name = |level: &Level| {
        let path = if level.seen.twin {
            "hypervisor"
        } else {
            "dom0"
        };
        let card = if level.seen.lacking.is_empty() {
            "all"
        } else {
            "nothing"
        };
        format!("{path}, card does {card}")
    };
    let mut chart = chart(
        "A high interface for guests that send",
        "cost of a byte, frames divided by packets of 64 KiB",
        "by way of, and card",
        levels.iter().map(name).collect(),
    );
    chart.series = vec![
        Series::exact(
            "instructions",
            levels.iter().map(|level| level.ratio).collect(),
        ),
        measured(levels.iter().map(|level| &level.seen.measured)),
        Series::exact(
            "paper, design",
            levels.iter().map(|level| level.wanted).collect(),
        ),
    ];
    chart.notes =
        "By way of dom0 the paper's figure, by way of the hypervisor the design's.".to_owned();
    chart
}

fn two_layer<'r>(splits: impl Iterator<Item = &'r Split> + Clone, timer: bool) -> Chart {
    let first = splits.clone().next();
    let throttles = first.map_or_else(Vec::new, |split| {
        split
            .points
            .iter()
            .map(|point| format!("{} us", point.card))
            .collect()
    });
    let title = match timer {
        true => "1,250 us of latency, guests with timers of their own",
        false => "1,250 us of latency, guests that are told",
    };
    let mut chart = chart(
        title,
        "% of a processor",
        "the card's part of it",
        throttles,
    );
    chart.series = splits
        .clone()
        .map(|split| {
            let loads = split
                .points
                .iter()
                .map(|point| point.outcome.load() * 100.0);
            Series::exact(&format!("{} guests", split.guests), loads.collect())
        })
        .collect();
    let best = |split: &Split| {
        let (guests, formula, paper) = (split.guests, split.formula, split.paper);
        format!(" {guests} guests: {formula:.0} us by Dong's formula, {paper} by his measurements.")
    };
    chart.notes = "A gigabit of datagrams a second.".to_owned();
    chart.notes.extend(splits.map(best));
    chart
}

fn by_limit(limits: &[ByLimit]) -> Chart {
    let name = |by: &ByLimit| match by.limit {
        1 => "off".to_owned(),
        limit => limit.to_string(),
    };
    let mut chart = chart(
        "TCP segments of one poll as one packet",
        "instructions a segment",
        "most segments of a packet",
        limits.iter().map(name).collect(),
    );
    chart.decimals = 0;
    let instructions = limits.iter().map(|by| by.instructions).collect();
    chart.series = vec![Series::exact("32 segments at once", instructions)];
    chart
}
