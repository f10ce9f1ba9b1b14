//! Control flow from kernel metadata: edges that no branch shows (static branches,
//! alternatives, exception fixups) and the traps after which control continues.

use foldhash::{HashMap, HashSet};
use iced_x86::FlowControl;
use liveness::{LocSet, Reg};

use elf_loader::special::{self, EntryData, FieldRole, SpecialKind};

use crate::analyse::foreign;
use crate::lift::{InstIdx, Lifted, is_filler};
use crate::refusal::{Refusal, RefusalCode};

/// Edges that only metadata shows.
#[derive(Default)]
pub struct ExtraEdges {
    /// From the block that ends with the first to the second.
    pub edges: Vec<(InstIdx, InstIdx)>,
    /// Instructions that control may leave before they take effect: those with exception
    /// fixups, whose handler may also write registers, and the first ones of ranges that a
    /// replacement takes the place of. This and the next two fields hold indices of
    /// instructions.
    pub skipped: HashSet<u32>,
    /// Last instructions of replacements: the next instruction in the section is not
    /// the one that runs next.
    pub ends: HashSet<u32>,
    /// `ud2` of a WARN or of kCFI.
    pub warns: HashSet<u32>,
    /// What handlers of faults do, by the instruction, if it is more than to continue.
    pub handlers: HashMap<u32, Handler>,
}

/// Registers that the kernel's handler of a fault reads and writes (`fixup_exception`,
/// arch/x86/mm/extable.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Those that it reads.
    pub reads: LocSet,
    /// Those that it may write, beside rax, rcx and rdx.
    pub writes: LocSet,
}

impl Handler {
    /// That of an entry: its type is in bits 0 to 7, a register in bits 8 to 11
    /// (arch/x86/include/asm/extable_fixup_types.h). Linux 5.15 and before name a routine, and
    /// none of these has a register.
    fn of(entry: &special::Entry) -> Option<Handler> {
        const WRMSR_SAFE: u32 = 10;
        const RDMSR_SAFE: u32 = 11;
        const IMM_REG: u32 = 17;
        const UCOPY_LEN: u32 = 19;
        let EntryData::Exception(data) = entry.data else {
            return None;
        };
        if entry
            .references
            .iter()
            .any(|r| r.role == FieldRole::Handler)
        {
            return None;
        }
        let register = Reg::new((data >> 8 & 0xf) as u8).map_or(LocSet::empty(), LocSet::reg);
        let none = LocSet::empty();
        let (reads, writes) = match data & 0xff {
            WRMSR_SAFE | RDMSR_SAFE | IMM_REG => (none, register),
            // rcx = rcx * immediate + register
            UCOPY_LEN => (register.union(LocSet::reg(Reg::RCX)), none),
            _ => return None,
        };
        Some(Handler { reads, writes })
    }
}

impl ExtraEdges {
    /// Reads the special sections of an object.
    ///
    /// # Errors
    /// A section that is not laid out as expected.
    pub fn find(lifted: &Lifted<'_>) -> Result<ExtraEdges, Refusal> {
        let mut extra = ExtraEdges::default();
        let object = lifted.object;
        let inst = |place: Option<(elf_loader::SectionId, u64)>| {
            let (section, offset) = place?;
            lifted.inst_at(lifted.code_section(section)?, offset)
        };
        for (id, section) in object.sections() {
            let Some(kind) = special::kind_of(&section.name).filter(has_edges) else {
                continue;
            };
            let entries = special::entries(object, id)
                .map_err(|e| Refusal::at(RefusalCode::Metadata, &section.name, 0, e.to_string()))?;
            for entry in entries {
                match kind {
                    SpecialKind::JumpTable => {
                        if let (Some(site), Some(target)) =
                            (inst(entry.site()), inst(entry.target()))
                        {
                            extra.edges.push((site, target));
                            extra.edges.extend(behind_jump(lifted, site));
                        }
                    }
                    SpecialKind::ExTable => {
                        if let (Some(site), Some(fixup)) =
                            (inst(entry.site()), inst(entry.target()))
                        {
                            extra.edges.push((site, fixup));
                            extra.skipped.insert(site.0);
                            let handler = Handler::of(&entry).map(|handler| (site.0, handler));
                            extra.handlers.extend(handler);
                        }
                    }
                    SpecialKind::AltInstructions => {
                        foreign::check(lifted, &section.name, &entry)?;
                        extra.alternative(lifted, &entry, &inst);
                    }
                    SpecialKind::BugTable | SpecialKind::KcfiTraps => {
                        if let Some(site) = inst(entry.site()).filter(|_| entry.may_go_on()) {
                            extra.warns.insert(site.0);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(extra)
    }

    /// The replacement may run instead of the site: in at its start, back after
    /// the site's end. An empty one is `nop`s.
    fn alternative(
        &mut self,
        lifted: &Lifted<'_>,
        entry: &special::Entry,
        inst: &dyn Fn(Option<(elf_loader::SectionId, u64)>) -> Option<InstIdx>,
    ) {
        let (Some(site), Some(replacement)) = (entry.site(), entry.target()) else {
            return;
        };
        let (old, new) = (
            u64::from(entry.site_len()),
            u64::from(entry.replacement_len()),
        );
        let Some(from) = inst(Some(site)) else {
            return;
        };
        let back = inst(Some((site.0, site.1 + old)));
        let to = match new {
            0 => back,
            _ => inst(Some(replacement)),
        };
        let Some(to) = to else {
            return;
        };
        self.edges.push((from, to));
        if !is_filler(&lifted.inst(from).iced) {
            self.skipped.insert(from.0);
        }
        let last = last_before(lifted, replacement, new);
        if let (Some(last), Some(back)) = (last, back) {
            self.edges.push((last, back));
            self.ends.insert(last.0);
        }
    }
}

/// The kernel may replace a static branch that is a `jmp` by a `nop`.
fn behind_jump(lifted: &Lifted<'_>, site: InstIdx) -> Option<(InstIdx, InstIdx)> {
    let inst = lifted.inst(site);
    let next = InstIdx(site.0 + 1);
    let follows = lifted.insts.get(next.0 as usize)?.section == inst.section;
    let jumps = inst.iced.flow_control() == FlowControl::UnconditionalBranch;
    (jumps && follows).then_some((site, next))
}

/// Sections whose entries are edges, or say whether control continues after a trap.
fn has_edges(kind: &SpecialKind) -> bool {
    use SpecialKind as K;
    matches!(
        kind,
        K::JumpTable | K::ExTable | K::AltInstructions | K::BugTable | K::KcfiTraps
    )
}

/// The last instruction of the `len` bytes at `place`.
fn last_before(
    lifted: &Lifted<'_>,
    place: (elf_loader::SectionId, u64),
    len: u64,
) -> Option<InstIdx> {
    let section = lifted.code_section(place.0)?;
    (place.1..place.1 + len)
        .rev()
        .find_map(|offset| lifted.inst_at(section, offset))
}
