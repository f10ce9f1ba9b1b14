//! R7 of [`crate::check()`]: what the runtime is told of the code is so. It looks functions up in
//! the codemap, and takes addresses in the code's ranges for the driver's; a count that is one too
//! large would have it enter whatever follows.
//!
//! * the codemap that is proved is the one that the runtime is given, all of it and no more
//! * the ranges are the sections of code and of stubs, each from its start to its end
//! * a stub with a number has the row of that number, which names its routine
//! * scheme and version are those of the note

use elf_loader::consts::{R_X86_64_64, SHF_WRITE};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, WORD, resolve_target};
use svm_verify::Proof;

use crate::output::names;

/// What is not so.
pub type Wrong = String;

/// Judges the arrays of a payload whose code was proved.
///
/// # Errors
/// The array that is not as it has to be.
pub fn check(payload: &Object<'_>, code: &[SectionId], proof: &Proof) -> Result<(), Wrong> {
    let given = Given { payload };
    given.codemap()?;
    given.text(code)?;
    given.imports()?;
    given.number("twin_payload_scheme", u64::from(proof.scheme as u32))?;
    given.number("twin_payload_abi_version", u64::from(twin_abi::ABI_VERSION))?;
    given.number("twin_payload_vector_free", 1)
}

struct Given<'p> {
    payload: &'p Object<'p>,
}

/// The words of an array, with the relocation of each that has one.
type Row<'p, const N: usize> = [(u64, Option<&'p Relocation>); N];

impl<'p> Given<'p> {
    /// The one symbol of a name, in read-only data.
    fn symbol(&self, name: &str) -> Result<(&'p Symbol<'p>, &'p Section<'p>), Wrong> {
        let mut all = self.payload.symbols.iter().filter(|s| s.name == name);
        let (Some(symbol), None) = (all.next(), all.next()) else {
            return Err(format!("it has not one `{name}`"));
        };
        match symbol.place {
            Place::In(id) if self.payload.section(id).flags & SHF_WRITE == 0 => {
                Ok((symbol, self.payload.section(id)))
            }
            _ => Err(format!("`{name}` may be written, or is nowhere")),
        }
    }

    /// Words from a symbol on. An array that does not lie in its section is none.
    fn words(&self, name: &str, count: u64) -> Result<Vec<(u64, Option<&'p Relocation>)>, Wrong> {
        let (symbol, section) = self.symbol(name)?;
        let from = usize::try_from(symbol.value).unwrap_or(usize::MAX);
        let bytes = section.data.get(from..).unwrap_or_default();
        let (words, _) = bytes.as_chunks::<{ WORD as usize }>();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let words = words.get(..count);
        let words = words.ok_or_else(|| format!("`{name}` is longer than its section"))?;
        let word = |(n, word): (usize, &[u8; 8])| {
            let at = symbol.value + n as u64 * WORD;
            let mut all = touching(section, at, WORD);
            let relocation = all.next();
            let whole = all.next().is_none() && relocation.is_none_or(|r| r.offset == at);
            let why = || format!("word {n} of `{name}` is written by another word's relocation");
            whole
                .then_some((u64::from_le_bytes(*word), relocation))
                .ok_or_else(why)
        };
        words.iter().enumerate().map(word).collect()
    }

    /// A number of 4 bytes.
    fn number(&self, name: &str, value: u64) -> Result<(), Wrong> {
        let (symbol, section) = self.symbol(name)?;
        let at = usize::try_from(symbol.value).unwrap_or(usize::MAX);
        let bytes = section.data.get(at..).and_then(|rest| rest.first_chunk());
        let found = bytes.map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        match found == Some(value) && touching(section, symbol.value, 4).next().is_none() {
            true => Ok(()),
            false => Err(format!("`{name}` is {found:x?}, not {value:#x}")),
        }
    }

    /// How many rows an array has, as the runtime reads it.
    fn count(&self, name: &str) -> Result<u64, Wrong> {
        let name = format!("{name}_count");
        match self.words(&name, 1)?[..] {
            [(count, None)] => Ok(count),
            _ => Err(format!("`{name}` is no number")),
        }
    }

    fn rows<const N: usize>(&self, name: &str) -> Result<Vec<Row<'p, N>>, Wrong> {
        let words = self.count(name)?.saturating_mul(N as u64);
        let words = self.words(name, words)?;
        Ok(words.as_chunks::<N>().0.to_vec())
    }

    fn codemap(&self) -> Result<(), Wrong> {
        let (symbol, section) = self.symbol(names::CODEMAP_SYMBOL)?;
        let rows = self.count(names::CODEMAP_SYMBOL)?;
        let proved = section.name == names::CODEMAP && symbol.value == 0;
        match proved && rows.checked_mul(2 * WORD) == Some(section.size) {
            true => Ok(()),
            false => Err("the runtime is given another codemap, or another part of it".into()),
        }
    }

    fn text(&self, code: &[SectionId]) -> Result<(), Wrong> {
        let mut told = Vec::new();
        for row in self.rows::<2>("twin_payload_text")? {
            let target = |word| {
                self.target(word)
                    .ok_or("a range of code has no two addresses")
            };
            let ((section, start), (of, end)) = (target(row[0])?, target(row[1])?);
            let whole = start == 0 && section == of && end == self.payload.section(of).size;
            whole
                .then(|| told.push(section))
                .ok_or("a range is not a section of code")?;
        }
        let stubs = self.payload.section_named(names::STUBS);
        let mut there: Vec<SectionId> = code.iter().copied().chain(stubs).collect();
        there.sort_unstable();
        told.sort_unstable();
        match told == there {
            true => Ok(()),
            false => Err("the ranges of code are not its sections".into()),
        }
    }

    fn target(&self, (word, r): (u64, Option<&Relocation>)) -> Option<(SectionId, u64)> {
        let r = r.filter(|r| word == 0 && r.kind == R_X86_64_64)?;
        resolve_target(self.payload, r)
    }

    fn imports(&self) -> Result<(), Wrong> {
        let rows = self.rows::<3>("twin_payload_imports")?;
        for (n, [name, vm, stub]) in rows.iter().enumerate() {
            let is_row = vm.1.is_none()
                && self.target(*stub).is_some()
                && self
                    .text_at(*name)
                    .is_some_and(|name| self.stub_number(name) == Some(n as u64))
                && self.target(*stub) == self.text_at(*name).and_then(|name| self.stub_of(name));
            if !is_row {
                return Err(format!(
                    "row {n} of the imports is not that of the stub with this number"
                ));
            }
        }
        let numbered = self
            .stubs()
            .filter(|(name, _)| self.stub_number(name).is_some());
        match numbered.count() == rows.len() {
            true => Ok(()),
            false => Err("a stub has a number that no row of the imports has".into()),
        }
    }

    fn stubs(&self) -> impl Iterator<Item = (&'p str, &'p Symbol<'p>)> {
        let names = self.payload.symbols.iter();
        names.filter_map(|s| Some((s.name.strip_prefix(names::STUB_PREFIX)?, s)))
            .filter(|(_, s)| matches!(s.place, Place::In(id) if self.payload.section(id).name == names::STUBS))
    }

    fn stub_of(&self, name: &str) -> Option<(SectionId, u64)> {
        let mut of_name = self.stubs().filter(|(stub, _)| *stub == name);
        let (Some((_, symbol)), None) = (of_name.next(), of_name.next()) else {
            return None;
        };
        match symbol.place {
            Place::In(id) => Some((id, symbol.value)),
            _ => None,
        }
    }

    /// The number in a routine's stub, `mov $number, %r11d`.
    fn stub_number(&self, name: &str) -> Option<u64> {
        let (id, at) = self.stub_of(name)?;
        let bytes = self.payload.section(id).data.get(at as usize..)?;
        match bytes {
            [0x41, 0xbb, a, b, c, d, ..] => Some(u64::from(u32::from_le_bytes([*a, *b, *c, *d]))),
            _ => None,
        }
    }

    /// The text that a word leads to.
    fn text_at(&self, word: (u64, Option<&'p Relocation>)) -> Option<&'p str> {
        let (id, at) = self.target(word)?;
        let section = self.payload.section(id);
        let bytes = section.data.get(usize::try_from(at).ok()?..)?;
        let end = bytes.iter().position(|&byte| byte == 0)?;
        let mut written = touching(section, at, end as u64 + 1);
        if section.flags & SHF_WRITE != 0 || written.next().is_some() {
            return None;
        }
        std::str::from_utf8(&bytes[..end]).ok()
    }
}

/// The relocations that may write one of these bytes.
pub fn touching<'s>(
    section: &'s Section<'_>,
    at: u64,
    bytes: u64,
) -> impl Iterator<Item = &'s Relocation> {
    let touches = move |r: &&Relocation| r.offset < at + bytes && r.offset + WORD > at;
    section.relocations.iter().filter(touches)
}
