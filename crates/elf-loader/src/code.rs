//! The stable codes of files that cannot be read, and their explanations, printed
//! by `twin explain CODE` and collected in `docs/troubleshooting.md`.

use twin_abi::explanation::{Example, Explanation};

use crate::archive::ArchiveError;
use crate::input::InputError;
use crate::read::{ReadError, RelocationProblem, SectionProblem, SymbolProblem};

twin_abi::listed! {
    /// The stable code of a file that cannot be read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ReaderCode {
        /// The file has no bytes.
        Empty => "elf-empty",
        /// Not an ELF file.
        NotElf => "elf-magic",
        /// Shorter than its headers say.
        Truncated => "elf-truncated",
        /// ELF, but not a relocatable object.
        NotRelocatable => "elf-not-relocatable",
        /// Another byte order, machine or word size.
        Machine => "elf-machine",
        /// A damaged ELF header.
        Header => "elf-header",
        /// A damaged section.
        Section => "elf-section",
        /// A damaged symbol.
        Symbol => "elf-symbol",
        /// A damaged relocation.
        Relocation => "elf-relocation",
        /// Sound, but not handled.
        Unsupported => "elf-unsupported",
        /// Damaged compressed data.
        Compression => "compression",
        /// Compressed data that expands beyond the limits.
        TooLarge => "too-large",
        /// An archive that is thin, damaged or too large.
        Archive => "archive",
    }
}

impl ReaderCode {
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
    pub fn code(&self) -> ReaderCode {
        match self {
            ReadError::Empty => ReaderCode::Empty,
            ReadError::NotElf { .. } | ReadError::Bitcode => ReaderCode::NotElf,
            ReadError::Truncated { .. } => ReaderCode::Truncated,
            ReadError::NotRelocatable { .. } => ReaderCode::NotRelocatable,
            ReadError::Machine(_) => ReaderCode::Machine,
            ReadError::Header { .. } => ReaderCode::Header,
            ReadError::ManySections => ReaderCode::Unsupported,
            ReadError::Section { problem, .. } => match problem {
                SectionProblem::Second(_)
                | SectionProblem::Flavour { .. }
                | SectionProblem::Unsupported { .. } => ReaderCode::Unsupported,
                SectionProblem::Name { .. }
                | SectionProblem::Alignment(_)
                | SectionProblem::Link { .. }
                | SectionProblem::EntrySize { .. }
                | SectionProblem::Size(_)
                | SectionProblem::Overlap(_) => ReaderCode::Section,
            },
            ReadError::Symbol { problem, .. } => match problem {
                SymbolProblem::Reserved(_) => ReaderCode::Unsupported,
                SymbolProblem::Name { .. }
                | SymbolProblem::NoSection { .. }
                | SymbolProblem::PastEnd { .. }
                | SymbolProblem::NotNull
                | SymbolProblem::NotAtStart { .. }
                | SymbolProblem::InTable { .. }
                | SymbolProblem::Order { .. }
                | SymbolProblem::UndefinedValue(_) => ReaderCode::Symbol,
            },
            ReadError::Relocation { problem, .. } => match problem {
                RelocationProblem::Type(_) => ReaderCode::Unsupported,
                RelocationProblem::PastEnd { .. } | RelocationProblem::NoSymbol { .. } => {
                    ReaderCode::Relocation
                }
            },
        }
    }
}

impl InputError {
    /// Its stable code.
    pub fn code(&self) -> ReaderCode {
        match self {
            InputError::Damaged { .. } => ReaderCode::Compression,
            InputError::TooLarge { .. } | InputError::TooMuchMemory { .. } => ReaderCode::TooLarge,
        }
    }
}

impl ArchiveError {
    /// Its stable code.
    pub fn code(&self) -> ReaderCode {
        ReaderCode::Archive
    }
}

/// Meaning, why, remedy, example.
fn text(code: ReaderCode) -> (&'static str, &'static str, &'static str, &'static str) {
    match code {
        ReaderCode::Empty => (
            "The file has no bytes.",
            "An empty output would look like a driver without code.",
            "Look at the step before: a full disk, or a compiler that failed behind a pipe. Give a relocatable object (.o, .ko).",
            "$ : >empty.ko; twin rewrite empty.ko -o out.o",
        ),
        ReaderCode::NotElf => (
            "The file does not begin with the ELF magic, nor with that of xz, zstd or gzip.",
            "It is no object that could be rewritten.",
            "Give a relocatable object (.o, .ko), plain or compressed, an archive of them (.a), or assembly text.",
            "$ twin rewrite logo.png -o out.o",
        ),
        ReaderCode::Truncated => (
            "A part of the file lies beyond its end.",
            "What is missing may be code, or a relocation that changes code.",
            "Copy or build the file again.",
            "$ head -c 20000 e1000.ko >cut.ko; twin rewrite cut.ko -o out.o",
        ),
        ReaderCode::NotRelocatable => (
            "The file is an executable, a shared object or a core dump.",
            "Rewriting is sound because every reference to code stands in a relocation or a direct branch. The linker has resolved these; what is left would be guessed.",
            "Give the objects before linking. For a program, compile with `twin cc -- gcc ...`.",
            "$ twin rewrite /bin/true -o out.o",
        ),
        ReaderCode::Machine => (
            "The object is for a machine that twin does not know, or of the other byte order or word size.",
            "Nothing of another machine's instructions is known.",
            "Give an object for x86-64. Check the compiler: `gcc -dumpmachine`, or CROSS_COMPILE and ARCH of a kernel build.",
            "$ aarch64-linux-gnu-gcc -c driver.c && twin rewrite driver.o -o out.o",
        ),
        ReaderCode::Header => (
            "A field of the ELF header cannot be right.",
            "The header says where everything else is.",
            "Build the object again. If a tool has edited it, report the tool.",
            "an e_shentsize of 17, where section headers have 64 bytes",
        ),
        ReaderCode::Section => (
            "A section header cannot be right: its name, size, alignment or links.",
            "A section that is misread is code or data in the wrong place.",
            "Build the object again; `readelf -S` shows the header that the message names.",
            "an alignment of 3; a symbol table whose entries have 20 bytes",
        ),
        ReaderCode::Symbol => (
            "A symbol cannot be right: its name, its section, its value.",
            "Symbols say where functions begin and what relocations mean.",
            "Build the object again; `readelf -s` shows the symbol that the message names.",
            "a symbol at 0x5000 of a section that has 0x100 bytes",
        ),
        ReaderCode::Relocation => (
            "A relocation cannot be right: its field lies outside its section, or its symbol does not exist.",
            "Relocations decide what code refers to.",
            "Build the object again; `readelf -r` shows the entry that the message names.",
            "an entry at offset 0xffff of a section that has 0x400 bytes",
        ),
        ReaderCode::Unsupported => (
            "The file may be sound, but uses a part of the ELF format that twin does not handle: relocations of another flavour, a type that objects of this machine do not have, two symbol tables, sections that hide indices.",
            "Passing on what is not understood could change what the code refers to.",
            "Recompile without newer linker extensions (no -gsplit-dwarf sections in the object, no CREL or RELR), with GNU as or LLVM, and merge doubles by `ld -r`.",
            "relocations of type CREL: $ clang -Wa,--crel -c driver.c",
        ),
        ReaderCode::Compression => (
            "The xz, zstd or gzip data is damaged or cut off.",
            "Half a module is no module.",
            "Copy the file again; `xz -t`, `zstd -t` or `gzip -t` says the same if the copy is bad.",
            "$ head -c 9000 e1000.ko.xz >cut.xz; twin rewrite cut.xz -o out.o",
        ),
        ReaderCode::TooLarge => (
            "The compressed data expands to more than 512 MiB, or to more than 1 MiB and a hundred times its own size. Or it needs much memory to expand: a dictionary of about 256 MiB (xz) or a window above 128 MiB (zstd).",
            "No module is that large, none is packed that well, and a few bytes can expand to fill the memory.",
            "Decompress it yourself if it really is one, and give the plain object.",
            "$ (cat e1000.ko; head -c 1G /dev/zero) | xz >bomb.xz; twin rewrite bomb.xz -o out.o",
        ),
        ReaderCode::Archive => (
            "The archive (.a) is damaged, or is a thin one, whose members are other files, or would become larger than its index can address.",
            "Every member is rewritten and verified; a member that is not there cannot be.",
            "Make the archive again: `ar rcs`, without `T` or `--thin`. Of a thin one give the members, which `ar t` lists.",
            "$ ar rcsT thin.a driver.o; twin rewrite thin.a -o out.a",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_their_texts_whole() {
        let mut seen = std::collections::HashSet::new();
        for code in ReaderCode::ALL {
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
        assert_eq!(
            section(SectionProblem::Alignment(3)).code(),
            ReaderCode::Section
        );
        let second = SectionProblem::Second("symbol table");
        assert_eq!(section(second).code(), ReaderCode::Unsupported);
        assert_eq!(ReadError::Empty.code().as_str(), "elf-empty");
    }
}
