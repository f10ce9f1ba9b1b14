//! Which kernel a module is for, and in which form that kernel has what twin adds.
//!
//! The module says it: `vermagic` names the release, the tables have the layouts and
//! encodings of the kernel (`elf_loader::special`). A module of a release outside
//! [`OLDEST`] to [`NEWEST`] is refused before a table is misread.

use std::collections::HashSet;

use elf_loader::consts::{SHF_ALLOC, SHT_NOBITS, SHT_PROGBITS};
use elf_loader::special::orc::{self, Encoding};
use elf_loader::special::{EntryLayout, SpecialKind, layout_of};
use elf_loader::{Object, Section, modinfo, special};

use crate::refusal::{Refusal, RefusalCode};

/// A series of Linux: the first two numbers of a release.
type Series = (u32, u32);

/// The oldest series whose tables are known.
const OLDEST: Series = (5, 10);
/// The newest one.
const NEWEST: Series = (7, 3);
/// From which series on a BUG has a format (`HAVE_ARCH_BUG_FORMAT`, arch/x86/include/asm/bug.h).
/// A module without a bug table of its own cannot show it.
const BUG_FORMAT: Series = (6, 19);

/// The first kernel with FineIBT (arch/x86/kernel/alternative.c).
const FIRST_WITH_FINEIBT: Series = (6, 2);
/// The first one that writes over calls as well, and that may go on somewhere else behind a `ud2`.
const FIRST_WITH_CALLS: Series = (6, 15);

/// The forms that a module's kernel has of what the runtime adds to its tables.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Of unwind entries, if the module has any.
    pub unwinding: Option<Encoding>,
    /// Of an entry of `__bug_table`, if it is known.
    pub bugs: Option<EntryLayout>,
}

impl Kernel {
    /// The forms that the module shows, by its tables or else by its release.
    ///
    /// # Errors
    /// A table of no form that is known.
    pub fn of(object: &Object<'_>) -> Result<Kernel, Refusal> {
        let unknown = |e: special::SpecialError| {
            let table = SpecialKind::OrcUnwind.name();
            Refusal::at(RefusalCode::Metadata, table, 0, e.to_string())
        };
        let own = object
            .section_named(SpecialKind::BugTable.name())
            .filter(|id| object.section(*id).size != 0);
        let bugs = match own {
            Some(id) => layout_of(object, id).ok(),
            None => series(object).map(|series| {
                let layouts = SpecialKind::BugTable.layouts();
                layouts[usize::from(series >= BUG_FORMAT)]
            }),
        };
        Ok(Kernel {
            unwinding: orc::encoding(object).map_err(unknown)?,
            bugs,
        })
    }
}

/// Largest alignment, in bytes, that the kernel gives a section (`MODULE_ALIGN`,
/// arch/x86/kernel/module.c).
const PAGE: u64 = 4096;

/// Refuses a module of another series, and one that no kernel places as it demands.
///
/// # Errors
/// The series of the module, and what shows it.
pub fn check(object: &Object<'_>) -> Result<(), Refusal> {
    release(object)?;
    let mut seen = HashSet::new();
    for (_, section) in object.sections() {
        let name = &*section.name;
        let kind = special::kind_of(name);
        let reason = match kind {
            Some(SpecialKind::CfiSites)
                if section.size != 0 && series(object).is_some_and(|s| s < FIRST_WITH_FINEIBT) =>
            {
                Some("kernels with FineIBT (CONFIG_FINEIBT) are known from Linux 6.2 on")
            }
            _ if name == ".modinfo" && section.kind == SHT_NOBITS => {
                Some("the module's description of itself, without its bytes")
            }
            // A line is added, which would go on with the last one.
            _ if name == ".modinfo" && section.data.last().is_some_and(|byte| *byte != 0) => {
                Some("the module's description of itself, whose last text has no end")
            }
            _ if section.flags & SHF_ALLOC != 0 && section.align > PAGE => {
                Some("an alignment beyond a page, which no kernel gives it: lower it (`__aligned`)")
            }
            None => None,
            Some(_) if !has_many(name) && !seen.insert(name) => Some("a second table of this name"),
            Some(_) => unloaded(section),
        };
        if let Some(reason) = reason {
            return Err(Refusal::at(RefusalCode::Metadata, name, 0, reason));
        }
    }
    // Before anything is decided, so that it is the first thing that is said.
    Kernel::of(object).map(|_| ())
}

/// Whether the module's kernel has FineIBT: objtool made the table. It then takes a `ud2` at a distance
/// behind `endbr64` for a trap of its own, and may go on behind it or at another place
/// (`decode_fineibt_insn`, arch/x86/kernel/alternative.c).
pub fn has_fineibt(object: &Object<'_>) -> bool {
    let table = object.section_named(SpecialKind::CfiSites.name());
    table.is_some_and(|id| object.section(id).size != 0)
}

/// Whether the module's kernel has FineIBT and may write over calls.
pub fn writes_calls(object: &Object<'_>) -> bool {
    has_fineibt(object) && series(object).is_none_or(|series| series >= FIRST_WITH_CALLS)
}

/// Whether the module's kernel is one that writes over calls: it knows hashes in any register
/// (`decode_preamble_hash`).
pub fn knows_counting(object: &Object<'_>) -> bool {
    series(object).is_some_and(|series| series >= FIRST_WITH_CALLS)
}

/// Whether an object may have several tables of this name. Compilers make one for each section
/// of code (`SHF_LINK_ORDER`), which the module's linker script joins; the kernel reads none.
fn has_many(name: &str) -> bool {
    matches!(name, "__patchable_function_entries" | ".kcfi_traps")
}

/// Refuses a module of another series by its `vermagic`.
///
/// # Errors
/// The series of the module.
pub fn release(object: &Object<'_>) -> Result<(), Refusal> {
    if let Some(release) = modinfo::release(object)
        && !parsed(release).is_some_and(|series| (OLDEST..=NEWEST).contains(&series))
    {
        let reason = format!(
            "it is a module of Linux {release} by its vermagic, and only the tables of Linux {}.{} to {}.{} are known",
            OLDEST.0, OLDEST.1, NEWEST.0, NEWEST.1
        );
        return Err(Refusal::at(RefusalCode::Metadata, ".modinfo", 0, reason));
    }
    Ok(())
}

/// The series that a module is for.
fn series(object: &Object<'_>) -> Option<Series> {
    modinfo::release(object).and_then(parsed)
}

/// The series of a release, `6.1.0-56-amd64`.
fn parsed(release: &str) -> Option<Series> {
    let (major, rest) = release.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let minor = &rest[..end.unwrap_or(rest.len())];
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Why the kernel would not read a table as it is in the file.
fn unloaded(section: &Section<'_>) -> Option<&'static str> {
    match section.kind {
        _ if section.flags & SHF_ALLOC == 0 => {
            Some("a table that the kernel finds by its name, but that is not loaded")
        }
        SHT_PROGBITS => None,
        _ => Some("a table without its bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_the_first_two_numbers() {
        for good in ["6.1", "6.1.0", "6.1.0-56-amd64", "6.1-rc3", "6.1+"] {
            assert_eq!(parsed(good), Some((6, 1)), "{good}");
        }
        assert_eq!(parsed("6.12.95+deb13-amd64"), Some((6, 12)));
        assert_eq!(parsed("5.10.0-46-amd64"), Some((5, 10)));
        for bad in ["", "6", "linux", "6.x"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
