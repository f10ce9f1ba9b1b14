//! Which sections the kernel takes for its tables, and what a field of an entry
//! may name besides code.
//!
//! The kernel finds tables by name, but differently in each of its parts: `find_sec`
//! (kernel/module/main.c) takes the first that is loaded, `module_finalize`
//! (arch/x86/kernel/module.c) the last and `module_bug_finalize` (lib/bug.c) the first,
//! loaded or not. Relocations are applied only to loaded sections. So a table must be
//! the only one of its name, must be loaded, and must have its bytes in the file.

use std::collections::HashSet;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_PROGBITS};
use elf_loader::special::{self, Entry, FieldRole, Referent, SpecialKind};
use elf_loader::{Place, Section, SectionId, SymbolId, modinfo};
use twin_abi::sections;

use crate::findings::{Findings, ViolationCode};
use crate::kernel::references::KERNEL_SYMBOL;
use crate::object::Image;
use crate::object::module::RUNTIME;

/// Tables about code that only kernels of other configurations use: traps of kCFI
/// (kernel/cfi.c).
const OTHERS: [&str; 1] = ["__kcfi_traps"];
/// The kernels whose changes to code the rules here are about: the first two numbers of a
/// release, first and last.
const KERNELS: [(u32, u32); 2] = [(5, 10), (7, 3)];
/// Bytes of `struct static_key` and of `struct static_call_key`, which the kernel
/// writes (include/linux/jump_label_types.h, static_call_types.h).
const KEY: u64 = 16;

/// Judges the sections that hold tables.
pub(super) fn judge<'o>(image: &Image<'o>, findings: &mut Findings<'o>) {
    if let Some(release) = modinfo::release(image.object)
        && !is_known(release)
    {
        let reason = format!("it is for Linux {release}, whose changes to code are not known");
        findings.object(ViolationCode::Metadata, reason);
    }
    if let Err(error) = special::orc::encoding(image.object) {
        findings.object(ViolationCode::Metadata, error.to_string());
    }
    let mut seen = HashSet::new();
    let mut unwinding = [0, 0];
    for (id, section) in image.object.sections() {
        let name = &*section.name;
        if OTHERS.contains(&name) && section.size != 0 {
            let reason = "kernels that have this table are not known";
            findings.at(id, 0, ViolationCode::Metadata, reason);
        }
        let Some(kind) = special::kind_of(name) else {
            continue;
        };
        if let Err(reason) = table(kind, section) {
            findings.at(id, 0, ViolationCode::Metadata, reason);
        } else if kind != SpecialKind::PatchableFunctionEntries && !seen.insert(name) {
            // That one the kernel reads as little as what names it (`site`).
            findings.at(id, 0, ViolationCode::Metadata, "a second one of this name");
        }
        match kind {
            SpecialKind::OrcUnwind => unwinding[0] = section.size / 6,
            SpecialKind::OrcUnwindIp => unwinding[1] = section.size / 4,
            _ => {}
        }
    }
    // Both are sorted by the one (orc_sort_swap, arch/x86/kernel/unwind_orc.c).
    if unwinding[0] != unwinding[1] {
        let reason = "its unwind tables are not of one length";
        findings.object(ViolationCode::Metadata, reason);
    }
}

/// Whether a release, `6.1.0-56-amd64`, is of a kernel that the rules are about.
fn is_known(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|n| n.parse::<u32>().ok());
    let series = number().zip(number());
    series.is_some_and(|series| (KERNELS[0]..=KERNELS[1]).contains(&series))
}

fn table(kind: SpecialKind, section: &Section<'_>) -> Result<(), &'static str> {
    let code = kind == SpecialKind::AltInstrReplacement;
    if section.flags & SHF_ALLOC == 0 {
        return Err("the kernel finds this table by its name, but it is not loaded");
    }
    if section.kind != SHT_PROGBITS || section.data.len() as u64 != section.size {
        return Err("a table without its bytes");
    }
    match section.flags & SHF_EXECINSTR != 0 {
        executable if executable != code => Err("a table that is code, or code that is none"),
        _ => Ok(()),
    }
}

/// Judges what an entry names besides code: keys, which the kernel writes, and
/// names of files, which it reads.
pub(super) fn keys(image: &Image<'_>, entry: &Entry) -> Result<(), &'static str> {
    for reference in &entry.references {
        match (reference.role, reference.to) {
            (FieldRole::Key | FieldRole::File, Referent::Nothing) => {
                return Err("a field without a relocation");
            }
            (FieldRole::Key, Referent::Here(id, offset)) => own_key(image, id, offset)?,
            (FieldRole::File | FieldRole::Format, Referent::Here(id, _)) => {
                own_text(image, entry, id)?;
            }
            (FieldRole::Key, Referent::Symbol(symbol, addend)) => {
                kernels_key(image, entry.kind, symbol, addend)?;
            }
            // No name: `bug_get_file_line` gives NULL, which is tested for (lib/bug.c).
            (FieldRole::File | FieldRole::Format, Referent::Symbol(SymbolId(0), 0)) => {}
            (FieldRole::File | FieldRole::Format, Referent::Symbol(symbol, _)) => {
                undefined(image, symbol).map(|_| ())?
            }
            _ => {}
        }
    }
    Ok(())
}

/// Loaded data of the module itself.
fn own_data<'o>(image: &Image<'o>, id: SectionId) -> Result<&'o Section<'o>, &'static str> {
    let section = image.object.section(id);
    let runtime = RUNTIME.contains(&&*section.name);
    let good =
        crate::kernel::references::is_reachable(section).is_ok() && !runtime && !section.is_code();
    good.then_some(section).ok_or("a field that names no data")
}

/// A text of the module itself; the runtime's own entry names one of the runtime's.
fn own_text(image: &Image<'_>, entry: &Entry, id: SectionId) -> Result<(), &'static str> {
    let name = |id: SectionId| &*image.object.section(id).name;
    let runtime = |id: SectionId| name(id) == sections::LINUX_TEXT;
    match name(id) == sections::LINUX_RODATA && entry.site().is_some_and(|(at, _)| runtime(at)) {
        true => Ok(()),
        false => own_data(image, id).map(|_| ()),
    }
}

fn own_key(image: &Image<'_>, id: SectionId, offset: u64) -> Result<(), &'static str> {
    let section = own_data(image, id)?;
    let inside = offset
        .checked_add(KEY)
        .is_some_and(|end| end <= section.size);
    (inside && section.flags & SHF_WRITE != 0)
        .then_some(())
        .ok_or("a key that is not in writable data")
}

/// A key of the kernel. That of a static call is recognised by its name: the kernel would
/// treat any other symbol as a key, too.
fn kernels_key(
    image: &Image<'_>,
    kind: SpecialKind,
    symbol: SymbolId,
    addend: i64,
) -> Result<(), &'static str> {
    let name = undefined(image, symbol)?;
    let good = match kind {
        SpecialKind::StaticCallSites => {
            addend == 0 && (name.starts_with("__SCT__") || name.starts_with("__SCK__"))
        }
        _ => (0..KERNEL_SYMBOL).contains(&addend),
    };
    good.then_some(())
        .ok_or("a key that is none of the kernel's")
}

fn undefined<'o>(image: &Image<'o>, symbol: SymbolId) -> Result<&'o str, &'static str> {
    let symbol = image.object.symbol(symbol);
    match symbol.place {
        Place::Undefined if !symbol.name.is_empty() => Ok(&symbol.name),
        _ => Err("a field that names nothing of the kernel's"),
    }
}
