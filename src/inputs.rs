//! The inputs that a command line names: files, directories, lists of names.
//!
//! A directory stands for the drivers below it, in the order of their names' bytes.
//! There the ending of a name decides; a file that is named itself is taken whatever it
//! is called.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use command_line::failure::Failure;
use command_line::input::{self, Input};
use command_line::output::Destination;
use elf_loader::compression::Compression;

/// What names of drivers in directories end in, before the ending of a compression.
const ENDINGS: [&[u8]; 4] = [b".ko", b".o", b".s", b".a"];

/// How an object begins (gABI chapter 4, `e_ident`).
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// All inputs: those named, then those listed, directories replaced by what is in them.
/// What lies in `except` is no input: earlier results would be.
///
/// # Errors
/// The list cannot be read or is an object, or standard input is named more than once.
pub fn expand(
    named: &[PathBuf],
    list: Option<&Path>,
    except: Option<&Path>,
) -> Result<Vec<PathBuf>, Failure> {
    let listed = list.map_or(Ok(Vec::new()), listed)?;
    if list.is_some_and(input::is_stdin) && named.iter().any(|path| input::is_stdin(path)) {
        let why = "standard input (`-`) cannot be both the list and an input";
        return Err(Failure::Usage(why.to_owned()));
    }
    let except = except.and_then(identity);
    let mut inputs = Vec::new();
    for path in named.iter().cloned().chain(listed) {
        // A name that is given is followed, wherever it leads.
        match !input::is_stdin(&path) && path.is_dir() {
            true => below(&path, except, &mut inputs),
            false => inputs.push(path),
        }
    }
    read_once(inputs.iter().map(PathBuf::as_path))?;
    Ok(inputs)
}

/// Refuses standard input as more than one of the files that a command reads.
///
/// # Errors
/// It is.
pub fn read_once<'p>(files: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
    let stdin = files.into_iter().filter(|path| input::is_stdin(path));
    match stdin.count() {
        0 | 1 => Ok(()),
        _ => {
            let why = "standard input (`-`) can be read only once";
            Err(Failure::Usage(why.to_owned()))
        }
    }
}

/// The names in a list: one on each line, or each ended by a zero if there is one.
fn listed(list: &Path) -> Result<Vec<PathBuf>, Failure> {
    let bytes = Input::plain(list)?;
    if bytes.starts_with(ELF_MAGIC) {
        let why = "it is an object, and no list of names; give it without --files-from";
        return Err(Failure::access(input::name(list), why));
    }
    let end = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|b| *b == end).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsStr::from_bytes(name).into()).collect())
}

/// Adds the drivers below a directory. One that has none, or cannot be read, is itself
/// added, so that reading it says so.
fn below(directory: &Path, except: Option<(u64, u64)>, inputs: &mut Vec<PathBuf>) {
    let before = inputs.len();
    walk(directory, except, inputs);
    if inputs.len() == before {
        inputs.push(directory.to_owned());
    }
}

/// Links to files are followed, links to directories are not: the `build` of a
/// kernel's modules leads to its headers, and others may lead back.
fn walk(directory: &Path, except: Option<(u64, u64)>, inputs: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let Ok(mut entries) = entries else {
        inputs.push(directory.to_owned());
        return;
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && (except.is_none() || identity(&path) != except) {
            walk(&path, except, inputs);
        } else if !is_directory && is_driver(&entry.file_name()) && path.is_file() {
            inputs.push(path);
        }
    }
}

fn is_driver(name: &OsStr) -> bool {
    let stem = Compression::split(name.as_bytes()).0;
    ENDINGS
        .iter()
        .any(|ending| stem.len() > ending.len() && stem.ends_with(ending))
}

/// Refuses an output that is one of the files that are read, by whatever name.
///
/// # Errors
/// It is.
pub fn refuse_overwriting<'p>(
    to: &Destination,
    read: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Failure> {
    let Destination::File(path) = to else {
        return Ok(());
    };
    let Some(id) = identity(path) else {
        return Ok(());
    };
    match read.into_iter().any(|file| identity(file) == Some(id)) {
        true => Err(Failure::Usage(format!(
            "{}: the output is also an input; choose another name",
            to.name()
        ))),
        false => Ok(()),
    }
}

/// Identifies a file, whatever name it is reached by.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
