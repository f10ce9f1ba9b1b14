//! `twin run`: the testbed moves packets through a driver, and says what they cost.
//!
//! ```text
//! module, support objects ─> experiment::run ─> Results ─> table or JSON
//!                               └─ for other schemes and upcalls: `twin run` again
//! ```

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use command_line::failure::{Failure, Status};
use command_line::input::Input;
use command_line::options::{Format, may_be_strict};
use command_line::output;
use command_line::run::{FeatureName, Figure, Opts, PathName, StageName};
use e1000_sim::dom0::interface::Feature;
use e1000_sim::experiment::{self, Load, Setup};
use e1000_sim::image::files::Files;
use e1000_sim::live::crossing;
use e1000_sim::measure::profile::cycles;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::paths::PacketPath;
use e1000_sim::stages::{Stage, Stages};
use e1000_sim::system::{self, SystemError};
use e1000_sim::traffic::source::Shape;
use elf_loader::modinfo;
use process_lab::program::{Scheme, Variant};
use serde::Serialize;

use crate::figures;
use crate::parameters;
use crate::progress::Progress;
use crate::results::Results;
use crate::rows;
use crate::rows::crossings::{self, Crossed};
use crate::rows::kicks::KickRow;
use crate::support;
use crate::table;

/// Payload of a 64 KiB segment: 44 full frames.
pub const SEGMENT: usize = 64_240;

/// What one run of the testbed is to do.
pub struct Job<'f> {
    /// dom0's objects.
    pub files: &'f Files,
    /// The module's name in messages.
    pub module: &'f str,
    /// What to measure.
    pub setup: Setup,
}

/// Runs the driver, or the experiments.
pub fn run(opts: &Opts) -> Result<(), Failure> {
    may_be_strict(opts.strict, opts.scheme)?;
    refuse_stages_unconfined(opts)?;
    let input = Input::read_file(&opts.module).map_err(unreadable)?;
    let module = input.name.clone();
    refuse_other_modules(&input)?;
    let driver_args = parameters::checked(&opts.driver_args, &input)?;
    let (files, support) = support::files(input.into_bytes(), opts.support.as_deref())?;
    refuse_unknown(&opts.upcalls, &files)?;
    let job = Job {
        files: &files,
        module: &module,
        setup: setup(opts, driver_args),
    };
    if opts.guests_apart {
        return guests_apart(opts, &job);
    }
    if !opts.experiment.is_empty() {
        return experiments(opts, job, &support);
    }
    let (results, _) = measure(&job)?;
    match opts.format {
        Format::Text => {
            output::text(table::of(&results[0]).as_bytes())?;
            if opts.by_function {
                output::text(table::by_function(&results[0]).as_bytes())?;
            }
        }
        Format::Json => output::json(&results[0])?,
    }
    verdict(&results)
}

fn experiments(opts: &Opts, job: Job<'_>, support: &Path) -> Result<(), Failure> {
    if command_line::input::is_stdin(&opts.module) {
        let why = "experiments read the module several times: give a file, not `-`";
        return Err(Failure::Usage(why.to_owned()));
    }
    if opts.experiment.contains(&Figure::Rows) {
        return all_rows(opts, &job);
    }
    if job.setup.variant != Variant::here(Scheme::Stlb) {
        let why = "--scheme, --processor and --strict are for --experiment rows; the \
                   others have their schemes";
        return Err(Failure::Usage(why.to_owned()));
    }
    let again = figures::Again {
        module: &opts.module,
        support,
        packets: opts.packets,
        turns: opts.turns,
        stepped: opts.stepped,
        guests: opts.guests,
    };
    let (text, all) = figures::make(&opts.experiment, job, &again, &opts.output)?;
    match opts.format {
        Format::Text => output::text(text.as_bytes())?,
        Format::Json => output::json(&all)?,
    }
    verdict(&all.runs())
}

/// The rows of `--guests-apart`.
#[derive(Serialize)]
struct GuestsApart {
    crossings: Vec<Crossed>,
    kicks: KickRow,
}

fn guests_apart(opts: &Opts, job: &Job<'_>) -> Result<(), Failure> {
    let seen = crossing::measure(job.files, job.setup.variant, crossing::ROW);
    let seen = seen.map_err(|error| failed(job.module, &error))?;
    let kicks = KickRow::measure(job.files, job.setup.variant);
    let rows = GuestsApart {
        crossings: seen.into_iter().map(Crossed::new).collect(),
        kicks: kicks.map_err(|error| failed(job.module, &error))?,
    };
    let text = crossings::text(&rows.crossings) + &rows.kicks.text();
    match opts.format {
        Format::Text => output::text(text.trim_start().as_bytes())?,
        Format::Json => output::json(&rows)?,
    }
    let crossings = rows.crossings.iter().map(Crossed::damage).sum::<u64>();
    said((crossings + rows.kicks.damage(), 0))
}

fn all_rows(opts: &Opts, job: &Job<'_>) -> Result<(), Failure> {
    if opts.experiment.iter().any(|figure| *figure != Figure::Rows) {
        let why = "--experiment rows is made by itself: leave the others out";
        return Err(Failure::Usage(why.to_owned()));
    }
    let (text, rows) = rows::make(job, &opts.output)?;
    match opts.format {
        Format::Text => output::text(text.as_bytes())?,
        Format::Json => output::json(&rows)?,
    }
    said(rows.damage())
}

fn setup(opts: &Opts, driver_args: String) -> Setup {
    let shape = match opts.tso {
        true => Shape::Segments(SEGMENT),
        false => Shape::Frames(opts.size.into()),
    };
    Setup {
        paths: paths(opts),
        loads: vec![Load {
            shape,
            directions: vec![PacketDirection::Send, PacketDirection::Receive],
        }],
        packets: opts.packets,
        stepped: opts.stepped.min(opts.packets),
        turns: opts.turns,
        guests: opts.guests,
        variant: variant(opts),
        upcalls: opts.upcalls.iter().cloned().collect(),
        driver_args,
        stages: stages(opts),
        without: without(opts),
    }
}

/// As the options say, or as this processor can run it.
fn variant(opts: &Opts) -> Variant {
    let variant = match opts.processor {
        Some(processor) => Variant {
            processor,
            ..Variant::plain(opts.scheme)
        },
        None => Variant::here(opts.scheme),
    };
    Variant {
        strict: opts.strict,
        ..variant
    }
}

fn stages(opts: &Opts) -> Stages {
    let wanted = |stage: &Stage| {
        let name = match stage {
            Stage::Ack => StageName::Ack,
            Stage::Aggregate => StageName::Aggregate,
            Stage::Bridge => StageName::Bridge,
            Stage::Notify => StageName::Notify,
            Stage::Offload => StageName::Offload,
        };
        opts.stages.contains(&name)
            || opts.stages.contains(&StageName::All)
            || (*stage == Stage::Offload && !opts.without.is_empty())
    };
    Stages::of(Stage::ALL.into_iter().filter(wanted))
}

fn without(opts: &Opts) -> Vec<Feature> {
    let features = opts.without.iter().map(|name| match name {
        FeatureName::Segmentation => Feature::Segmentation,
        FeatureName::ScatterGather => Feature::ScatterGather,
        FeatureName::Checksums => Feature::Checksums,
    });
    features.collect()
}

fn paths(opts: &Opts) -> Vec<PacketPath> {
    let wanted = |path: &PacketPath| {
        let name = match path {
            PacketPath::Native => PathName::Native,
            PacketPath::Dom0 => PathName::Dom0,
            PacketPath::Guest => PathName::Guest,
            PacketPath::Twin => PathName::Twin,
            PacketPath::Unconfined => PathName::Unconfined,
        };
        let of_the_paper = *path != PacketPath::Unconfined;
        opts.path.contains(&name) || opts.path.contains(&PathName::All) && of_the_paper
    };
    PacketPath::ALL.into_iter().filter(wanted).collect()
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

pub(crate) fn failed(module: &str, error: &SystemError) -> Failure {
    match error {
        SystemError::Live(_) | SystemError::Lacking(_) => Failure::access(module, error),
        SystemError::Testbed(_) | SystemError::Command(_) | SystemError::Stop(_) => {
            Failure::input(module, error)
        }
    }
}

/// Status 1 if packets did not arrive as they were sent.
fn verdict(results: &[Results]) -> Result<(), Failure> {
    said(results.iter().fold((0, 0), |(lost, corrupted), results| {
        let (l, c) = results.damage();
        (lost + l, corrupted + c)
    }))
}

fn said((lost, corrupted): (u64, u64)) -> Result<(), Failure> {
    if (lost, corrupted) == (0, 0) {
        return Ok(());
    }
    output::say(&format!(
        "twin: {lost} packets lost, {corrupted} corrupted\n"
    ));
    Err(Failure::Reported(Status::Refused))
}

/// A file that is not a module cannot be run: this is wrong usage.
pub(crate) fn unreadable(failure: Failure) -> Failure {
    match failure {
        Failure::Input { file, why, .. } => Failure::Access { file, why },
        other => other,
    }
}

/// The card's model is an 82540EM, so the driver must be e1000.
fn refuse_other_modules(input: &Input) -> Result<(), Failure> {
    let object = input.object().map_err(unreadable)?;
    if modinfo::values_of_key(&object, "name").contains(&"e1000") {
        return Ok(());
    }
    Err(Failure::access(
        &input.name,
        "this is not the e1000 module: the testbed's card is an 82540EM, whose driver is \
         e1000.ko (`make stock` leaves it in target/stock)",
    ))
}

/// Stages are of the rewritten driver's path alone.
fn refuse_stages_unconfined(opts: &Opts) -> Result<(), Failure> {
    let staged = !opts.stages.is_empty() || !opts.without.is_empty();
    if staged && opts.path.contains(&PathName::Unconfined) {
        let why = "--path unconfined has no --stages, and needs a card that does all: leave one of them out";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(())
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
