//! A compiler's command line, as far as a wrapper must understand it: which inputs
//! are compiled how far, and which arguments belong to which step.
//!
//! [`super::options`] says what each option is; response files are expanded first
//! ([`super::response`]).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::long::{self, Short};
use super::options::{
    Assembly, WITH_VALUE, assembly, has_auxiliary, is_assemblers_help, is_cpp, is_dependency,
    is_for_assembler, is_for_linker, is_halfway, is_no_output, is_refused, is_rewritten,
    makes_no_code, makes_no_code_of_clang, may_include, takes_back,
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
    /// An input; `c` says that it is rewritten.
    Input {
        /// Its name.
        path: OsString,
        /// C, C++ or Fortran, preprocessed or not, or assembly if that is asked for.
        c: bool,
    },
    /// `-x LANGUAGE`: of the inputs after it.
    Language(Vec<OsString>),
    /// `-o FILE`, `-c`, `-S`: the wrapper gives its own for each step.
    Ours,
}

/// What happens to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// C, C++ or Fortran, or assembly if that is asked for: it is rewritten.
    C,
    /// It is assembled, or of another language.
    Source,
    /// It is for the linker.
    Object,
}

impl Kind {
    fn of(path: &OsStr, c: bool) -> Kind {
        let extension = Path::new(path).extension().and_then(OsStr::to_str);
        match extension {
            _ if c => Kind::C,
            Some("o" | "a" | "so" | "lo" | "obj") => Kind::Object,
            _ => Kind::Source,
        }
    }
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
    /// Whether an input is C++.
    pub cpp: bool,
    /// Whether the last option lacks its value.
    pub lacks_value: bool,
    /// An input that a compiler has compiled halfway.
    pub halfway: Option<OsString>,
    /// An option with which nothing can be rewritten, and why.
    pub refused: Option<(String, &'static str)>,
}

impl CommandLine {
    /// Parses the arguments after the compiler's name. `is_gcc` says whether that is gcc, and
    /// is asked only if that matters.
    ///
    /// # Errors
    /// A response file that cannot be read.
    pub fn parse(
        arguments: &[OsString],
        is_gcc: impl Fn() -> bool,
    ) -> Result<CommandLine, (PathBuf, std::io::Error)> {
        let mut expanded = Vec::new();
        expand(arguments, &mut expanded)?;
        let mut line = CommandLine {
            stage: Stage::Link,
            arguments: Vec::new(),
            output: None,
            cpp: false,
            lacks_value: false,
            halfway: None,
            refused: None,
        };
        let mut language: Option<OsString> = None;
        let mut rest = VecDeque::from(expanded);
        while let Some(argument) = rest.pop_front() {
            let argument = match long::short(&argument, &is_gcc) {
                None => argument,
                Some(Short::Option(short, value)) => {
                    value.into_iter().for_each(|value| rest.push_front(value));
                    short.into()
                }
                Some(Short::Joined(option)) => option,
                Some(Short::Joining(short)) => {
                    line.lacks_value |= rest.is_empty();
                    let mut option = OsString::from(short);
                    option.push(rest.pop_front().unwrap_or_default());
                    option
                }
            };
            line.argument(argument, &mut rest, &mut language, &is_gcc);
        }
        Ok(line)
    }

    /// The same, with assembly sources rewritten, too, where objects are made.
    pub fn with_assembly(mut self) -> CommandLine {
        let makes_objects = matches!(self.stage, Stage::Object | Stage::Link);
        let mut language = None;
        for argument in self.arguments.iter_mut().filter(|_| makes_objects) {
            match argument {
                Argument::Language(words) => language = Some(of_language(words)),
                Argument::Input { path, c } => {
                    *c |= assembly(path, language.as_deref()).is_some();
                }
                Argument::Option(_) | Argument::Ours => {}
            }
        }
        self
    }

    /// What kind of assembly the source with this number is, of those that are rewritten.
    pub fn assembly(&self, source: usize) -> Option<Assembly> {
        let mut language = None;
        let mut sources = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Language(words) => {
                language = Some(of_language(words));
                None
            }
            Argument::Input { path, c: true } => Some(assembly(path, language.as_deref())),
            _ => None,
        });
        sources.nth(source).flatten()
    }

    fn argument(
        &mut self,
        argument: OsString,
        rest: &mut VecDeque<OsString>,
        language: &mut Option<OsString>,
        is_gcc: impl Fn() -> bool,
    ) {
        let text = argument.to_string_lossy().into_owned();
        if text == "-" || !text.starts_with('-') {
            let c = is_rewritten(&argument, language.as_deref());
            self.cpp |= is_cpp(&argument, language.as_deref());
            if is_halfway(&argument, language.as_deref()) {
                self.halfway = Some(argument.clone());
            }
            return self.arguments.push(Argument::Input { path: argument, c });
        }
        // clang has `-h` without a value.
        let valued = WITH_VALUE.contains(&&*text) || text == "-h" && is_gcc();
        self.lacks_value |= (valued || ["-o", "-x"].contains(&&*text)) && rest.is_empty();
        let parsed = match &*text {
            "-c" => self.reach(Stage::Object),
            "-S" => self.reach(Stage::Assembly),
            "-o" => {
                self.output = rest.pop_front();
                Argument::Ours
            }
            _ if text.starts_with("-o") && !is_no_output(&text) => {
                self.output = Some(OsStr::from_bytes(&argument.as_bytes()[2..]).to_owned());
                Argument::Ours
            }
            "-x" => {
                let name = rest.pop_front();
                language.clone_from(&name);
                Argument::Language([Some(argument), name].into_iter().flatten().collect())
            }
            _ if text.starts_with("-x") => {
                *language = Some(OsStr::from_bytes(&argument.as_bytes()[2..]).to_owned());
                Argument::Language(vec![argument])
            }
            _ if valued => {
                let value = rest.pop_front();
                if text == "-Xclang" {
                    self.note_of_clang(&value.as_deref().unwrap_or_default().to_string_lossy());
                }
                Argument::Option([Some(argument), value].into_iter().flatten().collect())
            }
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
        if makes_no_code(text) {
            self.stage = Stage::NoCode;
        } else if let Some(why) = is_refused(text) {
            self.refused = Some((text.to_owned(), why));
        } else {
            self.refused
                .take_if(|(refused, _)| takes_back(text, refused));
        }
    }

    /// The same for what follows `-Xclang`.
    fn note_of_clang(&mut self, value: &str) {
        if makes_no_code_of_clang(value) {
            self.stage = Stage::NoCode;
        } else {
            self.note(value);
        }
    }

    fn options(&self) -> impl Iterator<Item = &[OsString]> {
        self.arguments.iter().filter_map(|a| match a {
            Argument::Option(words) => Some(&**words),
            Argument::Input { .. } | Argument::Language(_) | Argument::Ours => None,
        })
    }

    /// Whether an option is given.
    pub fn has(&self, option: &str) -> bool {
        self.options().any(|words| words[0] == option)
    }

    /// The value of the last option that begins so.
    pub fn last(&self, prefix: &str) -> Option<String> {
        let values = self.options().filter_map(|words| {
            let word = words[0].to_string_lossy();
            word.strip_prefix(prefix).map(str::to_owned)
        });
        values.last()
    }

    /// The value of the last option of this name, where it is an argument of its own.
    pub fn value(&self, option: &str) -> Option<&OsStr> {
        let given = self.options().filter(|words| words[0] == option);
        given.last()?.get(1).map(OsString::as_os_str)
    }

    /// Whether an option has this value, which is an argument of its own.
    pub fn has_value(&self, option: &str, value: &str) -> bool {
        self.options()
            .any(|words| words[0] == option && words.get(1).is_some_and(|given| given == value))
    }

    /// Whether one of these is given.
    pub fn any(&self, options: &[&str]) -> bool {
        options.iter().any(|option| self.has(option))
    }

    /// Whether the compiler leaves files beside its output.
    pub fn has_auxiliary(&self) -> bool {
        self.options()
            .any(|words| has_auxiliary(&words[0].to_string_lossy()))
    }

    /// Whether nothing is assembled, because the assembler is asked for its help.
    fn asks_the_assembler(&self) -> bool {
        let assembles = matches!(self.stage, Stage::Object | Stage::Link);
        assembles && self.options().any(is_assemblers_help)
    }

    /// Whether debug information goes to a file of its own.
    pub fn splits_debug(&self) -> bool {
        let said = self.options().filter_map(|words| match words[0].to_str()? {
            "-gsplit-dwarf" | "-gsplit-dwarf=split" => Some(true),
            "-gno-split-dwarf" | "-gsplit-dwarf=single" => Some(false),
            _ => None,
        });
        said.last().unwrap_or(false)
    }

    /// Where intermediate files are kept, if they are: what follows the last `-save-temps`
    /// (`=obj`, `=cwd`).
    pub fn temporaries(&self) -> Option<&'static str> {
        let kept = self.options().filter_map(|words| match words[0].to_str()? {
            "-save-temps" => Some(""),
            "-save-temps=cwd" | "--save-temps=cwd" => Some("=cwd"),
            "-save-temps=obj" | "-save-temps=object" | "--save-temps=obj" => Some("=obj"),
            _ => None,
        });
        kept.last()
    }

    /// Whether an option that begins with `later` comes after the last one that begins
    /// with `option`.
    pub fn is_later(&self, later: &str, option: &str) -> bool {
        let place = |prefix: &str| {
            let all = self.options().enumerate();
            let begins = |words: &[OsString]| words[0].as_bytes().starts_with(prefix.as_bytes());
            let found = all.filter(|(_, words)| begins(words)).last();
            found.map(|(n, _)| n)
        };
        place(later) > place(option)
    }

    /// Whether an input is the output.
    pub fn overwrites_an_input(&self) -> bool {
        let real = |path: &OsStr| std::fs::canonicalize(path).ok();
        let Some(output) = self.output.as_deref().and_then(real) else {
            return false;
        };
        self.inputs()
            .any(|(path, _)| real(path).is_some_and(|path| path == output))
    }

    /// Whether a response file could not be read.
    pub fn misses_words(&self) -> bool {
        let mut inputs = self.inputs();
        inputs.any(|(path, _)| path.as_bytes().starts_with(b"@") && !Path::new(path).exists())
    }

    /// Whether an input is not there.
    pub fn misses_an_input(&self) -> bool {
        let mut inputs = self.inputs();
        inputs.any(|(path, _)| path != "-" && !Path::new(path).exists())
    }

    /// All inputs.
    pub fn inputs(&self) -> impl Iterator<Item = (&OsStr, Kind)> {
        self.arguments.iter().filter_map(|a| match a {
            Argument::Input { path, c } => Some((&**path, Kind::of(path, *c))),
            Argument::Option(_) | Argument::Language(_) | Argument::Ours => None,
        })
    }

    /// Arguments for the input with this number alone, which is not rewritten.
    pub fn for_other(&self, input: usize) -> Vec<OsString> {
        let mut out = self.alone(input, |_| true);
        out.push(match self.stage {
            Stage::Assembly => "-S".into(),
            Stage::NoCode | Stage::Object | Stage::Link => "-c".into(),
        });
        out
    }

    /// The options that are wanted, and the input with this number with its language. What
    /// is the language of others after it is left out: compilers warn of it.
    fn alone(&self, input: usize, wanted: impl Fn(&[OsString]) -> bool) -> Vec<OsString> {
        let mut out = Vec::new();
        let count = self.inputs().count();
        let mut inputs = 0;
        for argument in &self.arguments {
            match argument {
                Argument::Option(words) if wanted(words) => out.extend(words.iter().cloned()),
                Argument::Language(words) if inputs <= input || input + 1 == count => {
                    out.extend(words.iter().cloned());
                }
                Argument::Input { path, .. } => {
                    if inputs == input {
                        out.push(path.clone());
                    }
                    inputs += 1;
                }
                Argument::Option(_) | Argument::Language(_) | Argument::Ours => {}
            }
        }
        out
    }

    /// The inputs that are rewritten.
    pub fn sources(&self) -> impl Iterator<Item = &OsString> {
        self.arguments.iter().filter_map(|a| match a {
            Argument::Input { path, c: true } => Some(path),
            _ => None,
        })
    }

    /// Whether code is made of an input. `/dev/null`, which builds compile to learn what a
    /// compiler knows, has none unless an option brings some along.
    pub fn compiles(&self) -> bool {
        let included = || self.options().any(may_include);
        let mut sources = self.sources();
        self.halfway.is_some() || sources.any(|path| path != "/dev/null" || included())
    }

    /// Whether the compiler only prints or checks something.
    pub fn makes_no_code(&self) -> bool {
        let taken_back = self.has("-fno-syntax-only");
        self.stage == Stage::NoCode && !taken_back || self.asks_the_assembler()
    }

    /// Arguments for compiling the source with this number to assembly: all but the other
    /// inputs and the options that say where results go.
    pub fn for_compiling(&self, source: usize) -> Vec<OsString> {
        let inputs = self.inputs().enumerate();
        let mut sources = inputs.filter(|(_, (_, kind))| *kind == Kind::C);
        let input = sources.nth(source).map_or(usize::MAX, |(n, _)| n);
        self.alone(input, |words| !is_for_linker(words))
    }

    /// Arguments that the assembler must see. A listing is made once, of the `last` text,
    /// and debug information is compressed in its object alone.
    pub fn for_assembling(&self, last: bool) -> Vec<OsString> {
        let once = |words: &[OsString]| {
            let first = words[0].to_string_lossy();
            first.starts_with("-Wa,-a") || first.starts_with("-gz")
        };
        self.options()
            .filter(|words| is_for_assembler(words) && (last || !once(words)))
            .flatten()
            .cloned()
            .collect()
    }

    /// What the assembler itself is told, word by word.
    pub fn assemblers_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for option in self.options() {
            let last = option[option.len() - 1].to_string_lossy();
            match last.strip_prefix("-Wa,") {
                Some(several) => words.extend(several.split(',').map(str::to_owned)),
                None if option[0] == "-Xassembler" => words.push(last.into_owned()),
                None => {}
            }
        }
        words
    }

    /// Arguments for linking, with `object` in the place of each source. Inputs of other
    /// languages keep theirs; an object has none.
    pub fn for_linking(&self, mut object: impl FnMut(&OsStr) -> OsString) -> Vec<OsString> {
        let none = OsStr::new("none");
        let (mut out, mut language, mut said) = (Vec::new(), none.to_owned(), none.to_owned());
        let mut say = |out: &mut Vec<OsString>, wanted: &OsStr| {
            if said != wanted {
                out.extend(["-x".into(), wanted.to_owned()]);
                wanted.clone_into(&mut said);
            }
        };
        let depends = self.link_tells_dependencies();
        for argument in &self.arguments {
            match argument {
                Argument::Input { path, c: true } => {
                    say(&mut out, none);
                    out.push(object(path));
                }
                Argument::Input { path, c: false } => {
                    say(&mut out, &language);
                    out.push(path.clone());
                }
                Argument::Option(words) if depends || !is_dependency(words) => {
                    out.extend(words.iter().cloned());
                }
                Argument::Language(words) => language = of_language(words),
                Argument::Option(_) | Argument::Ours => {}
            }
        }
        if let Some(output) = &self.output {
            out.extend(["-o".into(), output.clone()]);
        }
        out
    }

    /// Whether the command that links also writes dependency files: of what is preprocessed
    /// only there. In one file, each source replaces what the one before has left.
    fn link_tells_dependencies(&self) -> bool {
        let by_name = self.any(&["-MD", "-MMD"]) && self.output.is_none();
        let of_each = by_name && self.last("-MF").is_none();
        let kinds = self.inputs().map(|(_, kind)| kind);
        let mut sources = kinds.filter(|kind| *kind != Kind::Object);
        match of_each {
            true => sources.any(|kind| kind == Kind::Source),
            false => sources.last() == Some(Kind::Source),
        }
    }

    /// Arguments that keep the dependency file as it is when the compiler goes directly to
    /// an object: it derives the file's name and target from `-o`, or from the input.
    /// `clang` says whether it is clang, which does so for `-Wp,-MD,FILE` too.
    pub fn dependency_arguments(
        &self,
        input: &Path,
        object: &Path,
        clang: impl Fn() -> bool,
    ) -> Vec<OsString> {
        let starts = |prefixes: &[&str]| {
            self.options().any(|words| {
                let first = words[0].to_string_lossy();
                prefixes.iter().any(|prefix| first.starts_with(prefix))
            })
        };
        let mut out: Vec<OsString> = Vec::new();
        let asked = self.any(&["-MD", "-MMD"]);
        let by_preprocessor = !asked && starts(&["-Wp,-MD", "-Wp,-MMD"]);
        if !(asked || by_preprocessor && clang()) {
            return out;
        }
        let own = |extension: &str| {
            let name = input.file_name().unwrap_or_default();
            Path::new(name).with_extension(extension)
        };
        let output = self.output.as_ref().map(PathBuf::from);
        if asked && !starts(&["-MF"]) {
            let base = match &output {
                Some(output) => output.clone(),
                None if self.stage == Stage::Link && !clang() => {
                    let name = own("d");
                    PathBuf::from(format!("a-{}", name.display()))
                }
                None => own("d"),
            };
            out.extend(["-MF".into(), base.with_extension("d").into()]);
        }
        if !starts(&["-MT", "-MQ"]) {
            let target = match self.stage {
                Stage::Link => output.unwrap_or_else(|| own("o")),
                Stage::Assembly => output.unwrap_or_else(|| own("o")),
                Stage::NoCode | Stage::Object => object.to_owned(),
            };
            out.extend(["-MQ".into(), target.into()]);
        }
        out
    }
}

/// The language that `-x C` or `-xC` says.
fn of_language(words: &[OsString]) -> OsString {
    match words {
        [_, language] => language.clone(),
        [joined] => OsStr::from_bytes(&joined.as_bytes()[2..]).to_owned(),
        _ => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> CommandLine {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        CommandLine::parse(&words, || true).expect("no response file")
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
        assert_eq!(parse("-v -c a.c").stage, Stage::Object);
        assert_eq!(parse("--compile a.c --output b.o").stage, Stage::Object);
        assert_eq!(parse("--analyze a.c").stage, Stage::NoCode);
        assert_eq!(parse("--print-file-name=x -c a.c").stage, Stage::NoCode);
        assert_eq!(parse("-MD -c a.c").stage, Stage::Object);
        assert_eq!(parse("--syntax-only -c a.c").stage, Stage::NoCode);
        assert_eq!(parse("-Xclang -ast-dump -c a.c").stage, Stage::NoCode);
    }

    #[test]
    fn inputs_and_values() {
        let line = parse("-I inc -include x.c -x c a.txt -x none b.s c.c -D A=b.c");
        let sources: Vec<_> = line.sources().map(|s| s.to_string_lossy()).collect();
        assert_eq!(sources, ["a.txt", "c.c"]);
        let line = parse("--include x.c --define-macro y.c --language=c a.txt --output=b.c");
        let sources: Vec<_> = line.sources().map(|s| s.to_string_lossy()).collect();
        assert_eq!(sources, ["a.txt"]);
        assert_eq!(line.output.as_deref(), Some(OsStr::new("b.c")));
        assert_eq!(
            strings(&line.for_compiling(0)),
            "-include x.c -D y.c -x c a.txt"
        );
    }

    #[test]
    fn a_source_that_is_named_twice_is_two_sources() {
        let line = parse("-c a.c a.c -O1");
        assert_eq!(line.sources().count(), 2);
        assert_eq!(strings(&line.for_compiling(0)), "a.c -O1");
        assert_eq!(strings(&line.for_compiling(1)), "a.c -O1");
    }

    #[test]
    fn options_that_nothing_can_be_rewritten_with() {
        let of = |line: &str| parse(line).refused.map(|(option, _)| option);
        assert_eq!(of("-flto=thin -c a.c").as_deref(), Some("-flto=thin"));
        assert_eq!(of("-flto -fno-lto -c a.c"), None);
        assert_eq!(of("-emit-llvm -c a.c").as_deref(), Some("-emit-llvm"));
        assert_eq!(
            of("-Xclang -emit-llvm -c a.c").as_deref(),
            Some("-emit-llvm")
        );
        assert_eq!(of("-m32 -fno-lto a.c").as_deref(), Some("-m32"));
        assert_eq!(of("-m32 -m64 a.c"), None);
        assert_eq!(of("--machine=x32 a.c").as_deref(), Some("-mx32"));
        assert_eq!(of("--machine 32 a.c").as_deref(), Some("-m32"));
        assert_eq!(of("--lto --no-lto a.c"), None);
        let triple = of("-Xclang -triple -Xclang x86_64-linux-gnux32 a.c");
        assert_eq!(triple.as_deref(), Some("-triple"));
    }

    #[test]
    fn each_step_gets_its_arguments() {
        let line = parse("-O2 -Wl,-z,now -Wa,--noexecstack -gz -I i a.c b.c x.o -oprog -lz -MD");
        assert_eq!(
            strings(&line.for_compiling(0)),
            "-O2 -Wa,--noexecstack -gz -I i a.c -MD"
        );
        assert_eq!(
            strings(&line.for_assembling(true)),
            "-Wa,--noexecstack -gz -I i"
        );
        assert_eq!(
            strings(&line.for_assembling(false)),
            "-Wa,--noexecstack -I i"
        );
        let link = line.for_linking(|p| Path::new(p).with_extension("t.o").into());
        assert_eq!(
            strings(&link),
            "-O2 -Wl,-z,now -Wa,--noexecstack -gz -I i a.t.o b.t.o x.o -lz -o prog"
        );
    }

    #[test]
    fn the_link_tells_dependencies_of_what_it_preprocesses() {
        let of = |line: &str| strings(&parse(line).for_linking(|_| "t.o".into()));
        assert_eq!(of("-MMD a.c b.S"), "-MMD t.o b.S");
        assert_eq!(of("-MMD b.S a.c -o p"), "b.S t.o -o p");
        assert_eq!(of("-Wp,-DX -MD -MF d a.c b.S"), "-Wp,-DX -MD -MF d t.o b.S");
        assert_eq!(of("-Wp,-MMD,d -Wp,-DX a.c b.o"), "-Wp,-DX t.o b.o");
    }

    #[test]
    fn languages_stay_with_their_inputs() {
        let of = |line: &str| strings(&parse(line).for_linking(|_| "t.o".into()));
        assert_eq!(
            of("a.c -x assembler b.asm -o p"),
            "t.o -x assembler b.asm -o p"
        );
        assert_eq!(
            of("-x c a.txt -xassembler b.asm -x c c.txt -x none d.o"),
            "t.o -x assembler b.asm -x none t.o d.o"
        );
    }

    #[test]
    fn dependency_files_keep_their_name_and_target() {
        let of = |line: &str| {
            let arguments =
                parse(line).dependency_arguments(Path::new("d/a.c"), Path::new("o/a.o"), || false);
            strings(&arguments)
        };
        assert_eq!(of("-MD -c d/a.c -o o/a.o"), "-MF o/a.d -MQ o/a.o");
        assert_eq!(of("-MMD -c d/a.c"), "-MF a.d -MQ o/a.o");
        assert_eq!(of("-MD d/a.c -o b/p.bin"), "-MF b/p.d -MQ b/p.bin");
        assert_eq!(of("-MD d/a.c"), "-MF a-a.d -MQ a.o");
        assert_eq!(of("-MMD -MF x -MTy -c d/a.c"), "");
        assert_eq!(of("-Wp,-MMD,x.d -c d/a.c"), "");
    }
}
