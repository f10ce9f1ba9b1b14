//! What code names that is gone by then.
//!
//! The kernel frees a module's `.init` sections when the module has begun (`do_init_module`,
//! kernel/module/main.c), so code that stays may not lead there, nor name data there. kbuild only
//! warns of it (`modpost`, "section mismatch"). Parts of functions that stand beside them
//! (`.altinstr_aux` and its like) are those of functions in `.init` where they lead there.

use elf_loader::consts::SHF_ALLOC;
use elf_loader::{Object, Place, Section};

use crate::refusal::{Refusal, RefusalCode};

/// How the names of sections that are freed begin (`module_init_section`, kernel/module/main.c).
const FREED: &str = ".init";
/// Sections with parts of functions.
const PARTS: [&str; 3] = [".altinstr_replacement", ".altinstr_aux", ".fixup"];

/// Refuses what code that stays names of sections that are freed.
///
/// # Errors
/// The first such place.
pub fn check(object: &Object<'_>) -> Result<(), Refusal> {
    let code = object.sections().filter(|(_, section)| stays(section));
    for (_, section) in code {
        for r in &section.relocations {
            let Place::In(id) = object.symbol(r.symbol).place else {
                continue;
            };
            let named = object.section(id);
            if named.name.starts_with(FREED) {
                let reason = format!(
                    "code that stays names {}, which the kernel frees when the module has begun: take \
                     `__init` or `__initdata` away from what it names",
                    named.name
                );
                let code = match named.is_code() {
                    true => RefusalCode::BranchTarget,
                    false => RefusalCode::NamedMemory,
                };
                return Err(Refusal::at(code, &section.name, r.offset, reason));
            }
        }
    }
    Ok(())
}

/// Whether a section is code that stays when the module has begun.
fn stays(section: &Section<'_>) -> bool {
    let name = &section.name;
    let part = PARTS.iter().any(|part| name.starts_with(part));
    section.is_code() && section.flags & SHF_ALLOC != 0 && !part && !name.starts_with(FREED)
}
