//! `__ksymtab`: the names by which other modules find what this one exports.
//!
//! The kernel links a module to whatever has the name that it asks for (`resolve_symbol`,
//! kernel/module/main.c). It does not load one that exports a name of its own
//! (`verify_exported_symbols`), but takes any name that it has not. Six kinds of names the rules
//! believe to be the kernel's:
//!
//! * [`XENS_PAGE`]: callers enter it at each of its entries, which here may be inside of instructions;
//! * the handlers of `__ex_table` ([`super::exceptions`]): a kernel without them reads a type where a
//!   module names one of them;
//! * `__put_user_1` and its siblings, of which some kernels have fewer: they are believed not to call the
//!   module back ([`crate::insn::Routine`]);
//! * `__x86_return_thunk`, by which the runtime's slow paths return, with all registers as they were: kernels
//!   without it would run the module's function there, and a check go on with what that leaves;
//! * thunks of registers, behind whose check of a type control goes where the check has read; and `BUG_func`,
//!   from which kernels count where a direct call leads ([`super::alternatives`]);
//! * keys of static calls: in the low bits of their addresses kernels have flags
//!   ([`super::tables`]), so they are aligned.
//!
//! The kernel reads the text that an entry names, whatever symbols there are. So each entry names one
//! that stays as it is in the file, and stays itself as it is. So does what it exports: by a number, or
//! by a relocation of another type, it could be any byte of code.

use elf_loader::consts::{R_X86_64_PC32, SHF_WRITE};
use elf_loader::{Object, Place, Relocation, Section, SectionId};

use super::tables;
use crate::object::loaded::{is_gone, is_reachable};
use crate::object::module::{THIS_MODULE, is_freed};
use crate::object::names::XENS_PAGE;

/// Bytes of an entry: the distances of the value, the name and the namespace (`struct kernel_symbol`,
/// include/linux/export-internal.h).
const ENTRY: u64 = 12;
/// Where in it the name's is.
const NAME: u64 = 4;
/// The texts themselves.
const TEXTS: &str = "__ksymtab_strings";
/// How names of handlers begin, of routines in assembly, and of static calls.
const HANDLER: &[u8] = b"ex_handler_";
const PUT_USER: &[u8] = b"__put_user_";
const RETURN_THUNK: &[u8] = b"__x86_return_thunk";
const THUNKS: [&[u8]; 2] = [b"__x86_indirect_", b"__x86_retpoline_"];
const BUG_FUNC: &[u8] = b"BUG_func";
const STATIC_CALLS: [&[u8]; 2] = [b"__SCK__", b"__SCT__"];

/// Whether a section is a table of exported symbols (`__KSYMTAB`, include/linux/export-internal.h;
/// with a symbol's name behind it in an object that is to be linked).
pub(super) fn is_table(section: &Section<'_>) -> bool {
    let begins = |start| section.name.starts_with(start);
    (begins("__ksymtab") || begins("___ksymtab")) && section.name != TEXTS
}

/// Judges the names in a table.
///
/// # Errors
/// What is wrong with one, and where.
pub(super) fn judge(object: &Object<'_>, table: &Section<'_>) -> Result<(), (u64, &'static str)> {
    if table.flags & SHF_WRITE != 0 {
        return Err((
            0,
            "a table of exports that may be written, and so name anything",
        ));
    }
    for at in (0..table.size).step_by(ENTRY as usize) {
        entry(object, table, at).map_err(|reason| (at, reason))?;
    }
    Ok(())
}

fn entry(object: &Object<'_>, table: &Section<'_>, at: u64) -> Result<(), &'static str> {
    let name = field(table, at + NAME).and_then(|r| text(object, r));
    let name = name.ok_or("an export whose name is no constant text of the module")?;
    if is_kernels(name) {
        return Err("an export of a name that others take for the kernel's");
    }
    let value = field(table, at).ok_or("an export whose place is no distance to a symbol")?;
    let value = place(object, value).map(|(id, offset)| (object.section(id), offset));
    if value.is_some_and(|(section, _)| section.name == THIS_MODULE) {
        return Err("an export of the kernel's record of the module, where others may have keys");
    }
    if value.is_some_and(|(section, _)| is_freed(section)) {
        return Err("an export of what is in .init, whose memory others have later");
    }
    if value.is_some_and(|(section, _)| is_gone(section)) {
        return Err("an export of what is not loaded, whose memory others have later");
    }
    match STATIC_CALLS.iter().any(|call| name.starts_with(call)) {
        true => static_call(value.ok_or("a static call that is exported is the module's own")?),
        false => Ok(()),
    }
}

/// Whether the rules believe a name to be the kernel's.
fn is_kernels(name: &[u8]) -> bool {
    let whole = [XENS_PAGE.as_bytes(), RETURN_THUNK, BUG_FUNC];
    let mut starts = [HANDLER, PUT_USER].into_iter().chain(THUNKS);
    whole.contains(&name) || starts.any(|start| name.starts_with(start))
}

/// Judges what is exported as a key of static calls, or as a trampoline.
fn static_call((section, offset): (&Section<'_>, u64)) -> Result<(), &'static str> {
    if offset & tables::FLAGS != 0 {
        return Err("a key of static calls, in whose address kernels have flags");
    }
    match section.is_code() {
        true => Ok(()),
        false => is_reachable(section).and_then(|()| tables::is_key(section, offset)),
    }
}

/// The relocation of a field.
fn field<'s>(table: &'s Section<'_>, at: u64) -> Option<&'s Relocation> {
    let all = &table.relocations;
    let r = all.get(all.partition_point(|r| r.offset < at))?;
    ((r.offset, r.kind) == (at, R_X86_64_PC32)).then_some(r)
}

/// The place in the object that a field names.
fn place(object: &Object<'_>, r: &Relocation) -> Option<(SectionId, u64)> {
    let symbol = object.symbol(r.symbol);
    match symbol.place {
        Place::In(id) => Some((id, symbol.value.checked_add_signed(r.addend)?)),
        _ => None,
    }
}

/// The text there, if nothing writes it.
fn text<'o>(object: &'o Object<'_>, r: &Relocation) -> Option<&'o [u8]> {
    let (id, start) = place(object, r)?;
    let section = object.section(id);
    let stays = section.flags & SHF_WRITE == 0
        && section.relocations.is_empty()
        && !is_freed(section)
        && !is_gone(section);
    let rest = section.data.get(usize::try_from(start).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    stays.then_some(&rest[..end])
}
