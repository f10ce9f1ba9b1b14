//! Archives of objects, `.a`: taken apart, and written again with an index.
//!
//! The common format of System V and GNU (ar(5); binutils, `bfd/archive.c`):
//!
//! ```text
//! "!<arch>\n"
//! "/"      index: how many symbols, where each one's member begins, their names
//! "//"     long names, each ended by "/\n"
//! members  a header of 60 characters, the bytes, filled up to an even number
//! ```
//!
//! Names in the manner of BSD (`#1/LENGTH`, the name before the bytes) are read too.
//! What is written has no times, owners or modes of files, as `ar rcD` writes it.

use thiserror::Error;

use crate::Place;
use crate::model::consts::STB_LOCAL;

/// What an archive begins with.
pub const MAGIC: &[u8] = b"!<arch>\n";
/// What a thin archive begins with: its members are other files.
const THIN_MAGIC: &[u8] = b"!<thin>\n";
/// Bytes of a member's header.
const HEADER: usize = 60;
/// What a header ends with.
const HEADER_END: &[u8] = b"`\n";
/// Longest name that stands in a header, before its `/`.
const SHORT_NAME: usize = 15;

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name, as bytes.
    pub name: &'a [u8],
    /// Its contents.
    pub data: &'a [u8],
}

/// Why an archive cannot be taken apart or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArchiveError {
    /// Its members are other files.
    #[error(
        "this is a thin archive: its members are other files; rewrite these, or make a whole archive of them (`ar rcs`)"
    )]
    Thin,
    /// A member's header or name that cannot be right.
    #[error("the archive is damaged at {offset:#x}: {problem}; make it again")]
    Damaged {
        /// File offset of the member's header.
        offset: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// Offsets in the index have 32 bits.
    #[error("the archive would have more than 4 GiB, which its index cannot address; divide it")]
    TooLarge,
}

/// Whether a file that begins so is an archive, thin or not.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(THIN_MAGIC)
}

/// The members of an archive, in order, without the index.
///
/// # Errors
/// It is thin or damaged.
pub fn members(bytes: &[u8]) -> Result<Vec<Member<'_>>, ArchiveError> {
    if bytes.starts_with(THIN_MAGIC) {
        return Err(ArchiveError::Thin);
    }
    let (mut members, mut long_names): (_, &[u8]) = (Vec::new(), &[]);
    let mut offset = MAGIC.len();
    while offset < bytes.len() {
        let damaged = |problem| ArchiveError::Damaged { offset, problem };
        let header = bytes.get(offset..offset + HEADER);
        let header = header.filter(|h| h.ends_with(HEADER_END));
        let header = header.ok_or_else(|| damaged("a member without a header"))?;
        let size = number(&header[48..58]).ok_or_else(|| damaged("a size that is no number"))?;
        let start = offset + HEADER;
        let end = start.checked_add(size).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| damaged("a member that ends after the archive"))?;
        let data = &bytes[start..end];
        match header[..16].trim_ascii_end() {
            b"/" | b"/SYM64/" | b"__.SYMDEF" | b"__.SYMDEF SORTED" => {}
            b"//" => long_names = data,
            name => {
                let member = member(name, data, long_names).map_err(damaged)?;
                if !member.name.starts_with(b"__.SYMDEF") {
                    members.push(member);
                }
            }
        }
        offset = end + end % 2;
    }
    Ok(members)
}

/// A member, by the name in its header.
fn member<'a>(
    name: &'a [u8],
    data: &'a [u8],
    long_names: &'a [u8],
) -> Result<Member<'a>, &'static str> {
    if let Some(length) = name.strip_prefix(b"#1/") {
        let length = number(length).filter(|n| *n <= data.len());
        let (name, data) = data.split_at(length.ok_or("a name longer than its member")?);
        let name = name.split(|b| *b == 0).next().unwrap_or(name);
        return Ok(Member { name, data });
    }
    let name = match name.strip_prefix(b"/") {
        Some(at) => {
            let at = number(at).ok_or("a name that is no place in the list of names")?;
            let rest = long_names
                .get(at..)
                .ok_or("a name outside the list of names")?;
            let end = rest.windows(2).position(|pair| pair == b"/\n");
            &rest[..end.ok_or("a long name without an end")?]
        }
        None => name.strip_suffix(b"/").unwrap_or(name),
    };
    match name {
        b"" => Err("a member without a name"),
        name => Ok(Member { name, data }),
    }
}

/// A decimal number, with blanks behind it.
fn number(field: &[u8]) -> Option<usize> {
    std::str::from_utf8(field).ok()?.trim_end().parse().ok()
}

/// An archive of these members, with an index of the symbols that others can name.
///
/// # Errors
/// It would be too large.
pub fn write(members: &[Member<'_>]) -> Result<Vec<u8>, ArchiveError> {
    let (names, long_names) = names(members);
    let symbols: Vec<Vec<String>> = members.iter().map(|m| defined(m.data)).collect();
    let count = symbols.iter().flatten().count();
    let words = symbols.iter().flatten().map(|s| s.len() + 1).sum::<usize>();
    let index = (4 + 4 * count + words).next_multiple_of(2);
    // --- all sizes are known ---
    let mut at = MAGIC.len();
    at += if count > 0 { HEADER + index } else { 0 };
    at += if long_names.is_empty() {
        0
    } else {
        HEADER + long_names.len()
    };
    let mut offsets = Vec::new();
    for (member, symbols) in members.iter().zip(&symbols) {
        let offset = u32::try_from(at).map_err(|_| ArchiveError::TooLarge)?;
        offsets.extend(symbols.iter().map(|_| offset.to_be_bytes()));
        at += HEADER + member.data.len().next_multiple_of(2);
    }
    // --- all places are known ---
    let mut out = MAGIC.to_vec();
    if count > 0 {
        header(&mut out, b"/", "0", index);
        out.extend((count as u32).to_be_bytes());
        out.extend(offsets.as_flattened());
        for symbol in symbols.iter().flatten() {
            out.extend(symbol.as_bytes());
            out.push(0);
        }
        out.resize(out.len().next_multiple_of(2), 0);
    }
    if !long_names.is_empty() {
        header(&mut out, b"//", "", long_names.len());
        out.extend(&long_names);
    }
    for (member, name) in members.iter().zip(&names) {
        header(&mut out, name, "644", member.data.len());
        out.extend(member.data);
        pad(&mut out);
    }
    Ok(out)
}

/// The name of each member as its header has it, and the list of those that are too
/// long for that.
fn names(members: &[Member<'_>]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut list = Vec::new();
    let mut name = |member: &Member<'_>| {
        if member.name.len() <= SHORT_NAME {
            return [member.name, b"/"].concat();
        }
        let place = format!("/{}", list.len()).into_bytes();
        list.extend([member.name, b"/\n"].concat());
        place
    };
    let names = members.iter().map(&mut name).collect();
    pad(&mut list);
    (names, list)
}

fn pad(bytes: &mut Vec<u8>) {
    if !bytes.len().is_multiple_of(2) {
        bytes.push(b'\n');
    }
}

/// A header. The index has no mode and the list of names nothing but its size, as `ar`
/// writes them.
fn header(out: &mut Vec<u8>, name: &[u8], mode: &str, size: usize) {
    let zero = if mode.is_empty() { "" } else { "0" };
    out.extend(name);
    out.extend(std::iter::repeat_n(b' ', 16 - name.len()));
    out.extend(format!("{zero:<12}{zero:<6}{zero:<6}{mode:<8}{size:<10}").bytes());
    out.extend(HEADER_END);
}

/// Names of the symbols that a member defines for others; none if it is no object.
fn defined(data: &[u8]) -> Vec<String> {
    let Ok(object) = crate::read(data) else {
        return Vec::new();
    };
    let others = object.symbols.iter().skip(1);
    let others = others.filter(|s| s.binding != STB_LOCAL && s.place != Place::Undefined);
    others.map(|s| s.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member<'a>(name: &'a str, data: &'a [u8]) -> Member<'a> {
        let name = name.as_bytes();
        Member { name, data }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let list = [
            member("short.o", b"odd"),
            member("a-name-of-more-than-15-bytes.o", b"even"),
            member("short.o", b""),
            member("another-long-name-of-an-object.o", b"x"),
        ];
        let bytes = write(&list).expect("small");
        assert_eq!(members(&bytes).expect("sound"), list);
        assert_eq!(write(&[]).expect("small"), MAGIC);
    }

    #[test]
    fn names_in_the_manner_of_bsd() {
        let mut bytes = MAGIC.to_vec();
        header(&mut bytes, b"#1/8", "644", 10);
        bytes.extend(b"a b.o\0\0\0xy");
        assert_eq!(members(&bytes).expect("sound"), [member("a b.o", b"xy")]);
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let sound = write(&[member("one.o", b"12"), member("two.o", b"34")]).expect("small");
        for cut in 1..sound.len() - MAGIC.len() {
            let bytes = &sound[..sound.len() - cut];
            // Cut off between members it is a shorter archive.
            if cut != HEADER + 2 {
                let error = members(bytes).expect_err("cut off");
                assert!(
                    matches!(error, ArchiveError::Damaged { .. }),
                    "{cut}: {error}"
                );
            }
        }
        assert_eq!(members(b"!<thin>\n"), Err(ArchiveError::Thin));
    }
}
