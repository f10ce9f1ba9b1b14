//! Collects violations, with names and text for their places.

mod explanations;
mod violation;

use std::borrow::Cow;

use elf_loader::{Object, Place, SectionId};
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

pub use violation::{Rule, Violation, ViolationCode, Violations};

/// Collects violations of one object.
pub struct Findings<'o> {
    object: &'o Object<'o>,
    limit: usize,
    list: Vec<(SectionId, Violation)>,
    total: usize,
    /// Section, offset and name of all symbols in code, sorted. Made when
    /// first needed: good objects do not need it.
    symbols: Option<Vec<(SectionId, u64, &'o str)>>,
}

impl<'o> Findings<'o> {
    /// An empty one that keeps at most `limit` violations.
    pub fn new(object: &'o Object<'o>, limit: usize) -> Self {
        Findings {
            object,
            limit,
            list: Vec::new(),
            total: 0,
            symbols: None,
        }
    }

    /// Whether nothing was found so far.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// A violation of the object as a whole.
    pub fn object(&mut self, code: ViolationCode, reason: impl Into<Cow<'static, str>>) {
        self.add(SectionId(0), None, code, reason.into());
    }

    /// A violation at an offset of a section.
    pub fn at(
        &mut self,
        section: SectionId,
        offset: u64,
        code: ViolationCode,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.add(section, Some(offset), code, reason.into());
    }

    fn add(
        &mut self,
        id: SectionId,
        offset: Option<u64>,
        code: ViolationCode,
        reason: Cow<'static, str>,
    ) {
        self.total += 1;
        if self.list.len() >= self.limit {
            return;
        }
        let place =
            offset.and_then(|offset| Some((offset, self.object.sections.get(id.0 as usize)?)));
        let symbol = offset.and_then(|offset| self.symbol(id, offset));
        let violation = Violation {
            rule: code.rule(),
            code,
            section: place.map_or(String::new(), |(_, s)| s.name.to_string()),
            offset: offset.unwrap_or(0),
            function: symbol.map(|(name, _)| name.to_string()),
            function_offset: symbol.map_or(0, |(_, offset)| offset),
            instruction: place
                .filter(|(_, s)| s.is_code())
                .map_or(String::new(), |(offset, _)| {
                    instruction(self.object, id, offset)
                }),
            reason: reason.into_owned(),
            remedy: code.remedy(),
        };
        self.list.push((id, violation));
    }

    /// The nearest symbol at or before the place, and how far it is.
    fn symbol(&mut self, id: SectionId, offset: u64) -> Option<(&'o str, u64)> {
        let object = self.object;
        let symbols = self.symbols.get_or_insert_with(|| code_symbols(object));
        let after = symbols.partition_point(|&(section, at, _)| (section, at) <= (id, offset));
        let (section, at, name) = *symbols.get(after.checked_sub(1)?)?;
        (section == id).then(|| (name, offset - at))
    }

    /// All of them, in the order of the object.
    pub fn finish(mut self) -> Violations {
        self.list.sort_by_key(|(id, v)| (*id, v.offset));
        let list = self
            .list
            .into_iter()
            .map(|(_, violation)| violation)
            .collect();
        Violations {
            list,
            total: self.total,
        }
    }
}

fn code_symbols<'o>(object: &'o Object<'o>) -> Vec<(SectionId, u64, &'o str)> {
    let mut all: Vec<_> = object
        .symbols()
        .filter_map(|(_, s)| match s.place {
            Place::In(section) if !s.name.is_empty() => Some((section, s.value, &*s.name)),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    all
}

/// The instruction as an assembler would show it, with the symbol that its
/// operand refers to.
fn instruction(object: &Object<'_>, id: SectionId, offset: u64) -> String {
    let section = object.section(id);
    let bytes = usize::try_from(offset)
        .ok()
        .and_then(|at| section.data.get(at..))
        .unwrap_or(&[]);
    let mut decoder = Decoder::with_ip(64, bytes, offset, DecoderOptions::NONE);
    if !decoder.can_decode() {
        return String::new();
    }
    let decoded = decoder.decode();
    let mut text = String::new();
    let mut formatter = GasFormatter::new();
    formatter
        .options_mut()
        .set_space_after_operand_separator(true);
    formatter.format(&decoded, &mut text);
    let first = section.relocations.partition_point(|r| r.offset < offset);
    let inside = section.relocations[first..]
        .iter()
        .take_while(|r| r.offset < offset + decoded.len() as u64)
        // An instruction has at most two relocations.
        .take(2);
    for r in inside {
        let name = object
            .symbols
            .get(r.symbol.0 as usize)
            .map_or("?", |s| &*s.name);
        let name = if name.is_empty() { "a section" } else { name };
        text.push_str(&format!(" [{name}{:+#x}]", r.addend));
    }
    text
}
