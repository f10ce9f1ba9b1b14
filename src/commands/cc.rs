//! `twin cc`: a compiler wrapper that rewrites what it compiles.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::failure::Failure;
use command_line::input::{describe, printable};
use command_line::options::{LeftOut, accesses, scheme, target_among};
use serde::Serialize;
use svm_rewrite::class::SiteClass;
use svm_rewrite::{Accesses, Options, Scheme, Target};

use crate::cc::{CommandLine, Compiled, Compiler, Family, Job, Stop};
use crate::source;

const EXAMPLES: &str = "\
Examples:
  twin cc -- gcc -O2 -c x.c
  make CC=\"twin cc -- gcc\"
  make CC=\"twin cc --accesses stores -- gcc\"
  make CC=\"twin cc --assembly -- gcc\"
  make -C HEADERS M=$PWD CC=\"twin cc --target linux -- gcc\"

Sources of C, C++ and Fortran (.c .i .cc .cpp .f90 and others, -x c) are compiled
to assembly, rewritten and assembled. All else is passed to the compiler unchanged:
preprocessing, linking, other languages, and assembly sources (.s .S .sx), whose
accesses stay as they are without --assembly. What is compiled for `process` is a
program: addresses are translated to themselves. Each object brings the runtime
along, which is linked once.

Exit status:
  the compiler's; 1 if what it made cannot be rewritten";

/// Options of `twin cc`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// What the rewritten code is to run on.
    #[arg(long, value_name = "TARGET", default_value = Target::Process.as_str(),
          value_parser = target_among(&[Target::Process, Target::Linux]))]
    target: Target,
    /// The instruction sequence that translates addresses.
    #[arg(long, value_name = "SCHEME", default_value = Scheme::Stlb.as_str(),
          value_parser = scheme())]
    scheme: Scheme,
    /// Which accesses to memory are translated.
    #[arg(long, value_name = "ACCESSES", default_value = Accesses::All.as_str(),
          value_parser = accesses())]
    accesses: Accesses,
    /// Rewrite assembly sources, too.
    #[arg(long)]
    assembly: bool,
    #[command(flatten)]
    _left_out: LeftOut,
    /// Append to this file what was done with each source, a line of JSON each.
    #[arg(long, value_name = "FILE.jsonl")]
    report: Option<PathBuf>,
    /// The compiler and its arguments.
    #[arg(last = true, required = true, value_name = "COMPILER ARGS")]
    command: Vec<OsString>,
}

/// A line of the report.
#[derive(Serialize)]
struct Row<'r> {
    source: &'r Path,
    lines: u32,
    instructions: u64,
    rewritten: &'r BTreeMap<SiteClass, u64>,
}

impl Opts {
    /// Compiles.
    pub fn run(self) -> Result<(), Failure> {
        let (compiler, given) = Compiler::split(&self.command);
        let family = OnceCell::new();
        let is_gcc = || *family.get_or_init(|| compiler.family()) == Family::Gcc;
        let line = CommandLine::parse(given, is_gcc)
            .map_err(|(file, error)| Failure::access(printable(&file), describe(&error)))?;
        let line = match self.assembly {
            true => line.with_assembly(),
            false => line,
        };
        let job = Job {
            compiler,
            given,
            line,
            options: self.options()?,
            family,
        };
        match job.run() {
            Ok(compiled) => self.account(&compiled),
            Err(Stop::Failure(failure)) => Err(failure),
            Err(Stop::Exit(status)) => {
                // A compiler that a signal ended has the status that shells give.
                let code = status.code().or_else(|| status.signal().map(|s| 128 + s));
                Err(Failure::Child(
                    code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1),
                ))
            }
        }
    }

    fn options(&self) -> Result<Options, Failure> {
        source::options(Options {
            accesses: self.accesses,
            ..Options::of(self.target, self.scheme)
        })
    }

    fn account(&self, compiled: &[Compiled]) -> Result<(), Failure> {
        let Some(path) = &self.report else {
            return Ok(());
        };
        let mut text = String::new();
        for one in compiled {
            let row = Row {
                source: &one.source,
                lines: one.printed.lines,
                instructions: one.printed.stats.instructions,
                rewritten: &one.printed.rewritten,
            };
            let row = serde_json::to_string(&row).expect("plain data");
            text.push_str(&row);
            text.push('\n');
        }
        // One write: compilers run at the same time.
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Failure::access(printable(path), describe(&error)))
    }
}
