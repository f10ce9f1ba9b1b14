//! References to code from elsewhere: the kernel's tables about code, data that holds
//! function pointers, and symbols. First each is given its new place, or refused; when the
//! code is written, the offsets are filled in.

use elf_loader::consts::{SHF_ALLOC, STT_SECTION};
use elf_loader::special::{self, Entry, EntryData, SpecialKind};
use elf_loader::{Object, Place, Relocation, Section, SectionId, SymbolId};
use foldhash::{HashMap, HashSet};

use super::places::{NewPlace, Offsets, Places};
use super::unused::Unused;
use crate::analyse::unread::Unread;
use crate::lift::{CodeIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// The new places of all references.
#[derive(Default)]
pub struct Moves {
    /// Section, index of the relocation in it, and what it refers to.
    relocations: Vec<(SectionId, usize, NewPlace)>,
    /// Index of a symbol in code, its place, and where it ends if it has a size.
    symbols: Vec<(usize, NewPlace, Option<NewPlace>)>,
}

impl Moves {
    /// Fills in the offsets.
    pub fn apply(&self, object: &mut Object<'static>, offsets: &Offsets<'_>) {
        for &(id, n, place) in &self.relocations {
            let section = &mut object.sections[id.0 as usize];
            section.relocations[n].addend = offsets.of(place) as i64;
        }
        for &(n, place, end) in &self.symbols {
            let symbol = &mut object.symbols[n];
            symbol.value = offsets.of(place);
            symbol.size = end.map_or(0, |end| offsets.of(end) - symbol.value);
        }
    }
}

/// Finds the new places of all references in `object`, which has the original's, and
/// changes what does not depend on offsets.
///
/// # Errors
/// Every reference that cannot be moved.
pub fn plan(
    object: &mut Object<'static>,
    places: &Places<'_, '_>,
    section_symbols: &HashMap<CodeIdx, SymbolId>,
) -> Result<Moves, Vec<Refusal>> {
    let mut mover = Mover {
        lifted: places.lifted,
        places,
        section_symbols,
        moves: Moves::default(),
        refusals: Vec::new(),
    };
    let unread = Unread::find(places.lifted.object);
    let mut emptied = HashSet::default();
    for (n, section) in object.sections.iter_mut().enumerate() {
        let id = SectionId(n as u32);
        if mover.lifted.code_section(id).is_some() {
            continue;
        }
        if describes_code(&section.name) || unread.has(id) {
            section.empty();
            emptied.insert(id);
        } else {
            mover.section(id, section);
        }
    }
    // Symbols keep their numbers, which relocations have.
    for symbol in &mut object.symbols {
        if matches!(symbol.place, Place::In(id) if emptied.contains(&id)) {
            (symbol.value, symbol.size) = (0, 0);
        }
    }
    mover.symbols(object);
    match mover.refusals.is_empty() {
        true => Ok(mover.moves),
        false => Err(mover.refusals),
    }
}

/// Whether a section describes the original's code to debuggers, or says in which file that is
/// done, and would now be wrong; the kernel does not load it, or does not read it.
fn describes_code(section: &str) -> bool {
    // The last is for Propeller (clang's `-fbasic-block-address-map`).
    const NAMES: [&str; 4] = [
        ".eh_frame",
        ".gnu_debuglink",
        ".gnu_debugaltlink",
        ".llvm_bb_addr_map",
    ];
    const BEGINNINGS: [&str; 2] = [".debug_", ".zdebug_"];
    NAMES.contains(&section) || BEGINNINGS.iter().any(|begin| section.starts_with(begin))
}

/// A relocation, and the new place that it refers to if that is in code.
type Moved = (Relocation, Option<NewPlace>);

/// Removes the entries that are left out, of `size` bytes each, with their relocations.
fn leave_out(
    section: &mut Section<'static>,
    relocations: &mut Vec<Moved>,
    size: u64,
    unused: &Unused,
) {
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
    relocations.retain(|(r, _)| is_used(r.offset));
    for (r, _) in relocations {
        r.offset = numbers[(r.offset / size) as usize] * size + r.offset % size;
    }
    section.size = data.len() as u64;
    section.data = data.into();
}

struct Mover<'m, 'p, 'a> {
    lifted: &'m Lifted<'a>,
    places: &'m Places<'p, 'a>,
    section_symbols: &'m HashMap<CodeIdx, SymbolId>,
    moves: Moves,
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
        let relocations = std::mem::take(&mut section.relocations);
        let mut relocations: Vec<Moved> = relocations.into_iter().map(|r| (r, None)).collect();
        for (r, moved) in &mut relocations {
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
                // A symbol that named the place by itself moves with it.
                Some(new) if !self.is_named(r, offset) => {
                    r.symbol = self.section_symbols[&code];
                    *moved = Some(new);
                }
                Some(_) => {}
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
            leave_out(section, &mut relocations, layout.size, &unused);
        }
        for (n, (r, moved)) in relocations.into_iter().enumerate() {
            section.relocations.push(r);
            self.moves.relocations.extend(moved.map(|to| (id, n, to)));
        }
    }

    /// Whether a symbol of the relocation's own is at the place that it refers to.
    fn is_named(&self, r: &Relocation, original: u64) -> bool {
        let symbol = self.lifted.object.symbol(r.symbol);
        symbol.kind != STT_SECTION && r.addend == 0 && symbol.value == original
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
        let name = section.name.to_string();
        let entries = match special::entries(self.lifted.object, id) {
            Ok(entries) => entries,
            Err(error) => return self.refuse(&name, 0, error.to_string()),
        };
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
                    let reason = "the range that it names has another length now";
                    self.refuse(&name, entry.offset, reason);
                }
            }
        }
    }

    /// Symbols in code: value and size follow it.
    fn symbols(&mut self, object: &Object<'static>) {
        for (n, symbol) in object.symbols.iter().enumerate() {
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
            let new_end = || self.places.end(code, start, end);
            let moved = self
                .places
                .place(code, start)
                .and_then(|at| match symbol.size {
                    0 => Some((n, at, None)),
                    _ => new_end().map(|end| (n, at, Some(end))),
                });
            match moved {
                Some(moved) => self.moves.symbols.push(moved),
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
