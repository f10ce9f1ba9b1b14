//! A compiler's command line, as far as a wrapper must understand it: which inputs
//! are compiled how far, and which arguments belong to which step.
//!
//! [`super::options`] says what each option is; response files are expanded first
//! ([`super::response`]).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::options::{
    NO_CODE, WITH_VALUE, is_c, is_dependency, is_for_assembler, is_for_linker, is_no_output,
};
use super::response::expand;

/// How far the compiler goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `-E`, `-M`, `-fsyntax-only`, `--version` and other options that make no code.
    NoCode,
    /// `-S`.
    Assembly,
    /// `-c`.
    Object,
    /// Neither: a linked file.
    Link,
}

/// One argument and what it is to the wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// An option with its value, if that is an argument of its own.
    Option(Vec<OsString>),
    /// An input; `c` says that it is C.
    Input {
        /// Its name.
        path: OsString,
        /// C source, preprocessed or not.
        c: bool,
    },
    /// `-x LANGUAGE`: of the inputs after it.
    Language(Vec<OsString>),
    /// `-o FILE`, `-c`, `-S`: the wrapper gives its own for each step.
    Ours,
}

/// A command line taken apart.
#[derive(Debug)]
pub struct CommandLine {
    /// How far it goes.
    pub stage: Stage,
    /// All arguments after the compiler's name, in order, response files expanded.
    pub arguments: Vec<Argument>,
    /// `-o`.
    pub output: Option<OsString>,
    /// Link-time optimisation: the code is made by the linker.
    pub lto: bool,
}

impl CommandLine {
    /// Parses the arguments after the compiler's name.
    ///
    /// # Errors
    /// A response file that cannot be read.
    pub fn parse(arguments: &[OsString]) -> Result<CommandLine, (PathBuf, std::io::Error)> {
        let mut expanded = Vec::new();
        expand(arguments, &mut expanded)?;
        let mut line = CommandLine {
            stage: Stage::Link,
            arguments: Vec::new(),
            output: None,
            lto: false,
        };
        let mut language: Option<OsString> = None;
        let mut rest = expanded.into_iter();
        while let Some(argument) = rest.next() {
            line.argument(argument, &mut rest, &mut language);
        }
        Ok(line)
    }

    fn argument(
        &mut self,
        argument: OsString,
        rest: &mut impl Iterator<Item = OsString>,
        language: &mut Option<OsString>,
    ) {
        let text = argument.to_string_lossy().into_owned();
        if text == "-" || !text.starts_with('-') {
            let c = is_c(&argument, language.as_deref());
            return self.arguments.push(Argument::Input { path: argument, c });
        }
        let parsed = match &*text {
            "-c" => self.reach(Stage::Object),
            "-S" => self.reach(Stage::Assembly),
            "-o" => {
                self.output = rest.next();
                Argument::Ours
            }
            _ if text.starts_with("-o") && !is_no_output(&text) => {
                self.output = Some(OsStr::from_bytes(&argument.as_bytes()[2..]).to_owned());
                Argument::Ours
            }
            "-x" => {
                let name = rest.next();
                language.clone_from(&name);
                Argument::Language([Some(argument), name].into_iter().flatten().collect())
            }
            _ if text.starts_with("-x") => {
                *language = Some(OsStr::from_bytes(&argument.as_bytes()[2..]).to_owned());
                Argument::Language(vec![argument])
            }
            _ if WITH_VALUE.contains(&&*text) => Argument::Option(
                [Some(argument), rest.next()]
                    .into_iter()
                    .flatten()
                    .collect(),
            ),
            _ => {
                self.note(&text);
                Argument::Option(vec![argument])
            }
        };
        self.arguments.push(parsed);
    }

    /// The earlier of two stages that are asked for (gcc manual, 3.2).
    fn reach(&mut self, stage: Stage) -> Argument {
        let rank = |s: Stage| match s {
            Stage::NoCode => 0,
            Stage::Assembly => 1,
            Stage::Object => 2,
            Stage::Link => 3,
        };
        if rank(stage) < rank(self.stage) {
            self.stage = stage;
        }
        Argument::Ours
    }

    /// Records an option that says how far the compiler goes.
    fn note(&mut self, text: &str) {
        if NO_CODE.contains(&text) || text.starts_with("-print-") || text.starts_with("--help=") {
            self.stage = Stage::NoCode;
        } else if text == "-fno-lto" {
            self.lto = false;
        } else if text == "-flto" || text.starts_with("-flto=") {
            self.lto = true;
        }
    }

    /// The inputs that are C.
    pub fn sources(&self) -> impl Iterator<Item = &OsString> {
        self.arguments.iter().filter_map(|a| match a {
            Argument::Input { path, c: true } => Some(path),
            _ => None,
        })
    }

    /// Arguments for compiling one input to assembly: all but the other inputs and
    /// the options that say where results go.
    pub fn for_compiling(&self, input: &OsStr) -> Vec<OsString> {
        let mut out = Vec::new();
        for argument in &self.arguments {
            match argument {
                Argument::Option(words) if is_for_linker(words) => {}
                Argument::Option(words) | Argument::Language(words) => {
                    out.extend(words.iter().cloned());
                }
                Argument::Input { path, .. } if path == input => out.push(path.clone()),
                Argument::Input { .. } | Argument::Ours => {}
            }
        }
        out
    }

    /// Arguments that the assembler must see.
    pub fn for_assembling(&self) -> Vec<OsString> {
        let options = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Option(words) if is_for_assembler(words) => Some(words),
            _ => None,
        });
        options.flatten().cloned().collect()
    }

    /// Arguments for linking, with `object` in the place of each source.
    pub fn for_linking(&self, mut object: impl FnMut(&OsStr) -> OsString) -> Vec<OsString> {
        let mut out = Vec::new();
        for argument in &self.arguments {
            match argument {
                Argument::Input { path, c: true } => out.push(object(path)),
                Argument::Input { path, c: false } => out.push(path.clone()),
                Argument::Option(words) if !is_dependency(words) => {
                    out.extend(words.iter().cloned());
                }
                Argument::Option(_) | Argument::Language(_) | Argument::Ours => {}
            }
        }
        if let Some(output) = &self.output {
            out.extend(["-o".into(), output.clone()]);
        }
        out
    }

    /// Arguments that keep the dependency file as it is when gcc compiles directly to
    /// an object: gcc derives its name and its target from `-o`, or from the input.
    pub fn dependency_arguments(&self, input: &Path, object: &Path) -> Vec<OsString> {
        let has = |names: &[&str]| {
            self.arguments.iter().any(|a| match a {
                Argument::Option(words) => {
                    let first = words[0].to_string_lossy();
                    names
                        .iter()
                        .any(|n| first == *n || (first.starts_with(n) && n.len() == 3))
                }
                _ => false,
            })
        };
        let mut out: Vec<OsString> = Vec::new();
        let asked = self.arguments.iter().any(|a| {
            matches!(a, Argument::Option(words)
                if matches!(words[0].to_str(), Some("-MD" | "-MMD")))
        });
        if !asked {
            return out;
        }
        if !has(&["-MF"]) {
            let base = match &self.output {
                Some(output) => PathBuf::from(output),
                None => PathBuf::from(input.file_name().unwrap_or_default()),
            };
            out.extend(["-MF".into(), base.with_extension("d").into()]);
        }
        if !has(&["-MT", "-MQ"]) {
            out.extend(["-MQ".into(), object.into()]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> CommandLine {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        CommandLine::parse(&words).expect("no response file")
    }

    fn strings(words: &[OsString]) -> String {
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn stages() {
        assert_eq!(parse("-c a.c -o a.o").stage, Stage::Object);
        assert_eq!(parse("-S -c a.c").stage, Stage::Assembly);
        assert_eq!(parse("-E -c a.c").stage, Stage::NoCode);
        assert_eq!(parse("a.c b.o -lm").stage, Stage::Link);
        assert_eq!(parse("--version").stage, Stage::NoCode);
        assert_eq!(parse("-MD -c a.c").stage, Stage::Object);
    }

    #[test]
    fn inputs_and_values() {
        let line = parse("-I inc -include x.c -x c a.txt -x none b.s c.c -D A=b.c");
        let sources: Vec<_> = line.sources().map(|s| s.to_string_lossy()).collect();
        assert_eq!(sources, ["a.txt", "c.c"]);
    }

    #[test]
    fn each_step_gets_its_arguments() {
        let line = parse("-O2 -Wl,-z,now -Wa,--noexecstack a.c b.c x.o -oprog -lz -MD");
        assert_eq!(
            strings(&line.for_compiling(OsStr::new("a.c"))),
            "-O2 -Wa,--noexecstack a.c -MD"
        );
        assert_eq!(strings(&line.for_assembling()), "-Wa,--noexecstack");
        let link = line.for_linking(|p| Path::new(p).with_extension("t.o").into());
        assert_eq!(
            strings(&link),
            "-O2 -Wl,-z,now -Wa,--noexecstack a.t.o b.t.o x.o -lz -o prog"
        );
    }

    #[test]
    fn dependency_files_keep_their_name_and_target() {
        let of = |line: &str| {
            let arguments =
                parse(line).dependency_arguments(Path::new("d/a.c"), Path::new("o/a.o"));
            strings(&arguments)
        };
        assert_eq!(of("-MD -c d/a.c -o o/a.o"), "-MF o/a.d -MQ o/a.o");
        assert_eq!(of("-MMD -c d/a.c"), "-MF a.d -MQ o/a.o");
        assert_eq!(of("-MMD -MF x -MTy -c d/a.c"), "");
        assert_eq!(of("-Wp,-MMD,x.d -c d/a.c"), "");
    }
}
