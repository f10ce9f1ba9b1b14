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
//!
//! A linker takes from an archive what its index names, and looks at index and long names at
//! the beginning only. So an index or list of names anywhere else would be a member to it, and
//! a place in the index where no member begins one that nobody else sees: both are damage.
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
/// Longest name at all: that of a path in Linux (PATH_MAX). Many members may have one.
const LONGEST_NAME: usize = 4096;

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
    let (mut members, mut long_names): (_, Option<&[u8]>) = (Vec::new(), None);
    let (mut starts, mut named) = (Vec::new(), Vec::new());
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
        let name = header[..16].trim_ascii_end();
        let part = part(name, &bytes[start..end], long_names.unwrap_or_default());
        match part.map_err(damaged)? {
            Part::Index(_) if offset != MAGIC.len() => {
                return Err(damaged("an index that is not the first member"));
            }
            Part::Index(index) => {
                named = index
                    .places()
                    .ok_or_else(|| damaged("an index that is none"))?;
            }
            Part::LongNames(_) if long_names.is_some() || !members.is_empty() => {
                return Err(damaged("a list of names that is not before the members"));
            }
            Part::LongNames(list) => long_names = Some(list),
            Part::Member(member) => {
                members.push(member);
                starts.push(offset as u64);
            }
        }
        offset = end + end % 2;
    }
    match named.iter().all(|at| starts.binary_search(at).is_ok()) {
        true => Ok(members),
        false => Err(ArchiveError::Damaged {
            offset: MAGIC.len(),
            problem: "the index names a place where no member begins",
        }),
    }
}

/// What a header stands before.
enum Part<'a> {
    Index(Index<'a>),
    LongNames(&'a [u8]),
    Member(Member<'a>),
}

/// An index by its format.
enum Index<'a> {
    /// A number of symbols and that many places, of this many bytes each, highest first.
    Gnu(&'a [u8], usize),
    /// The bytes of a table and the table, of pairs of a name and a place, lowest first.
    Bsd(&'a [u8]),
}

impl Index<'_> {
    /// The places in the file that it names; `None` if its table does not fit in it.
    fn places(&self) -> Option<Vec<u64>> {
        let high = |word: &[u8]| word.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        match *self {
            Index::Gnu([], _) | Index::Bsd([]) => Some(Vec::new()),
            Index::Gnu(data, width) => {
                let count = usize::try_from(high(data.get(..width)?)).ok()?;
                let table = data[width..].get(..count.checked_mul(width)?)?;
                Some(table.chunks_exact(width).map(high).collect())
            }
            Index::Bsd(data) => {
                let low = |word: [u8; 4]| u64::from(u32::from_le_bytes(word));
                let length = low(data.get(..4)?.try_into().ok()?) as usize;
                let (pairs, []) = data[4..].get(..length)?.as_chunks::<8>() else {
                    return None;
                };
                Some(
                    pairs
                        .iter()
                        .map(|p| low([p[4], p[5], p[6], p[7]]))
                        .collect(),
                )
            }
        }
    }
}

/// What a header with that name stands before.
fn part<'a>(
    name: &'a [u8],
    data: &'a [u8],
    long_names: &'a [u8],
) -> Result<Part<'a>, &'static str> {
    let bsd = |name: &[u8]| matches!(name, b"__.SYMDEF" | b"__.SYMDEF SORTED");
    match name {
        b"/" => return Ok(Part::Index(Index::Gnu(data, 4))),
        b"/SYM64/" => return Ok(Part::Index(Index::Gnu(data, 8))),
        b"//" => return Ok(Part::LongNames(data)),
        name if bsd(name.strip_suffix(b"/").unwrap_or(name)) => {
            return Ok(Part::Index(Index::Bsd(data)));
        }
        _ => {}
    }
    let member = member(name, data, long_names)?;
    match bsd(member.name) {
        true => Ok(Part::Index(Index::Bsd(member.data))),
        false => Ok(Part::Member(member)),
    }
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
        return named(name, data);
    }
    let name = match name.strip_prefix(b"/") {
        Some(at) => {
            let at = number(at).ok_or("a name that is no place in the list of names")?;
            let rest = long_names
                .get(at..)
                .ok_or("a name outside the list of names")?;
            let rest = &rest[..rest.len().min(LONGEST_NAME + 2)];
            let end = rest.windows(2).position(|pair| pair == b"/\n");
            &rest[..end.ok_or("a name without an end, or of more than 4096 bytes")?]
        }
        None => name.strip_suffix(b"/").unwrap_or(name),
    };
    named(name, data)
}

/// A member under a name that can be written again: a list of names has them in lines.
fn named<'a>(name: &'a [u8], data: &'a [u8]) -> Result<Member<'a>, &'static str> {
    match name {
        b"" => Err("a member without a name"),
        name if name.len() > LONGEST_NAME => Err("a name of more than 4096 bytes"),
        name if name.contains(&b'\n') => Err("a name with the end of a line in it"),
        name => Ok(Member { name, data }),
    }
}

/// A decimal number, with blanks behind it. No sign: linkers take a name after `#1/+` for
/// one that stands in the header.
fn number(field: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(field.trim_ascii_end()).ok()?;
    let digits = Some(digits).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
    digits?.parse().ok()
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
/// long for that, or would mean something else there.
fn names(members: &[Member<'_>]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut list = Vec::new();
    let mut name = |member: &Member<'_>| {
        let means_more = [&b"/"[..], b"#1/"]
            .iter()
            .any(|m| member.name.starts_with(m));
        if member.name.len() <= SHORT_NAME && !means_more {
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
            member("/a/path.o", b"y"),
            member("#1/4", b"name"),
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

    /// They would be an index, another's name, or a name that nobody finds the end of.
    #[test]
    fn names_that_cannot_be_written_are_damage() {
        let bsd = |name: &[u8]| {
            let mut bytes = MAGIC.to_vec();
            let length = format!("#1/{}", name.len());
            header(&mut bytes, length.as_bytes(), "644", name.len());
            bytes.extend(name);
            pad(&mut bytes);
            bytes
        };
        assert_eq!(problem(&bsd(b"\0\0")), "a member without a name");
        assert_eq!(problem(&bsd(b"")), "a member without a name");
        let long = vec![b'x'; LONGEST_NAME + 1];
        assert_eq!(problem(&bsd(&long)), "a name of more than 4096 bytes");
        let line = "a name with the end of a line in it";
        assert_eq!(problem(&bsd(b"a/\nb")), line);
    }

    /// An archive of parts under those names as headers have them.
    fn archive(parts: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, data) in parts {
            header(&mut bytes, name, "644", data.len());
            bytes.extend(*data);
            pad(&mut bytes);
        }
        bytes
    }

    fn problem(bytes: &[u8]) -> &'static str {
        match members(bytes) {
            Err(ArchiveError::Damaged { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    /// To a linker they are members.
    #[test]
    fn an_index_or_list_of_names_is_at_the_beginning() {
        for name in [&b"/"[..], b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED"] {
            let bytes = archive(&[(b"a.o/", b"12"), (name, b"")]);
            assert_eq!(problem(&bytes), "an index that is not the first member");
            let bytes = archive(&[(name, b"\x7fELF\x02\x01\x01\0\0\0\0\0")]);
            assert_eq!(problem(&bytes), "an index that is none");
        }
        let text = "a list of names that is not before the members";
        assert_eq!(problem(&archive(&[(b"a.o/", b"12"), (b"//", b"")])), text);
        assert_eq!(problem(&archive(&[(b"//", b""), (b"//", b"")])), text);
        let bytes = archive(&[(b"a.o/", b"12"), (b"#1/12", b"__.SYMDEFx\0\0xy")]);
        assert_eq!(members(&bytes).expect("sound").len(), 2);
    }

    #[test]
    fn the_index_names_members_alone() {
        let lies = "the index names a place where no member begins";
        for at in 0..100 {
            let place = u32::to_be_bytes(at);
            let index = [&[0, 0, 0, 1], &place[..], b"x\0"].concat();
            let bytes = archive(&[(b"/", &index), (b"a.o/", b"12")]);
            match at as usize == MAGIC.len() + HEADER + 10 {
                true => assert_eq!(members(&bytes).expect("sound").len(), 1),
                false => assert_eq!(problem(&bytes), lies, "{at}"),
            }
            let index = [&[0; 7], &[1, 0, 0, 0, 0][..], &place].concat();
            let bytes = archive(&[(b"/SYM64/", &index), (b"a.o/", b"12")]);
            assert_eq!(members(&bytes).is_ok(), at as usize == 8 + HEADER + 16);
            let index = [&[8, 0, 0, 0, 0, 0, 0, 0][..], &u32::to_le_bytes(at)].concat();
            let bytes = archive(&[(b"__.SYMDEF", &index), (b"a.o/", b"12")]);
            assert_eq!(members(&bytes).is_ok(), at as usize == 8 + HEADER + 12);
        }
    }

    /// A linker sees no name before the bytes there.
    #[test]
    fn numbers_have_no_sign() {
        let bytes = archive(&[(b"#1/+2", b"ab12")]);
        assert_eq!(problem(&bytes), "a name longer than its member");
    }

    #[test]
    fn names_have_an_end_soon() {
        let mut list = vec![b'x'; 1 << 20];
        list.extend(b"/\n");
        let bytes = archive(&[(b"//", &list), (b"/0", b"12")]);
        assert!(problem(&bytes).ends_with("of more than 4096 bytes"));
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
