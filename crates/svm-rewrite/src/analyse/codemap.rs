//! The code addresses that shared data may hold: the exact set of places that an
//! indirect call may reach (P2 of the contract, docs/contract-and-threat-model.md).
//!
//! A function is in the set if a relocation in data or an operand in code takes the
//! address of its start, or if other objects can (it is global). An address in
//! the middle of a function may be passed around as a value (`_THIS_IP_`), but
//! data that holds one is a jump table ([`crate::analyse::switches`]); calling through any
//! other data is not provable. Such a value may also be where a part begins that the compiler
//! moved elsewhere. Nothing may call it there: the stack is that of the function which jumps.

use std::collections::BTreeSet;

use elf_loader::consts::{R_X86_64_PC32, SHF_ALLOC, STB_LOCAL};
use elf_loader::{Relocation, special};
use foldhash::HashMap;

use crate::analyse::switches::Switches;
use crate::analyse::unread::{self, Unread};
use crate::lift::{CodeIdx, Destination, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Places that indirect calls may reach: section and offset, in order.
pub type Codemap = BTreeSet<(CodeIdx, u64)>;

/// Finds the functions whose address is taken, by section and offset.
///
/// # Errors
/// Data that refers into the middle of a function, other than the tables of `switches` and
/// those that are left out because they are `unread`.
pub fn entries(
    lifted: &Lifted<'_>,
    switches: &Switches,
    unread: &Unread,
) -> Result<Codemap, Vec<Refusal>> {
    let mut found = BTreeSet::new();
    let mut refusals = Vec::new();
    let starts: BTreeSet<(CodeIdx, u64)> = lifted
        .functions
        .iter()
        .filter(|f| !f.padding && !f.is_type_hash)
        .map(|f| (f.section, f.start))
        .collect();
    let parts = lifted
        .functions
        .iter()
        .filter(|f| !f.padding && !f.is_entered && !f.is_type_hash);
    let parts: BTreeSet<(CodeIdx, u64)> = parts.map(|f| (f.section, f.start)).collect();
    let by_code = lifted.named_places().map(|(_, place)| place);
    let by_code: BTreeSet<(CodeIdx, u64)> = by_code.filter(|p| starts.contains(p)).collect();
    let inside = jumped_to(lifted, switches, by_code.intersection(&parts));
    found.extend(by_code.difference(&inside));
    let data = lifted.object.sections();
    for (id, section) in data.filter(|(id, s)| holds_pointers(s) && !unread.has(*id)) {
        for r in &section.relocations {
            match lifted.code_place(r.symbol, r.addend) {
                Some(_) if switches.holds(id, r.offset) => {}
                Some(place) if parts.contains(&place) => {
                    refusal::add(&mut refusals, part(lifted, &section.name, r.offset, place));
                }
                Some(place) if starts.contains(&place) => {
                    found.insert(place);
                }
                Some((code, offset)) => refusal::add(
                    &mut refusals,
                    middle(lifted, &section.name, r, (code, offset)),
                ),
                None => {}
            }
        }
    }
    for symbol in lifted
        .object
        .symbols
        .iter()
        .filter(|s| s.binding != STB_LOCAL)
    {
        if let elf_loader::Place::In(id) = symbol.place {
            let place = lifted.code_section(id).map(|code| (code, symbol.value));
            found.extend(place.filter(|p| starts.contains(p)));
        }
    }
    if refusals.is_empty() {
        Ok(found)
    } else {
        Err(refusals)
    }
}

/// Those of these parts that jumps of another function lead to.
fn jumped_to<'p>(
    lifted: &Lifted<'_>,
    switches: &Switches,
    parts: impl Iterator<Item = &'p (CodeIdx, u64)>,
) -> Codemap {
    let begins = |&place: &(CodeIdx, u64)| lifted.inst_at(place.0, place.1).map(|i| (i, place));
    let parts: HashMap<InstIdx, (CodeIdx, u64)> = parts.filter_map(begins).collect();
    if parts.is_empty() {
        return Codemap::new();
    }
    let transfers = lifted.transfers.iter().copied();
    let by_branch = transfers.filter_map(|from| match lifted.inst(from).target {
        Some(Destination::Inst(to)) => Some((from, to)),
        _ => None,
    });
    let by_table = switches.iter().flat_map(|(from, switch)| {
        let cases = switch.cases.iter();
        cases.map(move |case| (from, case.to))
    });
    // No call leads to a part.
    by_branch
        .chain(by_table)
        .filter_map(|(from, to)| Some((from, to, *parts.get(&to)?)))
        .filter(|(from, to, _)| lifted.function_of(*from) != lifted.function_of(*to))
        .map(|(_, _, place)| place)
        .collect()
}

/// Data that a driver reads: loaded, not code, and not a table that only the
/// kernel reads.
fn holds_pointers(section: &elf_loader::Section<'_>) -> bool {
    section.flags & SHF_ALLOC != 0
        && !section.is_code()
        && special::kind_of(&section.name).is_none()
        && section.name != ".eh_frame"
}

/// Compilers put no address of a part into data.
fn part(lifted: &Lifted<'_>, data: &str, at: u64, (code, offset): (CodeIdx, u64)) -> Refusal {
    let place = lifted.inst_at(code, offset);
    let name = place.map_or("", |i| &lifted.function(lifted.function_of(i)).name);
    let reason = format!(
        "data refers to `{name}`, which by its name (.cold) is a part of a function that the \
         compiler moved elsewhere"
    );
    Refusal::at(RefusalCode::Name, data, at, reason)
}

fn middle(
    lifted: &Lifted<'_>,
    data: &str,
    r: &Relocation,
    (code, offset): (CodeIdx, u64),
) -> Refusal {
    let at = r.offset;
    if unread::is_named(data) {
        let reason = "a table of runtime constants that has another form, that something refers to, or that is in text: no kernel reads it in a module, leave it out";
        return Refusal::at(RefusalCode::Metadata, data, at, reason);
    }
    if r.kind == R_X86_64_PC32 {
        let reason = "data has a distance to code, and it is no word of a table in read-only data \
                      that one function's jumps alone use";
        return Refusal::at(RefusalCode::CodeReference, data, at, reason);
    }
    let place = lifted.inst_at(code, offset);
    let function = place.map(|i: InstIdx| lifted.function(lifted.function_of(i)));
    let name = function.map_or("", |f| &*f.name);
    let section = lifted.section_name(code);
    let what = match function {
        Some(f) if !f.has_symbol => {
            "a jump table, or a function whose symbol was stripped (`strip -g` keeps it)"
        }
        _ => "a jump table",
    };
    let reason = format!(
        "data refers to {section}+{offset:#x}, which is not the start of a function ({name}): {what}"
    );
    Refusal::at(RefusalCode::CodeReference, data, at, reason)
}
