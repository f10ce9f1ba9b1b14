//! The differential run: functions of the stock e1000.ko, native against
//! rewritten, on random images of dom0's memory.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Parser, ValueEnum};

use conformance::differential::campaign::{self, DifferentialReport, Extent, Row};
use conformance::differential::features::Instructions;
use conformance::differential::functions::{SUBJECTS, Subject, subject};
use conformance::differential::native;
use conformance::differential::session::Session;
use process_lab::program::{LinkedCode, Variant};
use process_lab::stock::{self, Stock};
use process_lab::{Error, verdict};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    Stlb,
    Paper,
    /// Default scheme, dead registers destroyed on purpose.
    Poisoned,
    /// The scheme with a window of 4 GiB.
    Window32,
    /// The scheme with a window of 4 TiB.
    Window,
    /// Both with comparisons of pointers.
    Strict,
    /// Both schemes with a table.
    Both,
    /// All of these.
    All,
}

impl Choice {
    fn variants(self) -> &'static [Variant] {
        match self {
            Choice::Stlb => &Variant::ALL[..1],
            Choice::Paper => &Variant::ALL[1..2],
            Choice::Poisoned => &Variant::ALL[2..3],
            Choice::Window32 => &Variant::ALL[3..4],
            Choice::Window => &Variant::ALL[4..6],
            Choice::Strict => &Variant::STRICT,
            Choice::Both => &Variant::PLAIN,
            Choice::All => &Variant::ALL,
        }
    }
}

/// Run functions of the stock e1000.ko natively and rewritten on the same
/// random memory, and compare results, memory, calls and aborts.
#[derive(Parser)]
#[command(after_help = "Examples:
  differential --images 1000
  differential e1000_clean e1000_xmit_frame --images 10000
  differential e1000_clean --image 17 --scheme stlb

Exit status: 0 no difference, 1 differences, 2 the run could not be made.")]
struct Options {
    /// Functions to run; all if none is named.
    functions: Vec<String>,
    /// Images for each function.
    #[arg(long, default_value_t = 100)]
    images: u64,
    /// Of these, how many are single-stepped to see what is executed.
    #[arg(long, default_value_t = 10)]
    stepped: u64,
    /// Run this image alone and say how it ends.
    #[arg(long)]
    image: Option<u64>,
    /// The first image's number.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Which rewriting.
    #[arg(long, value_enum, default_value_t = Choice::All)]
    scheme: Choice,
    /// Print which instructions of the named functions no stepped run executed.
    #[arg(long)]
    missed: bool,
    /// Threads; as many as processors if 0.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

fn main() -> ExitCode {
    verdict::exit("differential", run(&Options::parse()))
}

fn run(options: &Options) -> Result<bool, Error> {
    let file = stock::find()?;
    let stock = Stock::new(&file, native::import_entry())?;
    let variants = options.scheme.variants();
    let programs = variants
        .iter()
        .map(|s| LinkedCode::new(&stock, *s))
        .collect::<Result<Vec<_>, _>>()?;
    let subjects = chosen(&options.functions)?;
    if let Some(image) = options.image {
        return single(&stock, &programs, &subjects, image);
    }
    let jobs = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let plan = Extent {
        images: options.images,
        stepped: options.stepped,
        first: options.first,
        jobs,
    };
    let done = AtomicUsize::new(0);
    let report = campaign::run(&stock, &programs, &subjects, plan, &|row| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(done, subjects.len(), row);
    })?;
    for (feature, count) in Instructions::of(&stock).features(&stock, &report.coverage) {
        println!("{feature:?}: {count} instructions executed");
    }
    if options.missed {
        print_missed(&stock, &report, &subjects);
    }
    for difference in report.rows.iter().flat_map(|row| &row.differences) {
        println!("{difference}");
    }
    print!("{}", report.table(programs.len()));
    Ok(report.differing() == 0)
}

/// Shows progress: on a terminal a line that changes, since the rows come again in the
/// table at the end; elsewhere the rows, for readers of a log.
fn progress(done: usize, all: usize, row: &Row) {
    if !std::io::stderr().is_terminal() {
        return eprintln!("{row}");
    }
    let end = if done == all { "\n" } else { "" };
    eprint!("\r\x1b[K  {done} of {all} functions{end}");
}

/// Runs of unexecuted instructions, as offsets in the function.
fn print_missed(stock: &Stock<'_>, report: &DifferentialReport, subjects: &[&'static Subject]) {
    let instructions = Instructions::of(stock);
    for function in subjects
        .iter()
        .filter_map(|subject| stock.function(subject.name))
    {
        for (first, last) in instructions.missed(function, stock, &report.coverage) {
            let (first, last) = (first - function.address, last - function.address);
            println!("{}+{first:#x} to +{last:#x} not executed", function.name);
        }
    }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Subject>, Error> {
    if names.is_empty() {
        return Ok(SUBJECTS.iter().collect());
    }
    names
        .iter()
        .map(|name| subject(name).ok_or_else(|| Error::NoFunction(name.clone())))
        .collect()
}

fn single(
    stock: &Stock<'_>,
    programs: &[LinkedCode],
    subjects: &[&'static Subject],
    image: u64,
) -> Result<bool, Error> {
    let mut session = Session::new(stock, programs)?;
    let mut same = true;
    for subject in subjects {
        let verdict = session.run(subject, image, false)?;
        println!("{}: native {}", subject.name, session.native_end(&verdict));
        for (i, program) in programs.iter().enumerate().take(verdict.twins.len()) {
            println!(
                "{}: {} {}",
                subject.name,
                program.variant.name(),
                session.twin_end(&verdict, i)
            );
        }
        for (i, difference) in &verdict.differences {
            println!(
                "{}: {}: {difference}",
                subject.name,
                programs[*i].variant.name()
            );
            same = false;
        }
    }
    Ok(same)
}
