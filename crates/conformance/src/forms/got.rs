//! A global offset table for an original, as a linker makes it where nothing may become direct.

use std::borrow::Cow;
use std::collections::BTreeMap;

use elf_loader::consts::{
    R_X86_64_64, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_PC32, R_X86_64_REX_GOTPCRELX,
    SHF_ALLOC, SHF_WRITE, STB_LOCAL, STT_NOTYPE,
};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};

/// Bytes of an address.
const WORD: u64 = 8;

/// The object with a table of the addresses that its code takes out of one.
pub fn with_table<'o>(object: &'o Object<'o>) -> Cow<'o, Object<'o>> {
    let mut words: BTreeMap<SymbolId, u64> = BTreeMap::new();
    for r in object.sections.iter().flat_map(|s| &s.relocations) {
        if is_of_table(r) {
            let next = words.len() as u64 * WORD;
            words.entry(r.symbol).or_insert(next);
        }
    }
    if words.is_empty() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    let table = SymbolId(object.symbols.len() as u32);
    for r in object.sections.iter_mut().flat_map(|s| &mut s.relocations) {
        if is_of_table(r) {
            let at = words[&r.symbol] as i64;
            (r.kind, r.symbol, r.addend) = (R_X86_64_PC32, table, r.addend + at);
        }
    }
    object.symbols.push(Symbol {
        name: Cow::Borrowed(""),
        binding: STB_LOCAL,
        kind: STT_NOTYPE,
        other: 0,
        place: Place::In(SectionId(object.sections.len() as u32)),
        value: 0,
        size: 0,
    });
    object.sections.push(section(&words));
    Cow::Owned(object)
}

fn is_of_table(r: &Relocation) -> bool {
    let kinds = [
        R_X86_64_GOTPCREL,
        R_X86_64_GOTPCRELX,
        R_X86_64_REX_GOTPCRELX,
    ];
    kinds.contains(&r.kind)
}

fn section(words: &BTreeMap<SymbolId, u64>) -> Section<'static> {
    let data = vec![0; words.len() * WORD as usize];
    let mut section = Section::with_data(".got", SHF_ALLOC | SHF_WRITE, WORD, data);
    let words = words.iter().map(|(&symbol, &offset)| Relocation {
        offset,
        kind: R_X86_64_64,
        symbol,
        addend: 0,
    });
    section.relocations = words.collect();
    section.relocations.sort_by_key(|r| r.offset);
    section
}
