//! Response files: `@FILE` stands for the words in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Replaces `@FILE` by the words in the file (gcc manual, 3.2: unless it cannot be
/// read, when it is left as it is).
pub(super) fn expand(
    arguments: &[OsString],
    out: &mut Vec<OsString>,
) -> Result<(), (PathBuf, std::io::Error)> {
    expand_nested(arguments, out, 0)
}

fn expand_nested(
    arguments: &[OsString],
    out: &mut Vec<OsString>,
    depth: u32,
) -> Result<(), (PathBuf, std::io::Error)> {
    const DEEPEST: u32 = 64;
    for argument in arguments {
        let file = argument
            .as_bytes()
            .strip_prefix(b"@")
            .map(OsStr::from_bytes);
        match file.map(|f| (f, std::fs::read(f))) {
            Some((_, Ok(text))) if depth < DEEPEST => expand_nested(&words(&text), out, depth + 1)?,
            Some((file, Ok(_))) => {
                let error = std::io::Error::other("response files include each other");
                return Err((file.into(), error));
            }
            Some((_, Err(_))) | None => out.push(argument.clone()),
        }
    }
    Ok(())
}

/// Words separated by blanks, with quotes and backslashes.
fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (_, Some(q)) if byte == q => quote = None,
            (b' ' | b'\t' | b'\n' | b'\r', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_response_files() {
        let found = words(b"-DA=\"b c\" 'x y'\\ z\n\n-O2");
        assert_eq!(found, ["-DA=b c", "x y z", "-O2"]);
    }
}
