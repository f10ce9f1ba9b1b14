//! The paper's figures 5 to 8 and 10 and table 1, each from measurements of this
//! machine: as text, as SVG, and all together as JSON.
//!
//! ```text
//! this process   native, dom0, guest, twin    1514 bytes; 64 KiB segments (5)
//! `twin run`     native, twin                 all schemes by turns  (slow-down; 7, 8)
//! `twin run`     twin, once for each point    some routines are upcalls (10)
//! ```
//!
//! A process has one hypervisor instance, so other instances are other processes.

mod charts;
mod runs;

use std::fmt::Write;
use std::path::Path;

use command_line::failure::Failure;
use command_line::output::{self, Destination, Pending};
use command_line::run::Figure;

use super::plot::Chart;
use super::table;
use crate::run::Job;
use charts::{code_size, fig5, fig6, fig7, fig8, fig10, slowdown, table1};
use runs::run_all;

pub use runs::{Again, Runs};

/// Makes figures: files into `directory`; gives the text and the results.
pub fn make(
    figures: &[Figure],
    job: Job<'_>,
    again: &Again<'_>,
    directory: &Path,
) -> Result<(String, Runs), Failure> {
    output::prepare_dir(directory)?;
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

const PLOTS: [(Figure, &str, Draw); 7] = [
    (Figure::Fig5, "fig5", fig5),
    (Figure::Fig6, "fig6", fig6),
    (Figure::Fig7, "fig7", fig7),
    (Figure::Fig8, "fig8", fig8),
    (Figure::Fig10, "fig10", fig10),
    (Figure::Slowdown, "slowdown", slowdown),
    (Figure::Slowdown, "codesize", code_size),
];

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    Pending::create(&Destination::File(directory.join(name)))?.finish_with(bytes)
}
