//! The paper's figures 5 to 8 and 10 and table 1, each from measurements of this
//! machine: as text, as SVG, and all together as JSON.
//!
//! ```text
//! this process   native, dom0, guest, twin    1514 bytes; 64 KiB segments (5)
//! `twin run`     native, twin                 both schemes by turns (slow-down; 7, 8)
//! `twin run`     twin, once a point           so many routines upcalls (10)
//! ```
//!
//! A process has one hypervisor instance, so other instances are other processes.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde::Serialize;
use testbed::live::endpoint::Shape;
use testbed::live::experiment::{Load, Spread, cumulative};
use testbed::live::paths::Path as Lane;
use testbed::live::round::Direction;

use super::plot::{Chart, Scale, Series};
use super::progress::Progress;
use super::results::{Calls, OnPath, Ratio, Results};
use super::table::{self, PAPER_SLOWDOWN};
use crate::commands::run::{Job, measure};
use crate::failure::Failure;
use crate::output::{self, Destination, Pending};
use crate::text::number;

/// Packets of a point of figure 10, at most: upcalls are slow.
const POINT_PACKETS: u64 = 1000;

/// How many times as many packets of two paths are counted as of four: a round of
/// few is over before the machine is the same for both.
const LONGER: u64 = 4;
/// Runs of each scheme that the slow-down comes from.
const TURNS: usize = 3;

/// A figure or table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// What a core sends, at 1514 bytes and in 64 KiB segments
    Fig5,
    /// What a core receives
    Fig6,
    /// Cycles of a sent packet by component
    Fig7,
    /// Cycles of a received packet by component
    Fig8,
    /// What a core sends, by the number of routines that are upcalls
    Fig10,
    /// How often the driver calls each hot routine
    Table1,
    /// Driver cycles a packet, rewritten by either scheme, to native
    Slowdown,
    /// All of them
    All,
}

/// How to run `twin run` again.
pub struct Again<'a> {
    /// The driver's file.
    pub module: &'a Path,
    /// Directory of the support objects.
    pub support: &'a Path,
    /// Packets each way on each path.
    pub packets: u64,
    /// Samples that parts of cycles come from.
    pub samples: u64,
    /// Packets that are single-stepped.
    pub stepped: u64,
    /// Guests.
    pub guests: u32,
}

/// All runs, as results.json has them.
#[derive(Default, Serialize)]
pub struct Runs {
    /// Frames on all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Results>,
    /// Segments on all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Results>,
    /// Frames, rewritten by both schemes by turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schemes: Vec<Results>,
    /// With no upcall, one, two, and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    upcalls: Vec<Results>,
}

impl Runs {
    /// All, in no order that matters.
    pub fn runs(&self) -> Vec<Results> {
        let single = [&self.frames, &self.segments].into_iter().flatten();
        let all = single.chain(&self.schemes).chain(&self.upcalls);
        all.cloned().collect()
    }

    /// Those of a scheme.
    fn of_scheme<'r>(&'r self, scheme: &'r str) -> impl Iterator<Item = &'r Results> {
        self.schemes.iter().filter(move |run| run.scheme == scheme)
    }
}

/// Makes figures: files into `directory`; gives the text and the results.
pub fn make(
    figures: &[Figure],
    job: Job<'_>,
    again: &Again<'_>,
    directory: &Path,
) -> Result<(String, Runs), Failure> {
    output::create_dir(directory)?;
    let wanted = |figure| figures.contains(&figure) || figures.contains(&Figure::All);
    let runs = run_all(&wanted, job, again)?;
    let mut text = String::new();
    for (figure, name, draw) in PLOTS {
        if !wanted(figure) {
            continue;
        }
        let chart = draw(&runs);
        text += &chart.text();
        text.push('\n');
        write(directory, &format!("{name}.svg"), chart.svg()?.as_bytes())?;
    }
    if wanted(Figure::Table1) {
        text += &table1(&runs);
    }
    let single = [&runs.frames, &runs.segments].into_iter().flatten();
    for results in single.chain(runs.of_scheme("paper").take(1)) {
        let _ = writeln!(text, "{}", table::of(results));
    }
    let json = serde_json::to_vec_pretty(&runs)
        .map_err(|error| Failure::access(directory.display(), error))?;
    write(directory, "results.json", &json)?;
    write(directory, "results.txt", text.as_bytes())?;
    Ok((text, runs))
}

type Draw = fn(&Runs) -> Chart;

const PLOTS: [(Figure, &str, Draw); 6] = [
    (Figure::Fig5, "fig5", fig5),
    (Figure::Fig6, "fig6", fig6),
    (Figure::Fig7, "fig7", fig7),
    (Figure::Fig8, "fig8", fig8),
    (Figure::Fig10, "fig10", fig10),
    (Figure::Slowdown, "slowdown", slowdown),
];

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    Pending::create(&Destination::File(directory.join(name)))?.finish_with(bytes)
}

// ---- Runs ------------------------------------------------------------------------

fn run_all(
    wanted: &dyn Fn(Figure) -> bool,
    mut job: Job<'_>,
    again: &Again<'_>,
) -> Result<Runs, Failure> {
    let any = |figures: &[Figure]| figures.iter().any(|figure| wanted(*figure));
    let all_paths = any(&[Figure::Fig5, Figure::Fig6, Figure::Fig7, Figure::Fig8]);
    if !all_paths {
        job.setup.paths = vec![Lane::Twin];
    }
    if wanted(Figure::Fig5) {
        job.setup.loads.push(Load {
            shape: Shape::Segments(crate::commands::run::SEGMENT),
            directions: vec![Direction::Send],
        });
    }
    let (mut measured, _) = measure(&job)?;
    let mut runs = Runs {
        segments: (measured.len() > 1).then(|| measured.remove(1)),
        frames: measured.pop(),
        ..Runs::default()
    };
    if wanted(Figure::Slowdown) {
        runs.schemes = by_turns(&["stlb", "paper"], TURNS, again)?;
    } else if any(&[Figure::Fig7, Figure::Fig8]) {
        runs.schemes = by_turns(&["paper"], 1, again)?;
    }
    if wanted(Figure::Fig10) {
        runs.upcalls = points(&runs, again)?;
    }
    Ok(runs)
}

/// Both schemes, each in processes of its own, so often: how pages happen to lie is
/// another chance each time.
fn by_turns(schemes: &[&str], turns: usize, again: &Again<'_>) -> Result<Vec<Results>, Failure> {
    let progress = Progress::new("schemes");
    let all = turns * schemes.len();
    let mut runs = Vec::new();
    for scheme in (0..turns).flat_map(|_| schemes) {
        progress.set(runs.len() as u64, all as u64);
        let options = ["--path", "native,twin", "--scheme", scheme];
        let packets = again.packets * LONGER;
        runs.push(again.run(&options, packets, again.stepped, again.samples)?);
    }
    Ok(runs)
}

fn points(runs: &Runs, again: &Again<'_>) -> Result<Vec<Results>, Failure> {
    let called = sent_calls(runs);
    let sets = cumulative(&|name| called.iter().any(|calls| calls.routine == name));
    let progress = Progress::new("upcalls");
    let mut points = Vec::new();
    for (number, set) in sets.iter().enumerate() {
        progress.set(number as u64, sets.len() as u64);
        let names = set.join(",");
        let mut options = vec!["--path", "twin"];
        if !set.is_empty() {
            options.extend(["--upcalls", &names]);
        }
        // Nobody asks for instructions or parts of cycles here, and an upcall takes
        // long to step through.
        points.push(again.run(&options, again.packets.min(POINT_PACKETS), 0, 0)?);
    }
    Ok(points)
}

fn sent_calls(runs: &Runs) -> Vec<Calls> {
    let twin = twin_of(runs).and_then(|twin| twin.detail.tx.as_ref());
    twin.map_or_else(Vec::new, |detail| detail.calls.clone())
}

fn twin_of(runs: &Runs) -> Option<&OnPath> {
    runs.frames.as_ref()?.paths.twin.as_ref()
}

impl Again<'_> {
    /// What `twin run` with these options gives.
    fn run(
        &self,
        options: &[&str],
        packets: u64,
        stepped: u64,
        samples: u64,
    ) -> Result<Results, Failure> {
        // This very program, also if its file has been replaced meanwhile.
        let output = Command::new("/proc/self/exe")
            .arg("run")
            .arg(self.module)
            .args(["--format", "json", "--packets", &packets.to_string()])
            .args(["--stepped", &stepped.to_string()])
            .args(["--samples", &samples.to_string()])
            .args(["--guests", &self.guests.to_string(), "--support"])
            .arg(self.support)
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| Failure::access("twin", error))?;
        // With lost packets there is a result too; the verdict on it is the caller's.
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = format!("twin run {}: {}", options.join(" "), said.trim_end());
            Failure::input(self.module.display(), why)
        })
    }
}

// ---- Figures ---------------------------------------------------------------------

const NAMES: [&str; 4] = ["native", "dom0", "guest", "twin"];

fn fig5(runs: &Runs) -> Chart {
    let mut chart = throughput(runs, Direction::Send);
    chart.title = "Figure 5: what one core could send".to_owned();
    if let Some(segments) = &runs.segments {
        chart.series.push(Series {
            name: "64 KiB segments, cut by the card".to_owned(),
            values: rates(segments, Direction::Send),
            spread: rate_spreads(segments, Direction::Send),
        });
    }
    chart
}

fn fig6(runs: &Runs) -> Chart {
    let mut chart = throughput(runs, Direction::Receive);
    chart.title = "Figure 6: what one core could receive".to_owned();
    chart
}

fn throughput(runs: &Runs, direction: Direction) -> Chart {
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
                the 10th to the 90th percentile of batches. Grant operations and bridge are not \
                modelled."
            .to_owned(),
    }
}

fn rates(results: &Results, direction: Direction) -> Vec<f64> {
    let paths = results.paths.list();
    let ways = paths.iter().filter_map(|(_, path)| path.way(direction));
    ways.map(|(flow, _)| results.gigabits(flow)).collect()
}

fn rate_spreads(results: &Results, direction: Direction) -> Vec<(f64, f64)> {
    let paths = results.paths.list();
    let ways = paths.iter().filter_map(|(_, path)| path.way(direction));
    ways.map(|way| results.gigabits_spread(way)).collect()
}

fn fig7(runs: &Runs) -> Chart {
    let mut chart = breakdown(runs, Direction::Send);
    chart.title = "Figure 7: cycles of a sent packet of 1514 bytes".to_owned();
    chart
}

fn fig8(runs: &Runs) -> Chart {
    let mut chart = breakdown(runs, Direction::Receive);
    chart.title = "Figure 8: cycles of a received packet of 1514 bytes".to_owned();
    chart
}

fn breakdown(runs: &Runs, direction: Direction) -> Chart {
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
    let series = (0..5).map(|part| Series {
        name: ["driver", "support", "hypervisor", "dom0", "guest"][part].to_owned(),
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
            "Medians of batches; the host's turns shared out by a sampling profiler; the card's \
             time is left out. Grant operations and bridge are not modelled. Instructions a \
             packet, the driver's / all, counted one by one: {}. The paper's scheme is of a run of its own, in which \
             native took {} cycles.",
            instructions.join(", "),
            native.map_or_else(String::new, |(flow, _)| number(
                flow.cycles_per_packet as u64
            )),
        ),
    }
}

/// The driver's cycles, rewritten to native, beside the paper's.
fn slowdown(runs: &Runs) -> Chart {
    let of = |scheme| {
        [Direction::Send, Direction::Receive].map(|direction| {
            let ratios = runs.of_scheme(scheme).filter_map(|run| run.ratios.as_ref());
            let ways = ratios.filter_map(|ratios| match direction {
                Direction::Send => ratios.tx,
                Direction::Receive => ratios.rx,
            });
            let ways: Vec<Ratio> = ways.collect();
            let rounds: Vec<Spread> = ways.iter().map(Ratio::driver_spread).collect();
            let instructions = ways.iter().map(|ratio| ratio.driver_instructions);
            (Spread::of(&rounds), Spread::of_values(instructions).median)
        })
    };
    let schemes = [("stlb", of("stlb")), ("the paper's scheme", of("paper"))];
    let mut series: Vec<Series> = schemes
        .iter()
        .map(|(name, ways)| Series {
            name: (*name).to_owned(),
            values: ways.iter().map(|(cycles, _)| cycles.median).collect(),
            spread: ways
                .iter()
                .map(|(cycles, _)| (cycles.low, cycles.high))
                .collect(),
        })
        .collect();
    series.push(Series::exact("in the paper, 2009", PAPER_SLOWDOWN.to_vec()));
    let instructions = schemes
        .iter()
        .map(|(name, [(_, tx), (_, rx)])| format!("{name} {tx:.2} sent, {rx:.2} received"));
    let instructions: Vec<String> = instructions.collect();
    let samples = runs.schemes.iter().map(table::fewest_samples).min();
    Chart {
        title: "Slow-down of the driver: its cycles a packet, rewritten / native".to_owned(),
        unit: "times native".to_owned(),
        decimals: 2,
        scale: Scale::Linear,
        stacked: false,
        axis: "direction".to_owned(),
        categories: vec!["send".to_owned(), "receive".to_owned()],
        series,
        notes: format!(
            "{} runs, schemes by turns, in each of which native and twin take turns; medians, \
             lines from the 10th to the 90th percentile of rounds, {} samples a path and run at \
             least. In instructions, counted one by one: {}.",
            runs.schemes.len(),
            number(samples.unwrap_or(0)),
            instructions.join("; "),
        ),
    }
}

fn fig10(runs: &Runs) -> Chart {
    let points = || {
        runs.upcalls.iter().filter_map(|results| {
            Some((results, results.paths.twin.as_ref()?.way(Direction::Send)?))
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
    let _ = write!(notes, "upcalls a packet: {}.", per_packet.join(", "));
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

fn table1(runs: &Runs) -> String {
    let mut out = String::from("Table 1: hot routines that the driver calls, a packet\n");
    let none = Vec::new();
    let twin = twin_of(runs);
    let calls = |direction| {
        twin.and_then(|twin| twin.way(direction))
            .map_or(&none, |w| &w.1.calls)
    };
    let (tx, rx) = (calls(Direction::Send), calls(Direction::Receive));
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
