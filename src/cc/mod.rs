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
mod options;
mod response;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use command_line::failure::Failure;
use svm_rewrite::Options;
use svm_rewrite::text::Printed;
use tempfile::TempDir;

pub use arguments::{CommandLine, Stage};

use crate::source;

/// Why there is no result.
#[derive(Debug)]
pub enum Stop {
    /// A program failed and has said why.
    Exit(ExitStatus),
    /// This program has something to say.
    Failure(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

/// What was compiled, for the report.
#[derive(Debug)]
pub struct Compiled {
    /// The source.
    pub source: PathBuf,
    /// The result of rewriting it.
    pub printed: Printed,
}

/// A compiler, its arguments, and what to do.
pub struct Job<'j> {
    /// The compiler.
    pub compiler: &'j OsStr,
    /// Its arguments as they were given.
    pub given: &'j [OsString],
    /// The same, understood.
    pub line: CommandLine,
    /// How to rewrite.
    pub options: Options,
}

impl Job<'_> {
    /// Does what the command line asks for.
    pub fn run(&self) -> Result<Vec<Compiled>, Stop> {
        let compiles = self.line.sources().any(|path| path != "/dev/null");
        let to_nowhere = self.line.output.as_deref() == Some(OsStr::new("/dev/null"));
        if !compiles || self.line.stage == Stage::NoCode || to_nowhere {
            self.execute(Command::new(self.compiler).args(self.given))?;
            return Ok(Vec::new());
        }
        if self.line.lto {
            let why = "link-time optimisation makes code in the linker, where nothing rewrites it; \
                       add -fno-lto";
            return Err(Failure::Usage(why.to_owned()).into());
        }
        let scratch = tempfile::Builder::new().prefix("twin-cc-").tempdir();
        let scratch = scratch.map_err(|e| Failure::access("a temporary directory", e))?;
        match self.line.stage {
            Stage::Link => self.link(&scratch),
            Stage::NoCode | Stage::Assembly | Stage::Object => self.compile_all(&scratch),
        }
    }

    /// Every source to its own output.
    fn compile_all(&self, scratch: &TempDir) -> Result<Vec<Compiled>, Stop> {
        let sources: Vec<_> = self.line.sources().collect();
        if sources.len() > 1 && self.line.output.is_some() {
            // The compiler has a message for this.
            self.execute(Command::new(self.compiler).args(self.given))?;
        }
        let mut compiled = Vec::new();
        for source in sources {
            let extension = match self.line.stage {
                Stage::Assembly => "s",
                _ => "o",
            };
            let own = || {
                let name = Path::new(source).file_name().unwrap_or(source);
                Path::new(name).with_extension(extension)
            };
            let output = self.line.output.as_ref().map_or_else(own, PathBuf::from);
            compiled.push(self.compile(scratch, source, &output)?);
        }
        Ok(compiled)
    }

    /// Compiles every source to an object in the temporary directory, then links all.
    fn link(&self, scratch: &TempDir) -> Result<Vec<Compiled>, Stop> {
        let mut compiled = Vec::new();
        let mut objects = Vec::new();
        for (n, source) in self.line.sources().enumerate() {
            let object = scratch.path().join(format!("{n}.o"));
            compiled.push(self.compile(scratch, source, &object)?);
            objects.push(object.into_os_string());
        }
        let mut objects = objects.into_iter();
        let arguments = self
            .line
            .for_linking(|_| objects.next().unwrap_or_default());
        self.execute(Command::new(self.compiler).args(arguments))?;
        Ok(compiled)
    }

    fn compile(&self, scratch: &TempDir, source: &OsStr, output: &Path) -> Result<Compiled, Stop> {
        let assembly = scratch.path().join("original.s");
        let mut command = Command::new(self.compiler);
        command.args(self.line.for_compiling(source));
        command.args(self.line.dependency_arguments(Path::new(source), output));
        command.args(["-S", "-o"]).arg(&assembly);
        self.execute(&mut command)?;
        let text = std::fs::read(&assembly).map_err(|e| Failure::access(assembly.display(), e))?;
        let printed = self.rewrite(scratch, source, &text)?;
        match self.line.stage {
            Stage::Assembly if output == Path::new("-") => std::io::stdout()
                .write_all(&printed.text)
                .map_err(|e| Failure::access("<stdout>", e))?,
            Stage::Assembly => std::fs::write(output, &printed.text)
                .map_err(|e| Failure::access(output.display(), e))?,
            Stage::NoCode | Stage::Object | Stage::Link => {
                self.assemble(&scratch.path().join("rewritten.s"), &printed.text, output)?;
            }
        }
        Ok(Compiled {
            source: source.into(),
            printed,
        })
    }

    fn rewrite(&self, scratch: &TempDir, source: &OsStr, text: &[u8]) -> Result<Printed, Stop> {
        let name = format!("{} (its assembly)", Path::new(source).display());
        source::rewrite(&name, text, self.options, |marked| {
            let object = scratch.path().join("marked.o");
            self.assemble(&scratch.path().join("marked.s"), marked, &object)?;
            let read = std::fs::read(&object);
            read.map_err(|e| Failure::access(object.display(), e).into())
        })
    }

    /// Assembles a text through a file, which a person can read if the assembler
    /// complains.
    fn assemble(&self, path: &Path, text: &[u8], output: &Path) -> Result<(), Stop> {
        std::fs::write(path, text).map_err(|e| Failure::access(path.display(), e))?;
        let mut command = Command::new(self.compiler);
        command.args(self.line.for_assembling());
        command.args(["-c", "-x", "assembler"]).arg(path);
        command.arg("-o").arg(output);
        self.execute(&mut command)
    }

    fn execute(&self, command: &mut Command) -> Result<(), Stop> {
        let status = command.stdin(Stdio::inherit()).status().map_err(|error| {
            let why = format!("cannot be run: {error}; give the compiler after `--`");
            Failure::access(Path::new(self.compiler).display(), why)
        })?;
        match status.success() {
            true => Ok(()),
            false => Err(Stop::Exit(status)),
        }
    }
}
