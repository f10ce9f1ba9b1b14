//! Inputs: files or standard input, recognised by content.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use elf_loader::Object;
use elf_loader::archive::{self, Member};
use rustix::io::Errno;

use crate::assembler;
use crate::failure::Failure;
use crate::standard;
use crate::text;

/// Bytes examined to tell text from a damaged file.
const SNIFFED: usize = 4096;

/// An input, read and decompressed; assembly text is assembled.
#[derive(Debug)]
pub struct Input {
    /// Its name in messages.
    pub name: String,
    bytes: Vec<u8>,
    text: Option<Vec<u8>>,
}

/// The name of a path in messages.
pub fn name(path: &Path) -> String {
    match is_stdin(path) {
        true => "<stdin>".to_owned(),
        false => printable(path),
    }
}

/// A path for messages and reports: bytes that are not UTF-8, characters that act on what shows
/// them and backslashes as `\xHH`, so that two paths never look the same.
pub fn printable(path: &Path) -> String {
    printable_bytes(path.as_os_str().as_bytes())
}

fn printable_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text::show(&mut out, chunk.valid(), |c| c == '\\' || text::acts(c));
        text::show_bytes(&mut out, chunk.invalid());
    }
    out
}

/// Whether the path means standard input (or output, for outputs).
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Bytes of a file that are read before it is judged. An encoder's first block is in
/// them whole (zstd: at most 128 KiB, RFC 8878 3.1.1.2.4).
const HEAD: u64 = 256 << 10;
/// Most bytes of a text: as many as a compressed file may hold.
const MAX_TEXT: u64 = elf_loader::input::MAX_DECOMPRESSED;
/// Most bytes of any other file: as many as a section may have. Streams may have no end.
const MAX_FILE: u64 = elf_loader::MAX_SECTION_SIZE;
/// Bytes of a header that tells what a file is (`struct Elf64_Ehdr`).
const HEADER: usize = 64;

impl Input {
    /// Reads a file, or standard input for `-`, and decompresses it. A file that is
    /// nothing to rewrite is judged by its first bytes; the rest is not read.
    pub fn read(path: &Path) -> Result<Input, Failure> {
        let name = name(path);
        let raw = read_bytes(path, &name)?;
        let bytes = match elf_loader::input::decompress(raw) {
            Ok(bytes) => bytes,
            Err(error) => return Err(Failure::refused(name, error.code(), error)),
        };
        refuse_stray(&name, &bytes)?;
        if !is_text(&bytes) || archive::is_archive(&bytes) {
            let text = None;
            return Ok(Input { name, bytes, text });
        }
        Ok(Input {
            bytes: assembler::assemble(&name, &bytes)?,
            text: Some(bytes),
            name,
        })
    }

    /// The same where a directory does not stand for the files below it.
    ///
    /// # Errors
    /// Those of [`Input::read`]; it is a directory.
    pub fn read_file(path: &Path) -> Result<Input, Failure> {
        if !is_stdin(path) && path.is_dir() {
            let why = describe(&std::io::ErrorKind::IsADirectory.into());
            return Err(Failure::access(name(path), why));
        }
        Input::read(path)
    }

    /// The bytes of a file, or of standard input, as they are: a list, a key, a table.
    ///
    /// # Errors
    /// It cannot be read, or has more than 512 MiB.
    pub fn plain(path: &Path) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let whole = open(path).and_then(|file| read_up_to(file, MAX_TEXT, &mut bytes));
        let whole = whole.map_err(|error| Failure::access(name(path), describe(&error)))?;
        match whole {
            true => Ok(bytes),
            false => Err(Failure::input(
                name(path),
                "this has more than 512 MiB; give the right file",
            )),
        }
    }

    /// The assembly text that it is, if it is one.
    pub fn text(&self) -> Option<&[u8]> {
        self.text.as_deref()
    }

    /// What the file holds, decompressed.
    pub fn contents(&self) -> &[u8] {
        self.text().unwrap_or(&self.bytes)
    }

    /// Its bytes, decompressed and assembled.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The objects of the archive that it is, each with the name and bytes of its
    /// member; `None` if it is no archive.
    pub fn members(&self) -> Option<Result<Vec<Input>, Failure>> {
        if !archive::is_archive(&self.bytes) {
            return None;
        }
        let members = archive::members(&self.bytes);
        let members = members.map_err(|e| Failure::refused(&self.name, e.code(), e));
        let input = |member: &Member<'_>| Input {
            name: format!("{}({})", self.name, printable_bytes(member.name)),
            bytes: member.data.to_vec(),
            text: None,
        };
        Some(members.map(|list| list.iter().map(input).collect()))
    }

    /// The object that it is, or that its text was assembled to.
    pub fn object(&self) -> Result<Object<'_>, Failure> {
        if archive::is_archive(&self.bytes) {
            let why = "this is an archive; give its members (`ar x` takes it apart)";
            return Err(Failure::input(&self.name, why));
        }
        elf_loader::read(&self.bytes).map_err(|error| Failure::unreadable(&self.name, &error))
    }
}

fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    Ok(match is_stdin(path) {
        true if standard::has_input() => Box::new(std::io::stdin().lock()),
        true => return Err(Errno::BADF.into()),
        false => Box::new(std::fs::File::open(path)?),
    })
}

/// Why a file was not read. A directory is only read if there is no driver in it.
fn unread(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::IsADirectory if !is_stdin(path) => match std::fs::read_dir(path) {
            Ok(_) => "it is a directory, and no file below it ends in .ko, .o, .s or .a, \
                      or one of these and .xz, .zst or .gz"
                .to_owned(),
            Err(error) => describe(&error),
        },
        _ => describe(error),
    }
}

fn read_bytes(path: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| Failure::access(name, unread(path, &error));
    let mut file = open(path).map_err(unreadable)?;
    // What a pipe holds is not known.
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    let mut bytes = Vec::with_capacity(size.min(HEAD) as usize);
    let head = file.as_mut().take(HEAD).read_to_end(&mut bytes);
    head.map_err(unreadable)?;
    let start = elf_loader::input::beginning(&bytes);
    judge(name, &start)?;
    let (limit, why) = match is_text(&start) {
        true => (
            MAX_TEXT,
            "this is text of more than 512 MiB, which no compiler makes of a driver",
        ),
        false => (
            MAX_FILE,
            "this has more than 2 GiB, which no driver has; give the objects one by one",
        ),
    };
    // Room for all of it at once, if there is any: reading says what is wrong otherwise.
    let rest = size.min(limit).saturating_sub(bytes.len() as u64);
    let _ = bytes.try_reserve_exact(rest as usize);
    match read_up_to(file, limit, &mut bytes).map_err(unreadable)? {
        true => Ok(bytes),
        false => Err(Failure::input(name, why)),
    }
}

/// Adds what is left of a file. Gives whether there are no more bytes than `limit` then; the
/// rest is not read.
fn read_up_to(file: impl Read, limit: u64, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    let room = (limit + 1).saturating_sub(bytes.len() as u64);
    file.take(room).read_to_end(bytes)?;
    Ok(bytes.len() as u64 <= limit)
}

/// Refuses what is neither object nor archive nor text, by the first bytes of what it
/// holds. A shorter file is read whole.
fn judge(name: &str, start: &[u8]) -> Result<(), Failure> {
    refuse_stray(name, start)?;
    if start.len() < HEADER || archive::is_archive(start) || is_text(start) {
        return Ok(());
    }
    elf_loader::judge_header(start).map_err(|error| Failure::unreadable(name, &error))
}

/// The system's error message, without Rust's error number.
pub fn describe(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::IsADirectory {
        return "it is a directory; give a file".to_owned();
    }
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Whether this looks like text: no control characters but blanks.
fn is_text(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(SNIFFED)];
    !start.is_empty() && !start.iter().any(is_control)
}

/// Whether this is a control character, and no blank.
fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Refuses text with a control character: lines of text, and then one. For `as`, a zero ends
/// a statement.
fn refuse_stray(name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let Some(at) = bytes.iter().position(is_control) else {
        return Ok(());
    };
    let lines = bytes[..at].split(|b| *b == b'\n').count();
    if lines == 1 || archive::is_archive(bytes) || std::str::from_utf8(&bytes[..at]).is_err() {
        return Ok(());
    }
    let why = format!(
        "this is text, and has the control character 0x{:02x} in line {lines}; remove it",
        bytes[at]
    );
    Err(Failure::input(name, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_paths_look_the_same() {
        let shown = |bytes: &[u8]| printable_bytes(bytes);
        assert_eq!(shown("größer/a b.ko".as_bytes()), "größer/a b.ko");
        assert_eq!(shown(b"a\xff\n.ko"), "a\\xff\\x0a.ko");
        assert_eq!(shown(br"a\xff"), r"a\x5cxff");
        assert_eq!(shown("a\u{202e}o.b".as_bytes()), r"a\xe2\x80\xaeo.b");
    }

    #[test]
    fn streams_without_an_end_are_not_read_for_ever() {
        let read = |count: u64, limit| {
            let mut bytes = vec![1, 2];
            let fits = read_up_to(std::io::repeat(0).take(count), limit, &mut bytes);
            (fits.expect("memory"), bytes.len())
        };
        assert_eq!(read(8, 10), (true, 10));
        assert_eq!(read(9, 10), (false, 11));
        assert_eq!(read(u64::MAX, 10), (false, 11));
        assert_eq!(read(0, 1), (false, 2));
    }

    #[test]
    fn assembly_is_text_and_objects_are_not() {
        assert!(is_text("\t.text\nf:\tret\t# größer\n".as_bytes()));
        assert!(!is_text(b"\x7fELF\x02\x01\x01\0"));
        assert!(!is_text(b""));
    }
}
