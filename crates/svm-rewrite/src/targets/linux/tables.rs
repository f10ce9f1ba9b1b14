//! Moves references to code from elsewhere: the kernel's tables about code, data that
//! holds function pointers, and symbols.

use elf_loader::consts::{SHF_ALLOC, STT_SECTION};
use elf_loader::special::{self, Entry, EntryData, SpecialKind};
use elf_loader::{Object, Place, Relocation, Section, SectionId, SymbolId};
use foldhash::HashMap;

use super::places::Places;
use super::unused::Unused;
use crate::lift::{CodeIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Moves all references in `object`, which are still to the original's places. Every
/// place that cannot be moved is a refusal.
pub fn move_all(
    object: &mut Object<'static>,
    lifted: &Lifted<'_>,
    places: &Places<'_, '_>,
    section_symbols: &HashMap<CodeIdx, SymbolId>,
) -> Vec<Refusal> {
    let mut mover = Mover {
        lifted,
        places,
        section_symbols,
        refusals: Vec::new(),
    };
    for (n, section) in object.sections.iter_mut().enumerate() {
        let id = SectionId(n as u32);
        if lifted.code_section(id).is_some() {
            continue;
        }
        if describes_code(&section.name) {
            empty(section);
        } else {
            mover.section(id, section);
        }
    }
    mover.symbols(object);
    mover.refusals
}

/// Whether a section describes the original's code to debuggers, and would now be wrong;
/// the kernel does not load it, or does not read it.
fn describes_code(section: &str) -> bool {
    section.starts_with(".debug_") || section == ".eh_frame"
}

/// Leaves the section without contents.
pub fn empty(section: &mut Section<'_>) {
    section.data = Vec::new().into();
    section.size = 0;
    section.relocations.clear();
}

/// Removes the entries that are left out, of `size` bytes each.
fn leave_out(section: &mut Section<'static>, size: u64, unused: &Unused) {
    if unused.entries.is_empty() {
        return;
    }
    let is_used = |at: u64| !unused.entries.contains(&(at - at % size));
    // The new number of each entry that stays.
    let mut numbers = Vec::new();
    let mut number = 0;
    for n in 0..section.size / size {
        numbers.push(number);
        number += u64::from(is_used(n * size));
    }
    let entries = section.data.chunks(size as usize).zip(0..);
    let data: Vec<u8> = entries
        .filter(|(_, n)| is_used(n * size))
        .flat_map(|(entry, _)| entry.iter().copied())
        .collect();
    section.relocations.retain(|r| is_used(r.offset));
    for r in &mut section.relocations {
        r.offset = numbers[(r.offset / size) as usize] * size + r.offset % size;
    }
    section.size = data.len() as u64;
    section.data = data.into();
}

struct Mover<'m, 'p, 'a> {
    lifted: &'m Lifted<'a>,
    places: &'m Places<'p, 'a>,
    section_symbols: &'m HashMap<CodeIdx, SymbolId>,
    refusals: Vec<Refusal>,
}

impl Mover<'_, '_, '_> {
    fn refuse(&mut self, section: &str, offset: u64, reason: impl Into<String>) {
        let refusal = Refusal::at(RefusalCode::Metadata, section, offset, reason);
        refusal::add(&mut self.refusals, refusal);
    }

    fn section(&mut self, id: SectionId, section: &mut Section<'static>) {
        let kind = special::kind_of(&section.name);
        // `orc.rs` makes it again.
        if kind == Some(SpecialKind::OrcUnwindIp) {
            return;
        }
        let name = section.name.to_string();
        let loaded = section.flags & SHF_ALLOC != 0;
        for r in &mut section.relocations {
            let Some((code, offset)) = self.lifted.code_place(r.symbol, r.addend) else {
                continue;
            };
            if !loaded {
                let reason = "it refers to code, is not loaded, and its meaning is not known";
                self.refuse(&name, r.offset, reason);
                return;
            }
            let new = match kind {
                Some(SpecialKind::SmpLocks) => self.places.lock(code, offset),
                Some(SpecialKind::RetpolineSites) => self.places.thunk(code, offset),
                _ => self.places.place(code, offset),
            };
            match new {
                Some(new) => self.relocate(r, code, offset, new),
                None => {
                    let reason = "it refers to code where there is no such instruction any more";
                    self.refuse(&name, r.offset, reason);
                }
            }
        }
        let layout = special::layout_of(self.lifted.object, id).ok();
        let unused = match kind {
            Some(SpecialKind::AltInstructions) => Unused::find(self.lifted),
            _ => Unused::default(),
        };
        if let Some(field) = layout.and_then(|layout| layout.site_len) {
            self.lengths(id, section, field, &unused);
        }
        if let Some(layout) = layout {
            leave_out(section, layout.size, &unused);
        }
    }

    /// A symbol that named the place by itself moves with it; any other relocation gets
    /// the section's symbol.
    fn relocate(&self, r: &mut Relocation, code: CodeIdx, original: u64, new: u64) {
        let symbol = self.lifted.object.symbol(r.symbol);
        let named = symbol.kind != STT_SECTION && r.addend == 0 && symbol.value == original;
        if !named {
            r.symbol = self.section_symbols[&code];
            r.addend = new as i64;
        }
    }

    /// Stores at `field` of each entry the length of the kept instructions that it
    /// names: the kernel may replace that many bytes.
    fn lengths(
        &mut self,
        id: SectionId,
        section: &mut Section<'static>,
        field: u64,
        unused: &Unused,
    ) {
        let entries = special::entries(self.lifted.object, id);
        let entries = entries.expect("they were read before anything was decided");
        let used = |entry: &Entry| !unused.entries.contains(&entry.offset);
        for entry in entries.into_iter().filter(used) {
            let place = entry.site().and_then(|(id, offset)| {
                let code = self.places.code(id)?;
                self.places
                    .kept_len(code, offset, u64::from(entry.site_len()))
            });
            let least = match entry.data {
                EntryData::Alternative {
                    replacement_len, ..
                } => u64::from(replacement_len),
                _ => 0,
            };
            match place.and_then(|len| u8::try_from(len).ok()) {
                Some(len) if u64::from(len) >= least => {
                    section.data.to_mut()[(entry.offset + field) as usize] = len;
                }
                _ if entry.site_len() == 0 => {}
                _ => {
                    let name = section.name.to_string();
                    let reason = "the range that it names has another length now";
                    self.refuse(&name, entry.offset, reason);
                }
            }
        }
    }

    /// Symbols in code: value and size follow it.
    fn symbols(&mut self, object: &mut Object<'static>) {
        for symbol in &mut object.symbols {
            let Place::In(id) = symbol.place else {
                continue;
            };
            let Some(code) = self.places.code(id) else {
                continue;
            };
            if symbol.kind == STT_SECTION {
                continue;
            }
            let (start, end) = (symbol.value, symbol.value + symbol.size);
            let moved = self.places.place(code, start).and_then(|at| {
                let size = match symbol.size {
                    0 => 0,
                    _ => self.places.end(code, start, end)?.checked_sub(at)?,
                };
                Some((at, size))
            });
            match moved {
                Some((at, size)) => (symbol.value, symbol.size) = (at, size),
                None => {
                    let section = self.lifted.section_name(code);
                    let reason = format!(
                        "symbol {} begins or ends where no instruction does",
                        symbol.name
                    );
                    self.refusals
                        .push(Refusal::at(RefusalCode::Metadata, section, start, reason));
                }
            }
        }
    }
}
