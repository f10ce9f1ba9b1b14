//! The output of each input, and the outputs that are refused.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use command_line::failure::Failure;
use command_line::input::{self, printable};
use command_line::output::{self, Destination};
use elf_loader::compression::Compression;
use svm_rewrite::Target;

use super::{Opts, usage};
use crate::inputs::{self, identity};

/// One input and where its result goes.
pub(super) struct Job {
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
        let directory = self.directory.as_deref();
        let inputs = inputs::expand(&self.inputs, self.files_from.as_deref(), directory)?;
        match (&self.output, &inputs[..]) {
            (Some(_), []) => return usage("the list names no file, so nothing would be written"),
            (Some(_), [_, _, ..]) => return usage("-o takes one input; give -d DIR for several"),
            _ => {}
        }
        let job = |input: PathBuf| {
            let output = match (&self.output, directory) {
                (Some(output), _) => Destination::new(output.clone()),
                (None, Some(dir)) => Destination::File(dir.join(below(&input, self.target)?)),
                (None, None) => unreachable!("clap wants one of them"),
            };
            Ok(Job { input, output })
        };
        inputs.into_iter().map(job).collect()
    }
}

/// The path of a result in -d DIR: that of its input, compression included. A leading
/// `/`, and all up to the last `..`, is left out, so that it is in DIR. Text for a
/// hypervisor, which takes objects only, ends in `.o` instead of `.s`.
fn below(input: &Path, target: Option<Target>) -> Result<PathBuf, Failure> {
    if input::is_stdin(input) {
        return usage("standard input (`-`) has no name to use in -d DIR; give -o OUT");
    }
    let mut path = PathBuf::new();
    for component in input.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.clear(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let Some(name) = path.file_name() else {
        return Err(Failure::access(printable(input), "is not a file name"));
    };
    if target == Some(Target::Hypervisor) {
        let name = object_name(name);
        path.set_file_name(name);
    }
    Ok(path)
}

/// `foo.s`: `foo.o`, `foo.s.xz`: `foo.o.xz`; any other name as it is.
fn object_name(name: &OsStr) -> OsString {
    let (plain, compression) = Compression::split(name.as_bytes());
    match plain.strip_suffix(b".s") {
        Some(stem) if !stem.is_empty() => {
            let ending = compression.map_or("", Compression::ending);
            OsString::from_vec([stem, b".o", ending.as_bytes()].concat())
        }
        _ => name.to_owned(),
    }
}

/// Refuses outputs that would overwrite an input, another file that is read, or each other.
pub(super) fn refuse_clashes<'p>(
    jobs: &'p [Job],
    report: Option<&Destination>,
    read: impl Iterator<Item = &'p Path>,
) -> Result<(), Failure> {
    let inputs = jobs.iter().map(|job| job.input.as_path()).chain(read);
    let inputs: HashSet<_> = inputs.filter_map(identity).collect();
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
                printable(other),
                printable(from)
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

/// The path of an output, wherever links lead. `None` is standard output.
fn place(to: &Destination) -> Option<PathBuf> {
    match to {
        Destination::Stdout => None,
        Destination::File(path) => Some(output::followed(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_dir(input: &str, target: Option<Target>) -> String {
        let path = below(Path::new(input), target).expect("a name");
        path.into_os_string().into_string().expect("UTF-8")
    }

    #[test]
    fn results_lie_as_their_inputs_do() {
        for (input, expected) in [
            ("x/y.ko.xz", "x/y.ko.xz"),
            ("y.ko", "y.ko"),
            ("./x//y.o", "x/y.o"),
            ("/lib/modules/6.1/y.ko", "lib/modules/6.1/y.ko"),
            ("../../build/y.ko", "build/y.ko"),
            ("a/../b/y.ko", "b/y.ko"),
            ("lib.a", "lib.a"),
            ("x/y.s", "x/y.s"),
        ] {
            assert_eq!(in_dir(input, None), expected);
            assert_eq!(in_dir(input, Some(Target::Linux)), expected);
        }
        for nameless in ["..", "/", "x/.."] {
            assert!(below(Path::new(nameless), None).is_err(), "{nameless}");
        }
    }

    #[test]
    fn text_for_a_hypervisor_becomes_an_object() {
        let hypervisor = Some(Target::Hypervisor);
        assert_eq!(in_dir("x/y.s", hypervisor), "x/y.o");
        assert_eq!(in_dir("y.s.gz", hypervisor), "y.o.gz");
        assert_eq!(in_dir("y.ko.gz", hypervisor), "y.ko.gz");
    }

    #[test]
    fn names_stay_as_they_are_byte_for_byte() {
        let name = |byte: u8| PathBuf::from(OsStr::from_bytes(&[b'a', byte, b'.', b'o']));
        assert_eq!(below(&name(0xff), None).expect("a name"), name(0xff));
        assert_ne!(below(&name(0xfe), None).ok(), below(&name(0xff), None).ok());
    }
}
