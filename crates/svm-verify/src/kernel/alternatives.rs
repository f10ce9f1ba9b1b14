//! `.altinstructions`: ranges that the kernel replaces as a whole.
//!
//! For each entry, in their order, `apply_alternatives` (Linux 6.1,
//! arch/x86/kernel/alternative.c) tests a feature of the processor. If the processor
//! has it, the kernel copies the replacement over the site and fills up with nops. It
//! changes the copy in two cases: a replacement that is nothing but a `call rel32`,
//! or nothing but a `jmp rel32`, keeps its target (`recompute_jump`). Then it replaces
//! the short nops at the site by long ones (`optimize_nops`), whether the site was
//! replaced or not.
//!
//! The features are not known here, so the site is the original code or any of its
//! replacements, and all are interpreted. A replacement is interpreted in its own place,
//! not at the site. This is equivalent under these rules:
//!
//! * it is one call or jump as above, or computes nothing from its own place: no
//!   branch, no operand relative to `%rip`;
//! * it runs only at the site: nothing leads into it, it does not overlap
//!   anything else that is replaced or copied, and no table names a place in it;
//! * changes that other tables make in the site come before (`module_finalize` has the
//!   order: paravirtual calls, thunks, returns); or the kernel goes by the address, and
//!   finds the instruction at the same distance from the start.

use std::ops::Range;

use elf_loader::SectionId;
use elf_loader::special::{Entry, EntryData, SpecialKind};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

use super::Patches;
use super::reader::Reader;
use crate::insn::Insn;
use crate::report::{Code, Report};

/// Most bytes of a site (`MAX_PATCH_LEN`, arch/x86/kernel/alternative.c).
const LONGEST: u8 = 254;
/// Features and bugs that a kernel numbers (`NCAPINTS + NBUGINTS`, 32 each,
/// arch/x86/include/asm/cpufeatures.h).
const FEATURES: u16 = (22 + 2) * 32;
/// The feature's flag for "not" (`ALTINSTR_FLAG_INV`).
const NOT: u16 = 1 << 15;
/// Most entries for one site. The kernel's macros make three.
const MOST: usize = 8;

/// One entry: instructions of the site, of its replacement, and the one after the site.
struct Alternative {
    table: SectionId,
    offset: u64,
    site: Range<u32>,
    replacement: Range<u32>,
    back: u32,
}

/// All of them.
#[derive(Default)]
pub(super) struct Ranges {
    list: Vec<Alternative>,
    /// All sites and replacements, sorted and each once; whether it is a site.
    sorted: Vec<(u32, u32, bool)>,
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
            cpuid,
            site_len,
            replacement_len,
        } = entry.data
        else {
            return Err("it is no alternative");
        };
        if cpuid & !NOT >= FEATURES {
            return Err("no kernel has a feature of that number");
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
        let site = reader.range(site, u64::from(site_len))?;
        let replacement = match replacement_len {
            0 => 0..0,
            length => {
                let place = entry.target().ok_or("it has no replacement")?;
                reader.range(place, u64::from(length))?
            }
        };
        if !moves(reader, replacement.clone()) {
            return Err("the replacement means something else where it is copied to");
        }
        self.list.push(Alternative {
            table,
            offset: entry.offset,
            site,
            replacement,
            back,
        });
        Ok(())
    }

    /// Judges the entries against each other: replaced or copied ranges do not overlap,
    /// except that a site may have several replacements.
    pub(super) fn finish(&mut self, report: &mut Report<'_>) {
        let mut all = Vec::new();
        for (n, a) in self.list.iter().enumerate() {
            let (site, copy) = (&a.site, &a.replacement);
            all.push((site.start, site.end, true, n));
            all.push((copy.start, copy.end, false, n));
        }
        all.retain(|&(start, end, ..)| start < end);
        all.sort_unstable();
        let mut same = 1;
        for pair in all.windows(2) {
            let ((start, end, site, _), (next, next_end, next_site, n)) = (pair[0], pair[1]);
            let again = (start, end) == (next, next_end) && site && next_site;
            same = if again { same + 1 } else { 1 };
            let reason = match () {
                () if !again && next < end => {
                    "it overlaps another range that is replaced or copied"
                }
                () if same > MOST => "too many replacements for one site",
                () => continue,
            };
            let entry = &self.list[n];
            report.at(entry.table, entry.offset, Code::Metadata, reason);
        }
        self.sorted = all
            .into_iter()
            .map(|(a, b, site, _)| (a, b, site))
            .collect();
        self.sorted.dedup();
    }

    /// Whether an entry of another table may name instruction `n`.
    pub(super) fn permits(&self, kind: SpecialKind, n: u32) -> Result<(), &'static str> {
        use SpecialKind as K;
        let after = self.sorted.partition_point(|&(start, ..)| start <= n);
        let around = after.checked_sub(1).map(|at| self.sorted[at]);
        match around.filter(|&(_, end, _)| n < end) {
            None => Ok(()),
            Some((.., false)) => Err("it names a place in code that the kernel only copies"),
            Some((.., true)) => match kind {
                K::ParaInstructions | K::RetpolineSites | K::ReturnSites | K::ExTable => Ok(()),
                _ => Err("it names a place that the kernel may have replaced"),
            },
        }
    }

    /// Adds the paths that this opens.
    pub(super) fn open(self, reader: &Reader<'_, '_>, patches: &mut Patches) {
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
    }
}

/// Instructions of the site and of the replacement that are equally far from its
/// start: `__ex_table` goes by the address.
fn same_places(reader: &Reader<'_, '_>, a: &Alternative) -> Vec<(u32, u32)> {
    let from = |range: &Range<u32>, n: u32| {
        let insn = |n| reader.program.get(n).map(|insn| insn.at);
        Some(insn(n)? - insn(range.start)?)
    };
    let copies = a.replacement.clone();
    let pairs = a.site.clone().filter_map(|old| {
        let distance = from(&a.site, old)?;
        let mut same = copies.clone();
        let new = same.find(|&new| from(&a.replacement, new) == Some(distance))?;
        Some((old, new))
    });
    pairs.collect()
}

/// Whether the copy does at the site what the replacement does in its own place.
fn moves(reader: &Reader<'_, '_>, replacement: Range<u32>) -> bool {
    let insns = &reader.program.insns[replacement.start as usize..replacement.end as usize];
    let keeps_target = |insn: &Insn| {
        let bytes = reader.image.bytes(insn);
        matches!(bytes, Some([0xe8 | 0xe9, _, _, _, _]))
    };
    match insns {
        [alone] if keeps_target(alone) => true,
        _ => insns.iter().all(|insn| is_independent(reader, insn)),
    }
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
    stays && !decoded.is_ip_rel_memory_operand()
}
