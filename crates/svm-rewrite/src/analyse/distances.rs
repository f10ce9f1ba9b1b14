//! Distances to code in data, which follow the code only if it is known from where they count.
//!
//! ```text
//! ops:    .long   f - ops, 1            # R_X86_64_PC32 f
//!         .long   g - ops, 2            # R_X86_64_PC32 g+8: counts from 8 bytes before
//!         .long   h - .                 # R_X86_64_PC32 h
//! ```
//!
//! Such a field is its symbol plus addend less its own place. Where the addend is not 0, or the
//! symbol is a section's, symbol plus addend may be the beginning of another function than
//! the one that is meant. Tables of the kernel's count from their fields
//! ([`elf_loader::special`], `__ksymtab`; `DECLARE_PCI_FIXUP_SECTION`, include/linux/pci.h).

use elf_loader::consts::{SHF_ALLOC, STT_SECTION};
use elf_loader::reloc::relocation_type;
use elf_loader::{Relocation, Section, special};

use super::switches::Switches;
use super::unread::Unread;
use crate::lift::Lifted;
use crate::refusal::{self, Refusal, RefusalCode};

/// Refuses the distances that could not follow the code.
///
/// # Errors
/// All of them.
pub fn check(
    lifted: &Lifted<'_>,
    switches: &Switches,
    unread: &Unread,
) -> Result<(), Vec<Refusal>> {
    let mut refusals = Vec::new();
    let sections = lifted.object.sections();
    for (id, section) in sections.filter(|(id, s)| is_data(s) && !unread.has(*id)) {
        let others = section.relocations.iter();
        for r in others.filter(|r| !switches.holds(id, r.offset) && is_vague(lifted, r)) {
            let reason = "a distance to code that may count from another place than its own, so the \
                          function is not known: store the address (.quad f), or count from the \
                          word itself to a name that other objects see (.long f - .)";
            let code = RefusalCode::CodeReference;
            let refusal = Refusal::at(code, &section.name, r.offset, reason);
            refusal::add(&mut refusals, refusal);
        }
    }
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(refusals),
    }
}

/// How names of other tables of the kernel's begin whose distances count from their fields.
const COUNT_FROM_FIELDS: [&str; 2] = ["__ksymtab", ".pci_fixup"];

/// Whether a section is data, and no table whose fields the kernel knows.
fn is_data(section: &Section<'_>) -> bool {
    section.flags & SHF_ALLOC != 0
        && !section.is_code()
        && special::kind_of(&section.name).is_none()
        && !COUNT_FROM_FIELDS
            .iter()
            .any(|name| section.name.starts_with(name))
        && section.name != ".eh_frame"
}

/// Whether it may be another function than the one that is meant. A place inside one is that of a
/// jump table, or of nothing ([`super::codemap`]).
fn is_vague(lifted: &Lifted<'_>, r: &Relocation) -> bool {
    let distance = relocation_type(r.kind).is_some_and(|kind| kind.pc_relative);
    let named = lifted.object.symbol(r.symbol).kind != STT_SECTION && r.addend == 0;
    distance && !named && begins_function(lifted, r)
}

fn begins_function(lifted: &Lifted<'_>, r: &Relocation) -> bool {
    let place = lifted.code_place(r.symbol, r.addend);
    let at = place.and_then(|(code, offset)| lifted.inst_at(code, offset));
    at.is_some_and(|i| lifted.function(lifted.function_of(i)).insts.start == i.0)
}
