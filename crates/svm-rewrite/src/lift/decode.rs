//! Decodes bytes to instructions and resolves direct branches.

use std::collections::HashSet;

use elf_loader::consts::{R_X86_64_NONE, SHF_COMPRESSED, SHF_WRITE};
use elf_loader::{Place, Relocation, SectionId, SymbolId};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::relocation::{Tie, tie};
use super::starts::Starts;
use super::{
    CodeIdx, CodeSection, Destination, Inst, InstIdx, Lifter, MOST_INSTRUCTIONS, MOST_STRINGS,
    RelocatedValue, ValueIdx, is_direct_branch,
};
use crate::refusal::RefusalCode;

/// Marks a call for the linker, fills nothing (psABI, table 4.9).
pub const R_X86_64_TLSDESC_CALL: u32 = 35;

/// A direct branch whose destination is known but not yet an instruction.
pub struct PendingBranch {
    from: InstIdx,
    place: PendingPlace,
}

enum PendingPlace {
    Code(SectionId, u64),
    Symbol(SymbolId),
    Hypercall(SymbolId, u16),
}

impl Lifter<'_> {
    /// Decodes every code section.
    pub fn decode_all(&mut self) {
        let object = self.lifted.object;
        self.make_room();
        let mut names = HashSet::new();
        for (id, section) in object.sections().filter(|(_, s)| s.is_code()) {
            let reason = if section.flags & SHF_WRITE != 0 {
                "the section is writable and executable"
            } else if section.flags & SHF_COMPRESSED != 0 {
                // gABI chapter 4: for sections that are not loaded.
                "the section says that it is compressed, which code cannot be"
            } else if !names.insert(section.name.clone()) {
                "another code section has the same name"
            } else {
                self.decode_section(id);
                continue;
            };
            self.refuse(RefusalCode::CodeSection, id, 0, reason);
        }
    }

    /// Makes room for what all sections have, at once: what is moved when there is too little is
    /// all that was decoded.
    fn make_room(&mut self) {
        let sections = self.lifted.object.sections().map(|(_, section)| section);
        let code = sections.filter(|section| section.is_code());
        let (bytes, relocations) = code.fold((0, 0), |(bytes, relocations), section| {
            (
                bytes + section.data.len(),
                relocations + section.relocations.len(),
            )
        });
        // An instruction is about 4 bytes long, and each fourth a branch.
        let room = (bytes / 4).min(MOST_INSTRUCTIONS);
        self.lifted.insts.reserve(room);
        self.lifted.transfers.reserve(room / 4);
        self.pending.reserve(room / 4);
        self.lifted.relocated_values.reserve(relocations);
    }

    fn decode_section(&mut self, id: SectionId) {
        let section = self.lifted.object.section(id);
        let index = CodeIdx(self.lifted.sections.len() as u16);
        let first = self.lifted.insts.len() as u32;
        let mut starts = Starts::new(section.data.len());
        let mut relocations = section
            .relocations
            .iter()
            .filter(|r| !matches!(r.kind, R_X86_64_NONE | R_X86_64_TLSDESC_CALL))
            .peekable();
        let mut decoder = Decoder::with_ip(64, &section.data, 0, DecoderOptions::NONE);
        while decoder.can_decode() {
            if self.lifted.insts.len() == MOST_INSTRUCTIONS {
                let reason = format!("more than {MOST_INSTRUCTIONS} instructions");
                self.refuse(RefusalCode::TooMany, id, decoder.ip(), reason);
                break;
            }
            let iced = decoder.decode();
            if iced.is_invalid() {
                self.refuse(
                    RefusalCode::Undecodable,
                    id,
                    iced.ip(),
                    "these bytes are not an instruction",
                );
                break;
            }
            self.strings += usize::from(shows_no_operand(&iced));
            if self.strings > MOST_STRINGS {
                let reason = format!("more than {MOST_STRINGS} string instructions");
                self.refuse(RefusalCode::TooMany, id, iced.ip(), reason);
                break;
            }
            let mut inst = Inst {
                iced,
                section: index,
                displacement: None,
                immediate: None,
                target: None,
            };
            let from = InstIdx(self.lifted.insts.len() as u32);
            let mut branch = None;
            while let Some(r) = relocations.next_if(|r| r.offset < iced.next_ip()) {
                match tie(&decoder, &iced, r, self.any_relocation) {
                    Ok(Tie::Displacement(value)) => {
                        self.keep(&mut inst.displacement, from, value);
                    }
                    Ok(Tie::Immediate(value)) => self.keep(&mut inst.immediate, from, value),
                    Ok(Tie::Branch) => branch = Some(*r),
                    Err(reason) => self.refuse(RefusalCode::Relocation, id, r.offset, reason),
                }
            }
            if iced.flow_control() != FlowControl::Next {
                self.lifted.transfers.push(from);
            }
            if is_direct_branch(&iced) {
                match self.place_of_branch(id, &iced, branch) {
                    Ok(place) => self.pending.push(PendingBranch { from, place }),
                    Err(reason) => self.refuse(RefusalCode::BranchTarget, id, iced.ip(), reason),
                }
            }
            starts.add(iced.ip() as usize, from.0);
            self.lifted.insts.push(inst);
        }
        let insts = first..self.lifted.insts.len() as u32;
        self.lifted.sections.push(CodeSection { id, insts, starts });
    }

    /// Records the value in an operand of an instruction; of several, the last one holds.
    fn keep(&mut self, operand: &mut Option<ValueIdx>, of: InstIdx, value: RelocatedValue) {
        let values = &mut self.lifted.relocated_values;
        match operand {
            Some(known) => values[known.index()].1 = value,
            None => {
                *operand = Some(ValueIdx::of(values.len()));
                values.push((of, value));
            }
        }
    }

    /// Destination of a direct branch: by displacement inside the section, by
    /// relocation outside it.
    fn place_of_branch(
        &self,
        section: SectionId,
        iced: &Instruction,
        relocation: Option<Relocation>,
    ) -> Result<PendingPlace, String> {
        let Some(r) = relocation else {
            return Ok(PendingPlace::Code(section, iced.near_branch_target()));
        };
        // The field ends the instruction: S + A - P is relative to P, the
        // destination to P + 4 (psABI 4.4.1).
        let addend = r.addend.wrapping_add((iced.next_ip() - r.offset) as i64);
        let symbol = self.lifted.object.symbol(r.symbol);
        match symbol.place {
            Place::In(id) => Ok(PendingPlace::Code(
                id,
                symbol.value.wrapping_add_signed(addend),
            )),
            Place::Undefined => match hypercall(iced, &symbol.name, addend) {
                Some(offset) => Ok(PendingPlace::Hypercall(r.symbol, offset)),
                None if addend == 0 => Ok(PendingPlace::Symbol(r.symbol)),
                None if symbol.name == HYPERCALLS && addend == IRET.into() => {
                    Err("branch to Xen's entry for iret, which does not return".into())
                }
                None => Err(format!(
                    "branch to {}{addend:+#x}, not to its start",
                    symbol.name
                )),
            },
            Place::Absolute | Place::Common => {
                Err(format!("branch to {}, which is not code", symbol.name))
            }
        }
    }

    /// What is at a place that a direct branch names.
    fn destination(&self, id: SectionId, offset: u64) -> Option<Destination> {
        let code = self.lifted.code_section(id)?;
        let behind = offset == self.lifted.contents(code).len() as u64;
        match self.lifted.inst_at(code, offset) {
            None if behind && self.any_relocation => Some(Destination::Behind(code)),
            inst => inst.map(Destination::Inst),
        }
    }

    /// Finds the instruction that each direct branch leads to.
    pub fn resolve_branches(&mut self) {
        for branch in std::mem::take(&mut self.pending) {
            let target = match branch.place {
                PendingPlace::Symbol(symbol) => Some(Destination::Import(symbol)),
                PendingPlace::Hypercall(page, offset) => Some(Destination::Hypercall(page, offset)),
                PendingPlace::Code(id, offset) => self.destination(id, offset),
            };
            if target.is_none() {
                let inst = self.lifted.inst(branch.from);
                let (offset, id) = (
                    inst.offset(),
                    self.lifted.sections[inst.section.0 as usize].id,
                );
                self.refuse(
                    RefusalCode::BranchTarget,
                    id,
                    offset,
                    "the branch lands on no instruction of this object",
                );
            }
            self.lifted.insts[branch.from.0 as usize].target = target;
        }
    }
}

/// Xen's page of calls, and the bytes of an entry.
const HYPERCALLS: &str = "hypercall_page";
const ENTRY: u16 = 32;
/// The entry that takes `rip` and `rsp` from its caller's frame
/// (`hypercall_page_initialise_ring3_kernel`, xen/arch/x86/pv/hypercall.c).
const IRET: u16 = 23 * ENTRY;

/// The entry of Xen's page that an instruction calls: 128 of 32 bytes each, each a routine of
/// its own (`hypercall_page`, arch/x86/xen/xen-head.S; `__HYPERCALL`,
/// arch/x86/include/asm/xen/hypercall.h of Linux 5.10 to 6.12).
fn hypercall(iced: &Instruction, name: &str, addend: i64) -> Option<u16> {
    const PAGE: u16 = 4096;
    let calls = iced.flow_control() == FlowControl::Call && name == HYPERCALLS;
    let offset = u16::try_from(addend).ok().filter(|_| calls)?;
    (offset < PAGE && offset % ENTRY == 0 && offset != IRET).then_some(offset)
}

/// Whether its memory operands are in no field of it.
fn shows_no_operand(i: &Instruction) -> bool {
    i.is_string_instruction() || i.mnemonic() == Mnemonic::Xlatb
}
