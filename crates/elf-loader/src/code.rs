//! The stable codes of files that cannot be read, and their explanations, printed
//! by `twin explain CODE` and collected in `docs/troubleshooting.md`.

use twin_abi::explanation::{Example, Explanation};

use crate::input::InputError;
use crate::read::{ReadError, RelocationProblem, SectionProblem, SymbolProblem};

/// The stable code of a file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The file has no bytes.
    Empty,
    /// Not an ELF file.
    NotElf,
    /// Shorter than its headers say.
    Truncated,
    /// ELF, but not a relocatable object.
    NotRelocatable,
    /// Another byte order, machine or word size.
    Machine,
    /// A damaged ELF header.
    Header,
    /// A damaged section.
    Section,
    /// A damaged symbol.
    Symbol,
    /// A damaged relocation.
    Relocation,
    /// Sound, but not handled.
    Unsupported,
    /// Damaged compressed data.
    Compression,
    /// Compressed data that expands beyond the limits.
    TooLarge,
}

impl Code {
    /// Every code, in the order of this list.
    pub const ALL: &'static [Code] = &[
        Code::Empty,
        Code::NotElf,
        Code::Truncated,
        Code::NotRelocatable,
        Code::Machine,
        Code::Header,
        Code::Section,
        Code::Symbol,
        Code::Relocation,
        Code::Unsupported,
        Code::Compression,
        Code::TooLarge,
    ];

    /// The code as printed, for example `elf-truncated`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Empty => "elf-empty",
            Code::NotElf => "elf-magic",
            Code::Truncated => "elf-truncated",
            Code::NotRelocatable => "elf-not-relocatable",
            Code::Machine => "elf-machine",
            Code::Header => "elf-header",
            Code::Section => "elf-section",
            Code::Symbol => "elf-symbol",
            Code::Relocation => "elf-relocation",
            Code::Unsupported => "elf-unsupported",
            Code::Compression => "compression",
            Code::TooLarge => "too-large",
        }
    }

    /// What it means, why the file is refused, what to do, an example.
    pub fn explanation(self) -> Explanation {
        let (meaning, why, remedy, example) = text(self);
        Explanation {
            meaning,
            why,
            remedy,
            example: Example::Text(example),
        }
    }
}

impl ReadError {
    /// Its stable code.
    pub fn code(&self) -> Code {
        match self {
            ReadError::Empty => Code::Empty,
            ReadError::NotElf { .. } | ReadError::Bitcode => Code::NotElf,
            ReadError::Truncated { .. } => Code::Truncated,
            ReadError::NotRelocatable { .. } => Code::NotRelocatable,
            ReadError::BigEndian | ReadError::Machine { .. } => Code::Machine,
            ReadError::Header { .. } => Code::Header,
            ReadError::Section { problem, .. } => match problem {
                SectionProblem::Second(_)
                | SectionProblem::Flavour { .. }
                | SectionProblem::Unsupported { .. } => Code::Unsupported,
                SectionProblem::Name { .. }
                | SectionProblem::Alignment(_)
                | SectionProblem::Link { .. }
                | SectionProblem::EntrySize { .. }
                | SectionProblem::Size(_)
                | SectionProblem::Overlap => Code::Section,
            },
            ReadError::Symbol { problem, .. } => match problem {
                SymbolProblem::Reserved(_) => Code::Unsupported,
                SymbolProblem::Name { .. }
                | SymbolProblem::NoSection { .. }
                | SymbolProblem::PastEnd { .. } => Code::Symbol,
            },
            ReadError::Relocation { problem, .. } => match problem {
                RelocationProblem::Type(_) => Code::Unsupported,
                RelocationProblem::PastEnd { .. } | RelocationProblem::NoSymbol { .. } => {
                    Code::Relocation
                }
            },
        }
    }
}

impl InputError {
    /// Its stable code.
    pub fn code(&self) -> Code {
        match self {
            InputError::Damaged { .. } => Code::Compression,
            InputError::TooLarge { .. } => Code::TooLarge,
        }
    }
}

/// Meaning, why, remedy, example.
fn text(code: Code) -> (&'static str, &'static str, &'static str, &'static str) {
    match code {
        Code::Empty => (
            "The file has no bytes.",
            "An empty output would look like a driver without code.",
            "Look at the step before: a full disk, or a compiler that failed behind a pipe. Give a relocatable object (.o, .ko).",
            "$ : >empty.ko; twin rewrite empty.ko -o out.o",
        ),
        Code::NotElf => (
            "The file does not begin with the ELF magic, nor with that of xz, zstd or gzip.",
            "It is no object that could be rewritten.",
            "Give a relocatable object (.o, .ko), plain or compressed. An archive (.a) is unpacked first: `ar x`.",
            "$ twin rewrite logo.png -o out.o",
        ),
        Code::Truncated => (
            "A part of the file lies beyond its end.",
            "What is missing may be code, or a relocation that changes code.",
            "Copy or build the file again.",
            "$ head -c 20000 e1000.ko >cut.ko; twin rewrite cut.ko -o out.o",
        ),
        Code::NotRelocatable => (
            "The file is an executable, a shared object or a core dump.",
            "Rewriting is sound because every reference to code stands in a relocation or a direct branch. The linker has resolved these; what is left would be guessed.",
            "Give the objects before linking. For a program, compile with `twin cc -- gcc ...`.",
            "$ twin rewrite /bin/true -o out.o",
        ),
        Code::Machine => (
            "The object is for a machine that twin does not know, or of the other byte order or word size.",
            "Nothing of another machine's instructions is known.",
            "Give an object for x86-64. Check the compiler: `gcc -dumpmachine`, or CROSS_COMPILE and ARCH of a kernel build.",
            "$ aarch64-linux-gnu-gcc -c driver.c && twin rewrite driver.o -o out.o",
        ),
        Code::Header => (
            "A field of the ELF header cannot be right.",
            "The header says where everything else is.",
            "Build the object again. If a tool has edited it, report the tool.",
            "an e_shentsize of 17, where section headers have 64 bytes",
        ),
        Code::Section => (
            "A section header cannot be right: its name, size, alignment or links.",
            "A section that is misread is code or data in the wrong place.",
            "Build the object again; `readelf -S` shows the header that the message names.",
            "an alignment of 3; a symbol table whose entries have 20 bytes",
        ),
        Code::Symbol => (
            "A symbol cannot be right: its name, its section, its value.",
            "Symbols say where functions begin and what relocations mean.",
            "Build the object again; `readelf -s` shows the symbol that the message names.",
            "a symbol at 0x5000 of a section that has 0x100 bytes",
        ),
        Code::Relocation => (
            "A relocation cannot be right: its field lies outside its section, or its symbol does not exist.",
            "Relocations decide what code refers to.",
            "Build the object again; `readelf -r` shows the entry that the message names.",
            "an entry at offset 0xffff of a section that has 0x400 bytes",
        ),
        Code::Unsupported => (
            "The file may be sound, but uses a part of the ELF format that twin does not handle: relocations of another flavour, a type that objects of this machine do not have, two symbol tables, sections that hide indices.",
            "Passing on what is not understood could change what the code refers to.",
            "Recompile without newer linker extensions (no -gsplit-dwarf sections in the object, no CREL or RELR), with GNU as or LLVM, and merge doubles by `ld -r`.",
            "relocations of type CREL: $ clang -Wa,--crel -c driver.c",
        ),
        Code::Compression => (
            "The xz, zstd or gzip data is damaged or cut off.",
            "Half a module is no module.",
            "Copy the file again; `xz -t`, `zstd -t` or `gzip -t` says the same if the copy is bad.",
            "$ head -c 9000 e1000.ko.xz >cut.xz; twin rewrite cut.xz -o out.o",
        ),
        Code::TooLarge => (
            "The compressed data expands to more than 512 MiB, or to more than 1 MiB and a hundred times its own size.",
            "No module is that large, none is packed that well, and a few bytes can expand to fill the memory.",
            "Decompress it yourself if it really is one, and give the plain object.",
            "$ head -c 1G /dev/zero | xz >bomb.xz; twin rewrite bomb.xz -o out.o",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_their_texts_whole() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code:?} twice");
            let text = code.explanation();
            for part in [text.meaning, text.why, text.remedy] {
                assert!(part.len() > 15 && part.ends_with('.'), "{code:?}: {part}");
            }
            assert!(!text.example.text().is_empty(), "{code:?}");
        }
    }

    #[test]
    fn what_is_damaged_is_told_from_what_is_not_handled() {
        let section = |problem| ReadError::Section {
            index: 1,
            name: ".text".to_owned(),
            problem,
        };
        assert_eq!(section(SectionProblem::Alignment(3)).code(), Code::Section);
        let second = SectionProblem::Second("symbol table");
        assert_eq!(section(second).code(), Code::Unsupported);
        assert_eq!(ReadError::Empty.code().as_str(), "elf-empty");
    }
}
