//! Write an object: [`Object`] in, bytes of an ELF file out.
//!
//! An object that was read and not changed keeps its sections, their order and
//! flags, its symbols and relocations; only file offsets and the layout of the
//! string tables may differ. An object built from scratch needs no table
//! sections: those it lacks are appended ([`plan`] says in which order). The
//! same object always gives the same bytes.
//!
//! File, from the start:
//!
//! ```text
//! ELF header | bytes of every section in section order | section headers
//! ```
//!
//! Layout: gABI chapter 4.

mod error;
mod plan;

use object::elf;
use object::endian::Endianness;
use object::write::elf::{FileHeader, Rel, SectionHeader, Sym, Writer};

use crate::model::{Object, Place, Relocation, WORD};
pub use error::WriteError;
use plan::{Body, FilePlan, Names, OutputSection};

/// Largest alignment that contents get in the file. Their alignment in memory is in the
/// section header, and no reader of relocatable objects maps them.
const MAX_FILE_ALIGN: u64 = 4096;
/// Addends are in the relocations.
const IS_RELA: bool = true;

/// Writes `object` as an ELF file.
///
/// Local symbols come before all others in an ELF symbol table. If they do not in the
/// object, symbols are sorted, stably, and relocations and section groups are changed to
/// match. Only in that case do [`crate::SymbolId`]s differ when the file is read back.
///
/// # Errors
/// [`WriteError`] if the object refers to parts that it does not have, or holds values
/// that an ELF file cannot express.
pub fn write(object: &Object<'_>) -> Result<Vec<u8>, WriteError> {
    let plan = FilePlan::new(object)?;
    // --- all sections and symbols are in their final order ---
    let mut bytes = Vec::new();
    let mut emitter = Emitter::new(object, &plan, &mut bytes);
    emitter.reserve()?;
    // --- every offset is known ---
    emitter.emit()?;
    Ok(bytes)
}

/// The state of the writer.
struct Emitter<'p> {
    object: &'p Object<'p>,
    plan: &'p FilePlan<'p>,
    writer: Writer<'p>,
    /// Name of each section, by its index, in the section name table.
    section_names: Vec<object::write::StringId>,
    /// Name of each symbol, by its new index; none if empty.
    symbol_names: Vec<Option<object::write::StringId>>,
    /// File offset and size of each section.
    ranges: Vec<(u64, u64)>,
}

impl<'p> Emitter<'p> {
    fn new(object: &'p Object<'p>, plan: &'p FilePlan<'p>, bytes: &'p mut Vec<u8>) -> Self {
        Emitter {
            object,
            plan,
            writer: Writer::new(Endianness::Little, true, bytes),
            section_names: Vec::new(),
            symbol_names: Vec::new(),
            ranges: vec![(0, 0)],
        }
    }

    /// Gives every name and section its place in the file.
    fn reserve(&mut self) -> Result<(), WriteError> {
        self.add_names();
        self.writer.reserve_null_symbol_index();
        for _ in 1..self.plan.symbols.len() {
            self.writer.reserve_symbol_index(None);
        }
        self.writer.reserve_file_header();
        for section in &self.plan.sections {
            match section.body {
                Body::Names(Names::Sections | Names::Both) => {
                    self.writer.reserve_shstrtab_section_index()
                }
                _ => self.writer.reserve_section_index(),
            };
        }
        for section in &self.plan.sections {
            let range = self.reserve_body(section)?;
            self.ranges.push(range);
        }
        self.writer.reserve_section_headers();
        Ok(())
    }

    fn add_names(&mut self) {
        let plan = self.plan;
        let (object, writer) = (self.object, &mut self.writer);
        self.section_names = plan
            .sections
            .iter()
            .map(|s| writer.add_section_name(s.name.as_bytes()))
            .collect();
        let mut add = |name: &'p str| match name {
            "" => None,
            _ if plan.shared_names => Some(writer.add_section_name(name.as_bytes())),
            _ => Some(writer.add_string(name.as_bytes())),
        };
        self.symbol_names = plan
            .symbols
            .iter()
            .map(|&s| add(&object.symbol(s).name))
            .collect();
        self.writer.require_strtab();
    }

    /// File offset and size of one section.
    fn reserve_body(&mut self, section: &OutputSection<'p>) -> Result<(u64, u64), WriteError> {
        let before = self.writer.reserved_len();
        let offset = match &section.body {
            Body::Nobits(size) => return Ok((before, *size)),
            Body::Bytes(bytes) => {
                let align = if bytes.is_empty() {
                    1
                } else {
                    section.align.min(MAX_FILE_ALIGN)
                };
                self.writer.reserve(bytes.len() as u64, align)
            }
            Body::Relocations(list) => self.writer.reserve_relocations(list.len(), IS_RELA),
            Body::Symbols => {
                let start = self.writer.reserve(0, WORD);
                self.writer.reserve_symtab();
                start
            }
            Body::Names(Names::Symbols) => {
                self.writer.reserve_strtab().map_err(WriteError::backend)?;
                before
            }
            Body::Names(_) => {
                self.writer
                    .reserve_shstrtab()
                    .map_err(WriteError::backend)?;
                before
            }
        };
        Ok((offset, self.writer.reserved_len() - offset))
    }

    /// Writes the file in the order in which it was reserved.
    fn emit(&mut self) -> Result<(), WriteError> {
        self.writer
            .write_file_header(&self.file_header())
            .map_err(WriteError::backend)?;
        let plan = self.plan;
        for (index, section) in plan.sections.iter().enumerate() {
            let (offset, _) = self.ranges[index + 1];
            if !matches!(section.body, Body::Nobits(_)) {
                self.writer.pad_until(offset);
            }
            match &section.body {
                Body::Nobits(_) => {}
                Body::Bytes(bytes) => self.writer.write(bytes),
                Body::Relocations(list) => {
                    for relocation in *list {
                        let relocation = self.relocation(relocation);
                        self.writer.write_relocation(IS_RELA, &relocation);
                    }
                }
                Body::Symbols => self.symbols(),
                Body::Names(Names::Symbols) => self.writer.write_strtab(),
                Body::Names(_) => self.writer.write_shstrtab(),
            }
        }
        self.section_headers();
        Ok(())
    }

    fn file_header(&self) -> FileHeader {
        FileHeader {
            os_abi: elf::OsAbi(self.object.os_abi.0),
            abi_version: self.object.os_abi.1,
            e_type: elf::ET_REL,
            e_machine: elf::EM_X86_64,
            e_entry: 0,
            e_flags: elf::FileFlags(self.object.flags),
        }
    }

    fn relocation(&self, r: &Relocation) -> Rel {
        Rel {
            r_offset: r.offset,
            r_sym: self.plan.new_index[r.symbol.0 as usize],
            r_type: elf::RelocationType(r.kind),
            r_addend: r.addend,
        }
    }

    fn symbols(&mut self) {
        for (id, name) in self.plan.symbols.iter().zip(&self.symbol_names) {
            let symbol = self.object.symbol(*id);
            let st_name = if self.plan.shared_names {
                self.writer.section_name_offset(*name)
            } else {
                self.writer.string_offset(*name)
            };
            let (section, st_shndx) = match symbol.place {
                Place::Undefined => (None, elf::SHN_UNDEF),
                Place::Absolute => (None, elf::SHN_ABS),
                Place::Common => (None, elf::SHN_COMMON),
                Place::In(id) => (Some(id.0), elf::SHN_UNDEF),
            };
            self.writer.write_symbol(&Sym {
                section,
                st_name,
                st_info: elf::SymbolInfo::new(
                    elf::SymbolBind(symbol.binding),
                    elf::SymbolType(symbol.kind),
                ),
                st_other: elf::SymbolOther(symbol.other),
                st_shndx,
                st_value: symbol.value,
                st_size: symbol.size,
            });
        }
    }

    fn section_headers(&mut self) {
        self.writer.write_null_section_header();
        let rows = self
            .plan
            .sections
            .iter()
            .zip(&self.ranges[1..])
            .zip(&self.section_names);
        for ((section, &(sh_offset, sh_size)), &name) in rows {
            self.writer.write_section_header(&SectionHeader {
                sh_name: if section.name.is_empty() {
                    0
                } else {
                    self.writer.section_name_offset(Some(name))
                },
                sh_type: elf::SectionType(section.kind),
                sh_flags: elf::SectionFlags(section.flags),
                sh_addr: 0,
                sh_offset,
                sh_size,
                sh_link: section.link,
                sh_info: section.info,
                sh_addralign: section.align,
                sh_entsize: section.entsize,
            });
        }
    }
}
