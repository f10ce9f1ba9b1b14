//! What a compiler leaves beside its output: coverage notes, split debug information,
//! stack usage, dumps, its intermediate files. Their names derive from the output's. The
//! wrapper compiles to another name, and so has to say which they are.
//!
//! gcc has options for this (gcc manual, 3.2, `-dumpdir` and `-dumpbase`). clang derives
//! the names from the file that it writes: it writes one of the same name to a directory
//! of its own, and all that it leaves there is moved.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::arguments::{CommandLine, Stage};

/// Which compiler it is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// gcc 11 or later, or one that takes its options.
    Gcc,
    /// clang.
    Clang {
        /// It names files after the output when it links at once, since version 17.
        prefixes: bool,
    },
}

impl Family {
    /// What a compiler says of itself (`--version`).
    pub fn of(answer: &str) -> Family {
        let Some((_, version)) = answer.split_once("clang version ") else {
            return Family::Gcc;
        };
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        Family::Clang {
            prefixes: major.is_none_or(|major: u32| major >= 17),
        }
    }
}

/// The names of auxiliary files of one source.
#[derive(Debug)]
pub struct Auxiliary {
    family: Family,
    /// Of all of them, up to the suffix: `obj/x` of `obj/x.gcno`.
    pub stem: PathBuf,
    /// Of the assembly, from which gcc derives the rest if it is told where (`-dumpdir`).
    base: OsString,
    /// Of `-save-temps`: clang names them after the source.
    temporary: PathBuf,
}

impl Auxiliary {
    /// The names for a source that becomes an output, or a part of a linked file.
    pub fn of(line: &CommandLine, family: Family, source: &Path) -> Auxiliary {
        let own = Path::new(source.file_stem().unwrap_or(OsStr::new("-")));
        let output = line.output.as_deref().map(Path::new);
        let stem = match (line.stage, family, output) {
            (Stage::Link, Family::Clang { prefixes: false }, _) => own.to_owned(),
            (Stage::Link, family, output) => linked(output, own, family == Family::Gcc),
            (_, _, None) => own.to_owned(),
            (_, _, Some(output)) => output.with_extension(""),
        };
        // gcc manual, 3.2: -save-temps=cwd is `-dumpdir ./` as well.
        let here = family == Family::Gcc && line.last("-save-temps").as_deref() == Some("=cwd");
        let stem = match stem.file_name() {
            Some(name) if here => name.into(),
            _ => stem,
        };
        let prefix = line.value("-dumpdir").filter(|_| family == Family::Gcc);
        let base = match (prefix, line.stage) {
            (Some(_), Stage::Link) => own.as_os_str(),
            _ => stem.file_name().unwrap_or(OsStr::new("original")),
        };
        let base = base.to_owned();
        let stem = prefix.map_or(stem, |prefix| {
            let mut name = prefix.to_owned();
            name.push(&base);
            name.into()
        });
        let beside = output
            .filter(|_| line.has("-save-temps=obj"))
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let temporary = match family {
            Family::Gcc => stem.clone(),
            Family::Clang { .. } => beside.join(own),
        };
        Auxiliary {
            family,
            stem,
            base,
            temporary,
        }
    }

    /// The file with this suffix.
    pub fn named(&self, suffix: &str) -> PathBuf {
        with_suffix(&self.stem, suffix)
    }

    /// The intermediate file with this suffix.
    pub fn temporary_named(&self, suffix: &str) -> PathBuf {
        with_suffix(&self.temporary, suffix)
    }

    /// The assembly to compile to, in a directory of its own.
    pub fn assembly(&self, scratch: &Path) -> PathBuf {
        with_suffix(&scratch.join(&self.base), ".s")
    }

    /// Where to leave a file that clang wrote beside `assembly`; `None` if it is of no use.
    pub fn place(&self, name: &Path) -> Option<PathBuf> {
        let beside = |path: &Path| path.with_file_name(name);
        match name.extension().and_then(OsStr::to_str) {
            // Its sections are in the assembly.
            Some("dwo") => None,
            Some("i" | "bc") => Some(beside(&self.temporary)),
            _ => Some(beside(&self.stem)),
        }
    }

    /// Options that give auxiliary files their names.
    pub fn options(&self, line: &CommandLine, source: &Path, assembly: &Path) -> Vec<OsString> {
        match self.family {
            Family::Gcc if line.any(&["-dumpbase", "-dumpdir"]) => Vec::new(),
            Family::Gcc => {
                let extension = source.extension().map(|e| with_prefix(".", e));
                let extension = extension.unwrap_or_default();
                let mut base = self.stem.file_name().unwrap_or_default().to_owned();
                base.push(&extension);
                let mut folder = OsString::from(self.stem.parent().unwrap_or(Path::new("")));
                if !folder.is_empty() {
                    folder.push("/");
                }
                let words = ["-dumpdir", "-dumpbase", "-dumpbase-ext"].map(OsString::from);
                let values = [folder, base, extension];
                words
                    .into_iter()
                    .zip(values)
                    .flat_map(|(w, v)| [w, v])
                    .collect()
            }
            Family::Clang { .. } => {
                let mut out = Vec::new();
                let mut say = |option: &str, file: &Path| {
                    let mut joined = OsString::from(option);
                    joined.push(file);
                    out.extend([OsString::from("-Xclang"), joined]);
                };
                if line.any(&["--coverage", "-coverage", "-fprofile-arcs"]) {
                    let data = std::path::absolute(self.named(".gcda"));
                    say("-coverage-data-file=", &data.unwrap_or_default());
                }
                if line.splits_debug() {
                    for (option, file) in [
                        ("-split-dwarf-file", self.named(".dwo")),
                        ("-split-dwarf-output", assembly.with_extension("dwo")),
                    ] {
                        say(option, Path::new(""));
                        say("", &file);
                    }
                }
                out
            }
        }
    }
}

/// The name for a source that is linked at once: `prog-x`, and of gcc `x` if both are the
/// same.
fn linked(output: Option<&Path>, own: &Path, shortens: bool) -> PathBuf {
    let output = output.unwrap_or(Path::new("a"));
    if shortens && output.file_name() == Some(own.as_os_str()) {
        return output.to_owned();
    }
    let mut name = output.as_os_str().to_owned();
    name.push("-");
    name.push(own);
    name.into()
}

fn with_suffix(stem: &Path, suffix: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn with_prefix(prefix: &str, text: &OsStr) -> OsString {
    let mut out = OsString::from(prefix);
    out.push(text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_by_what_they_say() {
        let of = Family::of;
        assert_eq!(of("gcc (Debian 12.2.0-14) 12.2.0\n"), Family::Gcc);
        let clang = |prefixes| Family::Clang { prefixes };
        assert_eq!(of("Debian clang version 14.0.6\nTarget: x"), clang(false));
        assert_eq!(of("Debian clang version 19.1.7 (3)\n"), clang(true));
    }

    #[test]
    fn names_of_gcc() {
        let of = |line: &str, source: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let line = CommandLine::parse(&words).expect("no response file");
            Auxiliary::of(&line, Family::Gcc, Path::new(source)).named(".gcno")
        };
        assert_eq!(of("-c s/x.c -o o/y.o", "s/x.c"), Path::new("o/y.gcno"));
        assert_eq!(of("-c s/x.c", "s/x.c"), Path::new("x.gcno"));
        assert_eq!(of("s/x.c -o o/p.bin", "s/x.c"), Path::new("o/p.bin-x.gcno"));
        assert_eq!(of("x.c", "x.c"), Path::new("a-x.gcno"));
        assert_eq!(of("x.c -o x", "x.c"), Path::new("x.gcno"));
        assert_eq!(
            of("-dumpdir d/ -c x.c -o o/y.o", "x.c"),
            Path::new("d/y.gcno")
        );
        assert_eq!(
            of("-dumpdir d/p- x.c -o o/y", "x.c"),
            Path::new("d/p-x.gcno")
        );
    }
}
