//! Sections (target `hypervisor`): code and the tables of the ABI; nothing else may be
//! loaded.

use std::collections::HashSet;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, SHT_PROGBITS};
use elf_loader::{Role, Section};
use twin_abi::sections;

use super::Image;
use super::code_names::is_code_name;
use crate::findings::{Findings, ViolationCode};

impl<'o> Image<'o> {
    pub(super) fn check_sections(&mut self, findings: &mut Findings<'o>) {
        let (mut tables, mut names) = (HashSet::new(), HashSet::new());
        for (id, section) in self.object.sections() {
            match judge_section(section) {
                // `twin_vm:<name>` and the codemap go by name.
                Ok(SectionClass::Code) if !names.insert(&section.name) => {
                    findings.at(id, 0, ViolationCode::Section, "a second one of this name");
                }
                Ok(SectionClass::Code) if self.code.len() < usize::from(u16::MAX) => {
                    self.code.push(id)
                }
                Ok(SectionClass::Code) => {
                    findings.at(id, 0, ViolationCode::Section, "too many code sections")
                }
                Ok(SectionClass::Table) if tables.insert(&section.name) => {}
                Ok(SectionClass::Table) => {
                    findings.at(id, 0, ViolationCode::Section, "a second one of this name")
                }
                Ok(SectionClass::Harmless) => {}
                Err(reason) => findings.at(id, 0, ViolationCode::Section, reason),
            }
            let relocatable = section.is_code() || section.name == sections::CODEMAP;
            if let (false, Some(r)) = (relocatable, section.relocations.first()) {
                findings.at(
                    id,
                    r.offset,
                    ViolationCode::Relocation,
                    "nothing here may be relocated",
                );
            }
        }
    }
}

enum SectionClass {
    Code,
    /// `.note.twin`, `.twin.codemap`, `.twin.map` or `.twin.origin`.
    Table,
    Harmless,
}

fn judge_section(section: &Section<'_>) -> Result<SectionClass, &'static str> {
    const CODE: u64 = SHF_ALLOC | SHF_EXECINSTR;
    match section.role {
        Role::Null | Role::SymbolTable | Role::SymbolNames | Role::SectionNames => {
            return not_loaded(section);
        }
        Role::Relocations(_) => return not_loaded(section),
        Role::Contents => {}
    }
    let (flags, kind) = (section.flags, section.kind);
    if flags & (SHF_WRITE | SHF_EXECINSTR) == SHF_WRITE | SHF_EXECINSTR {
        return Err("it is writable and executable");
    }
    match &*section.name {
        sections::NOTE if flags & !SHF_ALLOC == 0 => Ok(SectionClass::Table),
        sections::CODEMAP if flags == SHF_ALLOC && kind == SHT_PROGBITS => Ok(SectionClass::Table),
        // Neither is loaded, and nothing that is loaded depends on them.
        sections::MAP | sections::ORIGIN if flags == 0 && kind == SHT_PROGBITS => {
            Ok(SectionClass::Table)
        }
        sections::NOTE | sections::CODEMAP | sections::MAP | sections::ORIGIN => {
            Err("its type or flags are not those that the ABI gives it")
        }
        name if flags == CODE && kind == SHT_PROGBITS && !is_code_name(name) => Err(
            "code in a section whose name is none of code's: who goes by names takes it for something else",
        ),
        _ if flags == CODE && kind == SHT_PROGBITS => code_bytes(section),
        _ if section.is_code() => Err("code with other flags or without contents"),
        // Assemblers always make .data and .bss.
        _ if section.size == 0 && matches!(kind, SHT_PROGBITS | SHT_NOBITS) => {
            Ok(SectionClass::Harmless)
        }
        _ if flags & SHF_WRITE != 0 => Err("it is writable data"),
        _ if flags & SHF_ALLOC != 0 => Err("it is data that would be loaded"),
        // Of another type, such as a group, it would tell a linker what to leave out.
        ".comment" | ".note.GNU-stack" if flags & !STRINGS == 0 && kind == SHT_PROGBITS => {
            Ok(SectionClass::Harmless)
        }
        _ => Err("rewritten objects have no such section"),
    }
}

/// `SHF_MERGE` and `SHF_STRINGS`: texts, of which a linker keeps one each (gABI chapter 4).
const STRINGS: u64 = 0x30;
/// Relocations name their symbols through it (gABI chapter 4).
const SHF_INFO_LINK: u64 = 0x40;

/// Names of sections that loaders look for.
const TABLES: [&str; 4] = [
    sections::NOTE,
    sections::CODEMAP,
    sections::MAP,
    sections::ORIGIN,
];

fn not_loaded(section: &Section<'_>) -> Result<SectionClass, &'static str> {
    // Who takes the first section of a name would take it for the one with contents.
    if TABLES.contains(&&*section.name) {
        return Err("a table of the object file with the name of one of the ABI");
    }
    // Linkers leave out what has the flag SHF_EXCLUDE, relocations too (lld): then code has
    // whatever its fields hold.
    let usual = match section.role {
        Role::Relocations(_) => SHF_INFO_LINK,
        _ => 0,
    };
    match section.flags & !usual {
        0 => Ok(SectionClass::Harmless),
        flags if flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR) != 0 => {
            Err("a table of the object file that would be loaded")
        }
        _ => Err("a table of the object file with flags that it does not have"),
    }
}

fn code_bytes(section: &Section<'_>) -> Result<SectionClass, &'static str> {
    match section.data.len() as u64 == section.size && section.size <= i32::MAX as u64 {
        true => Ok(SectionClass::Code),
        false => Err("its bytes are not all there, or more than 2 GiB"),
    }
}
