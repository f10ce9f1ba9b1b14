//! The rewriter's and the verifier's cost for an object: a unit of code, with data that
//! refers to it, is repeated.
//!
//! Twice as many units may cost two and a half times as much, and a unit may take a
//! limited number of bytes of memory for each of its own bytes. Work is counted
//! ([`crate::counting`]), never timed.

use std::borrow::Cow;

use elf_loader::consts::{
    R_X86_64_64, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE,
    STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_NOTYPE, STT_SECTION,
};
use elf_loader::special::{FieldForm, FieldRole, SpecialKind};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use svm_rewrite::{Options, Scheme, Target};
use svm_verify::Contract;

use super::program;
use crate::counting::{Used, count};

/// What is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `je .+2`: a block of two bytes.
    Branch,
    /// A load through a register.
    Load,
    /// A load and a branch back to it.
    Loop,
    /// A conditional branch to the end.
    ToTheEnd,
    /// A function that calls the first one.
    Function,
    /// A function that reads a word far above its frame and calls the next one: each word is a
    /// word of all callers' frames, too.
    Above,
    /// A function that aligns its stack by 64: written eight times for `hypervisor`.
    Aligned,
    /// A call of the next instruction, and a return: every place is entered, and every
    /// return may belong to every call.
    Entered,
    /// A call of the next unit, the last of which loops for ever.
    Silent,
    /// A move of `rsp` from a frame pointer.
    FrameMove,
    /// A function in a section of its own, and a pointer to it in another.
    Section,
    /// A function with a name of its own.
    Name,
    /// A call of an undefined routine.
    Import,
    /// A relocation; all are of one word of data.
    Relocation,
    /// An instruction that is refused.
    Refused,
    /// `rep movsl`: the longest sequence for two bytes.
    RepeatedString,
    /// `movsb`: two checks for one byte.
    String,
    /// `xlat`.
    Lookup,
    /// An entry of one of the kernel's tables, about an instruction of its own.
    Entry(SpecialKind),
    /// The same, all about one instruction.
    SameEntry(SpecialKind),
    /// A runtime constant, with a table of its own that nobody reads.
    Constant,
    /// A jump by a table of distances of its own.
    Switch,
    /// A jump by a table of distances whose address the first unit puts into a register for all.
    SharedSwitch,
    /// Some code.
    Program(Vec<u8>),
}

/// Tables whose entries are tried.
const TABLES: [SpecialKind; 11] = [
    SpecialKind::McountLoc,
    SpecialKind::SmpLocks,
    SpecialKind::RetpolineSites,
    SpecialKind::ReturnSites,
    SpecialKind::BugTable,
    SpecialKind::JumpTable,
    SpecialKind::StaticCallSites,
    SpecialKind::AltInstructions,
    SpecialKind::ParaInstructions,
    SpecialKind::ExTable,
    SpecialKind::OrcUnwindIp,
];

/// `lea T(%rip),%rbx`
const TABLE_ADDRESS: [u8; 7] = [0x48, 0x8d, 0x1d, 0, 0, 0, 0];
/// `cmp $1,%edi; ja (behind); mov %edi,%eax; movslq (%rbx,%rax,4),%rcx; add %rbx,%rcx; jmp *%rcx`
const SWITCH: [u8; 16] = [
    0x83, 0xff, 1, 0x77, 11, 0x89, 0xf8, 0x48, 0x63, 0x0c, 0x83, 0x48, 1, 0xd9, 0xff, 0xe1,
];

impl Unit {
    /// Every kind except programs.
    pub fn all() -> Vec<Unit> {
        use Unit::*;
        let mut all = vec![
            Branch, Load, Loop, ToTheEnd, Function, Aligned, Entered, Silent, FrameMove, Section,
            Name, Import, Relocation, Refused, RepeatedString, String, Lookup,
        ];
        all.extend(TABLES.map(Entry));
        all.extend(TABLES.map(SameEntry));
        all.extend([Above, Constant, Switch, SharedSwitch]);
        all
    }

    /// The code of unit number `i` of `of`.
    fn code(&self, i: usize, of: usize) -> Vec<u8> {
        const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];
        match self {
            Unit::Branch => vec![0x74, 0x00],
            // movabs $0x0123456789abcdef,%rax
            Unit::Constant => {
                [&[0x48, 0xb8][..], &0x0123_4567_89ab_cdef_u64.to_le_bytes()].concat()
            }
            Unit::Load => vec![0x48, 0x8b, 0x47, 0x08],
            Unit::Loop => vec![0x48, 0x8b, 0x07, 0x74, 0xfb],
            Unit::ToTheEnd => {
                let behind = 6 * (of - i - 1) as i32;
                [&[0x0f, 0x84][..], &behind.to_le_bytes()].concat()
            }
            Unit::Function => {
                // sub $8,%rsp; call first; add $8,%rsp; ret
                let back = -(14 * i as i32 + 9);
                let call = [&[0x48, 0x83, 0xec, 8, 0xe8][..], &back.to_le_bytes()].concat();
                [&call[..], &[0x48, 0x83, 0xc4, 8, 0xc3]].concat()
            }
            Unit::Above => {
                // push %rbx; mov above(%rsp),%rax; call next; pop %rbx; ret
                let above = (16 + 24 * i as i32).to_le_bytes();
                let load = [&[0x53, 0x48, 0x8b, 0x84, 0x24][..], &above].concat();
                let next = if i + 1 == of {
                    NOP5
                } else {
                    [0xe8, 2, 0, 0, 0]
                };
                [&load[..], &next, &[0x5b, 0xc3]].concat()
            }
            Unit::Switch => [&TABLE_ADDRESS[..], &SWITCH].concat(),
            Unit::SharedSwitch if i == 0 => [&TABLE_ADDRESS[..], &SWITCH].concat(),
            Unit::SharedSwitch => SWITCH.to_vec(),
            // push %rbp; mov %rsp,%rbp; and $-64,%rsp; mov (%rdi),%rax; leave; ret
            Unit::Aligned => vec![
                0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x8b, 0x07, 0xc9, 0xc3,
            ],
            // call .+5; je .+3; ret
            Unit::Entered => vec![0xe8, 0, 0, 0, 0, 0x74, 0x01, 0xc3],
            Unit::Silent if i + 1 == of => vec![0xeb, 0xfe],
            // call .+6; ret
            Unit::Silent => vec![0xe8, 1, 0, 0, 0, 0xc3],
            // mov %rsp,%rbp; mov %rbp,%rsp
            Unit::FrameMove => vec![0x48, 0x89, 0xe5, 0x48, 0x89, 0xec],
            Unit::Section => vec![0x48, 0x8b, 0x07, 0xc3],
            Unit::Name | Unit::Relocation => vec![0x90],
            Unit::Import => vec![0xe8, 0, 0, 0, 0],
            Unit::Refused => vec![0x0f, 0x01, 0xc1],
            Unit::RepeatedString => vec![0xf3, 0xa5],
            Unit::String => vec![0xa4],
            Unit::Lookup => vec![0xd7],
            Unit::Entry(kind) => match kind {
                SpecialKind::ExTable => vec![0x48, 0x8b, 0x07],
                SpecialKind::BugTable => vec![0x0f, 0x0b],
                SpecialKind::SmpLocks => vec![0xf0, 0xff, 0x07],
                _ => NOP5.to_vec(),
            },
            Unit::SameEntry(_) => vec![0x48, 0x8b, 0x07],
            Unit::Program(code) => code.clone(),
        }
    }
}

/// A unit of the fuzzer's choice.
fn chosen(data: &[u8]) -> Option<(Unit, Target)> {
    let (&kind, rest) = data.split_first()?;
    let target = if kind & 1 == 0 {
        Target::Hypervisor
    } else {
        Target::Linux
    };
    let all = Unit::all();
    let unit = match all.get(usize::from(kind >> 1)) {
        Some(unit) => unit.clone(),
        None => Unit::Program(program(rest)),
    };
    Some((unit, target))
}

/// Most cost of twice as many units: two and a half times as much.
pub fn cost(data: &[u8]) {
    if let Some((unit, target)) = chosen(data) {
        grows(&unit, target, 200);
    }
}

/// Cost that does not depend on the size: tables of the decoders, hash tables' initial
/// sizes, the runtime that is linked in.
const ONCE: Used = Used {
    allocated: 4 << 20,
    peak: 3 << 20,
    steps: 2_000_000,
};

/// Most bytes of memory at a time for each byte of the file: an instruction of two
/// bytes that is a block takes most.
pub const MEMORY: u64 = 700;

/// Most bytes of memory besides for each instruction whose operands no field shows.
pub const STRING: u64 = 8 << 10;

/// Compares a number of units with twice as many. Gives both costs.
///
/// # Panics
/// If the cost grows faster than the object, or is more than [`MEMORY`] and [`STRING`] allow.
pub fn grows(unit: &Unit, target: Target, units: usize) -> [Used; 2] {
    let used = [units, 2 * units].map(|n| spent(&object(unit, n), target));
    let [(once, ..), (twice, length, strings)] = used;
    for (what, once, twice, free) in [
        (
            "bytes allocated", once.allocated, twice.allocated, ONCE.allocated,
        ),
        ("steps", once.steps, twice.steps, ONCE.steps),
    ] {
        let most = once.max(free) * 5 / 2;
        assert!(
            twice <= most,
            "{unit:?}, {target:?}, {units}: {what}: {once}, then {twice}"
        );
    }
    let most = ONCE.peak + MEMORY * length + STRING * strings;
    let peak = twice.peak;
    assert!(
        peak <= most,
        "{unit:?}, {target:?}: {peak} bytes for a file of {length}"
    );
    [once, twice]
}

/// String instructions and `xlat` in an object.
fn strings(object: &Object<'_>) -> u64 {
    let counted = |i: &Instruction| i.is_string_instruction() || i.mnemonic() == Mnemonic::Xlatb;
    let code = object.sections.iter().filter(|s| s.is_code());
    let decoded = code.flat_map(|s| Decoder::new(64, &s.data, DecoderOptions::NONE));
    decoded.filter(counted).count() as u64
}

/// Reads, rewrites, verifies, writes, with any result, for a hypervisor with checks and with
/// a window. Gives the file's length, too, and its [`strings`].
fn spent(object: &Object<'_>, target: Target) -> (Used, u64, u64) {
    let file = elf_loader::write(object).expect("an object can be written");
    let contract = Contract::of(match target {
        Target::Linux => twin_abi::Target::Linux,
        Target::Hypervisor | Target::Process => twin_abi::Target::Hypervisor,
    });
    let schemes: &[Scheme] = match target {
        Target::Hypervisor => &[Scheme::Stlb, Scheme::Window32],
        Target::Linux | Target::Process => &[Scheme::Stlb],
    };
    let in_scheme = |scheme| {
        let Ok(object) = elf_loader::read(&file) else {
            return;
        };
        let options = Options::of(target, scheme);
        let Ok(rewritten) = svm_rewrite::rewrite(&object, options) else {
            return;
        };
        let Ok(bytes) = elf_loader::write(&rewritten.object) else {
            return;
        };
        drop(rewritten);
        let reread = elf_loader::read(&bytes).expect("what was written can be read");
        let _ = svm_verify::verify(&reread, contract);
    };
    let ((), used) = count(|| schemes.iter().copied().for_each(in_scheme));
    (used, file.len() as u64, strings(object))
}

const TEXT: SectionId = SectionId(1);
const DATA: SectionId = SectionId(2);
const REPLACEMENTS: SectionId = SectionId(3);
const TABLES_OF_DISTANCES: SectionId = SectionId(4);
/// Symbols of these sections, in order.
const TEXT_START: SymbolId = SymbolId(1);
const DATA_START: SymbolId = SymbolId(2);
const REPLACEMENTS_START: SymbolId = SymbolId(3);
const TABLES_START: SymbolId = SymbolId(4);

/// An object of that many units.
pub fn object(unit: &Unit, units: usize) -> Object<'static> {
    let mut object = Object::new();
    let code = SHF_ALLOC | SHF_EXECINSTR;
    let data = SHF_ALLOC | SHF_WRITE;
    let section = |name: &'static str, flags| Section::with_data(name, flags, 16, Vec::new());
    object.sections.push(section(".text", code));
    object.sections.push(section(".data", data));
    object.sections.push(section(".altinstr_replacement", code));
    object.sections.push(section(".rodata", SHF_ALLOC));
    for id in [TEXT, DATA, REPLACEMENTS, TABLES_OF_DISTANCES] {
        object
            .symbols
            .push(symbol("", STB_LOCAL, STT_SECTION, Place::In(id), 0));
    }
    append(&mut object, DATA, &[0; 16]);
    for i in 0..units {
        let code = unit.code(i, units);
        let at = match unit {
            Unit::Section => continue,
            _ => append(&mut object, TEXT, &code),
        };
        match unit {
            Unit::Function | Unit::Above | Unit::Aligned => {
                let name = format!("f{i}");
                let mut s = symbol(&name, STB_GLOBAL, STT_FUNC, Place::In(TEXT), at);
                s.size = code.len() as u64;
                object.symbols.push(s);
            }
            Unit::Name => {
                let s = symbol(&format!("n{i}"), STB_LOCAL, STT_NOTYPE, Place::In(TEXT), at);
                object.symbols.push(s);
            }
            Unit::Import => {
                let id = SymbolId(object.symbols.len() as u32);
                let s = symbol(
                    &format!("i{i}"),
                    STB_GLOBAL,
                    STT_NOTYPE,
                    Place::Undefined,
                    0,
                );
                object.symbols.push(s);
                refer(&mut object, TEXT, at + 1, R_X86_64_PLT32, id, -4);
            }
            Unit::Relocation => refer(&mut object, DATA, 0, R_X86_64_64, TEXT_START, 0),
            Unit::Constant => constant(&mut object, i, at + 2),
            Unit::Switch => distances(&mut object, at),
            Unit::SharedSwitch if i == 0 => distances(&mut object, at),
            Unit::Entry(kind) => entry(&mut object, *kind, at, at),
            Unit::SameEntry(kind) => entry(&mut object, *kind, 0, at),
            _ => {}
        }
    }
    if *unit == Unit::Section {
        (0..units).for_each(|i| own_sections(&mut object, i, &unit.code(i, units)));
    }
    append(&mut object, TEXT, &[0xc3]);
    let mut whole = symbol("f", STB_GLOBAL, STT_FUNC, Place::In(TEXT), 0);
    if !matches!(unit, Unit::Function | Unit::Aligned) {
        whole.size = object.section(TEXT).size;
        object.symbols.push(whole);
    }
    object
}

fn symbol(name: &str, binding: u8, kind: u8, place: Place, value: u64) -> Symbol<'static> {
    Symbol {
        name: Cow::Owned(name.to_owned()),
        binding,
        kind,
        other: 0,
        place,
        value,
        size: 0,
    }
}

/// Appends bytes to a section; gives where they begin.
fn append(object: &mut Object<'static>, id: SectionId, bytes: &[u8]) -> u64 {
    let section = &mut object.sections[id.0 as usize];
    let at = section.size;
    section.data.to_mut().extend_from_slice(bytes);
    section.size += bytes.len() as u64;
    at
}

fn refer(
    object: &mut Object<'static>,
    from: SectionId,
    offset: u64,
    kind: u32,
    symbol: SymbolId,
    addend: i64,
) {
    object.sections[from.0 as usize]
        .relocations
        .push(Relocation {
            offset,
            kind,
            symbol,
            addend,
        });
}

/// A function in a section of its own, and a pointer to it in another.
fn own_sections(object: &mut Object<'static>, i: usize, code: &[u8]) {
    let text = SectionId(object.sections.len() as u32);
    let flags = SHF_ALLOC | SHF_EXECINSTR;
    let code = code.to_vec();
    let size = code.len() as u64;
    object
        .sections
        .push(Section::with_data(format!(".text.{i}"), flags, 1, code));
    let data = SectionId(object.sections.len() as u32);
    let flags = SHF_ALLOC | SHF_WRITE;
    object.sections.push(Section::with_data(
        format!(".data.{i}"),
        flags,
        8,
        vec![0; 8],
    ));
    let id = SymbolId(object.symbols.len() as u32);
    let mut s = symbol(&format!("f{i}"), STB_GLOBAL, STT_FUNC, Place::In(text), 0);
    s.size = size;
    object.symbols.push(s);
    refer(object, data, 0, R_X86_64_64, id, 0);
}

/// A table with the place of one immediate.
fn constant(object: &mut Object<'static>, i: usize, immediate: u64) {
    let table = SectionId(object.sections.len() as u32);
    let name = format!("runtime_ptr_{i}");
    object
        .sections
        .push(Section::with_data(name, SHF_ALLOC, 4, vec![0; 4]));
    let addend = immediate as i64;
    refer(object, table, 0, R_X86_64_PC32, TEXT_START, addend);
}

/// A table of two distances to the place behind a switch, and the relocation of its address in code.
fn distances(object: &mut Object<'static>, switch: u64) {
    let behind = switch + (TABLE_ADDRESS.len() + SWITCH.len()) as u64;
    let table = append(object, TABLES_OF_DISTANCES, &[0; 8]);
    let address = switch + TABLE_ADDRESS.len() as u64 - 4;
    refer(
        object,
        TEXT,
        address,
        R_X86_64_PC32,
        TABLES_START,
        table as i64 - 4,
    );
    for word in [0, 4] {
        let addend = (behind + word) as i64;
        let at = table + word;
        refer(
            object,
            TABLES_OF_DISTANCES,
            at,
            R_X86_64_PC32,
            TEXT_START,
            addend,
        );
    }
}

/// An entry of a table about the instruction at `site`, leading to the one at `target`.
fn entry(object: &mut Object<'static>, kind: SpecialKind, site: u64, target: u64) {
    let table = match object.section_named(kind.name()) {
        Some(id) => id,
        None => {
            let section = Section::with_data(kind.name(), SHF_ALLOC | SHF_WRITE, 8, Vec::new());
            object.sections.push(section);
            SectionId(object.sections.len() as u32 - 1)
        }
    };
    let layout = kind.layouts()[0];
    let mut bytes = vec![0; layout.size as usize];
    match kind {
        // A site and a replacement of five bytes; of a paravirtual call, five bytes.
        SpecialKind::AltInstructions => bytes[10..12].copy_from_slice(&[5, 5]),
        SpecialKind::ParaInstructions => bytes[9] = 5,
        _ => {}
    }
    let at = append(object, table, &bytes);
    for field in layout.fields {
        let form = match field.form {
            FieldForm::Relative32 => R_X86_64_PC32,
            FieldForm::RelativeWord => R_X86_64_PC64,
            FieldForm::AbsoluteWord => R_X86_64_64,
        };
        let (to, addend) = match field.role {
            FieldRole::Key | FieldRole::File | FieldRole::Format | FieldRole::Handler => {
                (DATA_START, 0)
            }
            FieldRole::Target | FieldRole::Fixup => (TEXT_START, target),
            FieldRole::Replacement => {
                let new = append(object, REPLACEMENTS, &[0x0f, 0x1f, 0x44, 0, 0]);
                (REPLACEMENTS_START, new)
            }
            FieldRole::Site | FieldRole::Function | FieldRole::RangeStart | FieldRole::Padding => {
                (TEXT_START, site)
            }
        };
        refer(object, table, at + field.offset, form, to, addend as i64);
    }
    if kind == SpecialKind::OrcUnwindIp {
        // Its entries belong to it, and begin inside an instruction that stays.
        let name = SpecialKind::OrcUnwind.name();
        let id = object.section_named(name).unwrap_or_else(|| {
            object
                .sections
                .push(Section::with_data(name, SHF_ALLOC, 8, Vec::new()));
            SectionId(object.sections.len() as u32 - 1)
        });
        append(object, id, &[8, 0, 0, 0, 5, 0]);
    }
}
