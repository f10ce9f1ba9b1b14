//! ORC unwind tables of rewritten code (arch/x86/include/asm/orc_types.h; the kernel's
//! Documentation/arch/x86/orc-unwinder.rst). [`Encoding`] has what differs between kernels.
//!
//! An entry holds from its address to the next and says where the caller's frame is. At
//! the original's instructions it is the original's entry; where a sequence has pushed
//! words, the frame is that many words farther from `rsp`.

use elf_loader::consts::R_X86_64_PC32;
use elf_loader::special::orc::{Base, Encoding, encoding};
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

/// Makes the tables for the new code, if the original has them. Entries are sorted by
/// section and offset.
pub fn remake(
    object: &mut Object<'static>,
    lifted: &Lifted<'_>,
    applied: &Applied,
    section_symbols: &HashMap<CodeIdx, SymbolId>,
) -> Result<(), Vec<Refusal>> {
    let (Some(ips), Some(entries)) = (
        object.section_named(SpecialKind::OrcUnwindIp.name()),
        object.section_named(SpecialKind::OrcUnwind.name()),
    ) else {
        return Ok(());
    };
    let old = Original::read(lifted, ips, entries).map_err(|refusal| vec![refusal])?;
    let (mut data, mut relocations) = (Vec::new(), Vec::new());
    let mut refusals = Vec::new();
    for section in 0..lifted.sections.len() as u16 {
        let code = CodeIdx(section);
        for (offset, entry) in rows(lifted, applied, &old, code, &mut refusals) {
            relocations.push(Relocation {
                offset: 4 * relocations.len() as u64,
                kind: R_X86_64_PC32,
                symbol: section_symbols[&code],
                addend: offset as i64,
            });
            data.extend(entry);
        }
    }
    let ips = &mut object.sections[ips.0 as usize];
    ips.data = vec![0; 4 * relocations.len()].into();
    ips.size = ips.data.len() as u64;
    ips.relocations = relocations;
    let entries = &mut object.sections[entries.0 as usize];
    entries.size = data.len() as u64;
    entries.data = data.into();
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(refusals)
    }
}

/// Most words that a sequence pushes, and more.
const MOST_WORDS: i64 = 32;

/// Refuses tables that cannot be read, and instructions whose sequence pushes words where
/// no entry can say so.
pub fn check(lifted: &Lifted<'_>, plans: &[InstPlan]) -> Vec<Refusal> {
    let (Some(ips), Some(entries)) = (
        lifted.object.section_named(SpecialKind::OrcUnwindIp.name()),
        lifted.object.section_named(SpecialKind::OrcUnwind.name()),
    ) else {
        return Vec::new();
    };
    let old = match Original::read(lifted, ips, entries) {
        Ok(old) => old,
        Err(refusal) => return vec![refusal],
    };
    let mut refusals = Vec::new();
    for (i, plan) in (0..).map(InstIdx).zip(plans) {
        let pushes = !plan.scratch.spilled().is_empty() || matches!(plan.class, Class::String(..));
        let inst = lifted.inst(i);
        if pushes
            && let Some(entry) = old.at(inst.section, inst.offset())
            && deeper(lifted, i, old.encoding, entry, MOST_WORDS).is_none()
        {
            refusal::add(&mut refusals, beyond(lifted, i));
        }
    }
    refusals
}

/// The entries of one section, by new offset.
fn rows(
    lifted: &Lifted<'_>,
    applied: &Applied,
    old: &Original,
    code: CodeIdx,
    refusals: &mut Vec<Refusal>,
) -> Vec<(u64, Entry)> {
    let laid = &applied.sections[usize::from(code.0)];
    let mut rows: Vec<(u64, Entry)> = Vec::new();
    let mut put = |offset: u64, entry: Entry| {
        // Of several entries at one place the last one counts.
        if rows.last().is_some_and(|(at, _)| *at == offset) {
            rows.pop();
        }
        if rows.last().is_none_or(|(_, before)| *before != entry) {
            rows.push((offset, entry));
        }
    };
    for depth in &applied.depths[usize::from(code.0)] {
        let original = lifted.inst(depth.inst).offset();
        let Some(entry) = old.at(code, original) else {
            continue;
        };
        match deeper(lifted, depth.inst, old.encoding, entry, depth.words) {
            Some(entry) => put(laid.offset(depth.at), entry),
            None => refusal::add(refusals, beyond(lifted, depth.inst)),
        }
        if depth.words == 0 {
            let end = lifted.inst(depth.inst).iced.next_ip();
            for (at, entry) in old.beginning_within(code, original, end) {
                put(laid.offset(depth.at) + (at - original), entry);
            }
        }
    }
    // The entry after the last instruction says that no code follows.
    let section = lifted.sections[usize::from(code.0)].id;
    let end = lifted.object.section(section).data.len() as u64;
    if let Some(entry) = old.starting_at(code, end) {
        put(laid.bytes.len() as u64, entry);
    }
    rows
}

fn beyond(lifted: &Lifted<'_>, i: InstIdx) -> Refusal {
    let reason = "registers must be spilled where unwinding counts from neither rsp nor rbp";
    lifted.refusal(RefusalCode::NoScratch, i, reason)
}

/// The entry with `words` more words on the stack, in the sequence of an instruction.
fn deeper(
    lifted: &Lifted<'_>,
    inst: InstIdx,
    encoding: Encoding,
    entry: Entry,
    words: i64,
) -> Option<Entry> {
    if words == 0 {
        return Some(entry);
    }
    match encoding.base(entry) {
        Base::Sp => {
            let offset = i16::from_le_bytes([entry[0], entry[1]]);
            let offset = i16::try_from(i64::from(offset) + 8 * words).ok()?;
            let [low, high] = offset.to_le_bytes();
            Some([low, high, entry[2], entry[3], entry[4], entry[5]])
        }
        Base::Bp | Base::Undefined => Some(entry),
        // The base of its operand keeps its value until the instruction itself.
        Base::Register(number) => {
            let base = gpr(lifted.inst(inst).iced.memory_base());
            base.is_some_and(|r| r.number() == number).then_some(entry)
        }
        Base::Other => None,
    }
}

/// The original's tables.
struct Original {
    encoding: Encoding,
    /// For each code section offsets and entries, sorted.
    entries: HashMap<CodeIdx, Vec<(u64, Entry)>>,
}

impl Original {
    fn read(lifted: &Lifted<'_>, ips: SectionId, entries: SectionId) -> Result<Original, Refusal> {
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
        let encoding = encoding(lifted.object).map_err(|e| refuse(entries, e.to_string()))?;
        let encoding = encoding.expect("the object has unwind entries");
        Ok(Original {
            encoding,
            entries: found,
        })
    }

    /// The entry that holds at a place.
    fn at(&self, code: CodeIdx, offset: u64) -> Option<Entry> {
        let list = self.entries.get(&code)?;
        let n = list.partition_point(|(at, _)| *at <= offset);
        Some(list[n.checked_sub(1)?].1)
    }

    /// The entries that begin inside an instruction. They belong to an alternative that
    /// replaces it: `pushf; pop %rax` for `call *pv_ops+N(%rip)`. These instructions
    /// stay as they are, and so do the entries' places in them.
    fn beginning_within(
        &self,
        code: CodeIdx,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, Entry)> + '_ {
        let list = self.entries.get(&code).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|(at, _)| *at <= start);
        list[first..]
            .iter()
            .take_while(move |(at, _)| *at < end)
            .copied()
    }

    /// The entry that begins exactly there.
    fn starting_at(&self, code: CodeIdx, offset: u64) -> Option<Entry> {
        let list = self.entries.get(&code)?;
        let found = list.iter().rev().find(|(at, _)| *at == offset);
        found.map(|(_, entry)| *entry)
    }
}
