//! A relocatable object as data: the contents of the file, typed, without the details of
//! its encoding.
//!
//! x86-64 by design: ELF64, little-endian, addends in the relocations (RELA).
//! The reader refuses everything else.

use std::borrow::Cow;

/// Most bytes a section may have: more cannot be reached by the 32-bit fields
/// of x86-64.
pub const MAX_SECTION_SIZE: u64 = 1 << 31;

/// Index of a section in [`Object::sections`]; also its index in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionId(pub u32);

/// Index of a symbol in [`Object::symbols`]; entry 0 is the null symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// Bytes of a machine word, and of an address.
pub const WORD: u64 = 8;

/// A relocatable object.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// `e_flags`.
    pub flags: u32,
    /// `e_ident[EI_OSABI]` and `[EI_ABIVERSION]`.
    pub os_abi: (u8, u8),
    /// All sections in file order; entry 0 is the null section.
    pub sections: Vec<Section<'a>>,
    /// All symbols in file order; entry 0 is the null symbol.
    pub symbols: Vec<Symbol<'a>>,
}

/// A section, its bytes and the relocations that apply to it.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Name. Not necessarily unique.
    pub name: Cow<'a, str>,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_addralign`, at least 1.
    pub align: u64,
    /// `sh_entsize`.
    pub entsize: u64,
    /// `sh_link` and `sh_info` as in the file. The writer recomputes them for
    /// symbol, string and relocation tables.
    pub link: u32,
    /// See [`Section::link`].
    pub info: u32,
    /// Bytes; empty for `SHT_NOBITS` and for the tables that the writer makes
    /// (see [`Role`]).
    pub data: Cow<'a, [u8]>,
    /// Size in bytes, also of `SHT_NOBITS`.
    pub size: u64,
    /// Relocations that apply to this section, sorted by offset.
    pub relocations: Vec<Relocation>,
    /// What the writer does with it.
    pub role: Role,
}

/// What a section is to the reader and the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The null section.
    Null,
    /// Contents, carried as they are.
    Contents,
    /// The symbol table; made from [`Object::symbols`].
    SymbolTable,
    /// The symbol names.
    SymbolNames,
    /// The section names.
    SectionNames,
    /// RELA of that section; made from its [`Section::relocations`].
    Relocations(SectionId),
}

/// A relocation. Offsets and addends are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Relocation {
    /// Offset of the field in the section it applies to.
    pub offset: u64,
    /// `ELF64_R_TYPE` (`R_X86_64_*`).
    pub kind: u32,
    /// The symbol whose address the field is computed from.
    pub symbol: SymbolId,
    /// What is added to the symbol's address.
    pub addend: i64,
}

/// Where a symbol is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// `SHN_UNDEF`.
    Undefined,
    /// `SHN_ABS`.
    Absolute,
    /// `SHN_COMMON`.
    Common,
    /// In a section, at [`Symbol::value`].
    In(SectionId),
}

/// A symbol.
#[derive(Clone, Debug)]
pub struct Symbol<'a> {
    /// Name; empty for section symbols.
    pub name: Cow<'a, str>,
    /// `STB_*`.
    pub binding: u8,
    /// `STT_*`.
    pub kind: u8,
    /// `st_other`.
    pub other: u8,
    /// Where it is defined.
    pub place: Place,
    /// `st_value`: offset in its section, or a constant.
    pub value: u64,
    /// `st_size` in bytes.
    pub size: u64,
}

/// `SHF_*`, `SHT_*`, `STT_*`, `STB_*` and relocation numbers that clients need
/// (System V gABI chapter 4; psABI x86-64 4.4).
pub mod consts {
    #![allow(missing_docs, reason = "the names are those of the gABI and psABI")]
    pub const SHT_NULL: u32 = 0;
    pub const SHT_PROGBITS: u32 = 1;
    pub const SHT_SYMTAB: u32 = 2;
    pub const SHT_STRTAB: u32 = 3;
    pub const SHT_RELA: u32 = 4;
    pub const SHT_NOTE: u32 = 7;
    pub const SHT_NOBITS: u32 = 8;
    // Of LLVM: they hold numbers of symbols.
    pub const SHT_LLVM_ADDRSIG: u32 = 0x6fff_4c03;
    pub const SHT_LLVM_CALL_GRAPH_PROFILE: u32 = 0x6fff_4c09;
    pub const SHF_WRITE: u64 = 1;
    pub const SHF_ALLOC: u64 = 2;
    pub const SHF_EXECINSTR: u64 = 4;
    pub const SHF_COMPRESSED: u64 = 0x800;
    pub const STT_NOTYPE: u8 = 0;
    pub const STT_OBJECT: u8 = 1;
    pub const STT_FUNC: u8 = 2;
    pub const STT_SECTION: u8 = 3;
    pub const STT_FILE: u8 = 4;
    pub const STT_GNU_IFUNC: u8 = 10;
    pub const STB_LOCAL: u8 = 0;
    pub const STB_GLOBAL: u8 = 1;
    pub const STB_WEAK: u8 = 2;
    pub const R_X86_64_NONE: u32 = 0;
    pub const R_X86_64_64: u32 = 1;
    pub const R_X86_64_PC32: u32 = 2;
    pub const R_X86_64_PLT32: u32 = 4;
    pub const R_X86_64_GOTPCREL: u32 = 9;
    pub const R_X86_64_32: u32 = 10;
    pub const R_X86_64_32S: u32 = 11;
    pub const R_X86_64_PC64: u32 = 24;
    pub const R_X86_64_GOTPCRELX: u32 = 41;
    pub const R_X86_64_REX_GOTPCRELX: u32 = 42;
}

impl Default for Object<'_> {
    fn default() -> Self {
        Object::new()
    }
}

impl<'a> Object<'a> {
    /// An object with nothing but the null section and the null symbol, to be
    /// built from scratch.
    pub fn new() -> Self {
        Object {
            flags: 0,
            os_abi: (0, 0),
            sections: vec![Section::null()],
            symbols: vec![Symbol::null()],
        }
    }

    /// The section with this id.
    pub fn section(&self, id: SectionId) -> &Section<'a> {
        &self.sections[id.0 as usize]
    }

    /// The symbol with this id.
    pub fn symbol(&self, id: SymbolId) -> &Symbol<'a> {
        &self.symbols[id.0 as usize]
    }

    /// The name of a symbol in messages and listings. For a section symbol, which has no
    /// name, it is that of its section.
    ///
    /// # Panics
    /// If there is no such symbol.
    pub fn symbol_name(&self, id: SymbolId) -> &str {
        let symbol = self.symbol(id);
        match symbol.place {
            Place::In(section) if symbol.name.is_empty() => &self.section(section).name,
            _ => &symbol.name,
        }
    }

    /// All sections with their ids, the null section included.
    pub fn sections(&self) -> impl Iterator<Item = (SectionId, &Section<'a>)> {
        self.sections
            .iter()
            .enumerate()
            .map(|(i, s)| (SectionId(i as u32), s))
    }

    /// All symbols with their ids, the null symbol included.
    pub fn symbols(&self) -> impl Iterator<Item = (SymbolId, &Symbol<'a>)> {
        self.symbols
            .iter()
            .enumerate()
            .map(|(i, s)| (SymbolId(i as u32), s))
    }

    /// The first section of that name.
    pub fn section_named(&self, name: &str) -> Option<SectionId> {
        self.sections()
            .find(|(_, s)| s.name == name)
            .map(|(id, _)| id)
    }
}

impl Symbol<'_> {
    /// Symbol 0 of every object.
    pub(crate) fn null() -> Self {
        Symbol {
            name: Cow::Borrowed(""),
            binding: consts::STB_LOCAL,
            kind: consts::STT_NOTYPE,
            other: 0,
            place: Place::Undefined,
            value: 0,
            size: 0,
        }
    }
}

impl<'a> Section<'a> {
    /// Section 0 of every object.
    fn null() -> Self {
        Section {
            name: Cow::Borrowed(""),
            kind: consts::SHT_NULL,
            flags: 0,
            align: 1,
            entsize: 0,
            link: 0,
            info: 0,
            data: Cow::Borrowed(&[]),
            size: 0,
            relocations: Vec::new(),
            role: Role::Null,
        }
    }

    /// A section of `SHT_PROGBITS` with these bytes and no relocations; change
    /// the other fields as needed. `flags` are `SHF_*`, `align` is in bytes and
    /// a power of two.
    pub fn with_data(
        name: impl Into<Cow<'a, str>>,
        flags: u64,
        align: u64,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        let data = data.into();
        let size = data.len() as u64;
        let name = name.into();
        let (kind, role) = (consts::SHT_PROGBITS, Role::Contents);
        Section {
            name,
            kind,
            flags,
            align,
            data,
            size,
            role,
            ..Section::null()
        }
    }

    /// Leaves the section without contents.
    pub fn empty(&mut self) {
        self.data = Cow::Borrowed(&[]);
        self.size = 0;
        self.flags &= !consts::SHF_COMPRESSED;
        self.relocations.clear();
    }

    /// Whether the section is loaded and executed.
    pub fn is_code(&self) -> bool {
        self.flags & (consts::SHF_ALLOC | consts::SHF_EXECINSTR)
            == consts::SHF_ALLOC | consts::SHF_EXECINSTR
    }
}
