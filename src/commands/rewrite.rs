//! `twin rewrite`: drivers in, verified objects out.
//!
//! ```text
//! read ──> rewrite ──> serialise ──> read again ──> verify ──> rename into place
//! ```
//!
//! The verifier sees every output as it will lie on disk, unless `--no-verify` is
//! given. Assembly text becomes text again ([`crate::source`]) if the output's name
//! says so, else an object.

mod jobs;
mod one;

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use command_line::failure::Failure;
use command_line::options::{scheme, target_among};
use command_line::output::{self, Destination};
use svm_rewrite::{Scheme, Target};
use svm_verify::Contract;

use crate::parallel;
use crate::report::Report;
use jobs::{Job, refuse_clashes, refuse_terminal};
use one::Done;

const EXAMPLES: &str = "\
Examples:
  twin rewrite e1000.ko -o e1000.twin.o
  twin rewrite --target linux e1000.ko -o e1000.twin.ko
  twin rewrite --scheme paper --report sites.json e1000.ko.xz -o e1000.twin.o
  twin rewrite drivers/net/ethernet/*/*.ko -d confined/
  twin rewrite --target linux e1000_main.s -o e1000_main.twin.s
  xz -dc e1000.ko.xz | twin rewrite - -o - | twin verify -

Inputs are recognised by content: relocatable objects (.o, .ko), plain or
compressed with xz, zstd or gzip, and assembly text. In DIR, foo.ko
(foo.ko.xz, ...) becomes foo.twin.o, with --target linux foo.twin.ko, and
foo.s becomes foo.twin.s. An output appears whole under its name or not at
all.

Text is assembled and rewritten as an object if OUT has another ending than
.s. Text that stays text is a program's (`process`), as `twin cc` makes it, or
part of a module for `linux`, and brings the runtime along. Such a part is
verified, programs are not.

Exit status:
  0  done
  1  an input was refused; an existing output is unchanged
  2  wrong usage, or a file that cannot be read or written";

/// Options of `twin rewrite`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("destination").required(true))]
pub struct Opts {
    /// Objects or assembly texts to rewrite; `-` is standard input.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    /// Write the result there; `-` is standard output.
    #[arg(short, long, value_name = "OUT", group = "destination")]
    output: Option<PathBuf>,
    /// Write the results into this directory, made if missing.
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
    /// Write what was done at each site, and each refusal, as JSON.
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Number of inputs to rewrite in parallel [default: one for each core].
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
        refuse_clashes(&jobs, report_to.as_ref())?;
        refuse_terminal(&jobs)?;
        if let Some(dir) = &self.directory {
            output::create_dir(dir)?;
        }
        let mut report = match &report_to {
            Some(to) => Some(Report::create(to, self.scheme.as_str())?),
            None => None,
        };
        // The command line is checked completely before this point.
        let result = parallel::each(
            &jobs,
            self.jobs.unwrap_or_else(parallel::cores),
            |job| self.rewrite(job),
            |job, result| self.account(job, &result, report.as_mut()),
        );
        match report.map(Report::finish) {
            Some(Err(failure)) => Err(failure),
            _ => result,
        }
    }

    fn options(&self, target: Target) -> svm_rewrite::Options {
        svm_rewrite::Options {
            report: self.report.is_some(),
            ..svm_rewrite::Options::of(target, self.scheme)
        }
    }

    /// The contract that a result for `target` has to keep.
    fn contract(&self, target: Target) -> Contract {
        Contract::of(target).with(self.scheme)
    }

    /// Says what became of one input.
    fn account(
        &self,
        job: &Job,
        result: &Result<Done, Failure>,
        report: Option<&mut Report>,
    ) -> Result<(), Failure> {
        match (result, report) {
            (Ok(done), Some(report)) => report.add_sites(&done.sites)?,
            (Err(failure), Some(report)) => report.add_failure(failure),
            (_, None) => {}
        }
        if let Ok(Done {
            unverified: Some(why),
            ..
        }) = result
        {
            output::say(&format!(
                "twin: WARNING: {} is NOT VERIFIED ({why}): nothing proves that it is \
                 confined; do not load it where that matters\n",
                job.output.name()
            ));
        }
        Ok(())
    }
}

fn at_least_one(text: &str) -> Result<NonZero<usize>, &'static str> {
    text.parse().map_err(|_| "give a number, 1 or more")
}

fn usage<T>(why: &str) -> Result<T, Failure> {
    Err(Failure::Usage(why.to_owned()))
}
