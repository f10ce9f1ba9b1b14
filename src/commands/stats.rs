//! `twin stats`: counts of what drivers' code consists of.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::Failure;
use command_line::input::Input;
use command_line::options::{Format, accesses};
use command_line::output;
use command_line::text::{count, number, percent};
use serde::Serialize;
use svm_rewrite::{Accesses, LivenessCounts, Stats};

use crate::{inputs, parallel};

const EXAMPLES: &str = "\
Examples:
  twin stats e1000.ko
  twin stats --accesses stores e1000.ko
  twin stats --format json drivers/net/ethernet/*/*.ko | jq 'map(.sites.heap) | add'

Counts are of instructions; shares are of all instructions, and of heap
accesses in the last line. `sensitive` counts what cannot be rewritten.

Exit status:
  0  done
  1  an input was refused
  2  wrong usage, or a file that cannot be read";

/// Options of `twin stats`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Objects, plain or compressed, or directories; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "files_from")]
    files: Vec<PathBuf>,
    /// Count also what this file lists; `-` is standard input.
    #[arg(long, value_name = "LIST")]
    files_from: Option<PathBuf>,
    /// Which accesses to memory to count.
    #[arg(long, value_name = "ACCESSES", default_value = Accesses::All.as_str(),
          value_parser = accesses())]
    accesses: Accesses,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The counts of one file, as JSON has them.
#[derive(Serialize)]
struct FileStats {
    file: String,
    arch: &'static str,
    #[serde(flatten)]
    stats: Stats,
}

impl Opts {
    /// Counts all files.
    pub fn run(self) -> Result<(), Failure> {
        let files = inputs::expand(&self.files, self.files_from.as_deref(), None)?;
        let mut all = Vec::new();
        let result = parallel::each(
            &files,
            parallel::cores(),
            |path| stats(path, self.accesses),
            |_, result| {
                for stats in result.into_iter().flatten() {
                    if self.format == Format::Text {
                        output::text(table(&stats).as_bytes())?;
                    }
                    all.push(stats);
                }
                Ok(())
            },
        );
        if self.format == Format::Json {
            output::json(&all)?;
        }
        result
    }
}

/// Those of an object, or of each member of an archive.
fn stats(path: &Path, accesses: Accesses) -> Result<Vec<FileStats>, Failure> {
    let input = Input::read(path)?;
    match input.members() {
        None => Ok(vec![stats_of(&input, accesses)?]),
        Some(members) => {
            let members = members?;
            members.iter().map(|m| stats_of(m, accesses)).collect()
        }
    }
}

fn stats_of(input: &Input, accesses: Accesses) -> Result<FileStats, Failure> {
    let object = input.object()?;
    // The reader takes no other.
    let arch = "x86-64";
    let file = input.name.clone();
    match svm_rewrite::statistics(&object, accesses) {
        Ok(stats) => Ok(FileStats { file, arch, stats }),
        Err(refusals) => Err(Failure::Refused { file, refusals }),
    }
}

fn table(file: &FileStats) -> String {
    let stats = &file.stats;
    let mut out = format!(
        "{}: {}, {}, {}, {} of code\n",
        file.file,
        file.arch,
        count(stats.instructions, "instruction"),
        count(stats.functions, "function"),
        count(stats.text_bytes, "byte"),
    );
    for (name, n) in stats.sites.rows() {
        let share = percent(n, stats.instructions);
        let _ = writeln!(out, "  {name:<14}{:>9}{share:>8}", number(n));
    }
    out + &liveness(&stats.liveness)
}

fn liveness(counts: &LivenessCounts) -> String {
    let all = counts.total();
    let dead = &counts.dead_registers;
    let [flags, none, one, two, more] = [
        counts.flags_live, dead.none, dead.one, dead.two, dead.three_or_more,
    ]
    .map(|n| percent(n, all));
    format!(
        "  before heap accesses: flags live {flags}; dead registers: 0 {none}, 1 {one}, 2 {two}, 3+ {more}\n"
    )
}
