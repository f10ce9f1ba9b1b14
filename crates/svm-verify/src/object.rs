//! The object around the code: what it is, its sections, its symbols and its
//! two tables.
//!
//! Takes the object as it was read, gives an [`Image`]: which sections are
//! code, what each symbol means, and where the code may be entered. Whatever is
//! not expected here is a violation, so that nothing is loaded that the rest of
//! the verifier did not look at.

use std::collections::{HashMap, HashSet};

use elf_loader::consts::{
    R_X86_64_64, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, SHT_NOTE, SHT_PROGBITS,
    STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FILE, STT_FUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION,
};
use elf_loader::{
    Machine, Object, Place, Relocation, Role, Section, SectionId, Symbol, SymbolId, Word,
};
use twin_abi::{ABI_VERSION, Scheme, Target, names, sections};

use crate::domain::Reg;
use crate::linux;
use crate::report::Report;
use crate::violation::Code;

/// An entry of the runtime, or an imported routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// Whatever the loader resolves an imported name to: follows the psABI.
    Imported,
    /// [`names::CALL`]: goes on at a codemap entry.
    Indirect,
    /// `twin_slow_<reg>`.
    Slow(Reg),
    /// [`names::PORT_IN`].
    PortIn,
    /// [`names::PORT_OUT`] and [`names::WARN`]: keep everything.
    Keeps,
    /// [`names::BUG`]: does not return.
    Bug,
}

/// A place in code: number of the code section, byte offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAt {
    /// Index in [`Image::code`].
    pub section: u16,
    /// Byte offset.
    pub offset: i64,
}

/// What a symbol may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An address in dom0: a number.
    Vm,
    /// [`names::STLB`].
    Table,
    /// Something to call.
    Routine(Routine),
    /// A place in this object's code.
    Code(CodeAt),
    /// A place in its data (target `linux`).
    Data(SectionId, i64),
    /// Nothing, for this reason.
    Unusable(&'static str),
}

/// The object with the meaning of its parts.
pub struct Image<'o> {
    /// As it was read.
    pub object: &'o Object<'o>,
    /// How it translates.
    pub scheme: Scheme,
    /// What it is for.
    pub target: Target,
    /// The code sections in file order.
    pub code: Vec<SectionId>,
    /// Meaning of each symbol.
    pub symbols: Vec<Meaning>,
    /// Codemap entries, each with its offset in the codemap.
    pub codemap: Vec<(u64, CodeAt)>,
    /// Names that other objects or the loader can see: entered from outside.
    pub globals: Vec<CodeAt>,
    /// Starts of the other functions.
    pub locals: Vec<CodeAt>,
}

impl<'o> Image<'o> {
    /// Looks at everything but the instructions. `None` if the object is
    /// foreign, which alone is reported then.
    pub fn new(object: &'o Object<'o>, report: &mut Report<'o>) -> Option<Image<'o>> {
        let (scheme, target) = match made_for(object) {
            Ok(made) => made,
            Err(reason) => {
                report.object(Code::Foreign, reason);
                return None;
            }
        };
        let mut image = Image {
            object,
            scheme,
            target,
            code: Vec::new(),
            symbols: Vec::new(),
            codemap: Vec::new(),
            globals: Vec::new(),
            locals: Vec::new(),
        };
        match target {
            Target::User => {
                image.check_sections(report);
                image.check_symbols(report);
                image.check_codemap(report);
            }
            Target::Linux => {
                linux::sections(&mut image, report);
                linux::symbols(&mut image, report);
            }
        }
        image.check_map(report);
        Some(image)
    }

    /// Whether this is a module for a stock kernel.
    pub fn is_linux(&self) -> bool {
        self.target == Target::Linux
    }

    /// Whether an operand may name the symbol of a relocation.
    ///
    /// # Errors
    /// Why not.
    pub fn data_reference(&self, meaning: Meaning, _: &Relocation) -> Result<(), &'static str> {
        match meaning {
            Meaning::Data(..) | Meaning::Code(_) | Meaning::Routine(Routine::Imported) => Ok(()),
            _ => Err("nothing that an operand may name"),
        }
    }

    /// The code section with this number.
    pub fn section(&self, number: u16) -> &'o Section<'o> {
        self.object.section(self.code[usize::from(number)])
    }

    /// The number of a code section.
    pub fn number(&self, id: SectionId) -> Option<u16> {
        self.code.binary_search(&id).ok().map(|n| n as u16)
    }

    /// What a symbol means.
    pub fn meaning(&self, symbol: SymbolId) -> Meaning {
        let known = self.symbols.get(symbol.0 as usize).copied();
        known.unwrap_or(Meaning::Unusable("there is no such symbol"))
    }

    fn check_sections(&mut self, report: &mut Report<'o>) {
        let mut tables = HashSet::new();
        for (id, section) in self.object.sections() {
            match judge_section(section) {
                Ok(Kind::Code) if self.code.len() < usize::from(u16::MAX) => self.code.push(id),
                Ok(Kind::Code) => report.at(id, 0, Code::Section, "too many code sections"),
                Ok(Kind::Table) if tables.insert(&section.name) => {}
                Ok(Kind::Table) => report.at(id, 0, Code::Section, "a second one of this name"),
                Ok(Kind::Harmless) => {}
                Err(reason) => report.at(id, 0, Code::Section, reason),
            }
            let relocatable = section.is_code() || section.name == sections::CODEMAP;
            if let (false, Some(r)) = (relocatable, section.relocations.first()) {
                report.at(
                    id,
                    r.offset,
                    Code::Relocation,
                    "nothing here may be relocated",
                );
            }
        }
    }

    fn check_symbols(&mut self, report: &mut Report<'o>) {
        let exported: HashSet<&str> = self
            .object
            .symbols()
            .filter(|(_, s)| s.binding != STB_LOCAL && s.place != Place::Undefined)
            .map(|(_, s)| &*s.name)
            .collect();
        for (id, symbol) in self.object.symbols() {
            let meaning = if id.0 == 0 {
                Ok(Meaning::Unusable("it is the null symbol"))
            } else {
                self.judge_symbol(symbol, &exported)
            };
            let meaning = meaning.unwrap_or_else(|reason| {
                report.object(Code::Symbol, format!("symbol `{}`: {reason}", symbol.name));
                Meaning::Unusable(reason)
            });
            self.symbols.push(meaning);
            match symbol.place {
                Place::In(section) => self.note_entry(symbol, section),
                Place::Undefined | Place::Absolute | Place::Common => {}
            }
        }
    }

    /// Remembers a function's start. A name that is visible outside is one
    /// whatever its type: another object may call it.
    fn note_entry(&mut self, symbol: &Symbol<'_>, section: SectionId) {
        let Some(section) = self.number(section) else {
            return;
        };
        let at = CodeAt {
            section,
            offset: symbol.value as i64,
        };
        if symbol.binding != STB_LOCAL {
            self.globals.push(at);
        } else if symbol.kind == STT_FUNC && !symbol.name.contains(".cold") {
            // gcc marks the cold part of a function as one, too, although it
            // is entered with the frame of the hot one.
            self.locals.push(at);
        }
    }

    fn judge_symbol(
        &self,
        symbol: &Symbol<'_>,
        exported: &HashSet<&str>,
    ) -> Result<Meaning, &'static str> {
        if !matches!(symbol.binding, STB_LOCAL | STB_GLOBAL | STB_WEAK) {
            return Err("its binding is none of local, global and weak");
        }
        if !matches!(
            symbol.kind,
            STT_NOTYPE | STT_OBJECT | STT_FUNC | STT_SECTION | STT_FILE
        ) {
            return Err("symbols of this type are resolved in ways nobody checked");
        }
        match symbol.place {
            Place::Common => Err("a common symbol is writable data"),
            Place::Absolute if symbol.kind == STT_FILE => Ok(Meaning::Unusable("it names a file")),
            Place::Absolute => Err("an absolute symbol may be any address"),
            Place::Undefined => judge_undefined(symbol, exported),
            Place::In(section) => self.judge_defined(symbol, section),
        }
    }

    fn judge_defined(
        &self,
        symbol: &Symbol<'_>,
        section: SectionId,
    ) -> Result<Meaning, &'static str> {
        let local = symbol.binding == STB_LOCAL;
        if !local && symbol.name.starts_with(names::RUNTIME_PREFIX) {
            return Err("names of the runtime are not for objects to define");
        }
        let Some(number) = self.number(section) else {
            return if local {
                Ok(Meaning::Unusable("it lies outside the code"))
            } else {
                Err("it exports something that is not code")
            };
        };
        match (symbol.binding, i64::try_from(symbol.value)) {
            (STB_WEAK, _) => Ok(Meaning::Unusable(
                "another definition may replace a weak one",
            )),
            (_, Ok(offset)) => Ok(Meaning::Code(CodeAt {
                section: number,
                offset,
            })),
            (_, Err(_)) => Err("its value is outside its section"),
        }
    }

    fn check_codemap(&mut self, report: &mut Report<'o>) {
        let Some(id) = self.object.section_named(sections::CODEMAP) else {
            return;
        };
        let section = self.object.section(id);
        if !section.size.is_multiple_of(16) {
            report.at(id, 0, Code::Codemap, "its size is not a multiple of 16");
        }
        if let Some(at) = section.data.iter().position(|&b| b != 0) {
            report.at(
                id,
                at as u64,
                Code::Codemap,
                "bytes under the relocations are not zero",
            );
        }
        if section.relocations.len() as u64 != section.size / 8 {
            report.at(id, 0, Code::Codemap, "not two relocations for each entry");
            return;
        }
        let mut seen = HashMap::new();
        let names: HashSet<&str> = self
            .code
            .iter()
            .map(|&c| &*self.object.section(c).name)
            .collect();
        let mut expected = 0;
        for r in &section.relocations {
            let target = if r.offset != expected || r.kind != R_X86_64_64 {
                Err("a relocation that is not R_X86_64_64 on a word of its own")
            } else if expected % 16 == 0 {
                self.vm_code(r.symbol, &names).and_then(|()| {
                    match seen.insert((r.symbol, r.addend), ()) {
                        None => Ok(None),
                        Some(()) => Err("two entries for one VM address"),
                    }
                })
            } else {
                self.entry_point(r.symbol, r.addend).map(Some)
            };
            match target {
                Ok(Some(at)) => self.codemap.push((r.offset, at)),
                Ok(None) => {}
                Err(reason) => report.at(id, r.offset, Code::Codemap, reason),
            }
            expected += 8;
        }
    }

    /// The first half of a codemap entry: an address in a VM code section.
    fn vm_code(&self, symbol: SymbolId, names: &HashSet<&str>) -> Result<(), &'static str> {
        let vm = self.meaning(symbol) == Meaning::Vm;
        let symbol = self.object.symbols.get(symbol.0 as usize);
        let name = symbol.and_then(|s| s.name.strip_prefix(names::VM_PREFIX));
        match name {
            Some(name) if vm && names.contains(name) => Ok(()),
            _ => Err("the VM address is not `twin_vm:` and a code section of this object"),
        }
    }

    /// The second half: a place in this object's code.
    fn entry_point(&self, symbol: SymbolId, addend: i64) -> Result<CodeAt, &'static str> {
        match self.meaning(symbol) {
            Meaning::Code(at) => at
                .offset
                .checked_add(addend)
                .map(|offset| CodeAt { offset, ..at })
                .ok_or("the entry point is outside every section"),
            _ => Err("the entry point is not in this object's code"),
        }
    }

    fn check_map(&self, report: &mut Report<'o>) {
        let Some(id) = self.object.section_named(sections::MAP) else {
            return;
        };
        let section = self.object.section(id);
        let (entries, rest) = section.data.as_chunks::<{ sections::MAP_ENTRY }>();
        if !rest.is_empty() {
            report.at(id, 0, Code::Map, "its size is not a multiple of 12");
        }
        let word =
            |e: &[u8; 12], at: usize| u32::from_le_bytes([e[at], e[at + 1], e[at + 2], e[at + 3]]);
        let mut last = (0, 0);
        for (n, entry) in entries.iter().enumerate() {
            let here = (word(entry, 0), word(entry, 4));
            let size = self
                .number(SectionId(here.0))
                .map(|number| self.section(number).size);
            let reason = match size {
                None => "an entry for something that is not a code section",
                Some(size) if u64::from(here.1) > size => "an entry for a place behind its section",
                Some(_) if here < last => "entries are not sorted",
                Some(_) => {
                    last = here;
                    continue;
                }
            };
            report.at(id, (n * sections::MAP_ENTRY) as u64, Code::Map, reason);
        }
    }
}

/// Scheme and target in the object's note, or why the object is foreign.
fn made_for(object: &Object<'_>) -> Result<(Scheme, Target), String> {
    if (object.word, object.machine) != (Word::W64, Machine::X86_64) {
        return Err(format!("only x86-64 is verified, not {:?}", object.machine));
    }
    let id = object
        .section_named(sections::NOTE)
        .ok_or("it has no .note.twin")?;
    let note = &*object.section(id).data;
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(note.get(at..at + 4)?.try_into().ok()?))
    };
    // Elf64_Nhdr { namesz, descsz, type }, "twin\0" padded to 8, four words.
    let header = (word(0), word(4), word(8));
    let owner = note.get(12..20).unwrap_or(&[]);
    let kind = object.section(id).kind;
    if kind != SHT_NOTE
        || note.len() != 36
        || header != (Some(5), Some(16), Some(sections::NOTE_TYPE))
        || owner.strip_prefix(sections::NOTE_OWNER.as_bytes()) != Some(&[0, 0, 0, 0])
    {
        return Err("its .note.twin is not one note of type 1 by `twin`".into());
    }
    match (word(20), word(24), word(28), word(32)) {
        (Some(ABI_VERSION), Some(scheme), Some(64), Some(target)) => {
            let scheme =
                Scheme::from_number(scheme).ok_or(format!("its scheme {scheme} is unknown"))?;
            let target =
                Target::from_number(target).ok_or(format!("its target {target} is unknown"))?;
            Ok((scheme, target))
        }
        (Some(ABI_VERSION), _, Some(bits), _) => Err(format!("its word size is {bits} bits")),
        (version, ..) => Err(format!(
            "its ABI version is {}, this verifier knows {ABI_VERSION}",
            version.unwrap_or(0)
        )),
    }
}

enum Kind {
    Code,
    /// `.note.twin`, `.twin.codemap` or `.twin.map`.
    Table,
    Harmless,
}

fn judge_section(section: &Section<'_>) -> Result<Kind, &'static str> {
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
        sections::NOTE if flags & !SHF_ALLOC == 0 => Ok(Kind::Table),
        sections::CODEMAP if flags == SHF_ALLOC && kind == SHT_PROGBITS => Ok(Kind::Table),
        sections::MAP if flags == 0 && kind == SHT_PROGBITS => Ok(Kind::Table),
        sections::NOTE | sections::CODEMAP | sections::MAP => {
            Err("its type or flags are not those that the ABI gives it")
        }
        _ if flags == CODE && kind == SHT_PROGBITS => code_bytes(section),
        _ if section.is_code() => Err("code with other flags or without contents"),
        // Assemblers always make .data and .bss.
        _ if section.size == 0 && matches!(kind, SHT_PROGBITS | SHT_NOBITS) => Ok(Kind::Harmless),
        _ if flags & SHF_WRITE != 0 => Err("it is writable data"),
        _ if flags & SHF_ALLOC != 0 => Err("it is data that would be loaded"),
        ".comment" | ".note.GNU-stack" => Ok(Kind::Harmless),
        _ => Err("rewritten objects have no such section"),
    }
}

fn not_loaded(section: &Section<'_>) -> Result<Kind, &'static str> {
    match section.flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR) {
        0 => Ok(Kind::Harmless),
        _ => Err("a table of the object file that would be loaded"),
    }
}

fn code_bytes(section: &Section<'_>) -> Result<Kind, &'static str> {
    match section.data.len() as u64 == section.size && section.size <= i32::MAX as u64 {
        true => Ok(Kind::Code),
        false => Err("its bytes are not all there, or more than 2 GiB"),
    }
}

/// Names that kernels give to routines which jump to an address in a register:
/// a loader that resolved them would let the driver choose.
const THUNKS: [&str; 4] = [
    "__x86_indirect_thunk_",
    "__x86_indirect_call_thunk_",
    "__x86_indirect_jump_thunk_",
    "__x86_return_thunk",
];

fn judge_undefined(symbol: &Symbol<'_>, exported: &HashSet<&str>) -> Result<Meaning, &'static str> {
    let name = &*symbol.name;
    if name.is_empty() || !matches!(symbol.kind, STT_NOTYPE | STT_OBJECT | STT_FUNC) {
        return Err("an undefined symbol without a name");
    }
    if symbol.binding == STB_LOCAL {
        return Err("an undefined symbol cannot be local");
    }
    if exported.contains(name) {
        return Err("it is both defined and undefined");
    }
    if let Some(there) = name.strip_prefix(names::VM_PREFIX) {
        return if there.is_empty() {
            Err("it names nothing in dom0")
        } else {
            Ok(Meaning::Vm)
        };
    }
    if THUNKS.iter().any(|thunk| name.starts_with(thunk)) {
        return Ok(Meaning::Unusable("it transfers control to any address"));
    }
    let meaning = match name {
        names::STLB => Meaning::Table,
        names::CALL => Meaning::Routine(Routine::Indirect),
        names::WARN => Meaning::Routine(Routine::Keeps),
        names::BUG => Meaning::Routine(Routine::Bug),
        _ if names::PORT_IN.contains(&name) => Meaning::Routine(Routine::PortIn),
        _ if names::PORT_OUT.contains(&name) => Meaning::Routine(Routine::Keeps),
        _ => match name.strip_prefix(names::SLOW_PREFIX) {
            Some(register) => Meaning::Routine(Routine::Slow(slow_register(register)?)),
            None if name.starts_with(names::RUNTIME_PREFIX) => {
                return Err("the runtime has no such name");
            }
            None => Meaning::Routine(Routine::Imported),
        },
    };
    match symbol.binding {
        // gABI chapter 4: an unresolved weak symbol is zero.
        STB_WEAK => Ok(Meaning::Unusable("a weak symbol may stay unresolved: zero")),
        _ => Ok(meaning),
    }
}

/// The register of `twin_slow_<name>`.
pub fn slow_register(name: &str) -> Result<Reg, &'static str> {
    const ORDER: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let number = ORDER
        .iter()
        .position(|&n| n == name && names::SLOW_REGISTERS.contains(&n));
    number
        .map(|n| Reg(n as u8))
        .ok_or("there is no slow path for that register")
}
