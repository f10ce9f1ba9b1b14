//! Objects for `--target linux`: references to code and to the runtime, except those in
//! the kernel's own tables, which [`crate::kernel`] reads.
//!
//! Code that has the address of a function may call it, so a reference to a function
//! makes it an entry. Data may refer to nothing else in code. An operand may refer to the
//! start of any instruction, because kernel code puts these addresses into registers
//! (`lea 1f(%rip), %rdi`); but no call through a register with such an address is allowed
//! (`crate::domain::Address`).

use std::collections::HashSet;

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32,
    SHF_ALLOC, SHF_WRITE,
};
use elf_loader::special::{self, SpecialKind};
use elf_loader::{Place, Relocation, Role, Section, SectionId};

use super::exports;
use crate::domain::bounds;
use crate::findings::{Findings, ViolationCode};
use crate::insn::{Access, CodeAt, Disassembly, Insn, Op, Origin, Routine};
use crate::object::loaded::{is_gone, is_per_cpu, is_reachable};
use crate::object::module::{RUNTIME, THIS_MODULE, called_by_name, is_freed};
use crate::object::{Image, Meaning};

/// Farthest place after the start of a kernel's symbol that may be named, in bytes: the
/// object does not have the symbol's size.
pub const KERNEL_SYMBOL: i64 = 1 << 20;

/// Why an operand may not have the address of a place in code.
const NO_START: (ViolationCode, &str) = (
    ViolationCode::Target,
    "the address of code that is no instruction's start",
);

/// The places that are referred to.
pub struct Found {
    /// Functions: each is an entry.
    pub functions: Vec<CodeAt>,
    /// Instructions that yield the address of other code, or a number that is counted from an address.
    pub labels: HashSet<u32>,
    /// Those that yield the address of a symbol.
    pub names: HashSet<u32>,
}

/// Judges all references.
pub fn check<'o>(
    image: &Image<'o>,
    disassembly: &Disassembly,
    findings: &mut Findings<'o>,
) -> Found {
    let mut references = References {
        image,
        disassembly,
        findings,
        functions: image.entered.iter().copied().collect(),
        warnings: warnings(image),
        found: Found {
            functions: Vec::new(),
            labels: HashSet::new(),
            names: HashSet::new(),
        },
    };
    for (id, section) in image.object.sections() {
        if !is_judged(section) {
            continue;
        }
        match image.number(id) {
            Some(number) => {
                references.relocated_operands(number);
                references.computed_addresses(number);
            }
            None => references.data(id, section),
        }
    }
    references.found
}

/// The entries of warnings with arguments. A table that cannot be read is reported elsewhere.
fn warnings(image: &Image<'_>) -> HashSet<(SectionId, i64)> {
    let tables = image.object.sections();
    let bugs = tables.filter(|(_, s)| special::kind_of(&s.name) == Some(SpecialKind::BugTable));
    let entries = bugs.flat_map(|(id, _)| {
        let entries = special::entries(image.object, id).unwrap_or_default();
        entries.into_iter().map(move |entry| (id, entry))
    });
    let with = entries.filter(|(_, entry)| entry.has_arguments());
    with.map(|(id, entry)| (id, entry.offset as i64)).collect()
}

/// Whether the references in a section are judged here.
fn is_judged(section: &Section<'_>) -> bool {
    let runtime = RUNTIME.contains(&&*section.name);
    // Debug sections are not loaded, and not used at run time.
    let debug = section.flags & SHF_ALLOC == 0 && section.name.starts_with(".debug_");
    // Replacements are code like any other; the other special sections are tables.
    let table = special::kind_of(&section.name)
        .is_some_and(|kind| kind != SpecialKind::AltInstrReplacement);
    section.role == Role::Contents && !runtime && !debug && !table
}

struct References<'a, 'o> {
    image: &'a Image<'o>,
    disassembly: &'a Disassembly,
    findings: &'a mut Findings<'o>,
    /// Starts of functions.
    functions: HashSet<CodeAt>,
    /// Entries of warnings with arguments.
    warnings: HashSet<(SectionId, i64)>,
    found: Found,
}

impl<'o> References<'_, 'o> {
    /// The address of a place in code is taken by instruction `n`. False if no
    /// instruction starts at that place.
    fn take(&mut self, n: u32, at: CodeAt) -> bool {
        match self.functions.contains(&at) {
            true => {
                self.found.functions.push(at);
                self.name(n);
            }
            false => _ = self.found.labels.insert(n),
        }
        self.disassembly.at(at).is_some()
    }

    /// The address of a symbol is taken by instruction `n`: as it is, or to count from.
    fn name(&mut self, n: u32) {
        let insn = &self.disassembly.insns[n as usize];
        let alone = match insn.op {
            Op::Constant { .. } | Op::Lea { .. } => insn.moves,
            _ => false,
        };
        match alone {
            true => self.found.names.insert(n),
            false => self.found.labels.insert(n),
        };
    }

    /// References from a section that is not code.
    fn data(&mut self, id: SectionId, section: &Section<'o>) {
        let loaded = section.flags & SHF_ALLOC != 0;
        if exports::is_table(section)
            && let Err((at, reason)) = exports::judge(self.image.object, section)
        {
            self.findings.at(id, at, ViolationCode::Metadata, reason);
        }
        for r in &section.relocations {
            let (code, reason) = match self.image.meaning(r.symbol) {
                Meaning::Code(_) if !loaded => (
                    ViolationCode::Metadata,
                    "an unknown section that refers to code",
                ),
                Meaning::Code(at) => {
                    let at = moved(at, r.addend);
                    // A symbol alone makes no function: an instruction has to start there.
                    if self.functions.contains(&at) && self.disassembly.at(at).is_some() {
                        self.found.functions.push(at);
                        continue;
                    }
                    let reason = "data refers to code that is not the start of a function";
                    (ViolationCode::Target, reason)
                }
                Meaning::Table | Meaning::Routine(Routine::Slow(_)) => {
                    (ViolationCode::Runtime, "data refers to the runtime")
                }
                Meaning::Routine(routine) => match called_by_name(routine) {
                    Some(reason) if loaded => (ViolationCode::Callee, reason),
                    _ if exports::is_table(section) && r.addend != 0 => {
                        let reason = "it exports a place behind the start of a routine, where others would enter it";
                        (ViolationCode::Target, reason)
                    }
                    _ => continue,
                },
                Meaning::Unusable(_) if self.is_checksum(section, r) => continue,
                Meaning::Unusable(reason) if loaded => (ViolationCode::Relocation, reason),
                Meaning::Data(to, _) if loaded && self.is_table(to) => (
                    ViolationCode::Metadata,
                    "data refers to a table of the kernel's",
                ),
                Meaning::Data(to, at) if loaded && self.leaves(section, r, to, at) => {
                    let reason = "data refers to a place outside its symbol's section, where code may be; name a symbol of the section that is meant";
                    (ViolationCode::Target, reason)
                }
                _ => continue,
            };
            self.findings.at(id, r.offset, code, reason);
        }
    }

    /// Whether an address in data is outside the section of its symbol. Up to Linux 6.3 the
    /// kernel puts code and data one behind the other (`layout_sections`,
    /// kernel/module/main.c), so it may be one of code, of any byte. Where the field has a
    /// distance, only an exported symbol's is surely one from the field itself: another may
    /// be one from the start of a table.
    fn leaves(&self, section: &Section<'_>, r: &Relocation, to: SectionId, at: i64) -> bool {
        let address = matches!(r.kind, R_X86_64_64 | R_X86_64_32 | R_X86_64_32S);
        let place = at.wrapping_add(r.addend);
        (address || exports::is_table(section)) && !self.is_in(to, place)
    }

    /// Whether a place is in a section, or its end.
    fn is_in(&self, id: SectionId, place: i64) -> bool {
        bounds::in_section(place, 0, self.image.object.section(id).size as i64)
    }

    /// References from relocated operands of a code section; those of branches
    /// are judged with the branches.
    fn relocated_operands(&mut self, number: u16) {
        let (image, disassembly) = (self.image, self.disassembly);
        let mut last = None;
        for r in &image.section(number).relocations {
            let here = CodeAt {
                section: number,
                offset: r.offset as i64,
            };
            let Some(n) = disassembly.around(here) else {
                continue;
            };
            // Of two in one instruction, the first is the memory operand's: the
            // displacement stands before the immediate.
            let first = last.replace(n) != Some(n);
            let insn = &disassembly.insns[n as usize];
            if matches!(insn.op, Op::Call(_) | Op::Jump(_) | Op::Branch(..)) {
                continue;
            }
            if r.kind == R_X86_64_PC64 {
                // A distance from the field, which is small.
                self.found.labels.insert(n);
            }
            let reached = first && names_memory(insn);
            if let Some((code, reason)) = self.operand(r, n, insn, reached) {
                let id = image.code[usize::from(number)];
                self.findings.at(id, u64::from(insn.at), code, reason);
            }
        }
    }

    /// What is wrong with an operand's reference. `reached`: the instruction reaches the memory
    /// there, or that of each CPU, and does not only compute with the address.
    fn operand(
        &mut self,
        r: &Relocation,
        n: u32,
        insn: &Insn,
        reached: bool,
    ) -> Option<(ViolationCode, &'static str)> {
        let accessed = reached && insn.memory.origin == Origin::Symbol;
        // S + A - P is relative to the field; the operand to the instruction's end.
        let end = i64::from(insn.at) + i64::from(insn.len);
        let relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
        let bias = if relative { end - r.offset as i64 } else { 0 };
        let distance = r.addend.wrapping_add(bias);
        let size = i64::from(insn.memory.size);
        if let Some(code) = self.outlives(insn, r) {
            let reason = "code that stays names what is in .init, whose memory others have later";
            return Some((code, reason));
        }
        match self.image.meaning(r.symbol) {
            Meaning::Code(at) => match self.take(n, moved(at, distance)) {
                _ if accessed => Some((ViolationCode::AddressForm, "it reaches code as data")),
                false => Some(NO_START),
                true => None,
            },
            Meaning::Data(data, at) if accessed => {
                let section = self.image.object.section(data);
                let writes = insn.memory.access == Access::Write;
                let reason = is_inside(section, at.wrapping_add(distance), size, writes).err();
                reason.map(|reason| (ViolationCode::AddressForm, reason))
            }
            Meaning::Data(data, _) if is_gone(self.image.object.section(data)) => Some((
                ViolationCode::AddressForm,
                "the address of what is not loaded, where others are when the module runs",
            )),
            Meaning::Data(data, at) if self.warns(data, at.wrapping_add(distance)) => None,
            Meaning::Data(data, _) if self.is_table(data) => Some((
                ViolationCode::Metadata,
                "the address of a table of the kernel's",
            )),
            // As a number it is good, also to count from, as of an array whose index does not begin
            // at zero. But it may be the address of any byte of code.
            Meaning::Data(data, at) if !reached && !self.is_in(data, at.wrapping_add(distance)) => {
                self.found.labels.insert(n);
                None
            }
            // Up to Linux 6.14 a small number, to which the start of a CPU's data is added.
            Meaning::Data(data, _) if !reached && is_per_cpu(self.image.object.section(data)) => {
                self.found.labels.insert(n);
                None
            }
            Meaning::Routine(_) if accessed => {
                let inside = (0..KERNEL_SYMBOL).contains(&distance);
                (!inside).then_some((ViolationCode::AddressForm, "a place far from the symbol"))
            }
            // A part of a variable, or a place in a routine.
            Meaning::Routine(_) if !reached && distance != 0 => {
                self.found.labels.insert(n);
                None
            }
            Meaning::Data(..) | Meaning::Routine(_) if !reached => {
                self.name(n);
                None
            }
            _ => None,
        }
    }

    /// The rule that an operand breaks which names what is freed before its instruction is.
    fn outlives(&self, insn: &Insn, r: &Relocation) -> Option<ViolationCode> {
        let Place::In(to) = self.image.object.symbol(r.symbol).place else {
            return None;
        };
        let stays = !is_freed(self.image.section(insn.section));
        let code = match self.image.meaning(r.symbol) {
            Meaning::Code(_) => ViolationCode::Target,
            _ => ViolationCode::AddressForm,
        };
        (stays && is_freed(self.image.object.section(to))).then_some(code)
    }

    /// Whether a field is the checksum of an exported symbol (`__CRC_SYMBOL`,
    /// include/linux/export.h of Linux 5.10): the value of an absolute symbol, which the kernel
    /// compares and nothing else.
    fn is_checksum(&self, section: &Section<'_>, r: &Relocation) -> bool {
        let symbol = self.image.object.symbol(r.symbol);
        let table = ["__kcrctab", "__kcrctab_gpl"].contains(&&*section.name);
        table && symbol.place == Place::Absolute && symbol.name.starts_with("__crc_")
    }

    /// Whether a place is the entry of a WARN with arguments, whose code passes the entry's
    /// address to the kernel (`__WARN_bug_entry`, arch/x86/include/asm/bug.h of Linux 7.x).
    fn warns(&self, id: SectionId, at: i64) -> bool {
        self.warnings.contains(&(id, at))
    }

    fn is_table(&self, id: SectionId) -> bool {
        special::kind_of(&self.image.object.section(id).name).is_some()
    }

    /// `lea` of a place in its own section: the assembler computes the distance and
    /// writes no relocation.
    fn computed_addresses(&mut self, number: u16) {
        let (image, disassembly) = (self.image, self.disassembly);
        for (n, insn) in disassembly.of_section(number) {
            // Of 16 bits it is not followed as an address, but yields the low bytes of one.
            if insn.relocated || !matches!(insn.op, Op::Lea { .. } | Op::Plain) {
                continue;
            }
            let Some(displacement) = image.bytes(insn).and_then(relative_lea) else {
                continue;
            };
            let end = i64::from(insn.at) + i64::from(insn.len);
            let at = CodeAt {
                section: number,
                offset: end + i64::from(displacement),
            };
            if !self.take(n, at) {
                let ((code, reason), id) = (NO_START, image.code[usize::from(number)]);
                self.findings.at(id, u64::from(insn.at), code, reason);
            }
        }
    }
}

/// Whether an instruction reaches memory by a name. What is loaded is not followed: a per-CPU
/// variable's displacement is none of a result. By registers alone there is no name: that of
/// `imul $x, (%rsp), %rax` is a number.
fn names_memory(insn: &Insn) -> bool {
    insn.memory.access != Access::None && insn.memory.origin != Origin::Registers
}

/// Whether `size` bytes at `start` are in a section that may be reached so.
fn is_inside(
    section: &Section<'_>,
    start: i64,
    size: i64,
    writes: bool,
) -> Result<(), &'static str> {
    is_reachable(section)?;
    // No section has 2 GiB (`elf_loader::MAX_SECTION_SIZE`).
    if !bounds::in_section(start, size, section.size as i64) {
        return Err("a place outside the symbol's section");
    }
    match writes {
        true if section.name == THIS_MODULE => Err(
            "it writes the kernel's record of the module, which says where the kernel's tables are",
        ),
        true if section.flags & SHF_WRITE == 0 => Err("it writes what is read-only"),
        _ => Ok(()),
    }
}

/// The place `by` bytes further, as the kernel computes with 64 bits. No instruction is
/// at a place that is negative or beyond the section.
fn moved(at: CodeAt, by: i64) -> CodeAt {
    CodeAt {
        offset: at.offset.wrapping_add(by),
        ..at
    }
}

/// The displacement of `lea disp(%rip), %reg`: prefixes, opcode, ModRM with mod 0 and rm 5,
/// four bytes (SDM volume 2, 2.1 and tables 2-2 and 2-7).
pub fn relative_lea(bytes: &[u8]) -> Option<i32> {
    let (head, displacement) = bytes.split_last_chunk::<4>()?;
    let [prefixes @ .., 0x8d, modrm] = head else {
        return None;
    };
    let is_prefix =
        |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3);
    let is_lea = prefixes.iter().all(is_prefix) && modrm & 0xc7 == 0x05;
    is_lea.then_some(i32::from_le_bytes(*displacement))
}
