//! Control flow from kernel metadata: edges that no branch shows (static branches,
//! alternatives, exception fixups) and the traps after which control continues.

use foldhash::HashSet;
use iced_x86::FlowControl;

use elf_loader::special::{self, SpecialKind};

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
    /// `ud2` of a WARN.
    pub warns: HashSet<u32>,
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
                        }
                    }
                    SpecialKind::AltInstructions => extra.alternative(lifted, &entry, &inst),
                    SpecialKind::BugTable => {
                        if let Some(site) = inst(entry.site()).filter(|_| entry.is_warning()) {
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
        K::JumpTable | K::ExTable | K::AltInstructions | K::BugTable
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
