//! `twin rewrite`: drivers in, verified objects out.
//!
//! ```text
//! read ──> rewrite ──> serialise ──> read again ──> verify ──> rename into place
//! ```
//!
//! Nothing leaves this command that the verifier did not see as it lies on
//! disk, unless `--no-verify` says so. Assembly text becomes text again
//! ([`crate::source`]) if the output is called so, else an object.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use svm_rewrite::Rewritten;

use crate::assembler;
use crate::codes::Code;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::output::{self, Destination, Pending};
use crate::parallel;
use crate::report::{Report, Sites};
use crate::source;

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
.s. Rewritten text for `linux` is verified as part of a module, which is linked
with what `twin cc --target linux --runtime FILE.o` writes. Rewritten text for
`user` is a program's, mapped to itself, as `twin cc` makes it; programs are
not verified.

Exit status:
  0  done
  1  an input was refused; its output, if there was one before, is as it was
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
    #[arg(long, value_enum, default_value_t = Target::User, hide_possible_values = true,
          value_name = "user|linux|xen")]
    target: Target,
    /// The instruction sequence that translates addresses.
    #[arg(long, value_enum, default_value_t = Scheme::Stlb)]
    scheme: Scheme,
    /// Write what was done at each site, and each refusal, as JSON.
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
    /// Inputs to work on at a time [default: one for each core].
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZero<usize>>,
    /// Leave out the proof that the result is confined.
    #[arg(long)]
    no_verify: bool,
}

/// What the rewritten code is to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// The testbed, in user space.
    User,
    /// A stock Linux kernel.
    Linux,
    /// A stock Xen hypervisor.
    Xen,
}

/// How an address is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scheme {
    /// Subtract the tag, compare, add: the fastest.
    Stlb,
    /// Figure 4 of the paper, with 64-bit registers.
    Paper,
}

/// What became of an input.
struct Done {
    sites: Sites,
    /// Why nothing is proved about it.
    unverified: Option<&'static str>,
}

/// One input and where its result goes.
struct Job {
    input: PathBuf,
    output: Destination,
}

impl AsRef<Path> for Job {
    fn as_ref(&self) -> &Path {
        &self.input
    }
}

impl Opts {
    /// Rewrites all inputs.
    pub fn run(self) -> Result<(), Failure> {
        self.target.supported()?;
        let jobs = self.jobs()?;
        let report_to = self.report.clone().map(Destination::new);
        refuse_clashes(&jobs, report_to.as_ref())?;
        refuse_terminal(&jobs)?;
        if let Some(dir) = &self.directory {
            output::create_dir(dir)?;
        }
        let mut report = match &report_to {
            Some(to) => Some(Report::create(to, self.options().scheme.as_str())?),
            None => None,
        };
        // Nothing about the command line is wrong beyond this point.
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

    fn scheme(&self) -> svm_rewrite::Scheme {
        match self.scheme {
            Scheme::Stlb => svm_rewrite::Scheme::Stlb,
            Scheme::Paper => svm_rewrite::Scheme::Paper,
        }
    }

    fn options(&self) -> svm_rewrite::Options {
        svm_rewrite::Options {
            report: self.report.is_some(),
            ..svm_rewrite::Options::of(self.target.target(), self.scheme())
        }
    }

    /// Which input goes where.
    fn jobs(&self) -> Result<Vec<Job>, Failure> {
        if self
            .inputs
            .iter()
            .filter(|path| input::is_stdin(path))
            .count()
            > 1
        {
            return usage("standard input (`-`) can be read only once");
        }
        if let (Some(_), [_, _, ..]) = (&self.output, &self.inputs[..]) {
            return usage("-o takes one input; give -d DIR for several");
        }
        let job = |path: &PathBuf| {
            let output = match (&self.output, &self.directory) {
                (Some(output), _) => Destination::new(output.clone()),
                (None, Some(dir)) => Destination::File(dir.join(output_name(path, self.target)?)),
                (None, None) => unreachable!("clap wants one of them"),
            };
            Ok(Job {
                input: path.clone(),
                output,
            })
        };
        self.inputs.iter().map(job).collect()
    }

    /// One input, from reading to the finished file.
    fn rewrite(&self, job: &Job) -> Result<Done, Failure> {
        let input = Input::read(&job.input)?;
        match input.text() {
            Some(text) if job.output.is_text() => self.rewrite_text(job, &input, text),
            _ => self.rewrite_object(job, &input),
        }
    }

    fn rewrite_object(&self, job: &Job, input: &Input) -> Result<Done, Failure> {
        let file = &input.name;
        let rewritten = self.rewritten(input)?;
        let bytes = serialise(file, &rewritten)?;
        if !self.no_verify {
            verify(file, &bytes)?;
        }
        // Verified as it will lie on disk; nothing changes it beyond this point.
        Pending::create(&job.output)?.finish_with(&bytes)?;
        Ok(Done {
            sites: Sites::new(file, &rewritten.sites),
            unverified: self.no_verify.then_some("--no-verify"),
        })
    }

    fn rewritten(&self, input: &Input) -> Result<Rewritten, Failure> {
        let rewritten = svm_rewrite::rewrite(&input.object()?, self.options());
        rewritten.map_err(|refusals| Failure::Refused {
            file: input.name.clone(),
            refusals,
        })
    }

    fn rewrite_text(&self, job: &Job, input: &Input, text: &[u8]) -> Result<Done, Failure> {
        let file = &input.name;
        let module = self.target == Target::Linux;
        let options = source::options(self.target.target(), self.scheme())?;
        let assemble = |marked: &[u8]| assembler::assemble(file, marked);
        let printed = source::rewrite(file, text, options, assemble)?;
        let unverified = match (module, self.no_verify) {
            (_, true) => Some("--no-verify"),
            (false, _) => Some("the text of a program, mapped to itself"),
            (true, false) => None,
        };
        if unverified.is_none() {
            source::verify(file, &printed.text, self.scheme())?;
        }
        // Both ways have the same plans, and the report is about the original.
        let sites = match self.report.is_some() {
            true if module => Sites::new(file, &self.rewritten(input)?.sites),
            true => {
                let why = "a report of the sites of text is for --target linux; \
                           `twin cc --report` counts those of programs";
                return Err(Failure::input(file, why));
            }
            false => Sites::default(),
        };
        Pending::create(&job.output)?.finish_with(&printed.text)?;
        Ok(Done { sites, unverified })
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

impl Target {
    fn supported(self) -> Result<(), Failure> {
        match self {
            Target::User | Target::Linux => Ok(()),
            Target::Xen => usage("--target xen is not supported yet; `user` and `linux` are"),
        }
    }

    fn target(self) -> svm_rewrite::Target {
        match self {
            Target::User | Target::Xen => svm_rewrite::Target::User,
            Target::Linux => svm_rewrite::Target::Linux,
        }
    }

    /// What the name of a rewritten file ends in.
    fn ending(self) -> &'static str {
        match self {
            Target::User | Target::Xen => ".twin.o",
            Target::Linux => ".twin.ko",
        }
    }
}

fn at_least_one(text: &str) -> Result<NonZero<usize>, &'static str> {
    text.parse().map_err(|_| "give a number, 1 or more")
}

fn usage<T>(why: &str) -> Result<T, Failure> {
    Err(Failure::Usage(why.to_owned()))
}

fn serialise(file: &str, rewritten: &Rewritten) -> Result<Vec<u8>, Failure> {
    elf_loader::write(&rewritten.object).map_err(|error| internal(file, &error))
}

fn verify(file: &str, bytes: &[u8]) -> Result<(), Failure> {
    let object = elf_loader::read(bytes).map_err(|error| internal(file, &error))?;
    svm_verify::verify(&object)
        .map(|_| ())
        .map_err(|violations| Failure::Violated {
            file: file.to_owned(),
            own: true,
            violations,
        })
}

/// An object that this program made itself and cannot handle.
fn internal(file: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(
        file,
        Code::Internal,
        format!("internal error: the rewritten object is malformed: {error}; please report this"),
    )
}

/// `foo.ko`, `foo.ko.xz`, `foo.o`: `foo.twin.o`, for a stock kernel `foo.twin.ko`;
/// `foo.s`: `foo.twin.s`.
fn output_name(path: &Path, target: Target) -> Result<String, Failure> {
    if input::is_stdin(path) {
        return usage("standard input (`-`) has no name to use in -d DIR; give -o OUT");
    }
    let Some(name) = path.file_name() else {
        return Err(Failure::access(path.display(), "is not a file name"));
    };
    let name = name.to_string_lossy();
    let strip = |name: &str, endings: &[&str]| {
        let ending = endings.iter().find_map(|ending| name.strip_suffix(ending));
        ending
            .filter(|stem| !stem.is_empty())
            .unwrap_or(name)
            .to_owned()
    };
    let name = strip(&name, &[".xz", ".zst", ".gz"]);
    if let Some(stem) = name.strip_suffix(".s").filter(|stem| !stem.is_empty()) {
        return Ok(format!("{stem}.twin.s"));
    }
    Ok(strip(&name, &[".ko", ".o"]) + target.ending())
}

/// Refuses outputs that would overwrite an input or each other.
fn refuse_clashes(jobs: &[Job], report: Option<&Destination>) -> Result<(), Failure> {
    let inputs: HashSet<_> = jobs.iter().filter_map(|job| identity(&job.input)).collect();
    let mut taken: HashMap<Option<PathBuf>, &Path> = HashMap::new();
    let outputs = jobs.iter().map(|job| (&job.output, job.input.as_path()));
    let reports = report.map(|to| (to, Path::new("--report")));
    for (to, from) in outputs.chain(reports) {
        if let Destination::File(path) = to
            && identity(path).is_some_and(|id| inputs.contains(&id))
        {
            return usage(&format!(
                "{}: the output is also an input; choose another name",
                to.name()
            ));
        }
        if let Some(other) = taken.insert(place(to), from) {
            return usage(&format!(
                "{}: both {} and {} would be written there; give them different names",
                to.name(),
                other.display(),
                from.display()
            ));
        }
    }
    Ok(())
}

/// Refuses to print an object on a terminal.
fn refuse_terminal(jobs: &[Job]) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && jobs.iter().any(|job| job.output == Destination::Stdout) {
        return usage("an object is no text for a terminal; redirect it, or give -o FILE");
    }
    Ok(())
}

/// Where an output will lie, as far as that is known before it is made; `None`
/// is standard output.
fn place(to: &Destination) -> Option<PathBuf> {
    let Destination::File(path) = to else {
        return None;
    };
    let name = path.file_name()?;
    let dir = output::directory(path).canonicalize();
    Some(dir.map_or_else(|_| path.clone(), |dir| dir.join(name)))
}

/// What tells a file from all others, whatever name it is reached by.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_names_drop_compression_and_kind() {
        let names = [
            "a/foo.ko",
            "foo.ko.xz",
            "foo.o",
            "foo",
            "foo.ko.zst",
            ".ko",
            "x.gz",
        ];
        let expected = ["foo", "foo", "foo", "foo", "foo", ".ko", "x"];
        for (name, stem) in names.iter().zip(expected) {
            assert_eq!(
                output_name(Path::new(name), Target::User).expect("a name"),
                format!("{stem}.twin.o")
            );
            assert_eq!(
                output_name(Path::new(name), Target::Linux).expect("a name"),
                format!("{stem}.twin.ko")
            );
        }
        let text = output_name(Path::new("a/foo.s"), Target::Linux).expect("a name");
        assert_eq!(text, "foo.twin.s");
    }
}
