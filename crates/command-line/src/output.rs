//! Outputs: a file appears whole under its name, or not at all.
//!
//! ```text
//! Destination ──create──> Pending ──write...──finish──> the file
//!                            └──drop──> nothing; what was there before stays
//! ```
//!
//! A regular file is written under a temporary name in the directory it goes
//! to, then renamed. Pipes and devices are written directly.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Stdout, StdoutLock, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anstream::AutoStream;
use elf_loader::compression::Compression;
use rustix::io::Errno;

use crate::failure::Failure;
use crate::input::{describe, is_stdin, printable};
use crate::standard;
use crate::temporary::{self, TemporaryFile};

/// Mode of new files, before the umask.
const MODE: u32 = 0o666;

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl Destination {
    /// Standard output for `-`, else the file.
    pub fn new(path: PathBuf) -> Destination {
        match is_stdin(&path) {
            true => Destination::Stdout,
            false => Destination::File(path),
        }
    }

    /// Whether assembly text that is rewritten there stays text: by the ending of
    /// the file's name, before that of its compression.
    pub fn is_text(&self) -> bool {
        match self {
            Destination::Stdout => true,
            Destination::File(path) => {
                let name = path.file_name().unwrap_or_default().as_bytes();
                Compression::split(name).0.ends_with(b".s")
            }
        }
    }

    /// The compression that the ending of the file's name says.
    pub fn compression(&self) -> Option<Compression> {
        match self {
            Destination::Stdout => None,
            Destination::File(path) => {
                Compression::split(path.file_name().unwrap_or_default().as_bytes()).1
            }
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Destination::Stdout => "<stdout>".to_owned(),
            Destination::File(path) => printable(path),
        }
    }
}

/// An output that is being written.
pub struct Pending {
    name: String,
    sink: Sink,
}

enum Sink {
    /// To be renamed to the path.
    Renamed(BufWriter<TemporaryFile>, PathBuf),
    /// A pipe or a device.
    Direct(BufWriter<File>),
    Stdout(BufWriter<std::io::Stdout>),
}

impl Pending {
    /// Begins an output. A file is not visible under its name until it is finished.
    pub fn create(destination: &Destination) -> Result<Pending, Failure> {
        let name = destination.name();
        let sink = match destination {
            Destination::Stdout => stdout().map(|stdout| Sink::Stdout(BufWriter::new(stdout))),
            Destination::File(path) => file_sink(path),
        };
        match sink {
            Ok(sink) => Ok(Pending { name, sink }),
            Err(error) => Err(Failure::access(name, cannot_write(&error))),
        }
    }

    /// Writes these bytes and nothing else.
    pub fn finish_with(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes)?;
        self.finish()
    }

    /// Writes some bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let result = match &mut self.sink {
            Sink::Renamed(file, _) => file.write_all(bytes),
            Sink::Direct(file) => file.write_all(bytes),
            Sink::Stdout(stdout) => stdout.write_all(bytes),
        };
        result.map_err(|error| Failure::access(&self.name, cannot_write(&error)))
    }

    /// Everything is written: gives the file its name.
    pub fn finish(self) -> Result<(), Failure> {
        let result = match self.sink {
            Sink::Renamed(file, path) => rename(file, &path),
            Sink::Direct(mut file) => file.flush(),
            Sink::Stdout(mut stdout) => stdout.flush(),
        };
        result.map_err(|error| Failure::access(self.name, cannot_write(&error)))
    }
}

fn cannot_write(error: &std::io::Error) -> String {
    format!("cannot be written: {}", describe(error))
}

fn file_sink(path: &Path) -> std::io::Result<Sink> {
    // The name of a directory, whether there is one or not: `path_resolution(7)`.
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(ErrorKind::IsADirectory.into());
    }
    // Symbolic links are followed: the file that they lead to is replaced, or made.
    let existing = match std::fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mode = match existing {
        Some(m) if m.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Some(m) if !m.is_file() => {
            let file = File::options().write(true).open(path)?;
            return Ok(Sink::Direct(BufWriter::new(file)));
        }
        Some(m) => Some(m.permissions().mode()),
        None => None,
    };
    let path = followed(path);
    let temporary = TemporaryFile::create(directory(&path), MODE)?;
    if let Some(mode) = mode {
        temporary.set_mode(mode)?;
    }
    Ok(Sink::Renamed(BufWriter::new(temporary), path))
}

/// The path of the file that is written under this name: where links lead, whether or not
/// there is a file. As far as it can be known: the path itself, if a directory is missing.
pub fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many links as Linux follows (path_resolution(7)).
    for _ in 0..40 {
        if let Ok(file) = path.canonicalize() {
            return file;
        }
        match path.read_link() {
            // An absolute target replaces the directory.
            Ok(target) => path = directory(&path).join(target),
            Err(_) => break,
        }
    }
    let dir = directory(&path).canonicalize().ok();
    let named = dir.zip(path.file_name());
    named.map_or_else(|| path.clone(), |(dir, name)| dir.join(name))
}

/// The directory that a file lies in.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn rename(file: BufWriter<TemporaryFile>, path: &Path) -> std::io::Result<()> {
    let file = file.into_inner().map_err(|error| error.into_error())?;
    file.persist(path)
}

/// Refuses a directory for outputs that is another file.
pub fn check_dir(dir: &Path) -> Result<(), Failure> {
    match dir.exists() && !dir.is_dir() {
        true => Err(Failure::access(printable(dir), "is not a directory")),
        false => Ok(()),
    }
}

/// Makes a directory and those above it unless they exist.
pub fn create_dir(dir: &Path) -> Result<(), Failure> {
    match temporary::create_dir_all(dir) {
        Err(_) if dir.exists() => Err(Failure::access(printable(dir), "is not a directory")),
        Err(error) => Err(Failure::access(printable(dir), cannot_write(&error))),
        Ok(()) => Ok(()),
    }
}

/// Makes a directory unless it exists, and finds out whether files can be made in it: for a
/// command that has much to do before its first output.
///
/// # Errors
/// It cannot be made, or nothing can be made in it.
pub fn prepare_dir(dir: &Path) -> Result<(), Failure> {
    create_dir(dir)?;
    let tried = TemporaryFile::create(dir, MODE).map(drop);
    tried.map_err(|error| Failure::access(printable(dir), cannot_write(&error)))
}

/// Removes the directories that were made for outputs if none came about in them: for a command
/// that failed.
pub fn remove_empty_dirs() {
    temporary::remove_empty_directories();
}

/// The result of writing text for people to standard output. A reader that goes away has read
/// enough. It is no failure, and it must not end a command: the exit status is about all the
/// work that was asked for.
fn text_result(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::access("<stdout>", cannot_write(&error)))
        }
        _ => Ok(()),
    }
}

/// Standard output.
///
/// # Errors
/// The program was started without one.
fn stdout() -> std::io::Result<Stdout> {
    match standard::has_output() {
        true => Ok(std::io::stdout()),
        false => Err(Errno::BADF.into()),
    }
}

/// Refuses to begin what has its result on standard output, if there is none.
pub fn check_stdout() -> Result<(), Failure> {
    text_result(stdout().map(drop))
}

/// Writes text for people to standard output, in colours if it is a terminal.
pub fn pretty(
    print: impl FnOnce(&mut BufWriter<AutoStream<StdoutLock<'static>>>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    text_result(stdout().and_then(|stdout| {
        let mut out = BufWriter::new(AutoStream::auto(stdout.lock()));
        print(&mut out)?;
        out.flush()
    }))
}

/// What clap has to say of `--help` and `--version`, on standard output.
pub fn help(error: &clap::Error) -> Result<(), Failure> {
    text_result(stdout().and_then(|_| error.print()))
}

/// Prints text on standard output.
pub fn text(bytes: &[u8]) -> Result<(), Failure> {
    text_result(stdout().and_then(|stdout| {
        let mut stdout = stdout.lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }))
}

/// Prints a value as JSON on standard output.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::access("<stdout>", format!("cannot be written: {error}")))?;
    bytes.push(b'\n');
    text(&bytes)
}

/// Prints a message on standard error; a failure to print is ignored.
pub fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
