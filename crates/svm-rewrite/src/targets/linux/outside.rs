//! Addresses in a module's data of places that are in no section.
//!
//! The kernel puts a module's sections one behind the other (`layout_sections`,
//! kernel/module/main.c), so a place behind one of data may be any byte of code. Such an address
//! is a mistake in the driver's source: 104-quad-8 of Linux 5.11 has a pointer that is an
//! element too far. So is the distance to such a place in the table of exported symbols, which is
//! one from the field itself; elsewhere a distance may be one from the start of a table.

use elf_loader::consts::{R_X86_64_32, R_X86_64_32S, R_X86_64_64, SHF_ALLOC};
use elf_loader::{Object, Place, Relocation, Section, special};

use crate::refusal::{Refusal, RefusalCode};

/// Refuses an address in data, or the distance to an export, that is outside the section of its
/// symbol. The section's end is not outside.
///
/// # Errors
/// The first such address.
pub fn check(object: &Object<'_>) -> Result<(), Refusal> {
    let data = object.sections().filter(|(_, section)| is_data(section));
    for (_, section) in data {
        let exports = is_exports(section);
        let relocations = section.relocations.iter();
        for r in relocations.filter(|r| exports || is_address(r)) {
            if let Some(name) = left(object, r) {
                let reason = format!(
                    "data refers to a place outside {name}, where code may be: the driver's source \
                     has a pointer that is out of bounds"
                );
                let code = RefusalCode::CodeReference;
                return Err(Refusal::at(code, &section.name, r.offset, reason));
            }
        }
    }
    Ok(())
}

fn is_data(section: &Section<'_>) -> bool {
    section.flags & SHF_ALLOC != 0
        && !section.is_code()
        && (special::kind_of(&section.name).is_none() || is_exports(section))
}

fn is_exports(section: &Section<'_>) -> bool {
    section.name.starts_with("__ksymtab")
}

fn is_address(r: &Relocation) -> bool {
    matches!(r.kind, R_X86_64_64 | R_X86_64_32 | R_X86_64_32S)
}

/// The section of data that the address is outside of.
fn left<'o>(object: &'o Object<'_>, r: &Relocation) -> Option<&'o str> {
    let symbol = object.symbol(r.symbol);
    let Place::In(id) = symbol.place else {
        return None;
    };
    let section = object.section(id);
    let place = i128::from(symbol.value) + i128::from(r.addend);
    let inside = (0..=i128::from(section.size)).contains(&place);
    (!inside && !section.is_code()).then_some(&*section.name)
}
