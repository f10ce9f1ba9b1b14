//! Which sections the kernel takes for its tables, and what a field of an entry
//! may name besides code.
//!
//! The kernel finds tables by name, but differently in each of its parts: `find_sec`
//! (kernel/module/main.c) takes the first that is loaded, `module_finalize`
//! (arch/x86/kernel/module.c) the last and `module_bug_finalize` (lib/bug.c) the first,
//! loaded or not. Relocations are applied only to loaded sections. So a table must be
//! the only one of its name, must be loaded, and must have its bytes in the file.
//!
//! The kernel reads entries by its own layout, whatever the table shows: with another one the
//! same bytes are other entries. So a table has a layout of the kernel that the module names.

use std::collections::HashSet;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_PROGBITS, STB_WEAK};
use elf_loader::reloc::relocation_type;
use elf_loader::special::{self, Entry, EntryLayout, FieldRole, Referent, SpecialKind};
use elf_loader::{Place, Relocation, Section, SectionId, SymbolId};
use twin_abi::sections;

use crate::findings::{Findings, ViolationCode};
use crate::kernel::references::KERNEL_SYMBOL;
use crate::object::Image;
use crate::object::loaded::is_reachable;
use crate::object::module::{RUNTIME, THIS_MODULE, is_freed};

/// The first two numbers of a kernel's release.
pub(super) type Series = (u32, u32);

/// The section in which a module says what it is, and the key of its kernel.
const MODINFO: &str = ".modinfo";
const VERMAGIC: &[u8] = b"vermagic=";

/// The first kernel with FineIBT.
const FIRST_WITH_FINEIBT: Series = (6, 2);
/// Tables that the kernel of x86 reads as little as what names them (`site`), or that a linker
/// script joins: compilers make one for each section of code.
const MANY: [&str; 2] = ["__patchable_function_entries", ".kcfi_traps"];
/// The kernels whose changes to code the rules here are about: the first two numbers of a
/// release, first and last.
const KERNELS: [Series; 2] = [(5, 10), (7, 3)];
/// Bytes of `struct static_key` and of `struct static_call_key`, which the kernel
/// writes (include/linux/jump_label_types.h, static_call_types.h).
const KEY: u64 = 16;
/// What may be in the low bits of the address of a key or of a static branch's entry
/// (`jump_entry_key`, include/linux/jump_label.h; `STATIC_CALL_SITE_FLAGS`, static_call_types.h).
pub(super) const FLAGS: u64 = 3;

/// Judges the sections that hold tables. Returns the kernel that the module is for, if it is
/// known.
pub(super) fn judge<'o>(image: &Image<'o>, findings: &mut Findings<'o>) -> Option<Series> {
    let series = match release(image) {
        Ok(release) => {
            let series = release.as_deref().and_then(series);
            if let (Some(release), None) = (release, series) {
                let reason =
                    format!("it is for Linux {release}, whose changes to code are not known");
                findings.object(ViolationCode::Metadata, reason);
            }
            series
        }
        Err(reason) => {
            findings.object(ViolationCode::Metadata, reason);
            None
        }
    };
    if let Err(error) = special::orc::encoding(image.object) {
        findings.object(ViolationCode::Metadata, error.to_string());
    }
    let mut seen = HashSet::new();
    let mut unwinding = [0, 0];
    for (id, section) in image.object.sections() {
        let name = &*section.name;
        let Some(kind) = special::kind_of(name) else {
            continue;
        };
        if let Err(reason) = table(kind, section) {
            findings.at(id, 0, ViolationCode::Metadata, reason);
        } else if !MANY.contains(&name) && !seen.insert(name) {
            findings.at(id, 0, ViolationCode::Metadata, "a second one of this name");
        }
        if let (Some(series), Ok(layout)) = (series, special::layout_of(image.object, id))
            && section.size != 0
            && !has(series, kind, &layout)
        {
            let reason = "the kernel that the module is for has another layout of this table";
            findings.at(id, 0, ViolationCode::Metadata, reason);
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
    series
}

/// The release that a module is for: the first word of its `vermagic`; `None` if it does not
/// say, as an object that is linked into a module. The kernel takes the first section of that
/// name that is loaded, and in it the first `vermagic`, as bytes up to the next zero, wherever that
/// is (`get_next_modinfo`, kernel/module/main.c).
///
/// # Errors
/// Why the kernel might read another release, or none.
fn release(image: &Image<'_>) -> Result<Option<String>, &'static str> {
    let all = image.object.sections();
    let mut named = all.filter(|(_, section)| section.name == MODINFO);
    // What the kernel takes for a module; anything else is to be linked into one.
    let whole = image.object.section_named(THIS_MODULE).is_some();
    let unsaid = match whole {
        true => Err("it does not say for which kernel it is (vermagic)"),
        false => Ok(None),
    };
    let Some((_, section)) = named.next() else {
        return unsaid;
    };
    let loaded = section.flags & SHF_ALLOC != 0 && section.kind == SHT_PROGBITS;
    if named.next().is_some() || !loaded {
        return Err("its .modinfo is not the only one, or not loaded");
    }
    if section.data.last().is_some_and(|byte| *byte != 0) {
        return Err(
            "its .modinfo has no end: its last text goes on with what is behind it in the file",
        );
    }
    let entries = section.data.split(|byte| *byte == 0);
    let mut kernels = entries.filter_map(|entry| entry.strip_prefix(VERMAGIC));
    match (kernels.next().map(std::str::from_utf8), kernels.next()) {
        (None, _) => unsaid,
        (Some(Ok(text)), None) => Ok(Some(text.split(' ').next().unwrap_or("").to_owned())),
        _ => Err("its .modinfo names more than one kernel, or one in no text"),
    }
}

/// The series of a release, `6.1.0-56-amd64`, if the rules are about it.
fn series(release: &str) -> Option<Series> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|n| n.parse::<u32>().ok());
    let series = number().zip(number())?;
    (KERNELS[0]..=KERNELS[1])
        .contains(&series)
        .then_some(series)
}

/// Whether a kernel of 5.15 may find a routine in an entry of `__ex_table`: its first releases do,
/// later ones find a type, and from which on is known of none but these.
pub(super) fn may_name_routines(image: &Image<'_>) -> bool {
    let release = release(image).ok().flatten().unwrap_or_default();
    let number = |text: &str| text.parse::<u32>().ok();
    // Ubuntu's: `5.15.0-204-generic`. From 1000 on each flavour counts for itself.
    let ubuntu = release.strip_prefix("5.15.0-");
    let ubuntu = ubuntu.and_then(|rest| number(rest.split_once('-')?.0));
    let stable = release.strip_prefix("5.15.");
    let stable = stable.and_then(|rest| number(rest.split(|c: char| !c.is_ascii_digit()).next()?));
    let has_types =
        ubuntu.is_some_and(|n| (204..1000).contains(&n)) || stable.is_some_and(|n| n >= 224);
    !has_types
}

/// Whether the module's kernel is one that looks for a function's trace entry behind its start, and takes
/// no `endbr64` for one (`is_endbr` without `CONFIG_X86_KERNEL_IBT`, arch/x86/include/asm/ibt.h): Debian's,
/// up to Linux 6.1. Others' configuration is not known; from 6.2 on it is the kernel's own choice.
pub(super) fn lacks_ibt(image: &Image<'_>) -> bool {
    const DEBIANS: &str = "amd64";
    let release = release(image).ok().flatten().unwrap_or_default();
    let known = series(&release).is_some_and(|series| ((5, 18)..=(6, 1)).contains(&series));
    known && release.ends_with(DEBIANS)
}

/// Whether the kernels of a series have this layout of a table's entries, and what they do by them
/// is known. Others than these tables have had one layout in all [`KERNELS`].
fn has(series: Series, kind: SpecialKind, layout: &EntryLayout) -> bool {
    let routine = layout.fields.iter().any(|f| f.role == FieldRole::Handler);
    match kind {
        // Later releases of 5.10 have the one of 5.13 (their retpolines are those of 5.17).
        SpecialKind::AltInstructions => match layout.size {
            12 => series <= (6, 2),
            13 => series <= (5, 12),
            _ => series >= (6, 3),
        },
        SpecialKind::BugTable => (layout.size == 16) == (series >= (6, 19)),
        // Later releases of 5.15 have the one of 5.17, and none of the routines that the other one
        // names: such a module is not linked there. Of the other way, see `Fixup`.
        SpecialKind::ExTable if series == (5, 15) => true,
        SpecialKind::ExTable => routine == (series < (5, 15)),
        SpecialKind::CfiSites => series >= FIRST_WITH_FINEIBT,
        _ => true,
    }
}

/// Judges the section of a table.
fn table(kind: SpecialKind, section: &Section<'_>) -> Result<(), &'static str> {
    // A key has the address of its first entry, with flags in the bits that are zero then
    // (`static_key_set_entries`, kernel/jump_label.c).
    if kind == SpecialKind::JumpTable && section.align <= FLAGS {
        return Err(
            "the kernel keeps flags in the low bits of an entry's address: align it to a word",
        );
    }
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
    let good = is_reachable(section).is_ok() && !runtime && !section.is_code();
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
    is_key(own_data(image, id)?, offset)
}

/// Whether the kernel may take data of the module's own for a key, which it writes.
pub(super) fn is_key(section: &Section<'_>, offset: u64) -> Result<(), &'static str> {
    if section.name == THIS_MODULE {
        return Err(
            "a key in the kernel's record of the module, over which the kernel would write",
        );
    }
    // Kernels keep its address, and write it when the module is unloaded.
    if is_freed(section) {
        return Err("a key in .init, whose memory others have later");
    }
    let inside = offset
        .checked_add(KEY)
        .is_some_and(|end| end <= section.size);
    if section.align <= FLAGS {
        return Err("the low bits of a key's address are flags: align its section to a word");
    }
    if !inside || section.flags & SHF_WRITE == 0 {
        return Err("a key that is not in writable data");
    }
    begins_no_list(section, offset)
        .then_some(())
        .ok_or("a key that begins with a list, of which the kernel would write over each place")
}

/// Whether the second word of a key says of what kind the key is, and nothing else. The kernel keeps the
/// list of the key's places there, and puts what it finds in a module behind the list that is there
/// (`__static_call_init`, kernel/static_call_inline.c; `jump_label_add_module`, kernel/jump_label.c).
fn begins_no_list(section: &Section<'_>, key: u64) -> bool {
    const WORD: usize = 8;
    const KIND: u8 = 1;
    let word = key + WORD as u64..key + KEY;
    let width = |r: &Relocation| relocation_type(r.kind).map_or(8, |t| t.width);
    let mut relocations = section.relocations.iter();
    let written = relocations.any(|r| r.offset < word.end && r.offset + width(r) > word.start);
    // What has no bytes in the file is zero.
    let bytes = section.data.iter().skip(word.start as usize).take(WORD);
    let mut bytes = bytes.enumerate();
    !written && bytes.all(|(n, byte)| *byte <= if n == 0 { KIND } else { 0 })
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
        // A weak one may be zero.
        Place::Undefined if !symbol.name.is_empty() && symbol.binding != STB_WEAK => {
            Ok(&symbol.name)
        }
        _ => Err("a field that names nothing of the kernel's"),
    }
}
