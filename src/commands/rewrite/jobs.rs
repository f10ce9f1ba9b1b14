//! The output of each input, and the outputs that are refused.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use command_line::failure::Failure;
use command_line::input;
use command_line::output::{self, Destination};
use svm_rewrite::Target;

use super::{Opts, usage};

/// One input and where its result goes.
pub(super) struct Job {
    /// The input.
    pub input: PathBuf,
    /// Where its result goes.
    pub output: Destination,
}

impl AsRef<Path> for Job {
    fn as_ref(&self) -> &Path {
        &self.input
    }
}

impl Opts {
    /// Which input goes where.
    pub(super) fn jobs(&self) -> Result<Vec<Job>, Failure> {
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
}

/// `foo.ko`, `foo.ko.xz`, `foo.o`: `foo.twin.o`, for a stock kernel `foo.twin.ko`;
/// `foo.s`: `foo.twin.s`, but for a hypervisor, which takes objects only.
fn output_name(path: &Path, target: Option<Target>) -> Result<String, Failure> {
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
        let ending = match target {
            Some(Target::Hypervisor) => ".twin.o",
            Some(Target::Linux | Target::Process) | None => ".twin.s",
        };
        return Ok(format!("{stem}{ending}"));
    }
    let ending = match target {
        Some(Target::Linux) => ".twin.ko",
        Some(Target::Hypervisor | Target::Process) | None => ".twin.o",
    };
    Ok(strip(&name, &[".ko", ".o"]) + ending)
}

/// Refuses outputs that would overwrite an input or each other.
pub(super) fn refuse_clashes(jobs: &[Job], report: Option<&Destination>) -> Result<(), Failure> {
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
pub(super) fn refuse_terminal(jobs: &[Job]) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && jobs.iter().any(|job| job.output == Destination::Stdout) {
        return usage(
            "refusing to write binary output to a terminal; redirect it, or give -o FILE",
        );
    }
    Ok(())
}

/// The path of an output, as far as it is known before the output is made; `None`
/// is standard output.
fn place(to: &Destination) -> Option<PathBuf> {
    let Destination::File(path) = to else {
        return None;
    };
    let name = path.file_name()?;
    let dir = output::directory(path).canonicalize();
    Some(dir.map_or_else(|_| path.clone(), |dir| dir.join(name)))
}

/// Identifies a file, whatever name it is reached by.
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
                output_name(Path::new(name), None).expect("a name"),
                format!("{stem}.twin.o")
            );
            assert_eq!(
                output_name(Path::new(name), Some(Target::Linux)).expect("a name"),
                format!("{stem}.twin.ko")
            );
        }
        for (target, expected) in [
            (None, "foo.twin.s"),
            (Some(Target::Linux), "foo.twin.s"),
            (Some(Target::Hypervisor), "foo.twin.o"),
        ] {
            let text = output_name(Path::new("a/foo.s"), target).expect("a name");
            assert_eq!(text, expected);
        }
    }
}
