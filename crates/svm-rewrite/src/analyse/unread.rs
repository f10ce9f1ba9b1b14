//! Tables about code that the kernel reads in itself, and in no module: runtime constants.
//!
//! ```text
//!         movabs $0x0123456789abcdef,%reg         # or shr $12,%reg32
//! 1:
//!         .pushsection runtime_ptr_USER_PTR_MAX,"a"
//!         .long 1b - 8 - .                        # the immediate's place
//! ```
//!
//! Code that starts the kernel writes such immediates (`runtime_const_fixup`,
//! arch/x86/include/asm/runtime-const.h). It goes from `__start_runtime_*` to `__stop_runtime_*`,
//! which the linker of vmlinux makes. The loader of modules looks for no section of these names
//! (`find_module_sections`, kernel/module/main.c), so a module's immediates stay as they are:
//! later kernels say `#error "Cannot use runtime-const infrastructure from modules"` there.
//! What nobody reads may be left out.

use elf_loader::consts::{R_X86_64_PC32, SHF_ALLOC, SHT_PROGBITS, STT_SECTION};
use elf_loader::{Object, Place, Section, SectionId, SymbolId};
use foldhash::{HashMap, HashSet};

/// What the names of these tables begin with; the rest is the constant's.
const NAMES: [&str; 2] = ["runtime_ptr_", "runtime_shift_"];
/// Bytes of an entry: a distance from its own place.
const ENTRY: u64 = 4;

/// The tables of an object that nobody reads.
#[derive(Default)]
pub struct Unread(HashSet<SectionId>);

impl Unread {
    /// Finds them. A table of another form, or that something refers to, is none of them.
    pub fn find(object: &Object<'_>) -> Unread {
        let named = object.sections().filter(|(_, s)| is_named(&s.name));
        let formed = named.filter(|(_, s)| has_form(object, s));
        let mut unread: HashSet<SectionId> = formed.map(|(id, _)| id).collect();
        if !unread.is_empty() {
            for id in referred_to(object, &unread) {
                unread.remove(&id);
            }
        }
        Unread(unread)
    }

    /// Whether a section is one of them.
    pub fn has(&self, id: SectionId) -> bool {
        self.0.contains(&id)
    }
}

/// Whether a section's name is that of a table of runtime constants.
pub fn is_named(section: &str) -> bool {
    NAMES.iter().any(|start| section.starts_with(start))
}

/// Whether all that a section has are distances to code, as the kernel's macros make them.
fn has_form(object: &Object<'_>, section: &Section<'_>) -> bool {
    let is_entry = |r: &elf_loader::Relocation| {
        let code =
            matches!(object.symbol(r.symbol).place, Place::In(id) if object.section(id).is_code());
        code && r.kind == R_X86_64_PC32 && r.offset.is_multiple_of(ENTRY)
    };
    let places: HashSet<u64> = section.relocations.iter().map(|r| r.offset).collect();
    (section.kind, section.flags) == (SHT_PROGBITS, SHF_ALLOC)
        && section.size == places.len() as u64 * ENTRY
        && section.relocations.len() == places.len()
        && section.relocations.iter().all(is_entry)
}

/// Those of some sections that a symbol is in, or that a relocation names.
fn referred_to(object: &Object<'_>, tables: &HashSet<SectionId>) -> Vec<SectionId> {
    let mut found = Vec::new();
    let mut whole: HashMap<SymbolId, SectionId> = HashMap::default();
    for (symbol, s) in object.symbols() {
        match s.place {
            Place::In(id) if !tables.contains(&id) => {}
            Place::In(id) if s.kind == STT_SECTION => _ = whole.insert(symbol, id),
            Place::In(id) => found.push(id),
            Place::Undefined | Place::Common | Place::Absolute => {}
        }
    }
    let relocations = object.sections().flat_map(|(_, s)| &s.relocations);
    found.extend(relocations.filter_map(|r| whole.get(&r.symbol)));
    found
}
