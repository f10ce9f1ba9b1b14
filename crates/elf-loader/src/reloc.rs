//! What the relocation numbers mean: name, width of the field and whether the
//! field is relative to its own place.
//!
//! Takes a machine and a number, gives a row of a flat table. Only types that
//! an assembler writes into relocatable objects are listed: those of dynamic
//! linking (`COPY`, `RELATIVE`, ...) are as unknown here as a number that no
//! ABI defines, because nothing in this project could keep them right.
//!
//! Source: System V psABI x86-64 table 4.9.

/// One relocation type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocationType {
    /// Its number: `ELF64_R_TYPE`.
    pub number: u32,
    /// Its name in the psABI.
    pub name: &'static str,
    /// Bytes of the field that it changes; 0 if it only marks a place.
    pub width: u64,
    /// Whether the field holds a distance from its own address.
    pub pc_relative: bool,
}

/// The row of relocation type `number`, or `None` if no assembler makes it.
pub fn relocation_type(number: u32) -> Option<&'static RelocationType> {
    X86_64.iter().find(|t| t.number == number)
}

/// The name of relocation type `number`, or `type N` if it has none here.
pub fn relocation_name(number: u32) -> String {
    match relocation_type(number) {
        Some(t) => t.name.to_string(),
        None => format!("type {number}"),
    }
}

const fn row(number: u32, name: &'static str, width: u64, pc_relative: bool) -> RelocationType {
    RelocationType {
        number,
        name,
        width,
        pc_relative,
    }
}

// The common ones first: the search is linear.
static X86_64: [RelocationType; 32] = [
    row(2, "R_X86_64_PC32", 4, true),
    row(4, "R_X86_64_PLT32", 4, true),
    row(11, "R_X86_64_32S", 4, false),
    row(1, "R_X86_64_64", 8, false),
    row(10, "R_X86_64_32", 4, false),
    row(24, "R_X86_64_PC64", 8, true),
    row(0, "R_X86_64_NONE", 0, false),
    row(3, "R_X86_64_GOT32", 4, false),
    row(9, "R_X86_64_GOTPCREL", 4, true),
    row(12, "R_X86_64_16", 2, false),
    row(13, "R_X86_64_PC16", 2, true),
    row(14, "R_X86_64_8", 1, false),
    row(15, "R_X86_64_PC8", 1, true),
    row(17, "R_X86_64_DTPOFF64", 8, false),
    row(18, "R_X86_64_TPOFF64", 8, false),
    row(19, "R_X86_64_TLSGD", 4, true),
    row(20, "R_X86_64_TLSLD", 4, true),
    row(21, "R_X86_64_DTPOFF32", 4, false),
    row(22, "R_X86_64_GOTTPOFF", 4, true),
    row(23, "R_X86_64_TPOFF32", 4, false),
    row(25, "R_X86_64_GOTOFF64", 8, false),
    row(26, "R_X86_64_GOTPC32", 4, true),
    row(27, "R_X86_64_GOT64", 8, false),
    row(28, "R_X86_64_GOTPCREL64", 8, true),
    row(29, "R_X86_64_GOTPC64", 8, true),
    row(31, "R_X86_64_PLTOFF64", 8, false),
    row(32, "R_X86_64_SIZE32", 4, false),
    row(33, "R_X86_64_SIZE64", 8, false),
    row(34, "R_X86_64_GOTPC32_TLSDESC", 4, true),
    row(35, "R_X86_64_TLSDESC_CALL", 0, false),
    row(41, "R_X86_64_GOTPCRELX", 4, true),
    row(42, "R_X86_64_REX_GOTPCRELX", 4, true),
];
