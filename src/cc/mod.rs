//! A compiler that rewrites what it compiles.
//!
//! ```text
//! C ──compiler -S──> .s ──marked──> assembler ──> object
//!                     └──────────── rewritten with it ──> .s ──assembler──> .o
//! ```
//!
//! The compiler itself runs the assembler, so that both texts get the same assembler
//! with the same options.

mod arguments;
mod auxiliary;
mod compiler;
mod long;
mod options;
mod response;

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use command_line::child;
use command_line::failure::Failure;
use command_line::input::{describe, printable};
use command_line::output::{Destination, Pending};
use command_line::temporary::ScratchDirectory;
use svm_rewrite::Options;
use svm_rewrite::text::{Printed, Returns};

use arguments::Kind;
pub use arguments::{CommandLine, Stage};
use auxiliary::Auxiliary;
pub use auxiliary::Family;
pub use compiler::Compiler;
use options::Assembly;

use crate::source;

/// Why there is no result.
#[derive(Debug)]
pub enum Stop {
    /// A program failed and has said why.
    Exit(ExitStatus),
    /// This program has something to say.
    Failure(Failure),
}

/// Several inputs, one after another: as compilers do, one with errors does not keep the
/// others from being compiled.
#[derive(Debug, Default)]
struct Done {
    failed: Option<ExitStatus>,
}

impl Done {
    fn note<T>(&mut self, result: Result<T, Stop>) -> Result<Option<T>, Stop> {
        match result {
            Ok(value) => Ok(Some(value)),
            // A signal ends it all.
            Err(Stop::Exit(status)) if status.code().is_some() => {
                self.failed = Some(status);
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    fn end(self) -> Result<(), Stop> {
        self.failed.map_or(Ok(()), |status| Err(Stop::Exit(status)))
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

/// What was compiled, for the report.
#[derive(Debug)]
pub struct Compiled {
    pub source: PathBuf,
    /// The result of rewriting it.
    pub printed: Printed,
}

/// A compiler, its arguments, and what to do.
pub struct Job<'j> {
    pub compiler: Compiler<'j>,
    /// Its arguments as they were given.
    pub given: &'j [OsString],
    /// The same, understood.
    pub line: CommandLine,
    /// How to rewrite.
    pub options: Options,
    /// What the compiler is, once it has been asked.
    pub family: OnceCell<Family>,
}

impl Job<'_> {
    /// Does what the command line asks for.
    pub fn run(&self) -> Result<Vec<Compiled>, Stop> {
        let to_nowhere = self.line.output.as_deref() == Some(OsStr::new("/dev/null"));
        if !self.line.compiles() || self.line.makes_no_code() || to_nowhere {
            self.execute(self.compiler.command().args(self.given))?;
            return Ok(Vec::new());
        }
        if let Some(path) = &self.line.halfway {
            let why = "is compiled halfway, and the rest is not rewritten; compile its source";
            let path = printable(Path::new(path));
            return Err(Failure::Usage(format!("{path} {why}")).into());
        }
        if let Some((option, why)) = &self.line.refused {
            return Err(Failure::Usage(format!("{option} {why}")).into());
        }
        self.let_the_compiler_refuse()?;
        let scratch = ScratchDirectory::create("twin-cc-");
        let scratch =
            scratch.map_err(|e| Failure::access("a temporary directory", describe(&e)))?;
        match self.line.stage {
            Stage::Link => self.link(&scratch),
            Stage::NoCode | Stage::Assembly | Stage::Object => self.compile_all(&scratch),
        }
    }

    /// What a compiler refuses before it compiles anything, with its own message.
    fn let_the_compiler_refuse(&self) -> Result<(), Stop> {
        let line = &self.line;
        let refused = line.lacks_value
            || line.misses_words()
            || match self.family_if(line.misses_an_input() || line.overwrites_an_input()) {
                // An output that is an input would be lost.
                Some(Family::Gcc) => line.overwrites_an_input(),
                // It looks for all of them first.
                Some(Family::Clang { .. }) => line.misses_an_input(),
                None => false,
            };
        if !(refused && self.driver_refuses()) {
            return Ok(());
        }
        self.execute(self.compiler.command().args(self.given))?;
        let why = "the compiler takes a command line that was expected to be wrong";
        Err(Failure::Usage(why.to_owned()).into())
    }

    /// Asks the compiler what it is, where that matters.
    fn family_if(&self, matters: bool) -> Option<Family> {
        matters.then(|| self.family())
    }

    /// Whether the compiler would not begin with the first of several inputs: it says so once.
    fn refuses_options(&self) -> bool {
        self.line.inputs().count() > 1 && self.driver_refuses()
    }

    /// Whether the compiler refuses the command line, whatever is in the inputs.
    fn driver_refuses(&self) -> bool {
        let mut command = self.compiler.command();
        // First, where it is no option's value.
        let answer = command.arg("-###").args(self.given).output();
        answer.is_ok_and(|answer| {
            // clang has status 0 all the same.
            let said = String::from_utf8_lossy(&answer.stderr);
            !answer.status.success() || said.contains("clang: error: ")
        })
    }

    /// Every source to its own output.
    fn compile_all(&self, scratch: &ScratchDirectory) -> Result<Vec<Compiled>, Stop> {
        let sources = self.line.inputs().filter(|(_, kind)| *kind != Kind::Object);
        if sources.count() > 1 && self.line.output.is_some() {
            // The compiler has a message for this.
            self.execute(self.compiler.command().args(self.given))?;
        }
        let mut compiled = Vec::new();
        let mut number = 0..;
        let mut done = Done::default();
        for (n, (path, kind)) in self.line.inputs().enumerate() {
            match kind {
                Kind::C => {
                    let source = (number.next().unwrap_or_default(), path);
                    let one = self.compile(scratch, source, &self.own_output(path));
                    compiled.extend(done.note(one)?);
                }
                Kind::Source => {
                    let mut command = self.compiler.command();
                    done.note(self.execute(command.args(self.line.for_other(n))))?;
                }
                Kind::Object => {}
            }
            if n == 0 && done.failed.is_some() && self.refuses_options() {
                break;
            }
        }
        // gcc has something to say of these, too: last.
        for (n, (_, kind)) in self.line.inputs().enumerate() {
            if kind == Kind::Object && self.family() == Family::Gcc {
                let mut command = self.compiler.command();
                done.note(self.execute(command.args(self.line.for_other(n))))?;
            }
        }
        done.end().map(|()| compiled)
    }

    /// Where a source's result goes.
    fn own_output(&self, source: &OsStr) -> PathBuf {
        let extension = match self.line.stage {
            Stage::Assembly => "s",
            Stage::NoCode | Stage::Object | Stage::Link => "o",
        };
        let own = || {
            let name = Path::new(source).file_name().unwrap_or(source);
            Path::new(name).with_extension(extension)
        };
        self.line.output.as_ref().map_or_else(own, PathBuf::from)
    }

    /// Compiles every source to an object in the temporary directory, then links all.
    fn link(&self, scratch: &ScratchDirectory) -> Result<Vec<Compiled>, Stop> {
        let mut compiled = Vec::new();
        let mut objects = Vec::new();
        let mut done = Done::default();
        for (n, source) in self.line.sources().enumerate() {
            let object = scratch.path().join(format!("{n}.o"));
            compiled.extend(done.note(self.compile(scratch, (n, source), &object))?);
            objects.push(object.into_os_string());
            if n == 0 && done.failed.is_some() && self.refuses_options() {
                return done.end().map(|()| compiled);
            }
        }
        if done.failed.is_some() {
            // Nothing is linked, but the compiler says what is wrong with the others.
            for (n, (_, kind)) in self.line.inputs().enumerate() {
                if kind == Kind::Source {
                    let mut command = self.compiler.command();
                    command.args(self.line.for_other(n)).arg("-o");
                    done.note(self.execute(command.arg(scratch.path().join("other.o"))))?;
                }
            }
        }
        done.end()?;
        let mut objects = objects.into_iter();
        let arguments = self
            .line
            .for_linking(|_| objects.next().unwrap_or_default());
        let mut command = self.compiler.command();
        command.args(arguments);
        if self.is_clang() {
            // What is for compiling has been used.
            command.arg("-Wno-unused-command-line-argument");
        }
        self.execute(&mut command)?;
        Ok(compiled)
    }

    /// The source with this number among those that are rewritten, and its name.
    fn compile(
        &self,
        scratch: &ScratchDirectory,
        (n, source): (usize, &OsStr),
        output: &Path,
    ) -> Result<Compiled, Stop> {
        refuse_unprintable(Path::new(source))?;
        // A directory for each: clang leaves files there.
        let own = scratch.directory();
        let own = own.map_err(|e| Failure::access("a temporary directory", describe(&e)))?;
        let kind = self.line.assembly(n);
        let auxiliary = (self.line.has_auxiliary() && kind.is_none())
            .then(|| Auxiliary::of(&self.line, self.family(), Path::new(source)));
        let assembly = match &auxiliary {
            None if kind == Some(Assembly::AsIs) => file_of(source),
            Some(auxiliary) => auxiliary.assembly(&own),
            None => own.join("original.s"),
        };
        let mut command = self.to_assembly((n, source), output, &assembly, auxiliary.as_ref());
        // gcc has not begun with an object then.
        let keeps = self.line.stage == Stage::Object && !self.line.has("-pipe") && !self.is_clang();
        let discard = |_: &Stop| self.discard(output);
        if kind != Some(Assembly::AsIs) {
            let done = self.execute(&mut command);
            done.inspect_err(|stop| {
                if !keeps {
                    discard(stop)
                }
            })?;
        }
        let text = std::fs::read(&assembly)
            .map_err(|e| Failure::access(printable(&assembly), describe(&e)))?;
        if kind.is_some() && source != "-" {
            // What the assembler refuses is told by the source's own lines.
            let checked = self.assemble_file(&assembly, &own.join("checked.o"), false);
            checked.inspect_err(discard)?;
        }
        let printed = self.rewrite(scratch, (n, source), &text);
        let printed = printed.inspect_err(discard)?;
        self.put(scratch, &printed.text, output)?;
        if let Some(auxiliary) = &auxiliary {
            self.leave(&own, &assembly, auxiliary, output, &printed.text)?;
        } else if kind == Some(Assembly::Preprocessed) {
            let names = Auxiliary::of(&self.line, self.family(), Path::new(source));
            self.leave_temporaries(&names, output, &printed.text)?;
        }
        if let Some(file) = auxiliary::assemblers_dependencies(&self.line) {
            self.name_source(&file, &rewritten_in(scratch), Path::new(source))?;
        }
        Ok(Compiled {
            source: source.into(),
            printed,
        })
    }

    /// The command that compiles the source with this number.
    fn to_assembly(
        &self,
        (n, source): (usize, &OsStr),
        output: &Path,
        assembly: &Path,
        auxiliary: Option<&Auxiliary>,
    ) -> Command {
        let line = &self.line;
        let mut command = self.compiler.command();
        command.args(line.for_compiling(n));
        command.args(line.dependency_arguments(Path::new(source), output, || self.is_clang()));
        if let Some(auxiliary) = auxiliary {
            command.args(auxiliary.options(line, assembly));
        }
        let traps = line.has_value("-mllvm", "-trap-unreachable");
        if (line.cpp || self.compiler.is_for_cpp()) && !traps && self.is_clang() {
            // At -O0 a call that throws would be followed by a jump behind the function.
            command.args(["-mllvm", "-trap-unreachable"]);
        }
        if line.stage == Stage::Link && self.is_clang() {
            // What is for the linker is used later.
            command.arg("-Wno-unused-command-line-argument");
        }
        let makes_text = match line.assembly(n) {
            None => "-S",
            Some(_) => "-E",
        };
        command.args([makes_text, "-o"]).arg(assembly);
        command
    }

    /// The rewritten text becomes what the command line asks for.
    fn put(&self, scratch: &ScratchDirectory, text: &[u8], output: &Path) -> Result<(), Stop> {
        match self.line.stage {
            Stage::Assembly if output == Path::new("-") => {
                Ok(Pending::create(&Destination::Stdout)?.finish_with(text)?)
            }
            Stage::Assembly => match write(output, text) {
                Ok(()) => Ok(()),
                Err(failure) => {
                    // The compiler cannot write there either, and says so.
                    self.execute(self.compiler.command().args(self.given))?;
                    Err(failure.into())
                }
            },
            Stage::NoCode | Stage::Object | Stage::Link => self
                .assemble(&rewritten_in(scratch), text, output, true)
                .inspect_err(|_| self.discard(output)),
        }
    }

    /// Removes an older output: what it was made from has errors now.
    fn discard(&self, output: &Path) {
        let file = output.symlink_metadata().is_ok_and(|old| old.is_file());
        if file && !self.line.overwrites_an_input() {
            // It stays if it cannot be removed; the error is told all the same.
            let _ = std::fs::remove_file(output);
        }
    }

    /// Leaves auxiliary files where the compiler would.
    fn leave(
        &self,
        own: &Path,
        assembly: &Path,
        auxiliary: &Auxiliary,
        output: &Path,
        text: &[u8],
    ) -> Result<(), Stop> {
        let left =
            std::fs::read_dir(own).map_err(|e| Failure::access(printable(own), describe(&e)))?;
        for entry in left.filter_map(Result::ok).filter(|e| e.path() != assembly) {
            if let Some(to) = auxiliary.place(Path::new(&entry.file_name())) {
                std::fs::copy(entry.path(), &to)
                    .map_err(|e| Failure::access(printable(&to), describe(&e)))?;
            }
        }
        if self.line.stage == Stage::Assembly {
            return Ok(());
        }
        // clang leaves no file if there is no debug information; gcc does.
        let has_parts = || text.windows(4).any(|four| four == b".dwo");
        if self.line.splits_debug() && (self.family() == Family::Gcc || has_parts()) {
            // A name that begins with a dash is no option then.
            let dotted = |path: &Path| Path::new(".").join(path);
            let (split, output) = (dotted(&auxiliary.named(".dwo")), dotted(output));
            let objcopy = |option: &str, to: Option<&Path>| {
                self.execute(Command::new("objcopy").arg(option).arg(&output).args(to))
            };
            objcopy("--extract-dwo", Some(&split))?;
            objcopy("--strip-dwo", None)?;
        }
        self.leave_temporaries(auxiliary, output, text)
    }

    /// Leaves intermediate files, if they are asked for.
    fn leave_temporaries(&self, names: &Auxiliary, output: &Path, text: &[u8]) -> Result<(), Stop> {
        if self.line.temporaries().is_none() {
            return Ok(());
        }
        write(&names.temporary_named(".s"), text)?;
        if self.line.stage == Stage::Link {
            let to = names.temporary_named(".o");
            std::fs::copy(output, &to)
                .map_err(|e| Failure::access(printable(&to), describe(&e)))?;
        }
        Ok(())
    }

    /// Names the source in a file of dependencies, where the assembler names what it was given.
    fn name_source(&self, file: &Path, given: &Path, source: &Path) -> Result<(), Stop> {
        let Ok(text) = std::fs::read_to_string(file) else {
            // It is asked for, and was not written: nothing was assembled.
            return Ok(());
        };
        let [given, source] = [given, source].map(|path| path.to_string_lossy().into_owned());
        Ok(write(file, text.replace(&given, &source).as_bytes())?)
    }

    /// Asks the compiler what it is, once.
    fn family(&self) -> Family {
        *self.family.get_or_init(|| self.compiler.family())
    }

    fn is_clang(&self) -> bool {
        matches!(self.family(), Family::Clang { .. })
    }

    fn rewrite(
        &self,
        scratch: &ScratchDirectory,
        (n, source): (usize, &OsStr),
        text: &[u8],
    ) -> Result<Printed, Stop> {
        let name = match self.line.assembly(n) {
            None => format!("{} (its assembly)", printable(Path::new(source))),
            Some(Assembly::AsIs) => printable(Path::new(source)),
            Some(Assembly::Preprocessed) => {
                format!("{} (preprocessed)", printable(Path::new(source)))
            }
        };
        let thunk = self.line.last("-mfunction-return=").as_deref() == Some("thunk-extern");
        let returns = thunk.then_some(Returns::Thunk);
        source::rewrite(&name, text, self.options, returns, |marked| {
            let object = scratch.path().join("marked.o");
            self.assemble(&scratch.path().join("marked.s"), marked, &object, false)?;
            let read = std::fs::read(&object);
            read.map_err(|e| Failure::access(printable(&object), describe(&e)).into())
        })
    }

    /// Assembles a text through a file, which a person can read if the assembler
    /// complains. What it says of a text that is not the `last` one is told only if it fails.
    fn assemble(&self, path: &Path, text: &[u8], output: &Path, last: bool) -> Result<(), Stop> {
        write(path, text)?;
        self.assemble_file(path, output, last)
    }

    /// The same for a text that is in a file.
    fn assemble_file(&self, path: &Path, output: &Path, last: bool) -> Result<(), Stop> {
        let mut command = self.compiler.command();
        command.args(self.line.for_assembling(last));
        command.args(["-c", "-x", "assembler"]).arg(path);
        command.arg("-o").arg(output);
        if last {
            return self.execute(&mut command);
        }
        let said = output.with_extension("said");
        let unwritten = |e| Failure::access(printable(&said), describe(&e));
        let file = std::fs::File::create(&said).map_err(unwritten)?;
        let again = file.try_clone().map_err(unwritten)?;
        let done = self.execute(command.stdout(again).stderr(file));
        if done.is_err() {
            // Nobody is left to tell if it cannot be told.
            let text = std::fs::read(&said).unwrap_or_default();
            let _ = std::io::stderr().write_all(&text);
        }
        done
    }

    fn execute(&self, command: &mut Command) -> Result<(), Stop> {
        let status = child::status(command).map_err(|error| {
            let why = format!(
                "cannot be run: {}; give the compiler after `--`",
                describe(&error)
            );
            Failure::access(printable(Path::new(self.compiler.program())), why)
        })?;
        match status.success() {
            true => Ok(()),
            false => Err(Stop::Exit(status)),
        }
    }
}

/// The rewritten text, while the assembler reads it.
fn rewritten_in(scratch: &ScratchDirectory) -> PathBuf {
    scratch.path().join("rewritten.s")
}

/// The file that a source is read from.
fn file_of(source: &OsStr) -> PathBuf {
    match source.as_bytes() {
        b"-" => PathBuf::from("/dev/stdin"),
        _ => PathBuf::from(source),
    }
}

/// Compilers make a symbol of a source's name, and names of symbols are text.
fn refuse_unprintable(source: &Path) -> Result<(), Failure> {
    let name = source.file_name();
    if name.is_some_and(|name| name.to_str().is_none()) {
        let why = "its name is not UTF-8; rename it, or compile a link to it";
        return Err(Failure::access(printable(source), why));
    }
    Ok(())
}

fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::access(printable(path), describe(&e)))
}
