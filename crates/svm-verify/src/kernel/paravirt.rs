//! Calls through `pv_ops` that are no calls.
//!
//! Linux 5.12 and before have operations there that do not return to their caller, or change the
//! kernel's own state: `iret`, `usergs_sysret64`, `swapgs` (arch/x86/include/asm/paravirt_types.h).
//! Of a call of the first the kernel makes a jump (`paravirt_patch_default`,
//! arch/x86/kernel/paravirt.c), or puts the instruction itself there (`native_patch`,
//! arch/x86/kernel/paravirt_patch.c), which takes `rip` and `rsp` from the frame. Which of the three
//! numbers is which depends on the release, and `vermagic` does not say it for releases of 5.10.

use std::ops::Range;

use elf_loader::Place;
use elf_loader::consts::{R_X86_64_PC32, R_X86_64_PLT32};

use super::reader::Reader;
use super::tables::Series;
use crate::findings::{Findings, ViolationCode};
use crate::insn::{Insn, Op};

/// The last kernel that has them.
const LAST: Series = (5, 12);
/// Their bytes in `pv_ops`: operations 31 to 33.
const NO_ROUTINES: Range<i64> = 8 * 31..8 * 34;

/// Refuses calls and jumps through them, whether a table names the place or not.
pub(super) fn judge(reader: &Reader<'_, '_>, findings: &mut Findings<'_>) {
    if reader.series.is_none_or(|series| series > LAST) {
        return;
    }
    let insns = reader.disassembly.insns.iter();
    let goes = |insn: &&Insn| matches!(insn.op, Op::CallIndirect(None) | Op::JumpIndirect(None));
    for insn in insns
        .filter(goes)
        .filter(|insn| is_no_routine(reader, insn))
    {
        let (section, offset) = reader.image.place(insn);
        let reason = "an operation of pv_ops that is no routine (iret, sysret, swapgs)";
        findings.at(section, offset, ViolationCode::Metadata, reason);
    }
}

/// Whether a byte of an operand is one of theirs.
fn is_no_routine(reader: &Reader<'_, '_>, insn: &Insn) -> bool {
    let Some(r) = reader.image.relocations(insn).next() else {
        return false;
    };
    let symbol = reader.image.object.symbol(r.symbol);
    let relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
    // A distance counts from the field, which ends these instructions.
    let start = r.addend.saturating_add(if relative { 4 } else { 0 });
    symbol.name == "pv_ops"
        && symbol.place == Place::Undefined
        && start < NO_ROUTINES.end
        && start > NO_ROUTINES.start - 8
}
