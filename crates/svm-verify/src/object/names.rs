//! Objects for `--target linux`: the code that the kernel enters by its name.
//!
//! For BPF the kernel calls a function whose address it looks up by the name that a FUNC of
//! some `.BTF` has: its own or any module's (`add_kfunc_call`, kernel/bpf/verifier.c, since
//! Linux 5.13; of modules since 5.16). It looks in its own symbols and then in those of every
//! module, of any type and binding (`find_kallsyms_symbol_value`, kernel/module/kallsyms.c). Which
//! FUNC it may be is said at run time. So what a module's own `.BTF` has does not bound which of
//! its functions are entered: each is an entry.
//!
//! Four kinds of names are none of an entry:
//!
//! * A cold part runs in the frame of its hot one. No kernel's and no stock module's `.BTF` has
//!   a name with `.cold`.
//! * Names in the runtime's code begin with `twin_`, which is twin's alone.
//! * No name: the kernel looks for none (`btf_name_valid_identifier`, kernel/bpf/btf.c).
//! * The hash of a type before a function, which begins with `__cfi_` and which `.cfi_sites` names: kernels
//!   with FineIBT write over it before they call it, others call it not. It may write any register, `rsp`
//!   too (`-fsanitize-kcfi-arity`).
//!
//! For this a module's `.BTF` has neither `.cold`, `twin_` nor `__cfi_` in it. The kernel takes a name from
//! any byte of the strings up to the next zero (`btf_str_by_offset`, ibid.), so all bytes of the
//! section are taken for strings.
//!
//! A name may also be one of a number (`SHN_ABS`), which the kernel would call as an address. Such
//! numbers are so low that nothing is mapped there, as constants of assembly are; those of files are
//! zero. The checksums of exports up to Linux 5.18 (`__CRC_SYMBOL`, include/linux/export.h) and kCFI's
//! hashes of types have up to 32 bits, so `.BTF` has no name of theirs either.
//!
//! Two names are where the kernel writes: around a module's tags of allocations.

use std::collections::HashSet;

use elf_loader::consts::{SHT_PROGBITS, STB_LOCAL, STT_FUNC};
use elf_loader::special::{self, SpecialKind};
use elf_loader::{Object, Place, Role, Section, SectionId, Symbol};
use twin_abi::{names, sections};

use crate::findings::{Findings, ViolationCode};
use crate::object::loaded::is_reachable;
use crate::object::module::{RUNTIME, THIS_MODULE, is_freed};

/// Sections that the kernel finds by their names and reads from the file
/// (`find_module_sections`, kernel/module/main.c): `.BTF` since Linux 5.11, the other since 6.11.
const BTF: [&str; 2] = [".BTF", ".BTF.base"];

/// What names of cold parts have in them (`-freorder-blocks-and-partition`).
const COLD: &str = ".cold";

/// How names of checksums begin, and of the hashes of types that clang defines for assembly
/// (`SYM_TYPED_START`, include/linux/cfi_types.h).
const CHECKSUM: &str = "__crc_";
const TYPE_HASH: &str = "__kcfi_typeid_";

/// How names begin of the hashes before functions.
const HASH: &str = "__cfi_";

/// The lowest address that a process may map (`CONFIG_DEFAULT_MMAP_MIN_ADDR`).
const LOWEST: u64 = 65_536;

/// Between what has these names in a module, Linux 6.15 and later write addresses of counters
/// (`load_module`, lib/alloc_tag.c). Linkers put them around the module's own tags
/// (include/asm-generic/codetag.lds.h).
const TAGS: [&str; 2] = ["__start_alloc_tags", "__stop_alloc_tags"];
/// Bytes of a tag (`struct alloc_tag`, include/linux/alloc_tag.h). The counter's address is its
/// last word, also of one of which only the first byte is there.
const TAG: u64 = 40;

/// The page of Xen's calls, which callers enter at any of its entries
/// ([`crate::decode::relocation`]). Kernels without it would take a module's own for it.
pub const XENS_PAGE: &str = "hypercall_page";

/// Judges the names in the runtime's code, of numbers and of Xen's page, and what `.BTF` has.
pub(super) fn judge<'o>(object: &'o Object<'o>, findings: &mut Findings<'o>) {
    if let Err(reason) = judge_tags(object) {
        findings.object(ViolationCode::Metadata, reason);
    }
    for (_, symbol) in object.symbols() {
        let Place::In(id) = symbol.place else {
            if !is_harmless(symbol) {
                let name = &symbol.name;
                let reason =
                    format!("symbol `{name}`: a number that the kernel may call by its name");
                findings.object(ViolationCode::Metadata, reason);
            }
            continue;
        };
        if symbol.name == XENS_PAGE {
            let reason = "a name that others take for the kernel's page of Xen's calls";
            findings.at(id, symbol.value, ViolationCode::Metadata, reason);
        }
        let own = symbol.name.is_empty() || symbol.name.starts_with(names::RUNTIME_PREFIX);
        if object.section(id).name == sections::LINUX_TEXT && !own {
            let reason = "a name in the runtime's code, by which the kernel could enter it";
            findings.at(id, symbol.value, ViolationCode::Runtime, reason);
        }
    }
    for (id, section) in object.sections() {
        if BTF.contains(&&*section.name)
            && let Err((at, reason)) = judge_btf(section)
        {
            findings.at(id, at, ViolationCode::Metadata, reason);
        }
    }
}

/// Judges what names of tags are around: some tags of the module's own, whole ones, in one section.
fn judge_tags(object: &Object<'_>) -> Result<(), &'static str> {
    let is_named = |s: &&Symbol<'_>| TAGS.contains(&&*s.name) && s.place != Place::Undefined;
    let mut named = object.symbols.iter().filter(is_named);
    let Some(first) = named.clone().next() else {
        return Ok(());
    };
    let good = |symbol: &Symbol<'_>| match symbol.place {
        Place::In(id) if symbol.place == first.place => {
            let section = object.section(id);
            symbol.value <= section.size
                && may_have_tags(section)
                && symbol.value.abs_diff(first.value).is_multiple_of(TAG)
        }
        _ => false,
    };
    match named.all(good) {
        true => Ok(()),
        false => Err("names between which the kernel writes counters, of something else than tags"),
    }
}

/// Whether a section is data of the module's own: no code, nothing of the runtime's, no other table
/// of the kernel's, not its record of the module, and there as long as the tags are counted.
fn may_have_tags(section: &Section<'_>) -> bool {
    let others = RUNTIME.contains(&&*section.name) || section.name == THIS_MODULE;
    !section.is_code() && !others && !is_freed(section) && is_reachable(section).is_ok()
}

/// Whether a symbol outside of all sections is no address of anything.
fn is_harmless(symbol: &Symbol<'_>) -> bool {
    let hashes = [CHECKSUM, TYPE_HASH];
    let is_hash = hashes.iter().any(|name| symbol.name.starts_with(name));
    let is_hash = is_hash && symbol.value <= u64::from(u32::MAX);
    let number = symbol.place == Place::Absolute && !symbol.name.is_empty();
    !number || symbol.kind != STT_FUNC && (symbol.value < LOWEST || is_hash)
}

/// Whether code is entered at a symbol. `hashes`: those that a table names ([`hashes`]).
pub(super) fn is_entered(symbol: &Symbol<'_>, hashes: &HashSet<(SectionId, u64)>) -> bool {
    let cold = symbol.kind == STT_FUNC && symbol.binding == STB_LOCAL && symbol.name.contains(COLD);
    let hash = symbol.name.starts_with(HASH)
        && matches!(symbol.place, Place::In(id) if hashes.contains(&(id, symbol.value)));
    !symbol.name.is_empty() && !cold && !hash
}

/// The hashes of types that `.cfi_sites` names.
pub fn hashes(object: &Object<'_>) -> HashSet<(SectionId, u64)> {
    let table = object.section_named(SpecialKind::CfiSites.name());
    let entries = table.and_then(|id| special::entries(object, id).ok());
    entries
        .unwrap_or_default()
        .iter()
        .filter_map(special::Entry::site)
        .collect()
}

/// Whether the kernel reads the bytes of a `.BTF` that are here, and none of them are a name
/// of code that is no entry.
fn judge_btf(section: &Section<'_>) -> Result<(), (u64, &'static str)> {
    // What is not loaded is not relocated or written either (`apply_relocations`).
    let plain = section.role == Role::Contents
        && (section.kind, section.flags) == (SHT_PROGBITS, 0)
        && section.relocations.is_empty()
        && section.data.len() as u64 == section.size;
    if !plain {
        return Err((0, "the kernel reads other bytes than the file has here"));
    }
    for (name, reason) in [
        (COLD, "the name of a cold part, which is no function"),
        (names::RUNTIME_PREFIX, "a name of the runtime"),
        (CHECKSUM, "the name of a checksum, which is no function"),
        (TYPE_HASH, "the name of a hash, which is no function"),
        (HASH, "the name of a hash, which is no function"),
    ] {
        if let Some(at) = find(&section.data, name.as_bytes()) {
            return Err((at as u64, reason));
        }
    }
    Ok(())
}

/// Where the bytes of a name first are.
fn find(bytes: &[u8], name: &[u8]) -> Option<usize> {
    let first = name.first()?;
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let skipped = rest.iter().position(|byte| byte == first)?;
        if rest[skipped..].starts_with(name) {
            return Some(at + skipped);
        }
        at += skipped + 1;
    }
}
