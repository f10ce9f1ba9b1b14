//! `__mcount_loc`: which function a trace entry is of.
//!
//! In Linux 5.18 and later, who traces a function may say its start, and the kernel looks for an
//! entry from there up to the next name (`ftrace_location`, kernel/trace/ftrace.c). BPF then calls
//! the function behind the five bytes of an entry at its start, or of one behind its `endbr64`,
//! wherever the entry is (`__arch_prepare_bpf_trampoline`, arch/x86/net/bpf_jit_comp.c). So the
//! first entry behind each name is there. A kernel without IBT calls what is 5 bytes behind the start of
//! one that begins with `endbr64`, too, which is inside of the entry. Others may follow: of a weak function whose name the
//! linker gave to another one the code stays, with its entry.

use std::collections::{BTreeMap, HashSet};

use elf_loader::SectionId;

use super::reader::Reader;
use crate::findings::{Findings, ViolationCode};
use crate::object::Meaning;

/// How names begin that some kernel does not count as a function's (`is_mapping_symbol`,
/// include/linux/module_symbol.h).
const UNCOUNTED: [&str; 3] = [".L", "L0", "$"];

/// Judges whose the entries are: fields of the table, with the instruction that each names.
pub(super) fn judge(
    reader: &Reader<'_, '_>,
    entries: impl Iterator<Item = (SectionId, u64, u32)> + Clone,
    findings: &mut Findings<'_>,
) {
    let traced: HashSet<u32> = entries.clone().map(|(.., n)| n).collect();
    if traced.is_empty() {
        return;
    }
    let names = names(reader);
    for (table, offset, n) in entries {
        let nearest = names.range(..=n).next_back();
        let good = nearest.is_some_and(|(&start, &counted)| {
            counted && is_one_section(reader, start, n) && is_traced(reader, &traced, start)
        });
        if !good {
            let reason = "a trace entry of a function that has none at its start or behind its endbr64, if the kernel takes that for one";
            findings.at(table, offset, ViolationCode::Metadata, reason);
        }
    }
}

/// The instructions that have a name, and whether every kernel counts one of their names.
fn names(reader: &Reader<'_, '_>) -> BTreeMap<u32, bool> {
    let mut names = BTreeMap::new();
    for (id, symbol) in reader.image.object.symbols() {
        if let Meaning::Code(at) = reader.image.meaning(id)
            && let Some(n) = reader.disassembly.at(at)
            && !symbol.name.is_empty()
        {
            let counted = !UNCOUNTED.iter().any(|u| symbol.name.starts_with(u));
            *names.entry(n).or_default() |= counted;
        }
    }
    names
}

fn is_one_section(reader: &Reader<'_, '_>, a: u32, b: u32) -> bool {
    let section = |n| reader.disassembly.get(n).map(|insn| insn.section);
    section(a) == section(b)
}

/// Whether the function that begins with an instruction has its own entry.
fn is_traced(reader: &Reader<'_, '_>, traced: &HashSet<u32>, start: u32) -> bool {
    let insn = reader.disassembly.get(start);
    let marked = !reader.lacks_ibt && insn.is_some_and(|insn| reader.is_endbr64(insn));
    let behind = reader.disassembly.next(start).filter(|_| marked);
    traced.contains(&start) || behind.is_some_and(|n| traced.contains(&n))
}
