//! Each figure as a chart, and table 1 as text.

use std::fmt::Write;

use command_line::text::number;
use e1000_sim::experiment::{Spread, agree};
use e1000_sim::packets::round::PacketDirection;

use super::Runs;
use crate::plot::{Chart, Scale, Series};
use crate::results::{Calls, Ratio, Results};
use crate::table::{LFI_SLOWDOWN, PAPER_SLOWDOWN};

const NAMES: [&str; 4] = ["native", "dom0", "guest", "twin"];

/// What packets of guests pass in figures 5 to 8, and what they do not.
const IN_THE_PATHS: &str = "Path guest: grants and a bridge in dom0 are passed; guest and dom0 are two processes that wake each \
                            other for a batch; hypercalls are functions, and there are no packet filters and no queues of \
                            Linux's. Path twin: the hypervisor calls its guests.";

pub(super) fn fig5(runs: &Runs) -> Chart {
    let mut chart = throughput(runs, PacketDirection::Send);
    chart.title = "Figure 5: what one core could send".to_owned();
    if let Some(segments) = &runs.segments {
        chart.series.push(Series {
            name: "64 KiB segments, cut by the card".to_owned(),
            values: rates(segments, PacketDirection::Send),
            spread: rate_spreads(segments, PacketDirection::Send),
        });
    }
    chart
}

pub(super) fn fig6(runs: &Runs) -> Chart {
    let mut chart = throughput(runs, PacketDirection::Receive);
    chart.title = "Figure 6: what one core could receive".to_owned();
    chart
}

fn throughput(runs: &Runs, direction: PacketDirection) -> Chart {
    let frames = runs.frames.as_ref();
    Chart {
        title: String::new(),
        unit: "Gb/s that one core's cycles allow".to_owned(),
        decimals: 1,
        scale: Scale::Linear,
        stacked: false,
        axis: "path of packets".to_owned(),
        categories: NAMES.map(str::to_owned).to_vec(),
        series: vec![Series {
            name: "frames of 1514 bytes".to_owned(),
            values: frames.map_or_else(Vec::new, |results| rates(results, direction)),
            spread: frames.map_or_else(Vec::new, |results| rate_spreads(results, direction)),
        }],
        notes: "What a core's cycles would carry, not what a wire did (the card is a 1 Gb/s one): \
                bytes x 8 x counter rate / median cycles, the card's own excepted; lines from \
                the 10th to the 90th percentile of batches. "
            .to_owned()
            + IN_THE_PATHS,
    }
}

fn rates(results: &Results, direction: PacketDirection) -> Vec<f64> {
    let paths = results.paths.list();
    let ways = paths.iter().filter_map(|(_, path)| path.way(direction));
    ways.map(|(flow, _)| results.gigabits(flow)).collect()
}

fn rate_spreads(results: &Results, direction: PacketDirection) -> Vec<(f64, f64)> {
    let paths = results.paths.list();
    let ways = paths.iter().filter_map(|(_, path)| path.way(direction));
    ways.map(|way| results.gigabits_spread(way)).collect()
}

pub(super) fn fig7(runs: &Runs) -> Chart {
    let mut chart = breakdown(runs, PacketDirection::Send);
    chart.title = "Figure 7: cycles of a sent packet of 1514 bytes".to_owned();
    chart
}

pub(super) fn fig8(runs: &Runs) -> Chart {
    let mut chart = breakdown(runs, PacketDirection::Receive);
    chart.title = "Figure 8: cycles of a received packet of 1514 bytes".to_owned();
    chart
}

fn breakdown(runs: &Runs, direction: PacketDirection) -> Chart {
    let mut columns = Vec::new();
    if let Some(frames) = &runs.frames {
        columns.extend(frames.paths.list());
    }
    let paper = runs.of_scheme("paper").next().map(|results| &results.paths);
    let native = paper.and_then(|paths| paths.native.as_ref()?.way(direction));
    columns.extend(paper.and_then(|paths| Some(("twin, paper's scheme", paths.twin.as_ref()?))));
    let columns: Vec<_> = columns
        .into_iter()
        .filter_map(|(name, path)| Some((name, path.way(direction)?)))
        .collect();
    let instructions: Vec<String> = columns
        .iter()
        .map(|(name, (flow, detail))| {
            let all = number(flow.instructions_per_packet.round() as u64);
            format!("{name} {:.0} / {all}", detail.instructions.driver)
        })
        .collect();
    let columns: Vec<_> = columns
        .into_iter()
        .map(|(name, (_, detail))| (name, detail.cycles.list()))
        .collect();
    let series = (0..4).map(|part| Series {
        name: ["driver", "hypervisor", "dom0", "guest"][part].to_owned(),
        values: columns.iter().map(|(_, parts)| parts[part].1).collect(),
        spread: Vec::new(),
    });
    Chart {
        title: String::new(),
        unit: "cycles a packet".to_owned(),
        decimals: 0,
        scale: Scale::Linear,
        stacked: true,
        axis: "path of packets".to_owned(),
        categories: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        series: series.collect(),
        notes: format!(
            "Medians of batches, by whose turn it was; the driver, measured alone with warm \
             caches, is taken out of its host's turns, which the hot routines are part of; the \
             card's time is left out. {IN_THE_PATHS} Instructions a \
             packet, the driver's / all, counted one by one: {}. The paper's scheme is of a run of its own, in which \
             native took {} cycles.",
            instructions.join(", "),
            native.map_or_else(String::new, |(flow, _)| number(
                flow.cycles_per_packet as u64
            )),
        ),
    }
}

/// A scheme's slow-down in one direction.
struct Slowdown {
    /// In cycles, if all runs have a figure, and these agree.
    cycles: Option<Spread>,
    /// The runs' figures.
    measured: Vec<Option<f64>>,
    /// In cycles, with the player's left in both.
    unsubtracted: f64,
    instructions: f64,
}

impl Slowdown {
    fn new(runs: &Runs, scheme: &str, direction: PacketDirection) -> Slowdown {
        let ratios = runs.of_scheme(scheme).filter_map(|run| run.ratios.as_ref());
        let ways = ratios.filter_map(|ratios| match direction {
            PacketDirection::Send => ratios.tx,
            PacketDirection::Receive => ratios.rx,
        });
        let ways: Vec<Ratio> = ways.collect();
        let measured: Vec<Option<f64>> = ways.iter().map(|ratio| ratio.driver_cycles).collect();
        let all: Option<Vec<f64>> = measured.iter().copied().collect();
        let of = |what: fn(&Ratio) -> Option<f64>| {
            Spread::of_values(ways.iter().filter_map(what)).median
        };
        let cycles = Spread {
            median: of(|ratio| ratio.driver_cycles),
            low: of(|ratio| ratio.driver_cycles_p10),
            high: of(|ratio| ratio.driver_cycles_p90),
        };
        Slowdown {
            cycles: all.filter(|all| agree(all)).map(|_| cycles),
            unsubtracted: of(|ratio| ratio.driver_cycles_unsubtracted),
            instructions: of(|ratio| Some(ratio.driver_instructions)),
            measured,
        }
    }

    fn all(&self) -> String {
        let text = |figure: &Option<f64>| figure.map_or("-".to_owned(), |m| format!("{m:.2}"));
        let all: Vec<String> = self.measured.iter().map(text).collect();
        all.join(" ")
    }
}

/// The driver's cycles, rewritten to native, compared with the paper's.
pub(super) fn slowdown(runs: &Runs) -> Chart {
    let schemes = runs.scheme_names().into_iter().map(|scheme| {
        let ways = [PacketDirection::Send, PacketDirection::Receive];
        let ways = ways.map(|way| Slowdown::new(runs, scheme, way));
        (series_name(scheme), ways)
    });
    let schemes: Vec<_> = schemes.collect();
    let mut series: Vec<Series> = Vec::new();
    let mut notes = format!(
        "The driver alone, with warm caches: recorded packets played again, natively and \
         rewritten by turns, in several layouts of the code and at sixteen places of player and \
         stack, where nothing else shared the core, in {} runs, schemes by turns; medians of \
         recordings, lines from their 10th to their 90th percentile. A figure only where each \
         run's is known within a tenth, and all runs agree within a tenth. The player's own cycles are subtracted, which is too much, as a processor works \
         at both at once; unsubtracted is too little.",
        runs.schemes.len(),
    );
    for (name, [tx, rx]) in &schemes {
        let cycles = [tx, rx].map(|way| way.cycles.unwrap_or_default());
        series.push(Series {
            name: (*name).to_owned(),
            values: cycles.iter().map(|cycles| cycles.median).collect(),
            spread: cycles
                .iter()
                .map(|cycles| (cycles.low, cycles.high))
                .collect(),
        });
        let _ = write!(
            notes,
            " {name}: runs {} sent, {} received; unsubtracted {:.2} sent, {:.2} received; \
             in instructions, counted one by one, {:.2} sent, {:.2} received.",
            tx.all(),
            rx.all(),
            tx.unsubtracted,
            rx.unsubtracted,
            tx.instructions,
            rx.instructions,
        );
    }
    series.push(Series::exact("in the paper, 2009", PAPER_SLOWDOWN.to_vec()));
    series.push(Series::exact("LFI, other programs", vec![LFI_SLOWDOWN; 2]));
    notes.push_str(
        " LFI's is what its authors publish for programs of SPEC 2017, compiled with two registers \
         reserved; no driver was measured.",
    );
    if let Some(run) = runs.schemes.first() {
        let _ = write!(notes, " {}.", run.processor.text());
    }
    Chart {
        title: "Slow-down of the driver: its cycles a packet, rewritten / native".to_owned(),
        unit: "times native".to_owned(),
        decimals: 2,
        scale: Scale::Linear,
        stacked: false,
        axis: "direction".to_owned(),
        categories: vec!["send".to_owned(), "receive".to_owned()],
        series,
        notes,
    }
}

fn series_name(scheme: &str) -> &str {
    match scheme {
        "paper" => "the paper's scheme",
        scheme => scheme,
    }
}

/// The driver's code, rewritten to native.
pub(super) fn code_size(runs: &Runs) -> Chart {
    let schemes = runs.scheme_names();
    let of = |scheme: &&str| {
        let code = runs.of_scheme(scheme).next().map(|run| run.code);
        code.unwrap_or_default()
    };
    let sizes: Vec<_> = schemes.iter().map(of).collect();
    let mut notes = format!(
        "All sections with code, out-of-line parts included. Native: {} bytes.",
        sizes.first().map_or(0, |code| code.original)
    );
    for (scheme, code) in schemes.iter().zip(&sizes) {
        let _ = write!(notes, " {}: {}.", series_name(scheme), code.rewritten);
    }
    let values = sizes.iter().map(|code| code.ratio()).collect();
    let names = schemes.into_iter().map(series_name);
    Chart {
        title: "Size of the driver's code, rewritten / native".to_owned(),
        unit: "times native".to_owned(),
        decimals: 2,
        scale: Scale::Linear,
        stacked: false,
        axis: "scheme".to_owned(),
        categories: names.map(str::to_owned).collect(),
        series: vec![Series::exact("twin, rewritten", values)],
        notes,
    }
}

pub(super) fn fig10(runs: &Runs) -> Chart {
    let points = || {
        runs.upcalls.iter().filter_map(|results| {
            Some((
                results,
                results.paths.twin.as_ref()?.way(PacketDirection::Send)?,
            ))
        })
    };
    let name = |results: &Results| match results.upcalls.len() {
        0 => "0".to_owned(),
        count => count.to_string(),
    };
    let mut notes = String::from("Each point adds one: ");
    let mut before: Vec<String> = Vec::new();
    for results in &runs.upcalls {
        let new = results.upcalls.iter().find(|name| !before.contains(name));
        if let Some(new) = new {
            let _ = write!(notes, "{} {new}; ", results.upcalls.len());
        }
        before.clone_from(&results.upcalls);
    }
    let per_packet: Vec<String> = points()
        .map(|(_, (flow, detail))| {
            format!("{:.2}", detail.upcalls as f64 / flow.packets.max(1) as f64)
        })
        .collect();
    let _ = write!(
        notes,
        "upcalls a packet: {}. An upcall is answered by a thread of dom0's process, and the wait for it is counted.",
        per_packet.join(", ")
    );
    Chart {
        title: "Figure 10: what one core could send, by routines that are upcalls".to_owned(),
        unit: "Gb/s that one core's cycles allow, logarithmic".to_owned(),
        decimals: 2,
        scale: Scale::Logarithmic,
        stacked: false,
        axis: "hot routines that are upcalls".to_owned(),
        categories: points().map(|(results, _)| name(results)).collect(),
        series: vec![Series {
            name: "twin, frames of 1514 bytes".to_owned(),
            values: points()
                .map(|(results, (flow, _))| results.gigabits(flow))
                .collect(),
            spread: points()
                .map(|(results, way)| results.gigabits_spread(way))
                .collect(),
        }],
        notes,
    }
}

pub(super) fn table1(runs: &Runs) -> String {
    let mut out = String::from("Table 1: hot routines that the driver calls, a packet\n");
    let none = Vec::new();
    let twin = runs.twin();
    let calls = |direction| {
        twin.and_then(|twin| twin.way(direction))
            .map_or(&none, |w| &w.1.calls)
    };
    let (tx, rx) = (
        calls(PacketDirection::Send),
        calls(PacketDirection::Receive),
    );
    let mut names: Vec<&str> = tx.iter().chain(rx).map(|calls| &*calls.routine).collect();
    names.sort_unstable();
    names.dedup();
    let _ = writeln!(out, "  {:<28}{:>9}{:>9}", "routine", "send", "receive");
    for name in &names {
        let of = |list: &[Calls]| {
            let found = list.iter().find(|calls| calls.routine == *name);
            found.map_or(0.0, |calls| calls.per_packet)
        };
        let _ = writeln!(out, "  {name:<28}{:>9.3}{:>9.3}", of(tx), of(rx));
    }
    let _ = writeln!(
        out,
        "  {} routines, counted by single-stepping the driver.\n",
        names.len()
    );
    out
}
