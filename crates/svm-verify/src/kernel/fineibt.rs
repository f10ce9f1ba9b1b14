//! FineIBT: what kernels with it write before functions and before calls through pointers
//! (`__apply_fineibt` and `poison_cfi`, arch/x86/kernel/alternative.c). Linux 6.2 to 6.14:
//!
//! ```text
//! __cfi_f:
//!     mov   $hash, %eax           endbr64
//!     nop                         sub   $hash, %r10d
//!     ...                         je    f
//!     nop                         ud2; nop
//! f:
//!
//!     mov   $-hash, %r10d         mov   $hash, %r10d
//!     add   -15(%r11), %r10d      sub   $16, %r11
//!     je    1f                    nopl  (%rax)
//!     ud2
//! 1:  call  __x86_indirect_thunk_r11
//! ```
//!
//! `.cfi_sites` names the first, of 16 bytes; of these it is asked that they begin with `b8`. The
//! second is looked for 14 bytes before each place that `.retpoline_sites` names, by its first two
//! bytes. (Between, they are a jump to the call.) With another option the kernel writes other hashes
//! into both. Where `.ibt_endbr_seal` names a function, it writes over the hash before it.
//!
//! Whether the kernel writes or not, control comes to the same places: before a function to the
//! function, with another `%eax`, `%r10` and flags, or to a trap; before a call to the call. There it
//! goes 16 bytes before the function, so what is called by its address has such bytes there.
//!
//! A kernel that only reports what has another type (`CONFIG_CFI_PERMISSIVE`) goes on behind the `ud2`.
//! It knows it by the `endbr64`, and takes others for it ([`traps`]).
//!
//! Linux 6.15 and later write over the call as well (here, of those whose source was read, what 7.3
//! writes; 6.17 has `%r10d` in the place of `%eax`), and over an `endbr64` with which the function begins:
//!
//! ```text
//!                                 __cfi_f:
//!     mov   $hash, %eax               endbr64
//!     cmp   -11(%r11), %eax           sub   $hash, %eax
//!     cs lea -16(%r11), %r11          jne   f + 3     # 0xd6, which is no instruction
//!     jne   .-1   # `lock jne`        # 6.17: jne __cfi_f + 6, which is 0xea
//!     cs call *%r11               f:  nopl  -42(%rax)
//! ```
//!
//! So the call has six bytes, and nothing else is written over the function's first instruction. Where
//! such a kernel goes on behind a trap is not behind the `ud2` ([`misplaced`]).
//!
//! They also know hashes in other registers than `%eax`, by which clang says how many arguments a
//! function has (`-fsanitize-kcfi-arity`). With `cfi=bhi` such a kernel calls a routine of its own before
//! the function, which leaves all but the flags as it was where the types agree
//! (`cfi_fineibt_bhi_preamble`; `__bhi_args`, arch/x86/lib/bhi.S). For one argument it writes the routine
//! itself, and 6.17 `cmc` as the function's first byte; nothing is known of the flags where a function is
//! entered. A function without an `endbr64` it leaves out, and calls the hash as it is: that may only
//! write `%eax`.

use std::collections::HashSet;

use elf_loader::special::{Entry, SpecialKind};

use super::Patches;
use super::prefixes::NOP;
use super::reader::{Reader, SectionPlace};
use super::tables::Series;
use super::types::{self, Checks};
use crate::findings::{Findings, ViolationCode};
use crate::insn::{BranchTarget, CodeAt, Disassembly, Gpr, Insn, Op};
use crate::object::{Image, hashes};

/// Bytes before a function.
const PREAMBLE: u64 = 16;
/// Bytes before a call.
const CALLER: i64 = 14;
/// From `endbr64` before a function to `ud2`.
const TRAP: i64 = 13;
/// The first kernel that writes over calls, and that knows the register of a hash.
const FIRST_WITH_CALLS: Series = (6, 15);
/// From `endbr64` to the trap, in such kernels: 6.17 has the first, 7.3 the second.
const LATER_TRAPS: [i64; 2] = [6, 19];
/// Bytes of a call that they write over.
const CALL: u8 = 6;
/// How the kernel recognises what is before a call: `mov`, or the jump that it wrote itself.
const CALLERS: [[u8; 2]; 2] = [[0x41, 0xba], [0xeb, 0x0c]];

/// Whether the kernel of the module has it: objtool made the table.
pub(super) fn is_there(image: &Image<'_>) -> bool {
    let table = image.object.section_named(SpecialKind::CfiSites.name());
    table.is_some_and(|id| image.object.section(id).size != 0)
}

/// Whether the module's kernel may write over calls.
fn writes_calls(reader: &Reader<'_, '_>) -> bool {
    reader
        .series
        .is_none_or(|series| series >= FIRST_WITH_CALLS)
}

/// The first instruction of the function that an entry of `.cfi_sites` is about, if the kernel may
/// write over it (`is_endbr`): what it wrote before leads to its last byte.
pub(super) fn function(reader: &Reader<'_, '_>, entry: &Entry) -> Option<u32> {
    let (id, at) = entry.site()?;
    let (n, insn) = reader.insn((id, at.checked_add(PREAMBLE)?))?;
    let is_endbr = matches!(
        reader.image.bytes(insn),
        Some([0xf3, 0x0f, 0x1e, 0xfa | 0xfb] | [0x0f, 0x1f, _, _] | [0x66, 0x0f, 0x1f, _])
    );
    (writes_calls(reader) && is_endbr).then_some(n)
}

/// Takes what is before the function that an entry of `.cfi_sites` names.
pub(super) fn preamble(
    reader: &Reader<'_, '_>,
    site: SectionPlace,
    patches: &mut Patches,
) -> Result<(), &'static str> {
    const OTHER: &str = "not `mov $hash, %eax` and 11 nops, over which the kernel writes";
    let range = reader.range(site, PREAMBLE).map_err(|_| OTHER)?;
    let register = hash_register(reader.image, site).ok_or(OTHER)?;
    // What is in `%eax` there, nothing may rely on.
    let behind = reader.insn((site.0, site.1 + PREAMBLE));
    let function = behind.filter(|&(n, _)| reader.is_function(n));
    let (_, first) = function.ok_or("no function is behind the hash")?;
    if register != Gpr::RAX {
        if reader.series.is_none_or(|series| series < FIRST_WITH_CALLS) {
            return Err(
                "a hash in another register than %eax, of which kernels before Linux 6.15 know nothing",
            );
        }
        if !reader.is_endbr64(first) {
            return Err(
                "a hash in another register than %eax, which the kernel leaves there: \
                        the function behind it does not begin with endbr64",
            );
        }
    }
    patches.whole.push(range);
    Ok(())
}

/// The register of the hash, if what the compiler puts before a function is at a place.
fn hash_register(image: &Image<'_>, (id, at): SectionPlace) -> Option<Gpr> {
    const NOPS: [u8; 11] = [NOP; 11];
    let data = &image.object.section(id).data;
    let bytes = usize::try_from(at).ok().and_then(|at| data.get(at..))?;
    match bytes {
        [first @ 0xb8..=0xbf, _, _, _, _, nops @ ..] if nops.starts_with(&NOPS) => {
            Some(Gpr(first - 0xb8))
        }
        _ => None,
    }
}

/// Whether what is before a sealed function is among those that the kernel wrote to.
pub(super) fn is_sealed(sites: &HashSet<SectionPlace>, entry: &Entry) -> Result<(), &'static str> {
    const OTHER: &str = "the kernel writes over the hash before it, which .cfi_sites does not name";
    let before = entry
        .site()
        .and_then(|(id, at)| Some((id, at.checked_sub(PREAMBLE)?)));
    before
        .filter(|place| sites.contains(place))
        .map(|_| ())
        .ok_or(OTHER)
}

/// Takes what is before the call that an entry of `.retpoline_sites` names.
pub(super) fn caller(
    reader: &Reader<'_, '_>,
    checks: &Checks,
    n: u32,
    patches: &mut Patches,
) -> Result<(), &'static str> {
    let insn = &reader.disassembly.insns[n as usize];
    let before = i64::from(insn.at) - CALLER;
    if before < 0 {
        return Err("so near to the beginning of a section that the kernel looks before it");
    }
    let looks = |first: [u8; 2]| {
        let place = |by: i64| CodeAt {
            section: insn.section,
            offset: before + by,
        };
        (0..)
            .zip(first)
            .all(|(by, byte)| reader.may_be(place(by), byte))
    };
    if !CALLERS.into_iter().any(looks) {
        return Ok(());
    }
    let check = checks.before(n).filter(|check| {
        let first = &reader.disassembly.insns[check.start as usize];
        i64::from(first.at) == before && types::goes_to(insn) == Some(Gpr(11))
    });
    let check = check.ok_or("before it is what the kernel takes for kCFI's check, and is none")?;
    let bytes = reader.image.bytes(insn);
    if writes_calls(reader) && !(insn.len == CALL && matches!(bytes, Some([0x2e, ..]))) {
        return Err("the kernel writes over six bytes there, and the call has others");
    }
    patches.whole.push(check);
    patches.checked.insert(n);
    Ok(())
}

/// The calls behind what is written over to which something else leads than their checks. The kernel
/// has subtracted there from the pointer that they go to.
pub(super) fn entered(reader: &Reader<'_, '_>, patches: &Patches, entries: &[u32]) -> Vec<u32> {
    let branches = reader.disassembly.branches.iter();
    let by_branch = branches.filter_map(|&from| {
        let to = match reader.disassembly.insns[from as usize].op {
            Op::Call(BranchTarget::Insn(to))
            | Op::Jump(BranchTarget::Insn(to))
            | Op::Branch(_, BranchTarget::Insn(to)) => to,
            _ => return None,
        };
        (from + 2 != to).then_some(to)
    });
    let all = by_branch
        .chain(entries.iter().copied())
        .chain(patches.leaders());
    all.filter(|to| patches.checked.contains(to)).collect()
}

//      endbr64
//      ...                     # 9 bytes, whatever they are
//      ud2
//
/// The `ud2`s that the kernel may take for one before a function (`decode_fineibt_insn`): after a
/// report control continues. What it writes itself, and what is before a section, may be `endbr64`;
/// and it may copy a `ud2` behind one.
pub(super) fn traps(reader: &Reader<'_, '_>, written: &HashSet<u32>) -> Vec<u32> {
    if reader
        .series
        .is_some_and(|series| series >= FIRST_WITH_CALLS)
    {
        return Vec::new();
    }
    let all = (0..).zip(&reader.disassembly.insns);
    let stops = all.filter(|(_, insn)| matches!(insn.op, Op::Stop));
    stops
        .filter(|&(n, insn)| written.contains(&n) || is_behind(reader, written, insn, TRAP))
        .map(|(n, _)| n)
        .collect()
}

/// Whether an instruction may be this many bytes behind `endbr64`.
fn is_behind(reader: &Reader<'_, '_>, written: &HashSet<u32>, insn: &Insn, by: i64) -> bool {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let is_written = |n: u32| written.contains(&n);
    let may_be = |place: CodeAt, byte: u8| {
        reader.may_be(place, byte) || reader.disassembly.around(place).is_none_or(is_written)
    };
    let place = |n: i64| CodeAt {
        section: insn.section,
        offset: i64::from(insn.at) - by + n,
    };
    (0..).zip(ENDBR64).all(|(n, byte)| may_be(place(n), byte))
}

//      endbr64
//      ...                     # 2 or 15 bytes, whatever they are
//      ud2
//
/// The `ud2`s that a kernel of Linux 6.15 or later may take for a trap of one byte before a function
/// (`decode_fineibt_preamble`): after a report control continues at another place, which may be inside
/// an instruction. `warns`: of these the kernel asks before whether they are a WARN (`handle_bug`,
/// arch/x86/kernel/traps.c).
pub(super) fn misplaced(
    reader: &Reader<'_, '_>,
    checks: &Checks,
    patches: &Patches,
    written: &HashSet<u32>,
    warns: &HashSet<u32>,
) -> Vec<u32> {
    if !writes_calls(reader) {
        return Vec::new();
    }
    let is_ud2 = |insn: &Insn| matches!(reader.image.bytes(insn), Some([.., 0x0f, 0x0b]));
    // A check that the kernel writes over has none.
    let is_gone = |n: u32| checks.has_trap(n) && patches.checked.contains(&(n + 1));
    let all = (0..).zip(&reader.disassembly.insns);
    let traps = all.filter(|&(n, insn)| is_ud2(insn) && !warns.contains(&n) && !is_gone(n));
    traps
        .filter(|&(n, insn)| {
            let behind = |by| is_behind(reader, written, insn, by);
            written.contains(&n) || LATER_TRAPS.into_iter().any(behind)
        })
        .map(|(n, _)| n)
        .collect()
}

/// Judges functions that are called by their address: kernels with FineIBT call the bytes before.
pub fn judge_taken<'o>(
    image: &Image<'o>,
    disassembly: &Disassembly,
    taken: &[u32],
    findings: &mut Findings<'o>,
) {
    if !is_there(image) {
        return;
    }
    let named = hashes(image.object);
    for insn in taken.iter().filter_map(|&n| disassembly.get(n)) {
        let (id, at) = image.place(insn);
        let before = at.checked_sub(PREAMBLE).map(|before| (id, before));
        // Over one that its table does not name the kernel writes nothing.
        let is_harmless = |place| match hash_register(image, place) {
            Some(register) => register == Gpr::RAX || named.contains(&place),
            None => false,
        };
        if !before.is_some_and(is_harmless) {
            let reason = "its address is taken, and kernels with FineIBT call it 16 bytes before, \
                          where there is no hash of its type";
            findings.at(id, at, ViolationCode::Metadata, reason);
        }
    }
}
