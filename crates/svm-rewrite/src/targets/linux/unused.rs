//! Alternatives that are left out.
//!
//! A replacement is copied, so it stays as it is and cannot have a check. One that reaches
//! memory through a register is therefore never used: its entry is left out, and the site
//! keeps its original code. That is right only where the kernel's own code does not depend on
//! the replacement:
//!
//! * the site calls through `pv_ops`, which always holds a routine that does the same
//!   (`queued_spin_unlock` of a kernel with paravirtual locks);
//! * the feature says that string instructions are fast, no more (`clear_page`).
//!
//! A replacement that is the kernel's own code does what the site does, or the object is
//! refused (`analyse/foreign`). Its entry is left out, too: what the kernel copies is not in the
//! object, so nothing could be proved of it.

use elf_loader::special::{self, Entry, EntryData, FieldRole, SpecialKind};
use foldhash::HashSet;
use iced_x86::{OpKind, Register};

use crate::analyse::classify::is_cache_hint;
use crate::analyse::routines;
use crate::lift::{InstIdx, Lifted};

/// Features that choose among equal ways to copy and fill memory: `REP_GOOD`, `ERMS`, `FSRM`
/// (arch/x86/include/asm/cpufeatures.h; the same numbers in Linux 5.10 to 7.3).
const FAST_STRINGS: [u16; 3] = [3 * 32 + 16, 9 * 32 + 9, 18 * 32 + 4];

/// The entries of `.altinstructions` that are left out, by offset, and the instructions of
/// their replacements, by index.
#[derive(Default)]
pub struct Unused {
    /// Offsets of entries.
    pub entries: HashSet<u64>,
    pub insts: HashSet<u32>,
}

impl Unused {
    /// Finds them. A table that cannot be read has none; it is refused elsewhere.
    pub fn find(lifted: &Lifted<'_>) -> Unused {
        let object = lifted.object;
        let entries = |kind: SpecialKind| {
            let id = object.section_named(kind.name());
            id.and_then(|id| special::entries(object, id).ok())
                .unwrap_or_default()
        };
        let faults: HashSet<u32> = entries(SpecialKind::ExTable)
            .iter()
            .filter_map(|entry| at(lifted, entry.site()))
            .map(|i| i.0)
            .collect();
        let mut unused = Unused::default();
        for entry in entries(SpecialKind::AltInstructions) {
            if entry.foreign_replacement().is_some() {
                unused.entries.insert(entry.offset);
                continue;
            }
            let insts = replacement(lifted, &entry);
            let reaches = |i: &u32| !faults.contains(i) && through_register(lifted, InstIdx(*i));
            if insts.clone().any(|i| reaches(&i)) && is_replaceable(lifted, &entry) {
                unused.entries.insert(entry.offset);
                unused.insts.extend(insts);
            }
        }
        unused
    }
}

/// Whether the site's original code does the same as the replacement on every processor.
fn is_replaceable(lifted: &Lifted<'_>, entry: &Entry) -> bool {
    let EntryData::Alternative { feature, flags, .. } = entry.data else {
        return false;
    };
    let fast = FAST_STRINGS.contains(&feature) && !flags.not;
    fast || at(lifted, entry.site()).is_some_and(|i| routines::is_paravirtual(lifted, i))
}

/// The instructions of an entry's replacement.
fn replacement(lifted: &Lifted<'_>, entry: &Entry) -> std::ops::Range<u32> {
    let place = entry.reference(FieldRole::Replacement);
    let (Some(first), Some((_, start))) = (at(lifted, place), place) else {
        return 0..0;
    };
    let end = start + u64::from(entry.replacement_len());
    let section = lifted.inst(first).section;
    let behind = lifted.insts[first.0 as usize..].iter();
    let inside = behind.take_while(|inst| inst.section == section && inst.offset() < end);
    first.0..first.0 + inside.count() as u32
}

/// Whether an instruction reaches memory at an address in a register that is not `rsp`.
fn through_register(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let iced = &lifted.inst(i).iced;
    if iced.is_string_instruction() {
        return true;
    }
    let memory = (0..iced.op_count()).any(|n| iced.op_kind(n) == OpKind::Memory);
    let free = matches!(
        iced.memory_base(),
        Register::None | Register::RIP | Register::RSP
    );
    let computed = !free || iced.memory_index() != Register::None;
    let per_cpu = iced.segment_prefix() == Register::GS;
    let accesses = iced.memory_size().size() != 0 && !is_cache_hint(iced);
    memory && computed && accesses && !per_cpu
}

fn at(lifted: &Lifted<'_>, place: Option<(elf_loader::SectionId, u64)>) -> Option<InstIdx> {
    let (id, offset) = place?;
    lifted.inst_at(lifted.code_section(id)?, offset)
}
