//! Where rewritten code may be entered: the one place that decides.
//!
//! | who enters | where |
//! |---|---|
//! | the host, by a name that it chose | a function's symbol |
//! | another object's call | a symbol that the object exports |
//! | an indirect call | the codemap |
//!
//! The verifier interprets each of these as the start of a function with an empty
//! frame, by the same predicate ([`svm_verify::is_entry`]). A label is no entry: the
//! part that a compiler split off a function is entered with the function's frame.

use std::collections::HashMap;

use elf_loader::consts::STB_LOCAL;
use elf_loader::link::{Layout, Linked};
use elf_loader::{Object, Place};
use twin_abi::sections;

use crate::error::Error;
use crate::runtime::CodemapEntry;

/// The entries of one linked object.
#[derive(Debug, Default)]
pub struct Entries {
    /// Address by name, and whether other objects see it.
    named: HashMap<String, (u64, bool)>,
    codemap: Vec<CodemapEntry>,
}

impl Entries {
    /// The entries of a verified object that was linked like this.
    ///
    /// # Errors
    /// [`Error::Entries`]: the codemap does not lead from distinct addresses to this
    /// object's code.
    pub fn of(object: &Object<'_>, layout: &Layout, linked: &[Linked]) -> Result<Entries, Error> {
        let mut named = HashMap::new();
        for (_, symbol) in object.symbols().filter(|(_, s)| svm_verify::is_entry(s)) {
            let Place::In(section) = symbol.place else {
                continue;
            };
            let Some(start) = layout.address(section) else {
                continue;
            };
            let entry = (start + symbol.value, symbol.binding != STB_LOCAL);
            // An exported name takes precedence over a local symbol of that name.
            let known = named.entry(symbol.name.to_string()).or_insert(entry);
            if entry.1 {
                *known = entry;
            }
        }
        let codemap = distinct(codemap(object, linked))?;
        let code: Vec<_> = linked
            .iter()
            .filter(|l| object.section(l.section).is_code())
            .map(|l| l.address..l.address + l.bytes.len() as u64)
            .collect();
        let outside = |entry: &&CodemapEntry| !code.iter().any(|c| c.contains(&entry.hyp));
        match codemap.iter().find(outside) {
            Some(entry) => Err(Error::Entries(format!(
                "{:#x} is entered at {:#x}, which is not this object's code",
                entry.vm, entry.hyp
            ))),
            None => Ok(Entries { named, codemap }),
        }
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<u64> {
        self.named.get(name).map(|(address, _)| *address)
    }

    /// The same, if other objects may call it.
    pub fn exported(&self, name: &str) -> Option<u64> {
        let entry = self.named.get(name);
        entry.filter(|(_, exported)| *exported).map(|(at, _)| *at)
    }

    /// The permitted targets of indirect calls, ascending.
    pub fn codemap(&self) -> &[CodemapEntry] {
        &self.codemap
    }
}

/// Sorts a codemap by dom0's addresses, as the runtime bisects it.
///
/// # Errors
/// [`Error::Entries`]: two entries for one address. Names of sections are all that the
/// verifier knows of dom0's addresses; here they are numbers.
pub fn distinct(mut codemap: Vec<CodemapEntry>) -> Result<Vec<CodemapEntry>, Error> {
    codemap.sort_by_key(|entry| entry.vm);
    match codemap.windows(2).find(|pair| pair[0].vm == pair[1].vm) {
        Some(pair) => Err(Error::Entries(format!(
            "{:#x} has two entries, {:#x} and {:#x}",
            pair[0].vm, pair[0].hyp, pair[1].hyp
        ))),
        None => Ok(codemap),
    }
}

/// The rows of a linked object's `.twin.codemap`.
fn codemap(object: &Object<'_>, linked: &[Linked]) -> Vec<CodemapEntry> {
    let id = object.section_named(sections::CODEMAP);
    let Some(table) = linked.iter().find(|l| Some(l.section) == id) else {
        return Vec::new();
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let rows = table.bytes.chunks_exact(16);
    rows.map(|row| CodemapEntry {
        vm: word(&row[..8]),
        hyp: word(&row[8..]),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_entry() {
        let entry = |vm, hyp| CodemapEntry { vm, hyp };
        let sorted = distinct(vec![entry(9, 1), entry(3, 1)]).expect("two addresses");
        assert_eq!(sorted, [entry(3, 1), entry(9, 1)]);
        let twice = distinct(vec![entry(3, 1), entry(9, 2), entry(3, 3)]);
        assert!(matches!(twice, Err(Error::Entries(why)) if why.contains("0x3 has two")));
    }
}
