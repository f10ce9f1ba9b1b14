//! `.altinstructions`: ranges that the kernel replaces as a whole.
//!
//! For each entry, in their order, `apply_alternatives` (arch/x86/kernel/alternative.c)
//! tests a feature of the processor. If the processor has it, the kernel copies the
//! replacement over the site and fills up with nops. Up to Linux 6.3 it changes the copy in two
//! cases: a replacement that is nothing but a `call rel32`, or nothing but a `jmp rel32`,
//! keeps its target (`recompute_jump`); later kernels do so in more cases, but not where the
//! target is the replacement's own end (`__apply_relocation`). Then it replaces the short nops
//! at the site by long ones (`optimize_nops`), whether the site was replaced or not.
//!
//! Linux 6.10 and later nest alternatives: entries for one site may have different lengths,
//! and the kernel takes the longest for all that follow one another. Here the difference must be nops
//! of the site, and a longer entry comes later, so that it does not matter which one is taken: behind a
//! shorter one that came later would be a part of the replacement before it.
//!
//! Linux 5.12 and before have the length of a site's padding in the entry. If they do not replace
//! the site and its first bytes are as many `nop`s, they write other nops over as many of its
//! *last* bytes (`optimize_nops`). So these have to be nops in the site, and entries for one
//! site have to agree, or a nop that was written would be cut in two.
//!
//! A site that is `call *pointer(%rip)` may be replaced by a direct call of what the pointer
//! holds (`alt_replace_call`, Linux 6.8 and later). The kernel reads the pointer from the
//! site's own bytes and stops if the site is anything else. The replacement calls `BUG_func`, from
//! which the kernel counts.
//!
//! The features are not known here, so the site is the original code or any of its
//! replacements, and all are interpreted. A replacement is interpreted in its own place,
//! not at the site. This is equivalent under these rules:
//!
//! * it is one call or jump as above, or computes nothing from its own place: no
//!   branch, nothing that the kernel takes for one, no operand relative to `%rip`, except a
//!   variable of the kernel's for each processor, which it moves;
//! * it runs only at the site: nothing leads into it, it does not overlap
//!   anything else that is replaced or copied, and no table names a place in it;
//! * changes that other tables make in the site come before (`module_finalize` has the
//!   order: paravirtual calls, thunks, returns); or the kernel goes by the address, and
//!   finds the instruction at the same distance from the start. Linux 5.17 and before make
//!   paravirtual calls last, over what the site is by then, so such a call is the whole site.

use std::collections::HashMap;
use std::ops::Range;

use elf_loader::consts::R_X86_64_PC32;
use elf_loader::special::{Entry, EntryData, SpecialKind};
use elf_loader::{Place, SectionId};
use iced_x86::{Code, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, Mnemonic};

use super::reader::{Reader, SectionPlace};
use super::tables::Series;
use super::types::Checks;
use super::{Patches, prefixes};
use crate::findings::{Findings, ViolationCode};
use crate::insn::{BranchTarget, CodeAt, Insn, Op, Origin, Routine, forced};

/// Most bytes of a site (`MAX_PATCH_LEN`, arch/x86/kernel/alternative.c).
const LONGEST: u8 = 254;
/// Features and bugs that a kernel numbers (`NCAPINTS + NBUGINTS`, 32 each,
/// arch/x86/include/asm/cpufeatures.h). Those of Linux 5.10 are the most.
const FEATURES: u16 = (23 + 2) * 32;
/// Most entries for one site. The kernel's macros make three.
const MOST: usize = 8;
/// Most entries for one that begins with a direct call. For each, and once for
/// the table of calls, the kernel makes it a call of the padding before what it calls by then, also
/// in another module (`patch_alt_call_sites`, arch/x86/kernel/callthunks.c); so much padding is judged
/// ([`prefixes`]).
const MOST_CALLS: usize = 2;
/// Fewest bytes of padding that a kernel writes over (`apply_alternatives` of Linux 5.10).
const WRITTEN: u8 = 2;
/// From which series on operands relative to `%rip` are taken to be moved with a replacement: the
/// first whose modules were seen to need it.
const MOVES_OPERANDS: Series = (6, 11);

/// One entry: instructions of the site, of its replacement, and the one after the site.
struct Alternative {
    table: SectionId,
    offset: u64,
    site: Range<u32>,
    replacement: Range<u32>,
    back: u32,
    /// Bytes at the site's end that the kernel may write nops over.
    padding: u8,
    /// The site's call is made a direct one.
    direct_call: bool,
}

/// What the kernel does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It copies the code elsewhere.
    Copied,
    /// It may put a replacement there.
    Replaced,
    /// It may put code there that calls of the function behind run through.
    Prefix,
    /// It may write over the check of a type there, and it reads what is before a call.
    Checked,
}

#[derive(Default)]
pub(super) struct Ranges {
    list: Vec<Alternative>,
    /// Padding before functions.
    prefixes: Vec<(CodeAt, Range<u32>)>,
    /// Checks of types, with the calls that they are for.
    checks: Vec<Range<u32>>,
    /// Static calls' trampolines that are returns, with their padding, in order.
    trampolines: Vec<Range<u32>>,
    /// All ranges, sorted and each once.
    sorted: Vec<(u32, u32, Use)>,
}

impl Ranges {
    /// Judges an entry by itself.
    pub(super) fn alternative(
        &mut self,
        reader: &Reader<'_, '_>,
        table: SectionId,
        entry: &Entry,
    ) -> Result<(), &'static str> {
        let EntryData::Alternative {
            feature,
            flags,
            site_len,
            replacement_len,
        } = entry.data
        else {
            return Err("it is no alternative");
        };
        if feature >= FEATURES {
            return Err("no kernel has a feature of that number");
        }
        if flags.others != 0 {
            return Err("a flag that no kernel has");
        }
        // Its bytes are not here to be judged, not even whether there are any.
        if entry.foreign_replacement().is_some() {
            return Err("the replacement is no code of the module");
        }
        if replacement_len > site_len {
            return Err("the replacement is longer than what it replaces");
        }
        if site_len > LONGEST {
            return Err("the site is longer than the kernel's buffer");
        }
        let site = entry.site().ok_or("it refers to no code")?;
        let (back, _) = site
            .1
            .checked_add(u64::from(site_len))
            .and_then(|end| reader.insn((site.0, end)))
            .ok_or("nothing follows the replaced range")?;
        let padding = entry.padding;
        if padding >= WRITTEN && !pads(reader, site, site_len, padding) {
            return Err("the padding that the kernel may write over is not nops of the site");
        }
        let site = reader.range(site, u64::from(site_len))?;
        if self.is_trampoline(&site) {
            return Err("it replaces a part of a static call's trampoline");
        }
        if begins_with_long_call(reader, site.clone()) {
            return Err("a call of more than five bytes, over which the kernel writes one of five");
        }
        let replacement = match replacement_len {
            0 => 0..0,
            length => {
                let place = entry.target().ok_or("it has no replacement")?;
                reader.range(place, u64::from(length))?
            }
        };
        if flags.direct_call && !calls_directly(reader, site.clone(), replacement.clone()) {
            return Err("not a call through a pointer that a direct call may replace");
        }
        if !moves(reader, replacement.clone()) {
            return Err("the replacement means something else where it is copied to");
        }
        let mut both = site.clone().chain(replacement.clone());
        if both.any(|n| looks_like_a_nop(reader, n)) {
            return Err("an exchange with %r8, which kernels take for a nop");
        }
        if leads_behind(reader, replacement.clone()) {
            return Err(
                "the replacement leads to its own end, which newer kernels take for the site's",
            );
        }
        if makes_prefix(reader, replacement.clone(), replacement_len == site_len) {
            return Err(
                "the replacement may become a part of what hypervisors take for a prefix of ud2",
            );
        }
        self.list.push(Alternative {
            table,
            offset: entry.offset,
            site,
            replacement,
            back,
            padding,
            direct_call: flags.direct_call,
        });
        Ok(())
    }

    /// Takes the checks of types.
    pub(super) fn checks(&mut self, checks: &Checks) {
        self.checks.extend(checks.ranges());
    }

    /// Takes the static calls' trampolines that are returns, in order.
    pub(super) fn trampolines(&mut self, trampolines: &[Range<u32>]) {
        self.trampolines.extend_from_slice(trampolines);
    }

    /// Whether some of these instructions are a part of such a trampoline.
    fn is_trampoline(&self, range: &Range<u32>) -> bool {
        let before = |t: &Range<u32>| t.end <= range.start;
        let next = self
            .trampolines
            .get(self.trampolines.partition_point(before));
        next.is_some_and(|t| t.start < range.end)
    }

    /// Takes the padding before functions, which the kernel may write over as well.
    pub(super) fn prefixes(&mut self, reader: &Reader<'_, '_>, findings: &mut Findings<'_>) {
        for (function, nops) in prefixes::before_functions(reader) {
            match nops {
                Ok(nops) => self.prefixes.push((function, nops)),
                Err(reason) => report_prefix(reader, findings, function, reason),
            }
        }
    }

    /// Judges the entries against each other: ranges that are written over or copied do not
    /// overlap, except that a site may have several replacements.
    pub(super) fn finish(&mut self, reader: &Reader<'_, '_>, findings: &mut Findings<'_>) {
        self.paddings(reader, findings);
        let mut all = Vec::new();
        for (n, a) in self.list.iter().enumerate() {
            let (site, copy) = (&a.site, &a.replacement);
            all.push((site.start, site.end, Use::Replaced, n));
            all.push((copy.start, copy.end, Use::Copied, n));
        }
        let entries = self.list.len();
        let padding = self.prefixes.iter().zip(entries..);
        all.extend(padding.map(|((_, r), n)| (r.start, r.end, Use::Prefix, n)));
        let behind = entries + self.prefixes.len();
        let checks = self.checks.iter().zip(behind..);
        all.extend(checks.map(|(r, n)| (r.start, r.end, Use::Checked, n)));
        all.retain(|&(start, end, ..)| start < end);
        all.sort_unstable();
        let mut same = 1;
        for pair in all.windows(2) {
            let ((start, end, what, before), (next, next_end, next_what, n)) = (pair[0], pair[1]);
            let again = start == next && (what, next_what) == (Use::Replaced, Use::Replaced);
            same = if again { same + 1 } else { 1 };
            let reason = match () {
                () if !again && next < end => {
                    "it overlaps another range that is replaced or copied"
                }
                () if again && !only_nops(reader, end..next_end) => {
                    "another range that is replaced ends inside it"
                }
                () if again && end < next_end && n < before => {
                    "a shorter entry for the site follows, which leaves a part of the replacement"
                }
                () if same > MOST => "too many replacements for one site",
                () if same > MOST_CALLS && is_call(reader, next) => {
                    "too many replacements for a call, of which the kernel makes one of the padding before it each time"
                }
                () => continue,
            };
            match self.list.get(n) {
                Some(entry) => {
                    findings.at(entry.table, entry.offset, ViolationCode::Metadata, reason);
                }
                None if n < behind => {
                    report_prefix(reader, findings, self.prefixes[n - entries].0, reason);
                }
                None => {
                    let first = self.checks[n - behind].start;
                    let (id, at) = reader
                        .image
                        .place(&reader.disassembly.insns[first as usize]);
                    findings.at(id, at, ViolationCode::Metadata, reason);
                }
            }
        }
        self.sorted = all
            .into_iter()
            .map(|(a, b, what, _)| (a, b, what))
            .collect();
        self.sorted.dedup();
    }

    /// Judges the paddings of entries for one site against each other. Each is judged with the
    /// site as it is in the file ([`pads`]). What an entry before it makes of the site must not
    /// begin with nops, or the kernel would take that for the padding.
    fn paddings(&self, reader: &Reader<'_, '_>, findings: &mut Findings<'_>) {
        let mut first: HashMap<u32, &Alternative> = HashMap::new();
        for a in self.list.iter().filter(|a| !a.site.is_empty()) {
            let one = *first.entry(a.site.start).or_insert(a);
            let alike = (a.padding, a.site.end) == (one.padding, one.site.end);
            let reason = match () {
                // The kernel stops if it does not find the call, alone (`alt_replace_call`).
                () if a.direct_call && !std::ptr::eq(a, one) => {
                    "a direct call is made of what another entry may have replaced"
                }
                () if one.direct_call && a.site.end != one.site.end => {
                    "another entry for the site of a direct call has another length"
                }
                () if a.padding.max(one.padding) < WRITTEN => continue,
                () if !alike => "another entry for the site has another length or padding",
                () if begins_with_nops(reader, a.replacement.clone()) => {
                    "the replacement begins as the site's padding does"
                }
                () => continue,
            };
            findings.at(a.table, a.offset, ViolationCode::Metadata, reason);
        }
    }

    /// Whether an entry of another table may name instruction `n`.
    pub(super) fn permits(&self, kind: SpecialKind, n: u32) -> Result<(), &'static str> {
        use SpecialKind as K;
        // The padding is a part of the jump that the kernel writes there, of whatever distance.
        if self.is_trampoline(&(n..n + 1)) {
            return Err(
                "it names a place in a static call's trampoline, over which the kernel writes",
            );
        }
        let after = self.sorted.partition_point(|&(start, ..)| start <= n);
        let around = after.checked_sub(1).map(|at| self.sorted[at]);
        match around.filter(|&(_, end, _)| n < end) {
            None => Ok(()),
            // What is there is copied before or after the call is patched.
            Some((.., Use::Copied)) if kind == K::CallSites => Ok(()),
            Some((.., Use::Copied)) => Err("it names a place in code that the kernel only copies"),
            Some((.., Use::Prefix)) => {
                Err("it names a place before a function that the kernel may write over")
            }
            Some((.., Use::Checked)) => match kind {
                K::RetpolineSites | K::ExTable | K::BugTable => Ok(()),
                _ => Err("it names a place in a check that the kernel may write over"),
            },
            Some((start, end, Use::Replaced)) => match kind {
                K::RetpolineSites | K::ReturnSites | K::ExTable => Ok(()),
                // Of several ranges of one start this is the longest.
                K::ParaInstructions if (start, end) == (n, n + 1) => Ok(()),
                // Replaced by another call or by something else, but at the same place.
                K::CallSites if n == start => Ok(()),
                _ => Err("it names a place that the kernel may have replaced"),
            },
        }
    }

    /// Of the entries for one site, all end where the longest does: between are nops.
    fn take_longest(&mut self) {
        let mut longest: HashMap<u32, (u32, u32)> = HashMap::new();
        for a in &self.list {
            let ends = longest.entry(a.site.start).or_default();
            *ends = (*ends).max((a.site.end, a.back));
        }
        for a in self.list.iter_mut().filter(|a| !a.site.is_empty()) {
            (a.site.end, a.back) = longest[&a.site.start];
        }
    }

    /// Adds the paths that this opens.
    pub(super) fn open(mut self, reader: &Reader<'_, '_>, patches: &mut Patches) {
        self.take_longest();
        for a in self.list {
            // Without a replacement there are nops.
            let (ways, way) = match a.replacement.is_empty() {
                true => (&mut patches.before, a.back),
                false => (&mut patches.instead, a.replacement.start),
            };
            if !a.site.is_empty() {
                ways.entry(a.site.start).or_default().push(way);
            }
            if let Some(last) = a.replacement.clone().last() {
                patches.copies.insert(a.replacement.start);
                patches.ends.insert(last, a.back);
            }
            for (old, new) in same_places(reader, &a) {
                if let Some(&fixup) = patches.fixups.get(&old) {
                    patches.fixups.insert(new, fixup);
                }
            }
            patches.whole.extend([a.site, a.replacement]);
        }
        let prefixes = self.prefixes.into_iter();
        patches.whole.extend(prefixes.map(|(_, nops)| nops));
    }
}

fn report_prefix(
    reader: &Reader<'_, '_>,
    findings: &mut Findings<'_>,
    function: CodeAt,
    reason: &'static str,
) {
    let id = reader.image.code[usize::from(function.section)];
    findings.at(id, function.offset as u64, ViolationCode::Metadata, reason);
}

//      cs call f
//
/// Whether a range begins with a direct call that has a prefix. Where calls' depth is counted, the
/// kernel writes a call of five bytes over a call at a site's start, before it applies alternatives
/// (`patch_alt_call_sites`, arch/x86/kernel/callthunks.c of Linux 6.8 and later).
fn begins_with_long_call(reader: &Reader<'_, '_>, range: Range<u32>) -> bool {
    let first = reader.disassembly.get(range.start);
    let first = first.filter(|_| !range.is_empty());
    first.is_some_and(|insn| matches!(insn.op, Op::Call(_)) && insn.len != 5)
}

/// Whether an instruction is a direct call.
fn is_call(reader: &Reader<'_, '_>, n: u32) -> bool {
    let insn = reader.disassembly.get(n);
    insn.is_some_and(|insn| matches!(insn.op, Op::Call(_)))
}

/// Whether the last `padding` bytes of a site are nops of it.
fn pads(reader: &Reader<'_, '_>, (id, start): SectionPlace, site_len: u8, padding: u8) -> bool {
    let before = site_len.checked_sub(padding).map(u64::from);
    let tail = before.and_then(|before| start.checked_add(before));
    let range = tail.and_then(|tail| reader.range((id, tail), padding.into()).ok());
    range.is_some_and(|range| only_nops(reader, range))
}

/// Whether a replacement begins with two `nop`s of one byte.
fn begins_with_nops(reader: &Reader<'_, '_>, range: Range<u32>) -> bool {
    let insns = &reader.disassembly.insns[range.start as usize..range.end as usize];
    let is_nop = |insn: &Insn| reader.image.bytes(insn) == Some(&[0x90][..]);
    insns
        .first_chunk::<2>()
        .is_some_and(|both| both.iter().all(is_nop))
}

/// Whether instructions do nothing; backwards, there are none.
fn only_nops(reader: &Reader<'_, '_>, range: Range<u32>) -> bool {
    let nops = reader
        .disassembly
        .insns
        .get(range.start as usize..range.end as usize);
    nops.is_none_or(|nops| nops.iter().all(|insn| matches!(insn.op, Op::Nop)))
}

//      call *pointer(%rip)     may become      call what the pointer holds
//
// The kernel demands these very bytes, and a replacement of 5 bytes that is a call. It takes that
// for a call of `BUG_func` and adds to the distance how far the pointer's target is from there, so
// that any other call would lead to any byte. The call may by then be one of the padding before
// `BUG_func` (callthunks_patch_module_calls), so the pointer is the kernel's, whose functions all
// have some.
fn calls_directly(reader: &Reader<'_, '_>, site: Range<u32>, replacement: Range<u32>) -> bool {
    let (Some(site), Some(replacement)) = (alone(reader, site), alone(reader, replacement)) else {
        return false;
    };
    let is_kernels = |insn: &Insn| {
        let r = reader.image.relocations(insn).next();
        r.is_some_and(|r| reader.image.object.symbol(r.symbol).place == Place::Undefined)
    };
    matches!(reader.image.bytes(site), Some([0xff, 0x15, _, _, _, _]))
        && is_kernels(site)
        && matches!(reader.image.bytes(replacement), Some([0xe8, _, _, _, _]))
        && matches!(
            replacement.op,
            Op::Call(BranchTarget::Routine(Routine::Imported))
        )
        && reader.names(replacement) == "BUG_func"
}

/// The only instruction of a range.
fn alone<'a>(reader: &Reader<'a, '_>, range: Range<u32>) -> Option<&'a Insn> {
    (range.len() == 1).then(|| reader.disassembly.get(range.start))?
}

/// Instructions of the site and of the replacement that are equally far from its
/// start: `__ex_table` goes by the address.
fn same_places(reader: &Reader<'_, '_>, a: &Alternative) -> Vec<(u32, u32)> {
    let from = |range: &Range<u32>, n: u32| {
        let insn = |n| reader.disassembly.get(n).map(|insn| insn.at);
        Some(insn(n)? - insn(range.start)?)
    };
    // Both ascend, so each is gone through once.
    let mut copies = a.replacement.clone().peekable();
    let pairs = a.site.clone().filter_map(|old| {
        let distance = from(&a.site, old)?;
        while copies
            .next_if(|&new| from(&a.replacement, new) < Some(distance))
            .is_some()
        {}
        let new = copies.next_if(|&new| from(&a.replacement, new) == Some(distance))?;
        Some((old, new))
    });
    pairs.collect()
}

/// Whether the copy does at the site what the replacement does in its own place.
fn moves(reader: &Reader<'_, '_>, replacement: Range<u32>) -> bool {
    let insns = &reader.disassembly.insns[replacement.start as usize..replacement.end as usize];
    let keeps_target = |insn: &Insn| {
        let bytes = reader.image.bytes(insn);
        matches!(bytes, Some([0xe8 | 0xe9, _, _, _, _]))
    };
    match insns {
        [alone] if keeps_target(alone) => true,
        _ => insns.iter().all(|insn| is_independent(reader, insn)),
    }
}

/// Whether a replacement leads to the place behind itself. Linux 6.3 and later do not move such a
/// target: it counts as one inside (`need_reloc`), so that control goes on behind the site. Behind
/// the end of a section may be the start of any other. And a call may be one of the padding before
/// its target by then ([`prefixes`]), so nops between them are no distance.
fn leads_behind(reader: &Reader<'_, '_>, replacement: Range<u32>) -> bool {
    let disassembly = reader.disassembly;
    let last = replacement.last().and_then(|n| disassembly.get(n));
    let Some(last) = last else {
        return false;
    };
    let (Op::Call(BranchTarget::Insn(to)) | Op::Jump(BranchTarget::Insn(to))) = last.op else {
        return false;
    };
    let Some(to) = disassembly.get(to) else {
        return true;
    };
    let only_nops = |section: u16, range: Range<usize>| {
        let bytes = reader.image.section(section).data.get(range);
        bytes.is_some_and(|bytes| bytes.iter().all(|b| *b == prefixes::NOP))
    };
    let (end, start) = (last.at as usize + usize::from(last.len), to.at as usize);
    match last.section == to.section {
        true => end <= start && only_nops(to.section, end..start),
        false => {
            let size = reader.image.section(last.section).data.len();
            only_nops(last.section, end..size) && only_nops(to.section, 0..start)
        }
    }
}

//      ud2                     # then what was behind the site
//
/// Whether a replacement may be a part of `ud2` and the bytes behind which hypervisors go on
/// ([`forced`]). What is before and behind a site may be replaced as well. Behind one that does not
/// `fill` its site is a nop.
fn makes_prefix(reader: &Reader<'_, '_>, replacement: Range<u32>, fills: bool) -> bool {
    let insns = &reader.disassembly.insns[replacement.start as usize..replacement.end as usize];
    let bytes = insns.iter().filter_map(|insn| reader.image.bytes(insn));
    let bytes = bytes.collect::<Vec<_>>().concat();
    forced::may_go_on(&bytes) || fills && forced::may_begin(&bytes)
}

/// Whether an instruction computes nothing from its own place.
fn is_independent(reader: &Reader<'_, '_>, insn: &Insn) -> bool {
    let Some(bytes) = reader.image.bytes(insn) else {
        return false;
    };
    let decoded = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let stays = matches!(
        decoded.flow_control(),
        FlowControl::Next
            | FlowControl::Return
            | FlowControl::IndirectBranch
            | FlowControl::IndirectCall
            | FlowControl::Exception
            | FlowControl::Interrupt
    );
    // To the decoder a hypercall is a call; its callee depends on no place.
    let stays = stays || matches!(decoded.mnemonic(), Mnemonic::Vmcall | Mnemonic::Vmmcall);
    let operand = !decoded.is_ip_rel_memory_operand() || keeps_operand(reader, insn, bytes);
    stays && operand && !looks_like_a_branch(&decoded)
}

//      sarq $5, %gs:pcpu_hot+X86_call_depth(%rip)      # CALL_DEPTH_ACCOUNT
//
/// Whether the kernel moves an operand relative to `%rip` with the replacement
/// (`insn_rip_relative` in `__apply_relocation`, arch/x86/kernel/alternative.c). Modules of Linux
/// 6.8 have no such operands (they are absolute there), those of 6.11 do. Only a `%gs:` operand
/// counts, of a symbol of the kernel: no rule believes anything of where that is.
fn keeps_operand(reader: &Reader<'_, '_>, insn: &Insn, bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let decoded = decoder.decode();
    let field = decoder.get_constant_offsets(&decoded).displacement_offset();
    let mut relocations = reader.image.relocations(insn);
    let (Some(r), None) = (relocations.next(), relocations.next()) else {
        return false;
    };
    reader.series.is_some_and(|series| series >= MOVES_OPERANDS)
        && insn.memory.origin == Origin::PerCpu
        && (r.kind, r.offset) == (R_X86_64_PC32, u64::from(insn.at) + field as u64)
        && reader.image.object.symbol(r.symbol).place == Place::Undefined
}

/// Whether the kernel would write a nop over an instruction that is none: Linux 6.3 to 6.18 ask for
/// the opcode 0x90 without the prefix f3, and not for REX.B (`insn_is_nop`).
fn looks_like_a_nop(reader: &Reader<'_, '_>, n: u32) -> bool {
    const OPCODE: u8 = 0x90;
    let insn = reader.disassembly.get(n);
    let bytes = insn.and_then(|insn| reader.image.bytes(insn));
    bytes.filter(|b| b.ends_with(&[OPCODE])).is_some_and(|b| {
        let decoded = Decoder::new(64, b, DecoderOptions::NONE).decode();
        matches!(
            decoded.code(),
            Code::Xchg_r16_AX | Code::Xchg_r32_EAX | Code::Xchg_r64_RAX
        )
    })
}

/// Whether the kernel would move an instruction as a branch that is none. It asks for the
/// opcode's first byte alone (`__apply_relocation`, arch/x86/kernel/alternative.c of Linux 6.3
/// and later), which of a vector's instruction in the newer encodings is the byte behind the
/// prefix. In the place of `vpsubsw` (0xe9) it writes a short jump, if that reaches.
fn looks_like_a_branch(decoded: &Instruction) -> bool {
    let code = decoded.code();
    code.encoding() != EncodingKind::Legacy
        && matches!(
            code.op_code().op_code() & 0xff,
            0x70..=0x7f | 0xe8 | 0xe9 | 0xeb
        )
}
