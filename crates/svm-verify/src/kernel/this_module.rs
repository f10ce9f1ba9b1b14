//! `.gnu.linkonce.this_module`: the kernel's own record of the module.
//!
//! The kernel takes the section's bytes in the file for its `struct module` and fills in most of
//! its fields, but not all, and some it counts on from what they hold (`layout_sections` of Linux
//! 6.3 and before adds to `core_layout.size`, kernel/module/main.c). A compiled module sets the
//! name and the two routines by which it is begun and ended, and nothing else (`add_header`,
//! scripts/mod/modpost.c; `MODULE_ARCH_INIT` is empty). So nothing else may be set here. Where
//! the two fields of the routines are depends on the kernel's configuration, which the object
//! does not say. But each has one, behind the name, and is code: the kernel calls it.

use elf_loader::consts::{R_X86_64_64, SHF_ALLOC, SHF_WRITE, SHT_PROGBITS};
use elf_loader::{Object, Place, Relocation, Section};

use crate::findings::{Findings, ViolationCode};
use crate::object::module::{THIS_MODULE, is_freed};

/// Where the name is: behind the state and the list's two pointers (`struct module`,
/// include/linux/module.h), `MODULE_NAME_LEN` bytes of 64-bit kernels.
const NAME: std::ops::Range<usize> = 24..24 + 56;
/// Fewer bytes no such record has. Linux 6.4 and later compare the size with their own
/// (`elf_validity_cache_copy`, kernel/module/main.c); those before write over what is behind.
const SMALLEST: u64 = 512;
/// The routines that it names.
const ROUTINES: [&str; 2] = ["init_module", "cleanup_module"];

/// Judges the record, if the object has one.
pub(super) fn judge<'o>(object: &'o Object<'o>, findings: &mut Findings<'o>) {
    let all = object.sections();
    let records = all.filter(|(_, section)| section.name == THIS_MODULE);
    for (number, (id, section)) in records.enumerate() {
        let judged = match number {
            0 => record(object, section),
            _ => Err((0, "a second one of this name")),
        };
        if let Err((offset, reason)) = judged {
            findings.at(id, offset, ViolationCode::Metadata, reason);
        }
    }
}

/// What is wrong with a record, and where.
fn record(object: &Object<'_>, section: &Section<'_>) -> Result<(), (u64, &'static str)> {
    const KEPT: u64 = SHF_ALLOC | SHF_WRITE;
    // It has nodes of trees, with flags in the low bits of their addresses (`struct rb_node`,
    // include/linux/rbtree_types.h).
    const WORD: u64 = 8;
    if section.align < WORD {
        return Err((
            0,
            "the kernel's record of a module is not aligned to a word",
        ));
    }
    let whole = section.data.len() as u64 == section.size && section.kind == SHT_PROGBITS;
    if !whole || section.flags & KEPT != KEPT || section.size < SMALLEST {
        return Err((
            0,
            "not the kernel's record of a module: too small, not loaded, or not writable",
        ));
    }
    let bytes = section.data.iter().enumerate();
    let set = |(at, byte): &(usize, &u8)| **byte != 0 && !NAME.contains(at);
    if let Some((at, _)) = bytes.into_iter().find(set) {
        return Err((
            at as u64,
            "the kernel's record of a module has more than a name",
        ));
    }
    // The kernel prints and copies it up to its end.
    if section.data[NAME.end - 1] != 0 {
        return Err((NAME.start as u64, "the name of a module has no end"));
    }
    let mut named = Vec::new();
    for r in &section.relocations {
        let name = routine(object, r).map_err(|reason| (r.offset, reason))?;
        if named.contains(&name) {
            let reason = "the kernel's record of a module names a routine twice";
            return Err((r.offset, reason));
        }
        named.push(name);
    }
    Ok(())
}

/// The routine that a relocation of a record names.
fn routine<'o>(object: &'o Object<'_>, r: &Relocation) -> Result<&'o str, &'static str> {
    let symbol = object.symbol(r.symbol);
    let name = &*symbol.name;
    let pointer = (r.kind, r.addend) == (R_X86_64_64, 0) && r.offset >= NAME.end as u64;
    if !pointer || !ROUTINES.contains(&name) {
        return Err("the kernel's record of a module names more than its routines");
    }
    match symbol.place {
        Place::In(id) if name == ROUTINES[1] && is_freed(object.section(id)) => {
            Err("the routine that ends the module is in .init, whose memory others have by then")
        }
        Place::In(id) if object.section(id).is_code() => Ok(name),
        _ => Err("a routine of the module that is no code"),
    }
}
