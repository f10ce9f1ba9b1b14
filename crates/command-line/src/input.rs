//! Inputs: files or standard input, recognised by content.

use std::io::Read;
use std::path::Path;

use elf_loader::Object;

use crate::assembler;
use crate::failure::Failure;

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
        false => path.display().to_string(),
    }
}

/// Whether the path means standard input (or output, for outputs).
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Input {
    /// Reads a file, or standard input for `-`, and decompresses it.
    pub fn read(path: &Path) -> Result<Input, Failure> {
        let name = name(path);
        let raw = read_bytes(path).map_err(|error| Failure::access(&name, describe(&error)))?;
        let bytes = match elf_loader::input::decompress(raw) {
            Ok(bytes) => bytes,
            Err(error) => return Err(Failure::refused(name, error.code(), error)),
        };
        if !is_text(&bytes) {
            let text = None;
            return Ok(Input { name, bytes, text });
        }
        Ok(Input {
            bytes: assembler::assemble(&name, &bytes)?,
            text: Some(bytes),
            name,
        })
    }

    /// The assembly text that it is, if it is one.
    pub fn text(&self) -> Option<&[u8]> {
        self.text.as_deref()
    }

    /// Its bytes, decompressed and assembled.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The object that it is, or that its text was assembled to.
    pub fn object(&self) -> Result<Object<'_>, Failure> {
        elf_loader::read(&self.bytes).map_err(|error| Failure::unreadable(&self.name, &error))
    }
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    if !is_stdin(path) {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
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
    let blank = |b: u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x0c);
    !start.is_empty() && start.iter().all(|&b| blank(b) || (b >= b' ' && b != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::is_text;

    #[test]
    fn assembly_is_text_and_objects_are_not() {
        assert!(is_text("\t.text\nf:\tret\t# größer\n".as_bytes()));
        assert!(!is_text(b"\x7fELF\x02\x01\x01\0"));
        assert!(!is_text(b""));
    }
}
