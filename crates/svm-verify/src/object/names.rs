//! Objects for `--target linux`: the code that the kernel enters by its name.
//!
//! For BPF the kernel calls a function whose address it looks up by the name that a FUNC of
//! some `.BTF` has: its own or any module's (`add_kfunc_call`, kernel/bpf/verifier.c, since
//! Linux 5.13; of modules since 5.16). It looks in its own symbols and then in those of every
//! module, of any type and binding (`find_kallsyms_symbol_value`, kernel/module/kallsyms.c). Which
//! FUNC it may be is said at run time. So what a module's own `.BTF` has does not bound which of
//! its functions are entered: each is an entry.
//!
//! Three kinds of names are none of an entry:
//!
//! * A cold part runs in the frame of its hot one. No kernel's and no stock module's `.BTF` has
//!   a name with `.cold`.
//! * Names in the runtime's code begin with `twin_`, which is twin's alone.
//! * A local name without a type is a label of assembly, often inside a frame. It is an entry if
//!   the module's `.BTF` has it. That `.BTF` of the kernel or of another module has a FUNC of
//!   that name, which is not found before, is not excluded (`docs/proof/linux.md`, P2).
//!
//! For this a module's `.BTF` has neither `.cold` nor `twin_` in it. The kernel takes a name from
//! any byte of the strings up to the next zero (`btf_str_by_offset`, kernel/bpf/btf.c), so all
//! bytes of the section are taken for strings, and ends of strings for names.

use std::collections::{HashMap, HashSet};

use elf_loader::consts::{
    SHF_EXECINSTR, SHT_PROGBITS, STB_LOCAL, STT_FUNC, STT_NOTYPE, STT_SECTION,
};
use elf_loader::{Object, Place, Role, Section, Symbol};
use twin_abi::{names, sections};

use crate::findings::{Findings, ViolationCode};

/// Sections that the kernel finds by their names and reads from the file
/// (`find_module_sections`, kernel/module/main.c): `.BTF` since Linux 5.11, the other since 6.11.
const BTF: [&str; 2] = [".BTF", ".BTF.base"];

/// What names of cold parts have in them (`-freorder-blocks-and-partition`).
const COLD: &str = ".cold";

/// Which symbols the kernel may enter.
pub(super) struct Names<'o> {
    /// Labels that `.BTF` has.
    labels: HashSet<&'o str>,
}

impl<'o> Names<'o> {
    /// Judges the names of an object, and what its `.BTF` has.
    pub(super) fn new(object: &'o Object<'o>, findings: &mut Findings<'o>) -> Names<'o> {
        let mut labels = Backwards::default();
        for (_, symbol) in object.symbols() {
            let Place::In(id) = symbol.place else {
                continue;
            };
            let section = object.section(id);
            if section.flags & SHF_EXECINSTR != 0 && is_label(symbol) {
                labels.add(&symbol.name);
            }
            let own = symbol.name.is_empty() || symbol.name.starts_with(names::RUNTIME_PREFIX);
            if section.name == sections::LINUX_TEXT && !own {
                let reason = "a name in the runtime's code, by which the kernel could enter it";
                findings.at(id, symbol.value, ViolationCode::Runtime, reason);
            }
        }
        let mut found = HashSet::new();
        for (id, section) in object.sections() {
            if !BTF.contains(&&*section.name) {
                continue;
            }
            if let Err((at, reason)) = judge(section) {
                findings.at(id, at, ViolationCode::Metadata, reason);
            }
            labels.find(&section.data, &mut found);
        }
        Names { labels: found }
    }

    /// Whether code is entered at a symbol.
    pub(super) fn is_entered(&self, symbol: &Symbol<'_>) -> bool {
        match symbol.kind {
            STT_SECTION => !symbol.name.is_empty(),
            _ if is_label(symbol) => self.labels.contains(&*symbol.name),
            STT_FUNC if symbol.binding == STB_LOCAL => !symbol.name.contains(COLD),
            _ => true,
        }
    }
}

fn is_label(symbol: &Symbol<'_>) -> bool {
    symbol.kind == STT_NOTYPE && symbol.binding == STB_LOCAL
}

/// Whether the kernel reads the bytes of a `.BTF` that are here, and none of them are a name
/// of code that is no entry.
fn judge(section: &Section<'_>) -> Result<(), (u64, &'static str)> {
    // What is not loaded is not relocated or written either (`apply_relocations`).
    let plain = section.role == Role::Contents
        && (section.kind, section.flags) == (SHT_PROGBITS, 0)
        && section.relocations.is_empty()
        && section.data.len() as u64 == section.size;
    if !plain {
        return Err((0, "the kernel reads other bytes than the file has here"));
    }
    for (name, reason) in [
        (COLD, "the name of a cold part, which is no function"),
        (names::RUNTIME_PREFIX, "a name of the runtime"),
    ] {
        let at = section
            .data
            .windows(name.len())
            .position(|w| w == name.as_bytes());
        if let Some(at) = at {
            return Err((at as u64, reason));
        }
    }
    Ok(())
}

/// Names by their bytes from the last to the first, so that the ends of a string which are
/// names are found in one pass over it. Names that end alike share nodes, as they share bytes in
/// the file: there are at most as many nodes as the table of names has bytes.
#[derive(Default)]
struct Backwards<'o> {
    /// From a node (0: no byte yet) by a byte to the next.
    next: HashMap<(usize, u8), usize>,
    /// The name whose first byte leads to a node, from node 1.
    names: Vec<Option<&'o str>>,
}

impl<'o> Backwards<'o> {
    fn add(&mut self, name: &'o str) {
        let mut node = 0;
        for &byte in name.as_bytes().iter().rev() {
            node = *self.next.entry((node, byte)).or_insert_with(|| {
                self.names.push(None);
                self.names.len()
            });
        }
        if let Some(last) = node.checked_sub(1) {
            self.names[last] = Some(name);
        }
    }

    /// The names at the ends of the strings in `bytes`.
    fn find(&self, bytes: &[u8], found: &mut HashSet<&'o str>) {
        if self.next.is_empty() {
            return;
        }
        // No name has a zero in it, so each byte is looked at once.
        for string in bytes.split(|b| *b == 0) {
            let mut node = 0;
            for &byte in string.iter().rev() {
                let Some(&next) = self.next.get(&(node, byte)) else {
                    break;
                };
                node = next;
                found.extend(self.names[node - 1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_the_ends_of_strings_alone() {
        let mut names = Backwards::default();
        for name in ["g", "loop", "p", "fold"] {
            names.add(name);
        }
        let found = |bytes: &[u8]| {
            let mut found = HashSet::new();
            names.find(bytes, &mut found);
            let mut found: Vec<&str> = found.into_iter().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(found(b"\0a_loop\0folds\0"), ["loop", "p"]);
        assert_eq!(found(b"gg\0fol"), ["g"]);
        assert!(found(b"").is_empty());
    }
}
