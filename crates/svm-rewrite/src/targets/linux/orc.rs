//! ORC unwind tables of rewritten code (arch/x86/include/asm/orc_types.h; the kernel's
//! Documentation/arch/x86/orc-unwinder.rst). [`Encoding`] has what differs between kernels.
//!
//! An entry holds from its address to the next and says where the caller's frame is. At
//! the original's instructions it is the original's entry; where a sequence has pushed
//! words, the frame is that many words farther from `rsp`.

use elf_loader::consts::R_X86_64_PC32;
use elf_loader::special::orc::{Base, Encoding};
use elf_loader::special::{self, EntryData, SpecialKind};
use elf_loader::{Object, Relocation, SectionId, SymbolId};
use foldhash::HashMap;

use crate::analyse::class::Class;
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, InstIdx, Lifted};
use crate::plan::InstPlan;
use crate::refusal::{self, Refusal, RefusalCode};
use crate::registers::gpr;

type Entry = [u8; 6];

/// Most words that a sequence pushes, and more.
const MOST_WORDS: i16 = 32;

/// The original's tables, for new code of which each entry can say where the frame is.
pub struct Unwinding {
    /// `.orc_unwind_ip` and `.orc_unwind`.
    sections: [SectionId; 2],
    encoding: Encoding,
    /// For each code section offsets and entries, sorted.
    entries: HashMap<CodeIdx, Vec<(u64, Entry)>>,
}

/// Reads the tables, whose entries are in the `encoding` of the module's kernel; `None` if the
/// object has none.
///
/// # Errors
/// Tables that cannot be read, and instructions whose sequence pushes words where no entry
/// can say so.
pub fn plan(
    lifted: &Lifted<'_>,
    plans: &[InstPlan],
    encoding: Option<Encoding>,
) -> Result<Option<Unwinding>, Vec<Refusal>> {
    let (Some(ips), Some(entries), Some(encoding)) = (
        lifted.object.section_named(SpecialKind::OrcUnwindIp.name()),
        lifted.object.section_named(SpecialKind::OrcUnwind.name()),
        encoding,
    ) else {
        return Ok(None);
    };
    let old = Unwinding::read(lifted, [ips, entries], encoding).map_err(|refusal| vec![refusal])?;
    let mut refusals = Vec::new();
    for (i, plan) in (0..).map(InstIdx).zip(plans) {
        let pushes = !plan.scratch.spilled().is_empty()
            || !plan.across.is_empty()
            || matches!(plan.class, Class::String(..));
        if !pushes {
            continue;
        }
        let inst = lifted.inst(i);
        let entry = old.of(inst.section).at(inst.offset());
        if entry.is_some_and(|entry| !can_be_deeper(lifted, i, old.encoding, entry)) {
            let reason =
                "registers must be spilled where unwinding counts from neither rsp nor rbp";
            let refusal = lifted.refusal(RefusalCode::NoScratch, i, reason);
            refusal::add(&mut refusals, refusal);
        }
    }
    match refusals.is_empty() {
        true => Ok(Some(old)),
        false => Err(refusals),
    }
}

/// Whether an entry can say that the sequence of an instruction has pushed words.
fn can_be_deeper(lifted: &Lifted<'_>, inst: InstIdx, encoding: Encoding, entry: Entry) -> bool {
    match encoding.base(entry) {
        Base::Sp => sp_offset(entry).checked_add(8 * MOST_WORDS).is_some(),
        Base::Bp | Base::Undefined => true,
        // The base of its operand keeps its value until the instruction itself.
        Base::Register(number) => {
            let base = gpr(lifted.inst(inst).iced.memory_base());
            base.is_some_and(|r| r.number() == number)
        }
        Base::Other => false,
    }
}

fn sp_offset(entry: Entry) -> i16 {
    i16::from_le_bytes([entry[0], entry[1]])
}

/// The entry with `words` more words on the stack, at most [`MOST_WORDS`]; see
/// [`can_be_deeper`].
fn deeper(encoding: Encoding, entry: Entry, words: i64) -> Entry {
    match encoding.base(entry) {
        Base::Sp => {
            let [low, high] = (sp_offset(entry) + 8 * words as i16).to_le_bytes();
            [low, high, entry[2], entry[3], entry[4], entry[5]]
        }
        Base::Bp | Base::Undefined | Base::Register(_) | Base::Other => entry,
    }
}

impl Unwinding {
    /// Makes the tables for the new code. Entries are sorted by section and offset.
    pub fn remake(
        &self,
        object: &mut Object<'static>,
        lifted: &Lifted<'_>,
        applied: &Applied,
        section_symbols: &HashMap<CodeIdx, SymbolId>,
    ) {
        let (mut data, mut relocations) = (Vec::new(), Vec::new());
        for code in (0..lifted.sections.len() as u16).map(CodeIdx) {
            let (rows, symbol) = (self.rows(lifted, applied, code), section_symbols[&code]);
            data.reserve(size_of::<Entry>() * rows.len());
            relocations.reserve(rows.len());
            for (offset, entry) in rows {
                relocations.push(Relocation {
                    offset: 4 * relocations.len() as u64,
                    kind: R_X86_64_PC32,
                    symbol,
                    addend: offset as i64,
                });
                data.extend_from_slice(&entry);
            }
        }
        let [ips, entries] = self.sections.map(|id| id.0 as usize);
        let ips = &mut object.sections[ips];
        ips.data = vec![0; 4 * relocations.len()].into();
        ips.size = ips.data.len() as u64;
        ips.relocations = relocations;
        let entries = &mut object.sections[entries];
        entries.size = data.len() as u64;
        entries.data = data.into();
    }

    /// The entries of one section, by new offset.
    fn rows(&self, lifted: &Lifted<'_>, applied: &Applied, code: CodeIdx) -> Vec<(u64, Entry)> {
        let laid = &applied.sections[usize::from(code.0)];
        let mut rows = Rows::default();
        let mut old = self.of(code);
        for depth in &applied.depths[usize::from(code.0)] {
            let original = lifted.inst(depth.inst).offset();
            let Some(entry) = old.at(original) else {
                continue;
            };
            let deep = deeper(self.encoding, entry, depth.words);
            rows.put(|| laid.offset(depth.at), deep);
            if depth.words == 0 {
                let end = lifted.inst(depth.inst).iced.next_ip();
                for (at, entry) in old.beginning_before(end) {
                    rows.put(|| laid.offset(depth.at) + (at - original), entry);
                }
            }
        }
        // The entry after the last instruction says that no code follows.
        let section = lifted.sections[usize::from(code.0)].id;
        let end = lifted.object.section(section).data.len() as u64;
        if let Some(entry) = old.starting_at(end) {
            rows.put(|| laid.bytes.len() as u64, entry);
        }
        rows.0
    }

    fn read(
        lifted: &Lifted<'_>,
        sections: [SectionId; 2],
        encoding: Encoding,
    ) -> Result<Unwinding, Refusal> {
        let [ips, entries] = sections;
        let refuse = |id: SectionId, reason: String| {
            Refusal::at(
                RefusalCode::Metadata,
                &lifted.object.section(id).name,
                0,
                reason,
            )
        };
        let read = |id| special::entries(lifted.object, id).map_err(|e| refuse(id, e.to_string()));
        let (places, contents) = (read(ips)?, read(entries)?);
        if places.len() != contents.len() {
            let reason = format!("{} entries for {} places", contents.len(), places.len());
            return Err(refuse(entries, reason));
        }
        let mut found: HashMap<CodeIdx, Vec<(u64, Entry)>> = HashMap::default();
        for (place, content) in places.iter().zip(&contents) {
            let site = place
                .site()
                .and_then(|(id, at)| Some((lifted.code_section(id)?, at)));
            let (Some((code, at)), EntryData::Orc(entry)) = (site, content.data) else {
                return Err(refuse(ips, "an entry is for no code of the object".into()));
            };
            found.entry(code).or_default().push((at, entry));
        }
        for list in found.values_mut() {
            list.sort_by_key(|(at, _)| *at);
        }
        Ok(Unwinding {
            sections,
            encoding,
            entries: found,
        })
    }

    /// The entries of a code section.
    fn of(&self, code: CodeIdx) -> Entries<'_> {
        Entries {
            list: self.entries.get(&code).map_or(&[], Vec::as_slice),
            begun: 0,
        }
    }
}

/// The entries of new code, by offset. Neighbours differ.
#[derive(Default)]
struct Rows(Vec<(u64, Entry)>);

impl Rows {
    /// Adds the entry that holds from an offset on, the last one or a later one. The offset is
    /// asked for only if the entry is another than before it: few are.
    fn put(&mut self, offset: impl Fn() -> u64, entry: Entry) {
        if self.holds(entry) {
            return;
        }
        let offset = offset();
        // Of several entries at one place the last one counts.
        if self.0.last().is_some_and(|(at, _)| *at == offset) {
            self.0.pop();
        }
        if !self.holds(entry) {
            self.0.push((offset, entry));
        }
    }

    /// Whether the last entry is this one.
    fn holds(&self, entry: Entry) -> bool {
        self.0.last().is_some_and(|(_, last)| *last == entry)
    }
}

/// The entries of a section, looked up by offset. Each look-up begins where the last one
/// ended: most come in the order of the code.
struct Entries<'u> {
    list: &'u [(u64, Entry)],
    /// How many begin at or before the last offset.
    begun: usize,
}

impl<'u> Entries<'u> {
    /// How many begin at an offset or before.
    fn begun(&mut self, offset: u64) -> usize {
        let list = self.list;
        let begins = |n: usize| n.checked_sub(1).is_none_or(|last| list[last].0 <= offset);
        let ends = |n: usize| list.get(n).is_none_or(|(at, _)| *at > offset);
        let near = [self.begun, self.begun + 1].into_iter();
        let mut near = near.take_while(|n| *n <= list.len() && begins(*n));
        self.begun = near
            .find(|n| ends(*n))
            .unwrap_or_else(|| list.partition_point(|(at, _)| *at <= offset));
        self.begun
    }

    /// The entry that holds at a place.
    fn at(&mut self, offset: u64) -> Option<Entry> {
        let n = self.begun(offset);
        Some(self.list[n.checked_sub(1)?].1)
    }

    /// The entries that begin behind the place that was looked up last, inside the instruction
    /// there, which ends at `end`. They belong to an alternative that replaces it: `pushf; pop
    /// %rax` for `call *pv_ops+N(%rip)`. These instructions stay as they are, and so do the
    /// entries' places in them.
    fn beginning_before(&self, end: u64) -> impl Iterator<Item = (u64, Entry)> + use<'u> {
        self.list[self.begun..]
            .iter()
            .take_while(move |(at, _)| *at < end)
            .copied()
    }

    /// The entry that begins exactly there.
    fn starting_at(&self, offset: u64) -> Option<Entry> {
        let found = self.list.iter().rev().find(|(at, _)| *at == offset);
        found.map(|(_, entry)| *entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_from_wherever_the_last_one_was() {
        let list: Vec<(u64, Entry)> = [0, 4, 4, 5, 9, 16].map(|at| (at, [at as u8; 6])).into();
        let places = || 0..20;
        for list in [&list[..], &list[1..], &[]] {
            for (first, second) in places().flat_map(|a| places().map(move |b| (a, b))) {
                let mut entries = Entries { list, begun: 0 };
                for offset in [first, second] {
                    let expected = list.partition_point(|(at, _)| *at <= offset);
                    assert_eq!(entries.begun(offset), expected, "{first} {second}");
                }
            }
        }
    }
}
