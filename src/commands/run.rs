//! `twin run`: the testbed moves packets through a driver, and says what they cost.
//!
//! ```text
//! module, support objects ─> experiment::run ─> Results ─> table or JSON
//!                               └─ for other schemes and upcalls: `twin run` again
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use e1000_sim::experiment::{self, Load, Setup};
use e1000_sim::image::files::Files;
use e1000_sim::measure::profile::cycles;
use e1000_sim::packets::round::Direction;
use e1000_sim::paths::Path as Lane;
use e1000_sim::system::{self, SystemError};
use e1000_sim::traffic::source::Shape;
use elf_loader::modinfo;
use process_lab::program::Variant;

use super::{Format, Scheme};
use crate::experiments::figures::{self, Figure};
use crate::experiments::progress::Progress;
use crate::experiments::results::Results;
use crate::experiments::table;
use crate::failure::{Failure, Status};
use crate::input::Input;
use crate::{output, support};

const EXAMPLES: &str = "\
Examples:
  twin run e1000.ko
  twin run e1000.ko --path twin --packets 1000000 --size 60
  twin run e1000.ko --path native,twin --scheme paper --tso
  twin run e1000.ko --path twin --upcalls dma_map_page_attrs,dma_unmap_page_attrs
  twin run e1000.ko --format json | jq '.ratios.tx.driver_cycles'
  twin run e1000.ko --experiment all --output target/bench

The driver, the hot routines and dom0's kernel are really run, unprivileged, in
processes of this program; the card is a model of the 82540EM. Cycles are those
of the processor, the card's excepted; instructions are counted one by one.

Exit status:
  0  done: every packet arrived as it was sent
  1  packets were lost or corrupted, or the driver was aborted
  2  wrong usage, or a file that cannot be read or is not what it must be";

/// Most guests: what the card's model has memory for.
const GUESTS: i64 = 8;
/// Payload of a 64 KiB segment: 44 full frames.
pub const SEGMENT: usize = 64_240;
/// Packets that are single-stepped, each way on each path.
const STEPPED: u64 = 32;

/// Options of `twin run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The stock e1000 module, plain or compressed; `-` is standard input.
    #[arg(value_name = "MODULE.ko")]
    module: PathBuf,
    /// Ways of packets to measure, interleaved in one run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all")]
    path: Vec<PathName>,
    /// Packets to count each way on each path.
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Bytes of a packet, without checksum: 60 to 1514.
    #[arg(long, value_name = "BYTES", default_value_t = 1514,
          value_parser = clap::value_parser!(u16).range(60..=1514))]
    size: u16,
    /// Guests that send and receive: 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=GUESTS))]
    guests: u32,
    /// Send 64 KiB segments, which the card cuts; what comes in is cut already.
    #[arg(long, conflicts_with = "size")]
    tso: bool,
    /// Packets to single-step each way on each path: slow.
    #[arg(long, value_name = "N", default_value_t = STEPPED, hide = true)]
    stepped: u64,
    /// Turns that the driver gets alone, natively and rewritten, each way.
    #[arg(long, value_name = "N", default_value_t = experiment::TURNS, hide = true)]
    turns: u64,
    /// The instruction sequence that translates addresses.
    #[arg(long, value_enum, default_value_t = Scheme::Stlb)]
    scheme: Scheme,
    /// Hot routines that the hypervisor instance is to call in dom0.
    #[arg(long, value_name = "ROUTINE,...", value_delimiter = ',')]
    upcalls: Vec<String>,
    /// Also say which functions of the rewritten driver a packet's instructions
    /// and table look-ups are in.
    #[arg(long, conflicts_with = "experiment")]
    by_function: bool,
    /// Figures and tables of the paper to make, as text, JSON and SVG.
    #[arg(long, value_enum, value_delimiter = ',',
          conflicts_with_all = ["path", "size", "tso", "scheme", "upcalls"])]
    experiment: Vec<Figure>,
    /// Directory for what experiments leave; made if missing.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "target/bench",
        requires = "experiment"
    )]
    output: PathBuf,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Directory of kernel.o and hot.o [default: $TWIN_SUPPORT, else `support` or
    /// `lib/twin` beside this program's directory, else target/support].
    #[arg(long, value_name = "DIR")]
    support: Option<PathBuf>,
}

/// A way that packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PathName {
    /// dom0 owns the machine.
    Native,
    /// dom0 on a hypervisor.
    Dom0,
    /// A guest, through dom0.
    Guest,
    /// A guest, through the rewritten driver in the hypervisor.
    Twin,
    /// All four.
    All,
}

/// What one run of the testbed is to do.
pub struct Job<'f> {
    /// dom0's objects.
    pub files: &'f Files,
    /// The module's name in messages.
    pub module: &'f str,
    /// What to measure.
    pub setup: Setup,
}

impl Opts {
    /// Runs the driver, or the experiments.
    pub fn run(self) -> Result<(), Failure> {
        let input = Input::read(&self.module).map_err(unreadable)?;
        let module = input.name.clone();
        refuse_other_modules(&input)?;
        let (files, support) = support::files(input.into_bytes(), self.support.as_deref())?;
        refuse_unknown(&self.upcalls, &files)?;
        let job = Job {
            files: &files,
            module: &module,
            setup: self.setup(),
        };
        if !self.experiment.is_empty() {
            return self.experiments(job, &support);
        }
        let (results, _) = measure(&job)?;
        match self.format {
            Format::Text => {
                output::text(table::of(&results[0]).as_bytes())?;
                if self.by_function {
                    output::text(table::by_function(&results[0]).as_bytes())?;
                }
            }
            Format::Json => output::json(&results[0])?,
        }
        verdict(&results)
    }

    fn experiments(&self, job: Job<'_>, support: &Path) -> Result<(), Failure> {
        if crate::input::is_stdin(&self.module) {
            let why = "experiments read the module several times: give a file, not `-`";
            return Err(Failure::Usage(why.to_owned()));
        }
        let again = figures::Again {
            module: &self.module,
            support,
            packets: self.packets,
            turns: self.turns,
            stepped: self.stepped,
            guests: self.guests,
        };
        let (text, all) = figures::make(&self.experiment, job, &again, &self.output)?;
        match self.format {
            Format::Text => output::text(text.as_bytes())?,
            Format::Json => output::json(&all)?,
        }
        verdict(&all.runs())
    }

    fn setup(&self) -> Setup {
        let shape = match self.tso {
            true => Shape::Segments(SEGMENT),
            false => Shape::Frames(self.size.into()),
        };
        Setup {
            paths: self.paths(),
            loads: vec![Load {
                shape,
                directions: vec![Direction::Send, Direction::Receive],
            }],
            packets: self.packets,
            stepped: self.stepped.min(self.packets),
            turns: self.turns,
            guests: self.guests,
            variant: Variant {
                scheme: self.scheme.into(),
                poison: false,
            },
            upcalls: self.upcalls.iter().cloned().collect(),
        }
    }

    fn paths(&self) -> Vec<Lane> {
        let wanted = |lane: &Lane| {
            let name = match lane {
                Lane::Native => PathName::Native,
                Lane::Dom0 => PathName::Dom0,
                Lane::Domu => PathName::Guest,
                Lane::Twin => PathName::Twin,
            };
            self.path.contains(&name) || self.path.contains(&PathName::All)
        };
        Lane::ALL.into_iter().filter(wanted).collect()
    }
}

/// Runs the testbed: one result for each load. Also gives the time-stamp counter's
/// rate.
pub fn measure(job: &Job<'_>) -> Result<(Vec<Results>, f64), Failure> {
    let progress = Progress::new("measuring");
    let (start, from) = (Instant::now(), cycles());
    let measured = experiment::run(job.files, &job.setup, &mut |done, all| {
        progress.set(done, all);
    });
    let tsc_hz = (cycles() - from) as f64 / start.elapsed().as_secs_f64();
    drop(progress);
    let measured = measured.map_err(|error| failed(job.module, &error))?;
    let loads = job.setup.loads.iter();
    let results = loads.map(|load| Results::new(job, load.shape, &measured, tsc_hz));
    Ok((results.collect(), tsc_hz))
}

fn failed(module: &str, error: &SystemError) -> Failure {
    match error {
        SystemError::Live(_) | SystemError::Lacking(_) => Failure::access(module, error),
        SystemError::Testbed(_) | SystemError::Command(_) | SystemError::Stop(_) => {
            Failure::input(module, error)
        }
    }
}

/// Status 1 if packets did not arrive as they were sent.
fn verdict(results: &[Results]) -> Result<(), Failure> {
    let (lost, corrupted) = results.iter().fold((0, 0), |(lost, corrupted), results| {
        let (l, c) = results.damage();
        (lost + l, corrupted + c)
    });
    if (lost, corrupted) == (0, 0) {
        return Ok(());
    }
    output::say(&format!(
        "twin: {lost} packets lost, {corrupted} corrupted\n"
    ));
    Err(Failure::Reported(Status::Refused))
}

/// What is not a module cannot be run, which is wrong usage here.
fn unreadable(failure: Failure) -> Failure {
    match failure {
        Failure::Input { file, why, .. } => Failure::Access { file, why },
        other => other,
    }
}

/// The card's model is an 82540EM, so the driver must be e1000.
fn refuse_other_modules(input: &Input) -> Result<(), Failure> {
    let object = input.object().map_err(unreadable)?;
    if modinfo::values(&object, "name").contains(&"e1000") {
        return Ok(());
    }
    Err(Failure::access(
        &input.name,
        "this is not the e1000 module: the testbed's card is an 82540EM, whose driver is \
         e1000.ko (`make stock` leaves it in target/stock)",
    ))
}

fn refuse_unknown(upcalls: &[String], files: &Files) -> Result<(), Failure> {
    if upcalls.is_empty() {
        return Ok(());
    }
    let plan = system::plan(files).map_err(|error| Failure::Usage(error.to_string()))?;
    let known = system::upcallable(&plan);
    let names: HashSet<&str> = known.iter().map(String::as_str).collect();
    match upcalls.iter().find(|name| !names.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "--upcalls {name}: no such hot routine; there are: {}",
            known.join(", ")
        ))),
    }
}
