//! Append one object to another, as `ld -r` does: the definitions of the second are
//! added, and its undefined symbols are looked up in the first.
//!
//! The contents of a section go after those of the first object's section of the same
//! name, with their alignment; a new name becomes a new section at the end. Sections,
//! symbols and relocations of the first object keep their ids and contents.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::model::{Object, Place, Relocation, Role, Section, SectionId, Symbol, SymbolId, consts};

/// The places of the appended object's sections and symbols in the result.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    sections: HashMap<SectionId, (SectionId, u64)>,
    symbols: HashMap<SymbolId, SymbolId>,
}

impl Appended {
    /// The section that now holds a section of the part, and from which offset.
    /// `None` for those without contents.
    pub fn section(&self, id: SectionId) -> Option<(SectionId, u64)> {
        self.sections.get(&id).copied()
    }

    /// The new id of a symbol of the part.
    pub fn symbol(&self, id: SymbolId) -> Option<SymbolId> {
        self.symbols.get(&id).copied()
    }
}

/// Appends `part` to `object`. Symbols that `part` leaves undefined become those of the
/// same name in `object`, defined or not; all others are added. So a name that both
/// define is there twice afterwards. A linker would report a global one; here the caller
/// has to make sure that names differ.
pub fn append(object: &mut Object<'static>, part: &Object<'_>) -> Appended {
    let mut appended = Appended::default();
    for (id, section) in part.sections().filter(|(_, s)| has_contents(s)) {
        let place = append_section(object, section);
        appended.sections.insert(id, place);
    }
    for (id, symbol) in part.symbols().skip(1) {
        if let Some(now) = append_symbol(object, &appended, symbol) {
            appended.symbols.insert(id, now);
        }
    }
    // --- all symbols have their new ids ---
    for (id, section) in part.sections() {
        let Some((to, base)) = appended.section(id) else {
            continue;
        };
        let moved = section.relocations.iter().filter_map(|r| {
            Some(Relocation {
                offset: r.offset + base,
                symbol: appended.symbol(r.symbol)?,
                ..*r
            })
        });
        object.sections[to.0 as usize].relocations.extend(moved);
    }
    appended
}

/// Sections that are not loaded, such as the assembler's marker `.note.GNU-stack`, and
/// empty ones are not part of the object's meaning.
fn has_contents(section: &Section<'_>) -> bool {
    section.role == Role::Contents && section.size > 0 && section.flags & consts::SHF_ALLOC != 0
}

fn append_section(object: &mut Object<'static>, part: &Section<'_>) -> (SectionId, u64) {
    let same = object
        .sections()
        .find(|(_, s)| s.role == Role::Contents && s.name == part.name && s.kind == part.kind);
    if let Some((id, _)) = same {
        let section = &mut object.sections[id.0 as usize];
        let base = section.size.next_multiple_of(part.align);
        section.size = base + part.size;
        section.align = section.align.max(part.align);
        if part.kind != consts::SHT_NOBITS {
            let data = section.data.to_mut();
            data.resize(base as usize, 0);
            data.extend_from_slice(&part.data);
        }
        return (id, base);
    }
    object.sections.push(Section {
        name: Cow::Owned(part.name.to_string()),
        data: Cow::Owned(part.data.to_vec()),
        relocations: Vec::new(),
        ..*part
    });
    (SectionId(object.sections.len() as u32 - 1), 0)
}

fn append_symbol(
    object: &mut Object<'static>,
    appended: &Appended,
    symbol: &Symbol<'_>,
) -> Option<SymbolId> {
    let (place, value) = match symbol.place {
        Place::In(id) => {
            let (to, base) = appended.section(id)?;
            if symbol.kind == consts::STT_SECTION
                && let Some(own) = section_symbol(object, to).filter(|_| base == 0)
            {
                return Some(own);
            }
            (Place::In(to), symbol.value + base)
        }
        Place::Undefined => {
            let known = object
                .symbols()
                .skip(1)
                .find(|(_, s)| s.name == symbol.name && s.binding != consts::STB_LOCAL);
            if let Some((id, _)) = known {
                return Some(id);
            }
            (Place::Undefined, 0)
        }
        place @ (Place::Absolute | Place::Common) => (place, symbol.value),
    };
    // A section symbol that is not at its section's start is an ordinary one.
    let kind = match symbol.kind {
        consts::STT_SECTION if value != 0 => consts::STT_NOTYPE,
        kind => kind,
    };
    object.symbols.push(Symbol {
        name: Cow::Owned(symbol.name.to_string()),
        kind,
        place,
        value,
        ..*symbol
    });
    Some(SymbolId(object.symbols.len() as u32 - 1))
}

fn section_symbol(object: &Object<'_>, section: SectionId) -> Option<SymbolId> {
    let found = object
        .symbols()
        .find(|(_, s)| s.kind == consts::STT_SECTION && s.place == Place::In(section));
    found.map(|(id, _)| id)
}
