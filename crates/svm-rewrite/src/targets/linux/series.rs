//! Checks which kernel a module is for.
//!
//! The format of a module's tables differs from series to series, and so do the runtime's
//! imports (`versions.rs`). Only Linux 6.1 is supported. A module for another series is
//! recognised by its `vermagic`, or by a table that 6.1 does not have or has in another
//! form. It is refused before its tables are misread.

use std::collections::HashSet;

use elf_loader::consts::{SHF_ALLOC, SHT_PROGBITS};
use elf_loader::{Object, Section, modinfo, special};

use crate::refusal::{Code, Refusal};

/// The series whose tables are known.
const KNOWN: &str = "6.1";

/// Tables about code that only other kernels have, with the series of these kernels.
const OTHERS: [(&str, &str); 6] = [
    (".call_sites", "Linux 6.2 and later, which may track calls"),
    (".cfi_sites", "Linux 6.2 and later with kCFI"),
    (
        ".ibt_endbr_seal",
        "kernels that seal functions (CONFIG_X86_KERNEL_IBT)",
    ),
    (
        ".orc_header",
        "Linux 6.4 and later, whose unwind tables have another format",
    ),
    ("__kcfi_traps", "kernels with kCFI"),
    (
        "__patchable_function_entries",
        "kernels with another kind of function tracing",
    ),
];

/// Refuses a module of another series.
///
/// # Errors
/// The series of the module, and what shows it.
pub fn check(object: &Object<'_>) -> Result<(), Refusal> {
    if let Some(release) = modinfo::release(object).filter(|release| !is_known(release)) {
        let reason = format!(
            "it is a module of Linux {release} by its vermagic, and only the tables of Linux {KNOWN} are known"
        );
        return Err(Refusal::at(Code::Metadata, ".modinfo", 0, reason));
    }
    let mut seen = HashSet::new();
    for (_, section) in object.sections() {
        let name = &*section.name;
        let other = OTHERS.iter().find(|(other, _)| *other == name);
        let reason = match other.filter(|_| section.size != 0) {
            Some((_, kernels)) => Some(format!("a table of {kernels}")),
            None if special::kind_of(name).is_none() => None,
            None if !seen.insert(name) => Some("a second table of this name".to_owned()),
            None => unloaded(section).map(str::to_owned),
        };
        if let Some(reason) = reason {
            return Err(Refusal::at(Code::Metadata, name, 0, reason));
        }
    }
    Ok(())
}

/// Whether a release, `6.1.0-56-amd64`, is of the series that is known.
fn is_known(release: &str) -> bool {
    let rest = release.strip_prefix(KNOWN);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
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
    fn a_series_is_more_than_a_prefix() {
        for good in ["6.1", "6.1.0", "6.1.0-56-amd64", "6.1-rc3", "6.1+"] {
            assert!(is_known(good), "{good}");
        }
        for other in ["6.12.38", "6.10", "5.10.0-34-amd64", "7.3", "16.1", ""] {
            assert!(!is_known(other), "{other}");
        }
    }
}
