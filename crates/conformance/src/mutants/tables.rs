//! Where a kernel goes on besides where instructions say: what its tables of a module add to
//! the paths. Objects for a hypervisor have no tables.

use std::collections::{HashMap, HashSet};

use elf_loader::Object;
use elf_loader::special::{self, Entry, SpecialKind};
use iced_x86::Instruction;

use super::reach::Place;

/// The paths that tables add.
#[derive(Debug, Default)]
pub struct Tables {
    /// The `ud2` that the kernel goes on behind: of a WARN, and of a check of a type.
    warnings: HashSet<Place>,
    /// Where each static branch leads if it is on.
    jumps: HashMap<Place, Place>,
    /// Whether a table adds paths that are not followed.
    pub adds_others: bool,
}

impl Tables {
    /// Reads those of an object.
    pub fn of(object: &Object<'_>) -> Tables {
        let mut tables = Tables::default();
        for (id, section) in object.sections() {
            let Some(kind) = special::kind_of(&section.name) else {
                continue;
            };
            match special::entries(object, id) {
                Ok(entries) if entries.is_empty() => {}
                Ok(entries) if follows(kind) => entries.iter().for_each(|e| tables.add(e)),
                _ => tables.adds_others |= !adds_nothing(kind),
            }
        }
        tables
    }

    /// Where control may go after an instruction besides where that says. A static branch may
    /// be on or off, whatever is written there.
    pub fn also_after(&self, place: Place, i: &Instruction) -> impl Iterator<Item = Place> {
        let jump = self.jumps.get(&place).copied();
        let goes_on = jump.is_some() || self.warnings.contains(&place);
        let behind = goes_on.then_some((place.0, i.next_ip()));
        jump.into_iter().chain(behind)
    }

    fn add(&mut self, entry: &Entry) {
        let site = entry.site();
        self.warnings.extend(site.filter(|_| entry.may_go_on()));
        if entry.kind == SpecialKind::JumpTable {
            self.jumps.extend(site.zip(entry.target()));
        }
    }
}

fn follows(kind: SpecialKind) -> bool {
    use SpecialKind as K;
    matches!(kind, K::BugTable | K::JumpTable | K::KcfiTraps)
}

/// Whether a kernel that reads the table leaves the paths as they are. What it writes over a call
/// is a call or nothing, and a call loses all registers.
fn adds_nothing(kind: SpecialKind) -> bool {
    use SpecialKind as K;
    matches!(
        kind,
        K::McountLoc
            | K::SmpLocks
            | K::RetpolineSites
            | K::ReturnSites
            | K::OrcUnwind
            | K::OrcUnwindIp
            | K::StaticCallSites
            | K::CallSites
            | K::IbtEndbrSeal
            | K::PatchableFunctionEntries
    )
}
