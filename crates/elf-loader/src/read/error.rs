//! Why an object was refused: what is wrong, where, and what to do.

use thiserror::Error;

use super::machine::{ElfMachine, TAKEN};

/// Why [`crate::read()`] refused a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The file has no bytes.
    #[error("the file is empty; give a relocatable object (.o, .ko)")]
    Empty,
    /// The first four bytes are not the ELF magic.
    #[error("not an ELF file: it begins with {start:02x?}; give a relocatable object (.o, .ko)")]
    NotElf {
        /// The first bytes, at most four.
        start: Vec<u8>,
    },
    /// LLVM's bitcode.
    #[error(
        "this is LLVM bitcode, from which the linker makes code; compile without -flto and -emit-llvm"
    )]
    Bitcode,
    /// A part of the file lies beyond its end.
    #[error(
        "the file is truncated: {what} takes bytes {start:#x}..{end:#x}, but the file ends at {len:#x}; copy or build it again"
    )]
    Truncated {
        /// The part of the file that is missing.
        what: String,
        /// File offset of its first byte.
        start: u64,
        /// File offset after its last byte, or `u64::MAX` if that overflows.
        end: u64,
        /// Length of the file in bytes.
        len: u64,
    },
    /// `e_type` is not ET_REL.
    #[error(
        "this is {what}; twin takes relocatable objects (.o, .ko): give it the file before linking"
    )]
    NotRelocatable {
        /// What the file is, with its article.
        what: String,
    },
    /// Another machine or byte order, or x86-64 with words of 32 bits (x32).
    #[error("this object is for {0}; twin takes objects for {TAKEN} only: compile it for x86-64")]
    Machine(ElfMachine),
    /// More sections than a plain field of the ELF header numbers.
    #[error("this object has 65280 sections or more, which twin does not number; split it")]
    ManySections,
    /// A field of the ELF header that cannot be right.
    #[error("the ELF header is damaged: {problem}; build the object again")]
    Header {
        /// What is wrong.
        problem: String,
    },
    /// A section header that cannot be right or cannot be handled.
    #[error("section {index} `{name}`: {problem}")]
    Section {
        /// Index in the file.
        index: u32,
        /// Name, empty if names cannot be read.
        name: String,
        /// What is wrong and what to do.
        problem: SectionProblem,
    },
    /// A symbol that cannot be right or cannot be handled.
    #[error("symbol {index} `{name}`: {problem}")]
    Symbol {
        /// Index in the symbol table.
        index: u32,
        /// Name, empty if it cannot be read.
        name: String,
        /// What is wrong and what to do.
        problem: SymbolProblem,
    },
    /// A relocation that cannot be right or cannot be handled.
    #[error("relocation {entry} in `{table}` (offset {offset:#x} in `{target}`): {problem}")]
    Relocation {
        /// Name of the relocation section.
        table: String,
        /// Number of the entry, from 0.
        entry: usize,
        /// Name of the section that it applies to.
        target: String,
        /// Offset of the field there.
        offset: u64,
        /// What is wrong and what to do.
        problem: RelocationProblem,
    },
}

/// What is wrong with a section.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SectionProblem {
    /// A name that is outside its table, has no end, is not UTF-8 or is longer
    /// than any compiler makes it.
    #[error(
        "its name, at {offset:#x} of the name table, is not a string ({why}); the file is damaged, build it again"
    )]
    Name {
        /// Offset in the string table.
        offset: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// `sh_addralign` is no power of two, or more than [`crate::MAX_SECTION_SIZE`].
    #[error(
        "its alignment {0:#x} is not a power of two up to 2 GiB; the file is damaged, build it again"
    )]
    Alignment(u64),
    /// A field names a section that does not exist or is of another kind.
    #[error("{field} is {value}, which is not {expected}; the file is damaged, build it again")]
    Link {
        /// `sh_link` or `sh_info`.
        field: &'static str,
        /// The value that it has.
        value: u32,
        /// What it should name.
        expected: &'static str,
    },
    /// `sh_entsize` or `sh_size` of a table does not fit its entries.
    #[error(
        "its size {size:#x} or entry size {entsize:#x} is wrong for entries of {expected:#x} bytes; the file is damaged, build it again"
    )]
    EntrySize {
        /// `sh_size`.
        size: u64,
        /// `sh_entsize`.
        entsize: u64,
        /// What it should be.
        expected: u64,
    },
    /// More than [`crate::MAX_SECTION_SIZE`] bytes.
    #[error("its size {0:#x} is more than 2 GiB, which twin does not take; make it smaller")]
    Size(u64),
    /// A table that there may only be one of.
    #[error("it is a second {0}; twin handles one: merge them with `ld -r`")]
    Second(&'static str),
    /// REL, whose addends are in the section's bytes: not on x86-64.
    #[error(
        "it is {found}, but the psABI of this machine prescribes {expected}; rebuild with GNU as or LLVM"
    )]
    Flavour {
        /// The kind of relocation section found.
        found: &'static str,
        /// The kind that the psABI prescribes.
        expected: &'static str,
    },
    /// A section type that hides symbol indices or relocations.
    #[error("{what} is not handled; {remedy}")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Some of its bytes are another section's as well, or a header's.
    #[error("it shares bytes of the file with {0}; the file is damaged, build it again")]
    Overlap(String),
}

/// What is wrong with a symbol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SymbolProblem {
    /// See [`SectionProblem::Name`].
    #[error(
        "its name, at {offset:#x} of the name table, is not a string ({why}); the file is damaged, build it again"
    )]
    Name {
        /// Offset in the string table.
        offset: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// `st_shndx` names no section.
    #[error(
        "it is defined in section {index}, but there are only {count}; the file is damaged, build it again"
    )]
    NoSection {
        /// `st_shndx`.
        index: u32,
        /// Sections in the file.
        count: usize,
    },
    /// A reserved `st_shndx` other than ABS and COMMON.
    #[error("its section index {0:#x} is reserved and not handled; twin knows ABS and COMMON only")]
    Reserved(u32),
    /// Defined beyond the end of its section.
    #[error(
        "its value {value:#x} lies past the end of section `{section}`, which has {size:#x} bytes; the file is damaged, build it again"
    )]
    PastEnd {
        /// `st_value`.
        value: u64,
        /// Name of the section.
        section: String,
        /// Its size in bytes.
        size: u64,
    },
    /// Symbol 0, which is nothing, has a field that is not zero.
    #[error(
        "it is the null symbol, whose fields are all zero, and one of them is not; the file is damaged, build it again"
    )]
    NotNull,
    /// It is among the local symbols and is none, or the reverse.
    #[error(
        "it is {}, but sh_info of the symbol table is {first_other}, before which all symbols are local and behind which none is; the file is damaged, build it again",
        if *.local { "local" } else { "not local" }
    )]
    Order {
        /// Whether its binding is local.
        local: bool,
        /// `sh_info` of the symbol table.
        first_other: u32,
    },
    /// Undefined with a value.
    #[error(
        "it is undefined and has the value {0:#x}, which may be taken for its address; the file is damaged, build it again"
    )]
    UndefinedValue(u64),
    /// In the middle of the file's own tables of names, symbols or relocations.
    #[error(
        "it is at {value:#x} of `{section}`, which is a table of the file itself; the file is damaged, build it again"
    )]
    InTable {
        /// Name of the table.
        section: String,
        /// `st_value`.
        value: u64,
    },
    /// The symbol of a section itself, at another place than its start.
    #[error(
        "it is the symbol of section `{section}` itself, but at {value:#x} of it; the file is damaged, build it again"
    )]
    NotAtStart {
        /// Name of the section.
        section: String,
        /// `st_value`.
        value: u64,
    },
}

/// What is wrong with a relocation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RelocationProblem {
    /// No such type for this machine in relocatable objects.
    #[error(
        "its type {0} is unknown for this machine in a relocatable object; recompile for a plain relocatable object, without newer linker extensions"
    )]
    Type(u32),
    /// The field does not lie inside its section.
    #[error(
        "its field of {width} bytes ends past the section's end at {size:#x}; the file is damaged, build it again"
    )]
    PastEnd {
        /// Bytes of the field.
        width: u64,
        /// Size of the section.
        size: u64,
    },
    /// No such symbol.
    #[error(
        "it names symbol {index}, but there are only {count}; the file is damaged, build it again"
    )]
    NoSymbol {
        /// Index of the symbol.
        index: u64,
        /// Symbols in the file.
        count: usize,
    },
}
