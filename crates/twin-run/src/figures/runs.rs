//! The runs that figures are drawn from: here, and of `twin run` as processes.

use std::path::Path;
use std::process::{Command, Stdio};

use command_line::failure::Failure;
use command_line::run::Figure;
use e1000_sim::experiment::{Load, cumulative};
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::paths::PacketPath;
use e1000_sim::traffic::source::Shape;
use process_lab::program::Scheme;
use serde::Serialize;

use crate::progress::Progress;
use crate::results::{Calls, OnPath, Results};
use crate::run::{Job, measure};

/// Packets of a point of figure 10, at most: upcalls are slow.
const POINT_PACKETS: u64 = 1000;

/// Factor by which more packets are counted with two paths than with four: a round of
/// few packets is too short to average the machine's noise for both.
const LONGER: u64 = 4;
/// Runs of each scheme from which the slow-down is computed: one alone is not enough.
const RUNS: usize = 2;

/// How to run `twin run` again.
pub struct Again<'a> {
    /// The driver's file.
    pub module: &'a Path,
    /// Directory of the support objects.
    pub support: &'a Path,
    /// Packets each way on each path.
    pub packets: u64,
    /// Turns of each driver alone.
    pub turns: u64,
    /// Packets that are single-stepped.
    pub stepped: u64,
    pub guests: u32,
}

/// All runs, as results.json has them.
#[derive(Default, Serialize)]
pub struct Runs {
    /// Frames on all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frames: Option<Results>,
    /// Segments on all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) segments: Option<Results>,
    /// Frames, rewritten by all schemes by turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) schemes: Vec<Results>,
    /// With no upcall, one, two, and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) upcalls: Vec<Results>,
}

impl Runs {
    /// All, in no order that matters.
    pub fn runs(&self) -> Vec<Results> {
        let single = [&self.frames, &self.segments].into_iter().flatten();
        let all = single.chain(&self.schemes).chain(&self.upcalls);
        all.cloned().collect()
    }

    /// The schemes that were run by turns.
    pub(super) fn scheme_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for run in &self.schemes {
            if !names.contains(&run.scheme.as_str()) {
                names.push(&run.scheme);
            }
        }
        names
    }

    /// Those of a scheme.
    pub(super) fn of_scheme<'r>(&'r self, scheme: &'r str) -> impl Iterator<Item = &'r Results> {
        self.schemes.iter().filter(move |run| run.scheme == scheme)
    }

    /// The rewritten driver, with frames.
    pub(super) fn twin(&self) -> Option<&OnPath> {
        self.frames.as_ref()?.paths.twin.as_ref()
    }
}

pub(super) fn run_all(
    wanted: &dyn Fn(Figure) -> bool,
    mut job: Job<'_>,
    again: &Again<'_>,
) -> Result<Runs, Failure> {
    let any = |figures: &[Figure]| figures.iter().any(|figure| wanted(*figure));
    let all_paths = any(&[Figure::Fig5, Figure::Fig6, Figure::Fig7, Figure::Fig8]);
    if !all_paths {
        job.setup.paths = vec![PacketPath::Twin];
    }
    if wanted(Figure::Fig5) {
        job.setup.loads.push(Load {
            shape: Shape::Segments(crate::run::SEGMENT),
            directions: vec![PacketDirection::Send],
        });
    }
    let (mut measured, _) = measure(&job)?;
    let mut runs = Runs {
        segments: (measured.len() > 1).then(|| measured.remove(1)),
        frames: measured.pop(),
        ..Runs::default()
    };
    if wanted(Figure::Slowdown) {
        runs.schemes = by_turns(&Scheme::ALL.map(Scheme::as_str), RUNS, again)?;
    } else if any(&[Figure::Fig7, Figure::Fig8]) {
        runs.schemes = by_turns(&["paper"], 1, again)?;
    }
    if wanted(Figure::Fig10) {
        runs.upcalls = points(&runs, again)?;
    }
    Ok(runs)
}

/// Runs each scheme this many times, each in its own process: the placement of pages
/// is random in each.
fn by_turns(schemes: &[&str], turns: usize, again: &Again<'_>) -> Result<Vec<Results>, Failure> {
    let progress = Progress::new("schemes");
    let all = turns * schemes.len();
    let mut runs = Vec::new();
    for scheme in (0..turns).flat_map(|_| schemes) {
        progress.set(runs.len() as u64, all as u64);
        let options = ["--path", "native,twin", "--scheme", scheme];
        let packets = again.packets * LONGER;
        runs.push(again.run(&options, packets, again.stepped, again.turns)?);
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
        // Instructions and components of cycles are not used here, and an upcall takes
        // long to step through.
        points.push(again.run(&options, again.packets.min(POINT_PACKETS), 0, 0)?);
    }
    Ok(points)
}

fn sent_calls(runs: &Runs) -> Vec<Calls> {
    let twin = runs.twin().and_then(|twin| twin.detail.tx.as_ref());
    twin.map_or_else(Vec::new, |detail| detail.calls.clone())
}

impl Again<'_> {
    /// The results of `twin run` with these options.
    fn run(
        &self,
        options: &[&str],
        packets: u64,
        stepped: u64,
        turns: u64,
    ) -> Result<Results, Failure> {
        // This very program, also if its file has been replaced meanwhile.
        let output = Command::new("/proc/self/exe")
            .arg(self.module)
            .args(["--format", "json", "--packets", &packets.to_string()])
            .args(["--stepped", &stepped.to_string()])
            .args(["--turns", &turns.to_string()])
            .args(["--guests", &self.guests.to_string(), "--support"])
            .arg(self.support)
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| Failure::access("twin-run", error))?;
        // With lost packets there is a result too; the caller judges it.
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = format!("twin run {}: {}", options.join(" "), said.trim_end());
            Failure::input(self.module.display(), why)
        })
    }
}
