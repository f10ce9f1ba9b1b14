//! Objects for `--target linux`: whatever refers to code or to the runtime, but
//! for the kernel's own tables, which [`crate::patches`] reads.
//!
//! Who has the address of a function may call it, so a reference to one makes it
//! an entry. Data may refer to nothing else in code; an operand may refer to any
//! instruction's start, for the kernel has such addresses put into registers
//! (`lea 1f(%rip), %rdi`).

use std::collections::HashSet;

use elf_loader::consts::{R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC};
use elf_loader::special::{self, SpecialKind};
use elf_loader::{Relocation, Role, Section, SectionId};

use crate::insn::{Access, Insn, Op, Origin};
use crate::linux::RUNTIME;
use crate::object::{CodeAt, Image, Meaning, Routine};
use crate::program::Program;
use crate::report::Report;
use crate::violation::Code;

/// Farthest place behind the start of a kernel's symbol that may be named, in
/// bytes: how large it is, this object does not say.
const KERNEL_SYMBOL: i64 = 1 << 20;

/// Why an operand may not have the address of a place in code.
const NO_START: (Code, &str) = (
    Code::Target,
    "the address of code that is no instruction's start",
);

/// Judges all references. Gives the functions that are referred to: each is an
/// entry.
pub fn check<'o>(image: &Image<'o>, program: &Program, report: &mut Report<'o>) -> Vec<CodeAt> {
    let mut references = References {
        image,
        program,
        report,
        functions: image.globals.iter().chain(&image.locals).copied().collect(),
        taken: Vec::new(),
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
    references.taken
}

/// Whether the references in a section are judged here.
fn is_judged(section: &Section<'_>) -> bool {
    let runtime = RUNTIME.contains(&&*section.name);
    // What debuggers read is not loaded, and nobody goes by it.
    let debug = section.flags & SHF_ALLOC == 0 && section.name.starts_with(".debug_");
    // Replacements are code like any other; the other special sections are tables.
    let table = special::kind_of(&section.name)
        .is_some_and(|kind| kind != SpecialKind::AltInstrReplacement);
    section.role == Role::Contents && !runtime && !debug && !table
}

struct References<'a, 'o> {
    image: &'a Image<'o>,
    program: &'a Program,
    report: &'a mut Report<'o>,
    /// Starts of functions.
    functions: HashSet<CodeAt>,
    /// Those of them that were referred to.
    taken: Vec<CodeAt>,
}

impl<'o> References<'_, 'o> {
    /// The address of a place in code is taken by an instruction. False if no
    /// instruction starts at that place.
    fn take(&mut self, at: CodeAt) -> bool {
        if self.functions.contains(&at) {
            self.taken.push(at);
        }
        self.program.at(at).is_some()
    }

    /// References from a section that is not code.
    fn data(&mut self, id: SectionId, section: &Section<'o>) {
        let loaded = section.flags & SHF_ALLOC != 0;
        for r in &section.relocations {
            let (code, reason) = match self.image.meaning(r.symbol) {
                Meaning::Code(_) if !loaded => {
                    (Code::Metadata, "an unknown section that refers to code")
                }
                Meaning::Code(at) => {
                    let at = moved(at, r.addend);
                    if self.functions.contains(&at) {
                        self.taken.push(at);
                        continue;
                    }
                    let reason = "data refers to code that is not the start of a function";
                    (Code::Target, reason)
                }
                Meaning::Table | Meaning::Routine(Routine::Slow(_)) => {
                    (Code::Runtime, "data refers to the runtime")
                }
                Meaning::Unusable(reason) if loaded => (Code::Relocation, reason),
                _ => continue,
            };
            self.report.at(id, r.offset, code, reason);
        }
    }

    /// References from relocated operands of a code section; those of branches
    /// are judged with the branches.
    fn relocated_operands(&mut self, number: u16) {
        let (image, program) = (self.image, self.program);
        let mut last = None;
        for r in &image.section(number).relocations {
            let here = CodeAt {
                section: number,
                offset: r.offset as i64,
            };
            let Some(n) = program.around(here) else {
                continue;
            };
            // Of two in one instruction, the first is the memory operand's: the
            // displacement stands before the immediate.
            let first = last.replace(n) != Some(n);
            let insn = &program.insns[n as usize];
            if matches!(insn.op, Op::Call(_) | Op::Jump(_) | Op::Branch(..)) {
                continue;
            }
            let accessed =
                first && insn.memory.access != Access::None && insn.memory.origin == Origin::Symbol;
            if let Some((code, reason)) = self.operand(r, insn, accessed) {
                let id = image.code[usize::from(number)];
                self.report.at(id, u64::from(insn.at), code, reason);
            }
        }
    }

    /// What is wrong with an operand's reference. `accessed`: the instruction
    /// reaches the memory there, and does not only take its address.
    fn operand(
        &mut self,
        r: &Relocation,
        insn: &Insn,
        accessed: bool,
    ) -> Option<(Code, &'static str)> {
        // S + A - P counts from the field; the operand from the instruction's end.
        let end = i64::from(insn.at) + i64::from(insn.len);
        let relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
        let bias = if relative { end - r.offset as i64 } else { 0 };
        let distance = r.addend.wrapping_add(bias);
        let size = i64::from(insn.memory.size);
        match self.image.meaning(r.symbol) {
            Meaning::Code(at) => match self.take(moved(at, distance)) {
                _ if accessed => Some((Code::AddressForm, "it reaches code as data")),
                false => Some(NO_START),
                true => None,
            },
            Meaning::Data(data, at) if accessed => {
                let start = at.wrapping_add(distance);
                let section = self.image.object.section(data);
                let inside = start >= 0 && start + size <= section.size as i64;
                (!inside).then_some((Code::AddressForm, "a place outside the symbol's section"))
            }
            Meaning::Routine(_) if accessed => {
                let inside = (0..KERNEL_SYMBOL).contains(&distance);
                (!inside).then_some((Code::AddressForm, "a place far from the symbol"))
            }
            _ => None,
        }
    }

    /// `lea` of a place in its own section, whose distance the assembler knows
    /// and writes without a relocation.
    fn computed_addresses(&mut self, number: u16) {
        let (image, program) = (self.image, self.program);
        for insn in program.insns.iter().filter(|i| i.section == number) {
            if insn.relocated || !matches!(insn.op, Op::Lea { .. }) {
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
            if !self.take(at) {
                let ((code, reason), id) = (NO_START, image.code[usize::from(number)]);
                self.report.at(id, u64::from(insn.at), code, reason);
            }
        }
    }
}

/// So many bytes further. What wraps is at no instruction.
fn moved(at: CodeAt, by: i64) -> CodeAt {
    CodeAt {
        offset: at.offset.wrapping_add(by),
        ..at
    }
}

/// The displacement of `lea disp(%rip), %reg`: opcode, ModRM with mod 0 and rm 5,
/// four bytes (SDM volume 2, tables 2-2 and 2-7).
fn relative_lea(bytes: &[u8]) -> Option<i32> {
    let (head, displacement) = bytes.split_last_chunk::<4>()?;
    let [.., 0x8d, modrm] = head else {
        return None;
    };
    (modrm & 0xc7 == 0x05).then_some(i32::from_le_bytes(*displacement))
}
