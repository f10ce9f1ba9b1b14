//! `twin rewrite`: drivers in, verified objects out.
//!
//! ```text
//! read ──> rewrite ──> mark ──> serialise ──> read again ──> verify ──> sign ──> rename
//! ```
//!
//! The verifier sees every output as it will lie on disk, unless `--no-verify` is
//! given. Assembly text becomes text again ([`crate::source`]) if the output's name
//! says so, else an object.

mod jobs;
mod one;

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::Failure;
use command_line::input;
use command_line::options::{
    LeftOut, accesses, agree, may_be_strict, processor, processor_of, scheme, suit, target_among,
};
use command_line::output::{self, Destination};
use svm_rewrite::{Accesses, Processor, Scheme, Target};
use svm_verify::Contract;

use crate::inputs;
use crate::parallel;
use crate::report::{File, FileOutcome, RewriteReport};
use crate::signing::Signer;
use jobs::{Job, refuse_clashes, refuse_terminal};
use one::{Done, Work};

const EXAMPLES: &str = "\
Examples:
  twin rewrite e1000.ko -o e1000.twin.o
  twin rewrite --target linux e1000.ko -o e1000.twin.ko
  twin rewrite --scheme paper --report sites.json e1000.ko.xz -o e1000.twin.o
  twin rewrite --scheme window --processor any e1000.ko -o e1000.twin.o
  twin rewrite --scheme window --strict e1000.ko -o e1000.twin.o
  twin rewrite --target linux /lib/modules/6.1.0-56-amd64/kernel -d root/
  twin rewrite --target linux --accesses stores e1000.ko -o e1000.twin.ko
  twin rewrite --target linux --sign mok.key mok.der e1000.ko -o e1000.twin.ko
  find . -name '*.o' | twin rewrite --files-from - -d confined/
  twin rewrite --target linux e1000_main.s -o e1000_main.twin.s
  xz -dc e1000.ko.xz | twin rewrite - -o - | twin verify -

Inputs are recognised by content: relocatable objects (.o, .ko), archives of
them (.a), plain or compressed with xz, zstd or gzip, and assembly text. A
directory stands for all files below it that end in .ko, .o, .s or .a, also
compressed; links to directories are not followed. LIST has a name on each
line, or names that each end in a zero.

A result, not a report, is compressed as its name ends: .xz, .zst or .gz. It
appears whole under its name or not at all. In DIR, a result has the path that
its input was given by, without a leading `/` and without all up to the last `..`:
x/y.ko.xz becomes DIR/x/y.ko.xz. Text for `hypervisor` becomes .o.

A module that was signed is signed no more, unless --sign does it: KEY is a
private RSA key and CERT its X.509 certificate, PEM or DER. `modinfo` shows
what made a module and from what (`twin`).

Text is assembled and rewritten as an object if OUT has another ending than
.s. Text that stays text is a program's (`process`), as `twin cc` makes it, or
part of a module for `linux`, and brings the runtime along. Such a part is
verified, programs are not.

With `--accesses stores` loads stay as they are, which costs less. Then a stray
store is stopped and a stray load is not: `twin verify` proves that too, if it is
asked for it. A hypervisor cannot have it: its addresses are dom0's. There is no
option that leaves out a function: it could reach anything.

A window cuts pointers, so a wild one may reach a page of dom0's unnoticed. With
--strict pointers are compared with dom0's first and last address before the first
access through each, and a wild one ends the invocation. What is proved is the
same without it.

Exit status:
  0  done
  1  an input was refused; an existing output is unchanged
  2  wrong usage, or a file that cannot be read or written";

/// Options of `twin rewrite`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("destination").required(true))]
pub struct Opts {
    /// Objects, archives, assembly texts or directories; `-` is standard input.
    #[arg(value_name = "INPUT", required_unless_present = "files_from")]
    inputs: Vec<PathBuf>,
    /// Rewrite also what this file lists; `-` is standard input.
    #[arg(long, value_name = "LIST")]
    files_from: Option<PathBuf>,
    /// Write the result there; `-` is standard output.
    #[arg(short, long, value_name = "OUT", group = "destination")]
    output: Option<PathBuf>,
    /// Write the results below this directory, made if missing, each by its input's path.
    #[arg(short, long, value_name = "DIR", group = "destination")]
    directory: Option<PathBuf>,
    /// What the rewritten code is to run on.
    /// [default: hypervisor, for text `process`]
    #[arg(long, value_name = "TARGET", value_parser = target_among(&Target::ALL))]
    target: Option<Target>,
    /// The instruction sequence that translates addresses.
    #[arg(long, value_name = "SCHEME", default_value = Scheme::Stlb.as_str(),
          value_parser = scheme())]
    scheme: Scheme,
    /// Which accesses to memory are translated, and so confined.
    #[arg(long, value_name = "ACCESSES", default_value = Accesses::All.as_str(),
          value_parser = accesses())]
    accesses: Accesses,
    /// Which processors the result is for [default: bmi2 for scheme window, else any].
    #[arg(long, value_name = "PROCESSOR", value_parser = processor())]
    processor: Option<Processor>,
    /// Compare pointers with dom0's first and last address before they are used; for schemes
    /// with a window.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    _left_out: LeftOut,
    /// Write what was done at each site, and each refusal, as JSON, or as JSON lines
    /// if the name ends in .jsonl.
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Sign the results for the kernel, with a private key and its certificate.
    #[arg(long, num_args = 2, value_names = ["KEY", "CERT"])]
    sign: Option<Vec<PathBuf>>,
    /// Number of threads [default: one for each core]. Each takes an input; where there are
    /// fewer inputs, several take the functions of one.
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZero<usize>>,
    /// Do not verify the result.
    #[arg(long)]
    no_verify: bool,
}

impl Opts {
    /// Rewrites all inputs.
    pub fn run(self) -> Result<(), Failure> {
        let jobs = self.jobs()?;
        let report_to = self.report.clone().map(Destination::new);
        let read = self.sign.iter().flatten().chain(&self.files_from);
        let read: Vec<&Path> = read.map(PathBuf::as_path).collect();
        inputs::read_once(read.iter().copied().chain(jobs.iter().map(AsRef::as_ref)))?;
        refuse_clashes(&jobs, report_to.as_ref(), read.into_iter())?;
        refuse_terminal(&jobs)?;
        processor_of(self.processor, self.scheme)?;
        may_be_strict(self.strict, self.scheme)?;
        if let Some(target) = self.target {
            suit(self.scheme, target)?;
        }
        for job in &jobs {
            agree(self.accesses, self.target_of(job))?;
        }
        if let Some(dir) = &self.directory {
            output::check_dir(dir)?;
        }
        let work = Work {
            opts: &self,
            signer: self.signer()?,
            report: report_to,
            threads: self.threads_each(jobs.len()),
        };
        let mut report = match &work.report {
            Some(to) => Some(RewriteReport::create(to, self.scheme, self.accesses)?),
            None => None,
        };
        // The command line is checked completely before this point.
        let mut unsigned = Unsigned::default();
        let result = parallel::each(
            &jobs,
            self.threads(),
            |job| work.rewrite(job),
            |job, result| account(job, &result, report.as_mut(), &mut unsigned),
        );
        unsigned.say();
        match report.map(RewriteReport::finish) {
            Some(Err(failure)) => Err(failure),
            _ => result,
        }
    }

    fn threads(&self) -> NonZero<usize> {
        self.jobs.unwrap_or_else(parallel::cores)
    }

    /// How many threads each of so many inputs gets.
    fn threads_each(&self, inputs: usize) -> NonZero<usize> {
        let each = self.threads().get() / inputs.max(1);
        NonZero::new(each).unwrap_or(NonZero::<usize>::MIN)
    }

    /// The key and certificate that are asked for.
    fn signer(&self) -> Result<Option<Signer>, Failure> {
        match self.sign.as_deref() {
            None => Ok(None),
            Some(_) if self.target != Some(Target::Linux) => {
                usage("--sign is for modules of a stock kernel; give --target linux")
            }
            Some([key, certificate]) => Signer::new(key, certificate).map(Some),
            Some(_) => unreachable!("clap takes two"),
        }
    }

    /// What a result is for: text that stays text is a program's by default.
    fn target_of(&self, job: &Job) -> Target {
        let default = match job.output.is_text() {
            true => Target::Process,
            false => Target::Hypervisor,
        };
        self.target.unwrap_or(default)
    }

    fn options(&self, target: Target, threads: NonZero<usize>) -> svm_rewrite::Options {
        svm_rewrite::Options {
            accesses: self.accesses,
            processor: self.processor.unwrap_or(self.scheme.processor()),
            strict: self.strict,
            report: self.report.is_some(),
            threads,
            ..svm_rewrite::Options::of(target, self.scheme)
        }
    }

    /// The contract that a result for `target` has to keep.
    fn contract(&self, target: Target) -> Contract {
        Contract::of(target)
            .with(self.scheme)
            .confining(self.accesses)
    }
}

/// Modules that were signed and no longer are.
#[derive(Default)]
struct Unsigned {
    count: usize,
    last: String,
}

impl Unsigned {
    fn add(&mut self, job: &Job) {
        self.count += 1;
        self.last = input::name(&job.input);
    }

    /// Says so, once.
    fn say(&self) {
        let what = match self.count {
            0 => return,
            1 => format!("{} was signed, and the result is not", self.last),
            n => format!("{n} modules were signed, and the results are not"),
        };
        output::say(&format!(
            "twin: {what}: a signature holds for the original's bytes only; --sign KEY CERT \
             signs anew\n"
        ));
    }
}

/// Says what became of one input.
fn account(
    job: &Job,
    result: &Result<Done, Failure>,
    report: Option<&mut RewriteReport>,
    unsigned: &mut Unsigned,
) -> Result<(), Failure> {
    if let Some(report) = report {
        match result {
            Ok(done) => report.add_sites(&done.sites)?,
            Err(failure) => report.add_failure(failure)?,
        }
        report.add_file(&record(job, result.as_ref().ok(), &input::name(&job.input)))?;
    }
    let Ok(done) = result else { return Ok(()) };
    // Only a module for a stock kernel is loaded by its signature.
    if done.was_signed && !done.signed && done.target == Target::Linux {
        unsigned.add(job);
    }
    if let Some(why) = done.unverified {
        output::say(&format!(
            "twin: WARNING: {} is NOT VERIFIED ({why}): nothing proves that it is \
             confined; do not load it where that matters\n",
            job.output.name()
        ));
    }
    Ok(())
}

/// What the report says of a file.
fn record<'a>(job: &Job, done: Option<&'a Done>, file: &'a str) -> File<'a> {
    File {
        file,
        result: match done {
            Some(_) => FileOutcome::Written,
            None => FileOutcome::Refused,
        },
        output: done.map(|_| job.output.name()),
        target: done.map(|done| done.target.as_str()),
        verified: done.map(|done| done.unverified.is_none()),
        original: done.map(|done| &*done.original),
        was_signed: done.map(|done| done.was_signed),
        signed: done.map(|done| done.signed),
    }
}

fn at_least_one(text: &str) -> Result<NonZero<usize>, &'static str> {
    text.parse().map_err(|_| "give a number, 1 or more")
}

fn usage<T>(why: &str) -> Result<T, Failure> {
    Err(Failure::Usage(why.to_owned()))
}
