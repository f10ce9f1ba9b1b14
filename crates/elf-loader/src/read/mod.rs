//! Read a relocatable object: bytes in, [`Object`] out, borrowing all names
//! and contents.
//!
//! Guarantees of an object that was read: every [`SectionId`] and
//! [`crate::SymbolId`] in it is valid, every relocation is of a known type with its whole
//! field inside its section, every symbol defined in a section is in it or at its end, that
//! of a section itself is at its start, undefined ones have no value, local ones stand before
//! all others, symbol 0 is nothing, an alignment is a power of two up
//! to 2 GiB, `data.len() == size` for contents, relocations are sorted by offset. No byte of
//! the file belongs to two sections, or to one and a header. All names together have at most
//! eight times the file's bytes. Input may be hostile: nothing here panics, and memory is at
//! most a small multiple of the file's length.
//!
//! Bytes that no section header covers are not looked at, among them the
//! signature that the kernel build appends to modules.
//!
//! Layout: gABI chapter 4; psABI x86-64 4.1 to 4.4.

mod entry;
mod error;
mod header;
mod machine;

use std::borrow::Cow;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{EI_ABIVERSION, EI_OSABI, Header};
use goblin::elf::reloc::{Reloc, RelocSection};
use goblin::elf::section_header::{self as sh, SectionHeader};
use goblin::elf::sym::{Sym, Symtab};

use crate::model::consts::{SHF_ALLOC, SHF_COMPRESSED, STB_LOCAL};
use crate::model::{MAX_SECTION_SIZE, Object, Relocation, Role, Section, SectionId, Symbol};
use entry::{relocation, string, symbol};
pub use error::{ReadError, RelocationProblem, SectionProblem, SymbolProblem};
use header::{damaged, file_header, part, section_headers};
pub use machine::ElfMachine;

const SHT_RELR: u32 = 19;
/// Bytes of the ELF header and of a section header (gABI chapter 4).
const ELF_HEADER: u64 = 64;
const SECTION_HEADER: usize = 64;
/// All names together are no longer than so many times the file: names may share bytes of a
/// string table, and who copies each takes more memory than the file, or writes a larger one.
/// Compilers' names have fewer bytes than the file.
const SHARED: u64 = 8;
/// Addends are in the relocations.
const IS_RELA: bool = true;

/// Parses a relocatable object for x86-64 (ELF64, RELA).
///
/// # Errors
/// [`ReadError`] says what is wrong, where and what to do. A file that the model cannot
/// represent faithfully is refused.
pub fn read(bytes: &[u8]) -> Result<Object<'_>, ReadError> {
    let header = file_header(bytes)?;
    let file = File::new(bytes, &header)?;
    let mut sections = file.sections()?;
    // --- all sections have their places and roles ---
    let symbols = file.symbols(&sections)?;
    file.relocations(&mut sections, symbols.len())?;
    Ok(Object {
        flags: header.e_flags,
        os_abi: (header.e_ident[EI_OSABI], header.e_ident[EI_ABIVERSION]),
        sections,
        symbols,
    })
}

/// Judges a file by its first bytes, 64 or more: whether its ELF header is that of a
/// relocatable object for x86-64.
///
/// # Errors
/// What [`read()`] would say of any file that begins so.
pub fn judge_header(bytes: &[u8]) -> Result<(), ReadError> {
    file_header(bytes).map(|_| ())
}

/// The file with its section headers, not interpreted yet.
struct File<'a> {
    bytes: &'a [u8],
    ctx: Ctx,
    headers: Vec<SectionHeader>,
    /// Offset of the section headers in the file.
    table: u64,
    names: Vec<&'a str>,
    /// Bytes that the names of symbols may still have.
    left: u64,
    /// Index of the section name table.
    section_names: usize,
    /// Indices of the symbol table and of its name table.
    symbol_table: Option<(usize, usize)>,
}

impl<'a> File<'a> {
    fn new(bytes: &'a [u8], header: &Header) -> Result<Self, ReadError> {
        let ctx = Ctx::new(Container::Big, Endian::Little);
        let headers = section_headers(bytes, header, ctx)?;
        let mut file = File {
            bytes,
            ctx,
            headers,
            table: header.e_shoff,
            names: Vec::new(),
            left: bytes.len() as u64 * SHARED,
            section_names: usize::from(header.e_shstrndx),
            symbol_table: None,
        };
        (file.names, file.left) = file.read_names()?;
        file.symbol_table = file.find_symbol_table()?;
        Ok(file)
    }

    fn name(&self, index: usize) -> &'a str {
        self.names.get(index).copied().unwrap_or_default()
    }

    fn refuse(&self, index: usize, problem: SectionProblem) -> ReadError {
        ReadError::Section {
            index: index as u32,
            name: self.name(index).into(),
            problem,
        }
    }

    /// The bytes of section `index` in the file.
    fn contents(&self, index: usize) -> Result<&'a [u8], ReadError> {
        let header = &self.headers[index];
        let (start, size) = (header.sh_offset, header.sh_size);
        let what = || format!("section {index} `{}`", self.name(index));
        part(self.bytes, start, size, what)
    }

    /// All section names, in order, and the bytes that are left for other names.
    fn read_names(&self) -> Result<(Vec<&'a str>, u64), ReadError> {
        let table = match self.headers.get(self.section_names) {
            Some(h) if h.sh_type == sh::SHT_STRTAB => self.contents(self.section_names)?,
            _ => {
                return Err(damaged(format!(
                    "e_shstrndx is {}, which is no string table among its {} sections",
                    self.section_names,
                    self.headers.len()
                )));
            }
        };
        let mut left = self.left;
        let mut one = |(i, h): (usize, &SectionHeader)| {
            let offset = h.sh_name as u64;
            string(table, offset, &mut left)
                .map_err(|why| self.refuse(i, SectionProblem::Name { offset, why }))
        };
        let names: Result<Vec<_>, _> = self.headers.iter().enumerate().map(&mut one).collect();
        Ok((names?, left))
    }

    /// The one symbol table and the names that belong to it.
    fn find_symbol_table(&self) -> Result<Option<(usize, usize)>, ReadError> {
        let mut found = None;
        for (i, h) in self
            .headers
            .iter()
            .enumerate()
            .filter(|(_, h)| h.sh_type == sh::SHT_SYMTAB)
        {
            if found.is_some() {
                return Err(self.refuse(i, SectionProblem::Second("symbol table")));
            }
            let names = h.sh_link as usize;
            if self
                .headers
                .get(names)
                .is_none_or(|n| n.sh_type != sh::SHT_STRTAB)
            {
                return Err(self.bad_link(i, "sh_link", h.sh_link, "a string table"));
            }
            found = Some((i, names));
        }
        Ok(found)
    }

    fn bad_link(
        &self,
        i: usize,
        field: &'static str,
        value: u32,
        expected: &'static str,
    ) -> ReadError {
        self.refuse(
            i,
            SectionProblem::Link {
                field,
                value,
                expected,
            },
        )
    }

    /// All sections, with contents but without relocations.
    fn sections(&self) -> Result<Vec<Section<'a>>, ReadError> {
        let sections: Result<Vec<_>, _> =
            (0..self.headers.len()).map(|i| self.section(i)).collect();
        let sections = sections?;
        self.check_apart(&sections)?;
        Ok(sections)
    }

    /// Checks that no byte of the file has two meanings. A kernel keeps its notes on a module
    /// in the section headers and in `.gnu.linkonce.this_module` before it copies the other
    /// sections (`rewrite_section_headers`, `layout_sections`, kernel/module/main.c), so code
    /// there would not be the code that was read. And who copies all sections takes no more
    /// memory than the file.
    fn check_apart(&self, sections: &[Section<'_>]) -> Result<(), ReadError> {
        let table = self.table..self.table + (self.headers.len() * SECTION_HEADER) as u64;
        let mut used = vec![(0..ELF_HEADER, None), (table, None)];
        for (i, section) in sections.iter().enumerate() {
            if section.role != Role::Null && section.kind != sh::SHT_NOBITS {
                let size = self.contents(i)?.len() as u64;
                let start = self.headers[i].sh_offset;
                // Of an empty one the offset says nothing, and may be any.
                if size != 0 {
                    used.push((start..start + size, Some(i)));
                }
            }
        }
        used.sort_by_key(|(bytes, section)| (bytes.start, *section));
        for pair in used.windows(2) {
            let ((before, first), (behind, second)) = (&pair[0], &pair[1]);
            if behind.start >= before.end {
                continue;
            }
            let named = |i: usize| format!("section {i} `{}`", self.name(i));
            let (index, other) = match (*first, *second) {
                (Some(one), Some(other)) => (other, named(one)),
                (Some(index), None) | (None, Some(index)) => (index, "a header".into()),
                (None, None) => return Err(damaged("its headers overlap".into())),
            };
            return Err(self.refuse(index, SectionProblem::Overlap(other)));
        }
        Ok(())
    }

    fn section(&self, index: usize) -> Result<Section<'a>, ReadError> {
        let header = &self.headers[index];
        let role = self.role(index)?;
        let align = header.sh_addralign;
        if !(align == 0 || align.is_power_of_two()) || align > MAX_SECTION_SIZE {
            return Err(self.refuse(index, SectionProblem::Alignment(align)));
        }
        if header.sh_size > MAX_SECTION_SIZE {
            return Err(self.refuse(index, SectionProblem::Size(header.sh_size)));
        }
        let data = match role {
            Role::Contents if header.sh_type != sh::SHT_NOBITS => self.contents(index)?,
            _ => &[],
        };
        Ok(Section {
            name: Cow::Borrowed(self.name(index)),
            kind: header.sh_type,
            flags: header.sh_flags,
            align: align.max(1),
            entsize: header.sh_entsize,
            link: header.sh_link,
            info: header.sh_info,
            data: Cow::Borrowed(data),
            size: header.sh_size,
            relocations: Vec::new(),
            role,
        })
    }

    fn role(&self, index: usize) -> Result<Role, ReadError> {
        let header = &self.headers[index];
        let unsupported =
            |what, remedy| Err(self.refuse(index, SectionProblem::Unsupported { what, remedy }));
        Ok(match header.sh_type {
            // A name or flags would be lost when it is written (gABI 4, "Special
            // Section Indexes": all zero but for the extended counts).
            sh::SHT_NULL if index == 0 && header.sh_flags == 0 && self.name(0).is_empty() => {
                Role::Null
            }
            _ if index == 0 => return Err(damaged("section 0 is not the null section".into())),
            // Its other fields mean nothing (gABI 4, "Section Types"), but a kernel goes by the
            // flags, and copies it without asking where it ends (`elf_validity_check`,
            // `move_module`, kernel/module/main.c).
            sh::SHT_NULL if header.sh_flags & SHF_ALLOC != 0 => {
                return unsupported(
                    "an inactive section (SHT_NULL) that would be loaded",
                    "the file is damaged, build it again",
                );
            }
            sh::SHT_SYMTAB => Role::SymbolTable,
            // One table may hold both kinds of names (LLVM makes it so).
            _ if self.symbol_table.is_some_and(|(_, names)| names == index) => Role::SymbolNames,
            _ if self.section_names == index => Role::SectionNames,
            sh::SHT_REL | sh::SHT_RELA => self.relocation_role(index)?,
            sh::SHT_SYMTAB_SHNDX => {
                return unsupported("an object with 65280 sections or more", "split it");
            }
            SHT_RELR => {
                return unsupported("a table of relative relocations", "build without RELR");
            }
            _ => Role::Contents,
        })
    }

    /// Checks the header of a relocation section.
    fn relocation_role(&self, index: usize) -> Result<Role, ReadError> {
        let header = &self.headers[index];
        if header.sh_type != sh::SHT_RELA {
            let problem = SectionProblem::Flavour {
                found: "REL",
                expected: "RELA",
            };
            return Err(self.refuse(index, problem));
        }
        if self
            .symbol_table
            .is_none_or(|(table, _)| table != header.sh_link as usize)
        {
            return Err(self.bad_link(index, "sh_link", header.sh_link, "the symbol table"));
        }
        self.check_entries(index, Reloc::size(IS_RELA, self.ctx) as u64)?;
        let info = header.sh_info;
        match self.headers.get(info as usize) {
            Some(t) if info != 0 && can_be_relocated(t) => Ok(Role::Relocations(SectionId(info))),
            _ => Err(self.bad_link(index, "sh_info", info, "a section with contents")),
        }
    }

    fn check_entries(&self, index: usize, expected: u64) -> Result<(), ReadError> {
        let h = &self.headers[index];
        if h.sh_entsize != expected || !h.sh_size.is_multiple_of(expected) {
            let (size, entsize) = (h.sh_size, h.sh_entsize);
            return Err(self.refuse(
                index,
                SectionProblem::EntrySize {
                    size,
                    entsize,
                    expected,
                },
            ));
        }
        Ok(())
    }

    /// All symbols; the null symbol alone if there is no table.
    fn symbols(&self, sections: &[Section<'a>]) -> Result<Vec<Symbol<'a>>, ReadError> {
        let Some((index, names)) = self.symbol_table else {
            return Ok(vec![Symbol::null()]);
        };
        let entry = Sym::size(self.ctx.container);
        self.check_entries(index, entry as u64)?;
        let table = self.contents(index)?;
        if table.is_empty() {
            return Ok(vec![Symbol::null()]);
        }
        // A kernel resolves every symbol but this one: what refers to it gets `st_value`
        // (`simplify_symbols`, kernel/module/main.c).
        if table[..entry].iter().any(|byte| *byte != 0) {
            return Err(ReadError::Symbol {
                index: 0,
                name: String::new(),
                problem: SymbolProblem::NotNull,
            });
        }
        let names = self.contents(names)?;
        // Else the null symbol has a name, and so have others that are to have none (gABI chapter 4,
        // "String Table").
        if names.first().is_some_and(|byte| *byte != 0) {
            let why = "the table of names does not begin with an empty one";
            return Err(ReadError::Symbol {
                index: 0,
                name: String::new(),
                problem: SymbolProblem::Name { offset: 0, why },
            });
        }
        let raw = Symtab::parse(table, 0, table.len() / entry, self.ctx)
            .map_err(|e| damaged(e.to_string()))?;
        let (mut symbols, mut left) = (Vec::with_capacity(raw.len()), self.left);
        let first_other = self.headers[index].sh_info;
        for (i, s) in raw.iter().enumerate() {
            let symbol = symbol(i as u32, &s, (names, &mut left), sections)?;
            // A linker does not resolve what stands among the local ones: it takes the value of
            // an undefined one for its address.
            let local = symbol.binding == STB_LOCAL;
            if local != ((i as u64) < u64::from(first_other)) {
                return Err(ReadError::Symbol {
                    index: i as u32,
                    name: symbol.name.into(),
                    problem: SymbolProblem::Order { local, first_other },
                });
            }
            symbols.push(symbol);
        }
        Ok(symbols)
    }

    /// Reads every relocation section into the section that it applies to.
    fn relocations(&self, sections: &mut [Section<'a>], symbols: usize) -> Result<(), ReadError> {
        let mut filled = vec![false; sections.len()];
        for index in 0..sections.len() {
            let Role::Relocations(target) = sections[index].role else {
                continue;
            };
            let target = target.0 as usize;
            if std::mem::replace(&mut filled[target], true) {
                return Err(self.refuse(index, SectionProblem::Second("relocation table")));
            }
            if is_compressed(&sections[target]) && describes_code(&sections[target]) {
                sections[target].empty();
                continue;
            }
            self.check_relocated(target, &sections[target])?;
            let relocations = self.relocation_table(index, &sections[target], symbols)?;
            sections[target].relocations = relocations;
        }
        Ok(())
    }

    /// Offsets into compressed contents mean the expanded bytes; tables that the writer makes have
    /// no bytes to relocate.
    fn check_relocated(&self, index: usize, section: &Section<'_>) -> Result<(), ReadError> {
        let (what, remedy) = if is_compressed(section) {
            (
                "a compressed section with relocations",
                "run `objcopy --decompress-debug-sections`",
            )
        } else if section.role != Role::Contents {
            (
                "a relocated string table",
                "the file is damaged, build it again",
            )
        } else {
            return Ok(());
        };
        Err(self.refuse(index, SectionProblem::Unsupported { what, remedy }))
    }

    fn relocation_table(
        &self,
        index: usize,
        target: &Section<'a>,
        symbols: usize,
    ) -> Result<Vec<Relocation>, ReadError> {
        let bytes = self.contents(index)?;
        let raw = RelocSection::parse(bytes, 0, bytes.len(), IS_RELA, self.ctx)
            .map_err(|e| damaged(e.to_string()))?;
        let mut list = Vec::with_capacity(raw.len());
        for (entry, r) in raw.iter().enumerate() {
            let relocation =
                relocation(&r, target, symbols).map_err(|problem| ReadError::Relocation {
                    table: self.name(index).into(),
                    entry,
                    target: target.name.to_string(),
                    offset: r.r_offset,
                    problem,
                })?;
            list.push(relocation);
        }
        if !list.is_sorted_by_key(|r| r.offset) {
            list.sort_by_key(|r| r.offset);
        }
        Ok(list)
    }
}

/// Whether a section's contents are compressed, by their flag or by a name of old (`-gz=zlib-gnu`).
fn is_compressed(section: &Section<'_>) -> bool {
    section.flags & SHF_COMPRESSED != 0 || section.name.starts_with(".zdebug_")
}

/// Whether a section has information for debuggers, of code that will be another: nobody here reads
/// it, and nothing loads it.
fn describes_code(section: &Section<'_>) -> bool {
    let named = [".debug_", ".zdebug_"];
    let named = named.iter().any(|begin| section.name.starts_with(begin));
    named && section.flags & SHF_ALLOC == 0 && section.role == Role::Contents
}

fn can_be_relocated(header: &SectionHeader) -> bool {
    !matches!(
        header.sh_type,
        sh::SHT_NULL | sh::SHT_NOBITS | sh::SHT_SYMTAB | sh::SHT_REL | sh::SHT_RELA
    )
}
