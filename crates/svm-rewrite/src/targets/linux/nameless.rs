//! Functions that no symbol of a function is of, and whose address is in data.
//!
//! Data may refer to what is a function by its name (docs/proof/linux.md). In assembly that is often
//! a label (`.quad helper`). Labels lose their names in an object, so one of these keeps it. Code
//! without any name that stays is refused.

use std::collections::{BTreeMap, BTreeSet};

use elf_loader::{Place, Symbol};
use twin_abi::sections;

use super::unresolved::{is_data, may_be_entered};
use crate::lift::{CodeIdx, Lifted, names_function};
use crate::refusal::{self, Refusal, RefusalCode};

/// A place in the original's code: section and offset.
type CodePlace = (CodeIdx, u64);

/// Places of the labels that keep their names: those of functions whose address is in data.
pub fn labels(lifted: &Lifted<'_>) -> BTreeSet<CodePlace> {
    let functions = lifted.functions.iter();
    let labelled = functions.filter(|f| f.is_entered && !f.has_symbol);
    let labelled: BTreeSet<CodePlace> = labelled.map(|f| (f.section, f.start)).collect();
    let mut held = taken(lifted);
    held.retain(|place, _| labelled.contains(place));
    held.into_keys().collect()
}

/// Refusals of such functions in an object.
pub fn find(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let labels = labels(lifted);
    let place = |symbol: &Symbol<'_>| place(lifted, symbol);
    refused(lifted, |symbol| {
        names_function(symbol) || place(symbol).is_some_and(|place| labels.contains(&place))
    })
}

/// The same in a text, which keeps its labels. Those that mark it are not in the result.
pub fn of_text(lifted: &Lifted<'_>) -> Vec<Refusal> {
    refused(lifted, |symbol| !symbol.name.starts_with(sections::PREFIX))
}

/// Refusals of functions in data that none of the symbols which are kept gives a name.
fn refused(lifted: &Lifted<'_>, is_kept: impl Fn(&Symbol<'_>) -> bool) -> Vec<Refusal> {
    const REASON: &str = "a function without a name: give it one, and `.type NAME, @function`";
    let mut held = taken(lifted);
    let starts = lifted.functions.iter().filter(|f| f.is_entered);
    let starts: BTreeSet<CodePlace> = starts.map(|f| (f.section, f.start)).collect();
    held.retain(|place, _| starts.contains(place));
    for (_, symbol) in lifted.object.symbols() {
        if may_be_entered(symbol)
            && is_kept(symbol)
            && let Some(place) = place(lifted, symbol)
        {
            held.remove(&place);
        }
    }
    let mut found = Vec::new();
    for ((code, offset), (section, at)) in held {
        let code = lifted.section_name(code);
        let reason = format!("data refers to {code}+{offset:#x}, {REASON}");
        refusal::add(
            &mut found,
            Refusal::at(RefusalCode::Name, &section, at, reason),
        );
    }
    found
}

/// The places in code whose address data has, each with a place where it has it.
fn taken(lifted: &Lifted<'_>) -> BTreeMap<CodePlace, (String, u64)> {
    let mut found = BTreeMap::new();
    let data = lifted.object.sections().filter(|(_, s)| is_data(s));
    for (_, section) in data {
        for r in &section.relocations {
            if let Some(place) = lifted.code_place(r.symbol, r.addend) {
                let here = || (section.name.to_string(), r.offset);
                found.entry(place).or_insert_with(here);
            }
        }
    }
    found
}

/// Where in code a symbol is.
fn place(lifted: &Lifted<'_>, symbol: &Symbol<'_>) -> Option<CodePlace> {
    match symbol.place {
        Place::In(id) => Some((lifted.code_section(id)?, symbol.value)),
        Place::Undefined | Place::Absolute | Place::Common => None,
    }
}
