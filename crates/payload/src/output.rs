//! The payload while it is made: an object whose sections and symbols are only added to.

use std::borrow::Cow;
use std::collections::HashMap;

use elf_loader::consts::{STB_GLOBAL, STB_LOCAL, STT_NOTYPE, STT_SECTION};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};

/// Names of the generated sections, and of symbols.
pub mod names {
    /// What the driver's code sections begin with; the original name follows.
    pub const DRIVER: &str = ".driver";
    /// The same of the hot routines.
    pub const HOT: &str = ".hot";
    /// Stubs of imported routines.
    pub const STUBS: &str = ".text.twin.stubs";
    /// Beginnings of replaced functions.
    pub const ORIGINALS: &str = ".text.twin.originals";
    /// The codemap.
    pub const CODEMAP: &str = ".rodata.twin.codemap";
    /// Arrays and numbers for the runtime.
    pub const ARRAYS: &str = ".rodata.twin.arrays";
    /// Texts that they point to.
    pub const TEXTS: &str = ".rodata.twin.texts";
    /// The symbol of a stub is this and the routine's name.
    pub const STUB_PREFIX: &str = "stub:";
    /// The codemap's symbol.
    pub const CODEMAP_SYMBOL: &str = "twin_payload_codemap";
}

/// The payload so far.
#[derive(Debug, Default)]
pub struct Output {
    /// Sections, symbols and relocations.
    pub object: Object<'static>,
    /// Symbols that the runtime's object defines for all, and those that are generated
    /// for it, by name.
    defined: HashMap<String, SymbolId>,
    /// Xen's symbols that are referred to.
    xen: HashMap<String, SymbolId>,
    /// The symbol of each section that has one.
    of_sections: HashMap<SectionId, SymbolId>,
    generated: HashMap<&'static str, SectionId>,
}

impl Output {
    /// Adds a section.
    pub fn add_section(&mut self, section: Section<'static>) -> SectionId {
        self.object.sections.push(section);
        SectionId(self.object.sections.len() as u32 - 1)
    }

    /// Adds a symbol that is found by its number alone.
    pub fn add_symbol(&mut self, symbol: Symbol<'static>) -> SymbolId {
        self.object.symbols.push(symbol);
        SymbolId(self.object.symbols.len() as u32 - 1)
    }

    /// Makes a symbol known by a name. Gives the one that had the name before.
    pub fn publish(&mut self, name: &str, id: SymbolId) -> Option<SymbolId> {
        self.defined.insert(name.to_owned(), id)
    }

    /// Adds a symbol at a place in a section, known by its name, which the builder alone
    /// gives.
    pub fn define(&mut self, name: &str, kind: u8, at: (SectionId, u64), size: u64) -> SymbolId {
        let id = self.add_symbol(local(name.to_owned(), kind, at, size));
        self.publish(name, id);
        id
    }

    /// The symbol that is known by this name.
    pub fn find(&self, name: &str) -> Option<SymbolId> {
        self.defined.get(name).copied()
    }

    /// The undefined symbol of this name, which Xen defines.
    pub fn of_xen(&mut self, name: &str) -> SymbolId {
        if let Some(&id) = self.xen.get(name) {
            return id;
        }
        let id = self.add_symbol(Symbol {
            name: Cow::Owned(name.to_owned()),
            binding: STB_GLOBAL,
            kind: STT_NOTYPE,
            other: 0,
            place: Place::Undefined,
            value: 0,
            size: 0,
        });
        self.xen.insert(name.to_owned(), id);
        id
    }

    /// The symbol of a section's start.
    pub fn of_section(&mut self, section: SectionId) -> SymbolId {
        if let Some(&id) = self.of_sections.get(&section) {
            return id;
        }
        let id = self.add_symbol(local(String::new(), STT_SECTION, (section, 0), 0));
        self.of_sections.insert(section, id);
        id
    }

    /// Adds a relocation.
    pub fn relocate(&mut self, section: SectionId, relocation: Relocation) {
        self.section_mut(section).relocations.push(relocation);
    }

    /// A section, to be changed.
    pub fn section_mut(&mut self, id: SectionId) -> &mut Section<'static> {
        &mut self.object.sections[id.0 as usize]
    }

    /// The generated section of this name, empty if it is new.
    pub fn generated(&mut self, name: &'static str, flags: u64) -> SectionId {
        if let Some(&id) = self.generated.get(name) {
            return id;
        }
        let id = self.add_section(Section::with_data(name, flags, 1, Vec::new()));
        self.generated.insert(name, id);
        id
    }

    /// Appends bytes to a generated section, from a multiple of `align` on. Gives where.
    pub fn append(&mut self, id: SectionId, align: u64, bytes: &[u8]) -> u64 {
        let section = self.section_mut(id);
        let at = section.size.next_multiple_of(align);
        let data = section.data.to_mut();
        data.resize(at as usize, 0);
        data.extend_from_slice(bytes);
        section.size = data.len() as u64;
        section.align = section.align.max(align);
        at
    }
}

/// A symbol that only this object sees.
pub fn local(
    name: String,
    kind: u8,
    (section, value): (SectionId, u64),
    size: u64,
) -> Symbol<'static> {
    Symbol {
        name: Cow::Owned(name),
        binding: STB_LOCAL,
        kind,
        other: 0,
        place: Place::In(section),
        value,
        size,
    }
}
