//! What a compiler leaves beside its output: coverage notes, split debug information,
//! stack usage, dumps, its intermediate files. Their names derive from the output's. The
//! wrapper compiles to another name, and so has to say which they are.
//!
//! gcc has options for this (gcc manual, 3.2, `-dumpdir` and `-dumpbase`). clang derives
//! the names from the file that it writes: it writes one of the same name to a directory
//! of its own, and all that it leaves there is moved.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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
    /// Of gcc's dumps, between the stem and their own suffix: `.c` of `obj/x.c.029t.einline`.
    extension: OsString,
    /// Of `-save-temps`: clang names them after the source.
    temporary: PathBuf,
}

impl Auxiliary {
    /// The names for a source that becomes an output, or a part of a linked file.
    pub fn of(line: &CommandLine, family: Family, source: &Path) -> Auxiliary {
        let own = Path::new(source.file_stem().unwrap_or(OsStr::new("-")));
        let mut extension = OsString::new();
        if let Some(given) = source.extension() {
            extension = with_prefix(".", given);
        }
        match family {
            Family::Gcc => {
                let given = Given::of(line);
                let (stem, given) = given.name(line, own);
                Auxiliary {
                    family,
                    temporary: stem.clone(),
                    stem,
                    extension: given.unwrap_or(extension),
                }
            }
            Family::Clang { prefixes } => {
                let output = line.output.as_deref().map(Path::new);
                let stem = match (line.stage, output) {
                    (Stage::Link, output) if prefixes => linked(output, own),
                    (Stage::Link, _) | (_, None) => own.to_owned(),
                    (_, Some(output)) => output.with_extension(""),
                };
                let beside = output
                    .filter(|_| line.temporaries() == Some("=obj"))
                    .and_then(Path::parent)
                    .unwrap_or(Path::new(""));
                Auxiliary {
                    family,
                    stem,
                    extension,
                    temporary: beside.join(own),
                }
            }
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
        let base = self.stem.file_name().unwrap_or(OsStr::new("original"));
        with_suffix(&scratch.join(base), ".s")
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
    pub fn options(&self, line: &CommandLine, assembly: &Path) -> Vec<OsString> {
        match self.family {
            Family::Gcc => {
                let mut base = self.stem.file_name().unwrap_or_default().to_owned();
                base.push(&self.extension);
                let mut folder = OsString::from(self.stem.parent().unwrap_or(Path::new("")));
                if !folder.is_empty() {
                    folder.push("/");
                }
                let words = ["-dumpdir", "-dumpbase", "-dumpbase-ext"].map(OsString::from);
                let values = [folder, base, self.extension.clone()];
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

/// The file to which the assembler writes what its output depends on (`-Wa,--MD,FILE`).
pub fn assemblers_dependencies(line: &CommandLine) -> Option<PathBuf> {
    let mut words = line.assemblers_words().into_iter();
    let mut file = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("--MD") {
            Some("") => file = words.next(),
            Some(joined) => file = joined.strip_prefix('=').map(str::to_owned),
            None => {}
        }
    }
    file.map(PathBuf::from)
}

/// What gcc is told of its auxiliary files' names (`process_command` in its `gcc.cc`).
struct Given {
    /// Before all names: `-dumpdir`, or the output's directory.
    folder: OsString,
    /// Whether `-dumpdir` is given.
    explicit: bool,
    /// `-dumpbase` and the end of it that `-dumpbase-ext` names; it may be empty.
    base: Option<(OsString, OsString)>,
}

impl Given {
    fn of(line: &CommandLine) -> Given {
        let output = actual(line);
        let explicit = line.value("-dumpdir");
        // Of -dumpdir and -save-temps= the last one counts.
        let folder = match (explicit, output) {
            (Some(given), _) if !line.is_later("-save-temps=", "-dumpdir") => given.to_owned(),
            // A place that is named stays, whatever a later `-save-temps` says.
            (_, Some(output)) if line.last("-save-temps=").as_deref() != Some("cwd") => {
                folder_of(output)
            }
            _ => OsString::new(),
        };
        let base = line.value("-dumpbase").map(|base| {
            let extension = line.value("-dumpbase-ext").unwrap_or_default();
            match base.as_bytes().strip_suffix(extension.as_bytes()) {
                Some(short) if !short.is_empty() => {
                    (OsStr::from_bytes(short).to_owned(), extension.to_owned())
                }
                _ => (base.to_owned(), OsString::new()),
            }
        });
        Given {
            folder,
            explicit: explicit.is_some(),
            base,
        }
    }

    /// The name of a source's files up to their suffix, and the suffix that dumps have
    /// besides, unless it is the source's.
    fn name(self, line: &CommandLine, own: &Path) -> (PathBuf, Option<OsString>) {
        let links = line.stage == Stage::Link;
        let single = line.inputs().count() == 1;
        let mut name = self.folder;
        match (self.base, actual(line)) {
            (Some((base, extension)), _) if !base.is_empty() => {
                // A base with a directory has no other one.
                if base.as_bytes().contains(&b'/') {
                    name.clear();
                }
                name.push(base);
                if single && (!links || self.explicit) {
                    return (name.into(), Some(extension));
                }
                name.push("-");
                name.push(own);
            }
            (Some(_), _) => name.push(own),
            (None, output) if links => {
                let output = output.unwrap_or(Path::new("a"));
                let output = match output.extension().and_then(OsStr::to_str) {
                    Some("exe") => output.file_stem(),
                    Some("out") if output.ends_with("a.out") => output.file_stem(),
                    _ => output.file_name(),
                };
                let output = output.unwrap_or_default();
                if !(self.explicit || single && output == own) {
                    name.push(output);
                    name.push("-");
                }
                name.push(own);
            }
            (None, Some(output)) => name.push(output.file_stem().unwrap_or_default()),
            (None, None) => name.push(own),
        }
        (name.into(), None)
    }
}

/// The output, if it is a file.
fn actual(line: &CommandLine) -> Option<&Path> {
    let output = line.output.as_deref().map(Path::new);
    output.filter(|output| *output != Path::new("-"))
}

/// The directory of a path, as far as it is written, with its slash.
fn folder_of(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes
        .iter()
        .rposition(|b| *b == b'/')
        .map_or(0, |at| at + 1);
    OsStr::from_bytes(&bytes[..end]).to_owned()
}

/// clang's name for a source that is linked at once: `prog-x`.
fn linked(output: Option<&Path>, own: &Path) -> PathBuf {
    let mut name = output.unwrap_or(Path::new("a")).as_os_str().to_owned();
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
            let line = CommandLine::parse(&words, || true).expect("no response file");
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
        assert_eq!(of("x.c y.c -o x", "x.c"), Path::new("x-x.gcno"));
        assert_eq!(of("-dumpbase d/f.c -c x.c", "x.c"), Path::new("d/f.c.gcno"));
        let based = "-dumpbase f.c -dumpbase-ext .c";
        let of = |line: &str| of(&format!("{based} {line}"), "x.c");
        assert_eq!(of("-c x.c -o o/y.o"), Path::new("o/f.gcno"));
        assert_eq!(of("-c x.c y.c"), Path::new("f-x.gcno"));
        assert_eq!(of("x.c -o o/p"), Path::new("o/f-x.gcno"));
        assert_eq!(of("-dumpdir d/ x.c -o o/p"), Path::new("d/f.gcno"));
        let save = "-dumpdir d/ -save-temps";
        assert_eq!(
            of(&format!("{save} -c x.c -o o/y.o")),
            Path::new("d/f.gcno")
        );
        assert_eq!(
            of(&format!("{save}=obj -c x.c -o o/y.o")),
            Path::new("o/f.gcno")
        );
        assert_eq!(
            of(&format!("{save}=cwd -c x.c -o o/y.o")),
            Path::new("f.gcno")
        );
    }
}
