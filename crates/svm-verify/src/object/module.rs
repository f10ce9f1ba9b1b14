//! Objects for `--target linux`: the sections and symbols of a module that a
//! stock kernel loads.
//!
//! A module has the data of the original, symbols that name it, and tables of places in
//! the code that the kernel reads or writes. So an object keeps the contract if, in
//! addition to the rules for all code,
//!
//! * the runtime in it is the runtime, byte for byte, its code once or more
//!   ([`same_runtime`]);
//! * nothing but checks names the translation table, and nothing but calls the
//!   runtime's code ([`crate::decode::relocation`], [`crate::kernel::references`]);
//! * each reference to code is to the start of an instruction; if it is in data, to the
//!   start of a function ([`crate::kernel::references`]);
//! * whatever has a name by which the kernel may enter it is an entry ([`super::names`]);
//! * each instruction that the kernel may write over is of the kind that the kernel
//!   expects, and the paths that this opens are interpreted with the others
//!   ([`crate::kernel`]).

use std::collections::{HashMap, HashSet};

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_NONE, R_X86_64_PC32, R_X86_64_PC64,
    R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_PROGBITS, STB_WEAK, STT_FILE,
    STT_FUNC,
};
use elf_loader::reloc::relocation_type;
use elf_loader::{Object, Place, Relocation, Role, Section, SectionId, Symbol};
use twin_abi::{names, sections};
use twin_linux_runtime::Returns;

use crate::findings::{Findings, ViolationCode};
use crate::insn::{CodeAt, Routine};
use crate::object::code_names::is_code_name;
use crate::object::names as entered;
use crate::object::{Image, Meaning, slow_register};

/// The sections of the runtime.
pub const RUNTIME: [&str; 3] = [
    sections::LINUX_TEXT,
    sections::LINUX_RODATA,
    sections::LINUX_STLB,
];

/// The kernel's record of the module, which makes the object a module. It says where the tables are
/// by which the kernel writes over code (`struct module`, include/linux/module.h).
pub const THIS_MODULE: &str = ".gnu.linkonce.this_module";

/// How the names of sections begin that are freed (`module_init_section`, kernel/module/main.c).
const FREED: &str = ".init";

/// Whether a section is freed when the module has begun (`do_init_module`, kernel/module/main.c).
pub fn is_freed(section: &Section<'_>) -> bool {
    section.name.starts_with(FREED)
}

/// Sorts the sections: fills [`Image::code`].
pub fn sections<'o>(image: &mut Image<'o>, findings: &mut Findings<'o>) {
    let (mut own, mut loaded) = (HashSet::new(), copied(image.object));
    for (id, section) in image.object.sections() {
        let name = &*section.name;
        let code = section.flags & SHF_EXECINSTR != 0;
        let twin = RUNTIME.contains(&name) || [sections::NOTE, sections::MAP].contains(&name);
        if section.flags & SHF_ALLOC != 0 || is_kept(section) {
            loaded += section.size + section.align;
        }
        if let Err(reason) = layout(section) {
            findings.at(id, 0, ViolationCode::Section, reason);
        }
        if twin && !own.insert(name) {
            findings.at(id, 0, ViolationCode::Section, "a second one of this name");
        } else if name.starts_with(".gnu.lto_") || name == ".llvm.lto" {
            let reason = "the linker would make other code of it (-flto)";
            findings.at(id, 0, ViolationCode::Section, reason);
        } else if name == sections::CODEMAP {
            findings.at(
                id,
                0,
                ViolationCode::Section,
                "a module for a stock kernel has none",
            );
        } else if code && section.flags & SHF_WRITE != 0 {
            findings.at(
                id,
                0,
                ViolationCode::Section,
                "it is writable and executable",
            );
        } else if code
            && (section.kind != SHT_PROGBITS || section.data.len() as u64 != section.size)
        {
            findings.at(id, 0, ViolationCode::Section, "code without its bytes");
        } else if code && section.flags & SHF_ALLOC == 0 {
            findings.at(id, 0, ViolationCode::Section, "code that is not loaded");
        } else if code && section.flags & STRINGS != 0 {
            let reason = "code of which a linker keeps equal parts once, elsewhere than they were";
            findings.at(id, 0, ViolationCode::Section, reason);
        } else if code && !RUNTIME.contains(&name) && !is_code_name(name) {
            let reason = "code in a section that a kernel may take for something else by its name";
            findings.at(id, 0, ViolationCode::Section, reason);
        } else if code && !RUNTIME.contains(&name) {
            match image.code.len() < usize::from(u16::MAX) {
                true => image.code.push(id),
                false => findings.at(id, 0, ViolationCode::Section, "too many code sections"),
            }
        }
    }
    if loaded > LARGEST {
        findings.object(ViolationCode::Size, "more than a gigabyte would be loaded");
    }
    for name in RUNTIME {
        if !own.contains(name) {
            findings.object(ViolationCode::Runtime, format!("it has no {name}"));
        }
    }
}

/// Largest module, in bytes: the kernel adds up sizes and alignments with 32 bits
/// (`module_get_offset`, kernel/module/main.c).
const LARGEST: u64 = 1 << 30;
/// Bytes of its symbols that the kernel keeps besides the tables of the file: each has an entry and a
/// type there, and a name of its own, also where names share bytes of the file (`layout_symtab`,
/// `add_kallsyms`, kernel/module/kallsyms.c).
fn copied(object: &Object<'_>) -> u64 {
    const ENTRY_AND_TYPE: u64 = 24 + 1;
    let symbols = object.symbols.iter();
    symbols
        .map(|s| ENTRY_AND_TYPE + s.name.len() as u64 + 1)
        .sum()
}

/// Largest alignment, in bytes: where the kernel puts a module is a multiple of it
/// (`MODULE_ALIGN`, arch/x86/kernel/module.c).
const PAGE: u64 = 4096;
/// The relocations in this section name its symbols (gABI chapter 4).
const SHF_INFO_LINK: u64 = 0x40;
/// A linker would expand the contents; the kernel takes them as they are (gABI chapter 4).
const SHF_COMPRESSED: u64 = 0x800;
/// `SHF_MERGE` and `SHF_STRINGS`: lld joins equal parts of such a section also with `-r`, and moves
/// them (gABI chapter 4; `MergeInputSection`, lld/ELF/InputSection.cpp).
const STRINGS: u64 = 0x30;
/// The section belongs to a group (gABI chapter 4).
const SHF_GROUP: u64 = 0x200;

/// Types of relocations that the kernel applies (`__apply_relocate_add`,
/// arch/x86/kernel/module.c).
const APPLIED: [u32; 7] = [
    R_X86_64_NONE, R_X86_64_64, R_X86_64_32, R_X86_64_32S, R_X86_64_PC32, R_X86_64_PLT32,
    R_X86_64_PC64,
];

/// Whether the kernel puts a table of the file among the module's own data, whatever its flags, and
/// counts where by its alignment (`layout_symtab`, kernel/module/kallsyms.c).
fn is_kept(section: &Section<'_>) -> bool {
    matches!(section.role, Role::SymbolTable | Role::SymbolNames)
}

/// Whether the kernel loads and relocates a section as a linker would.
fn layout(section: &Section<'_>) -> Result<(), &'static str> {
    match section.role {
        // With other flags a table is applied later or not at all
        // (`SHF_RELA_LIVEPATCH`, `apply_relocations`, kernel/module/main.c). A group means
        // nothing to a kernel.
        Role::Relocations(_) if section.flags & !(SHF_INFO_LINK | SHF_GROUP) != 0 => {
            return Err("relocations that are not applied when the module is loaded");
        }
        Role::Contents | Role::Relocations(_) | Role::Null => {}
        Role::SymbolTable | Role::SymbolNames | Role::SectionNames => {
            if section.flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR) != 0 {
                return Err("a table of the object file that would be loaded");
            }
        }
    }
    if section.align > PAGE && is_kept(section) {
        return Err("an alignment that the kernel cannot give it");
    }
    if section.flags & SHF_ALLOC == 0 {
        return Ok(());
    }
    if section.flags & SHF_COMPRESSED != 0 {
        return Err("contents that are compressed, and that would be loaded");
    }
    if section.align > PAGE {
        return Err("an alignment that the kernel cannot give it");
    }
    if !section
        .relocations
        .iter()
        .all(|r| APPLIED.contains(&r.kind))
    {
        return Err("a relocation that the kernel does not know");
    }
    let width = |r: &Relocation| relocation_type(r.kind).map_or(8, |t| t.width);
    let overlap = |pair: &[Relocation]| pair[0].offset + width(&pair[0]) > pair[1].offset;
    match section.relocations.windows(2).any(overlap) {
        true => Err("relocations that write over each other"),
        false => Ok(()),
    }
}

/// What symbols mean: fills [`Image::symbols`] and [`Image::entered`].
pub fn symbols<'o>(image: &mut Image<'o>, findings: &mut Findings<'o>) {
    let slow = slow_paths(image, findings);
    entered::judge(image.object, findings);
    image.runtime_calls = runtime_calls(image.object, slow.keys());
    let hashes = entered::hashes(image.object);
    for (id, symbol) in image.object.symbols() {
        let meaning = if id.0 == 0 {
            Meaning::Unusable("it is the null symbol")
        } else {
            meaning(image, symbol, &slow)
        };
        image.symbols.push(meaning);
        if let Meaning::Code(at) = meaning {
            match entered::is_entered(symbol, &hashes) {
                true => image.entered.push(at),
                false if !symbol.name.is_empty() => image.named.push(at),
                false => {}
            }
        }
    }
}

fn meaning(image: &Image<'_>, symbol: &Symbol<'_>, slow: &HashMap<u64, Routine>) -> Meaning {
    let Place::In(id) = symbol.place else {
        return match symbol.place {
            Place::Undefined if symbol.name.is_empty() => {
                Meaning::Unusable("an undefined symbol without a name")
            }
            Place::Undefined => undefined(symbol),
            Place::Absolute if symbol.kind == STT_FILE => Meaning::Unusable("it names a file"),
            _ => Meaning::Unusable("it has no place in a section"),
        };
    };
    let Ok(offset) = i64::try_from(symbol.value) else {
        return Meaning::Unusable("its value is outside its section");
    };
    if let Some(section) = image.number(id) {
        return Meaning::Code(CodeAt { section, offset });
    }
    match &*image.object.section(id).name {
        sections::LINUX_STLB if offset == 0 => Meaning::Table,
        sections::LINUX_STLB => Meaning::Unusable("a place inside the translation table"),
        sections::LINUX_RODATA => Meaning::Unusable("it belongs to the runtime"),
        sections::LINUX_TEXT => match slow.get(&symbol.value) {
            Some(routine) if symbol.kind == STT_FUNC => Meaning::Routine(*routine),
            _ => Meaning::Unusable("it is no entry of the runtime"),
        },
        _ => Meaning::Data(id, offset),
    }
}

/// Names of the kernel's routines that continue at the address in a register.
const THUNKS: [&str; 4] = [
    "__x86_indirect_thunk_",
    "__x86_indirect_call_thunk_",
    "__x86_indirect_jump_thunk_",
    // Of assembly in Linux 5.12 and before.
    "__x86_retpoline_",
];

/// How names of others of them begin (`__x86_indirect_its_thunk_rax`, arch/x86/lib/retpoline.S).
const ANY_THUNK: &str = "__x86_indirect_";

/// The entry of traces, which the compiler calls where a function begins (`-mfentry`).
const TRACE: &str = "__fentry__";

/// What the kernel puts in the place of an undefined symbol (`simplify_symbols`,
/// kernel/module/main.c): an exported symbol of that name, else zero if it is weak.
fn undefined(symbol: &Symbol<'_>) -> Meaning {
    let register = THUNKS.iter().find_map(|t| symbol.name.strip_prefix(t));
    match register.map(slow_register) {
        _ if symbol.binding == STB_WEAK || symbol.name == "_GLOBAL_OFFSET_TABLE_" => {
            Meaning::Unusable("a symbol that may stay unresolved: zero")
        }
        Some(Err(_)) => {
            Meaning::Unusable("a thunk of no register that may hold an address of code")
        }
        Some(Ok(r)) => Meaning::Routine(Routine::Thunk(r)),
        None if symbol.name.starts_with(ANY_THUNK) => {
            Meaning::Unusable("a thunk that is not known: it may continue at any address")
        }
        None if is_put_user(&symbol.name) => Meaning::Routine(Routine::PutUser),
        None if symbol.name == TRACE => Meaning::Routine(Routine::Trace),
        None if SELECTORS.contains(&&*symbol.name) => Meaning::Unusable(
            "data among the kernel's code: as a routine it stores where rax leads, and stops",
        ),
        None if is_interrupt(&symbol.name) => Meaning::Unusable(
            "the entry of an interrupt, which does not return: it takes rip and rsp from the frame",
        ),
        None => Meaning::Routine(Routine::Imported),
    }
}

/// Why the address of a routine may be nowhere, so that it is called by its name alone.
pub fn called_by_name(routine: Routine) -> Option<&'static str> {
    match routine {
        Routine::PutUser => Some(
            "it changes rbx, which a call by a pointer is believed to keep; call it by its name",
        ),
        Routine::Trace => Some(
            "it takes what is on the stack for its caller's return address; call it by its name, where a function begins",
        ),
        Routine::Thunk(_) => Some(
            "it goes on at the address in another register than the pointer's; call it by its name",
        ),
        _ => None,
    }
}

/// Routines that are written in assembly and leave a limit of user addresses in `rbx`
/// (arch/x86/lib/putuser.S, Linux 5.10 to 7.3). `__put_user_ns` is none: it is compiled.
fn is_put_user(name: &str) -> bool {
    let sized = name.strip_prefix("__put_user_");
    let size = sized.map(|rest| rest.strip_prefix("nocheck_").unwrap_or(rest));
    matches!(size, Some("1" | "2" | "4" | "8"))
}

/// Where processors enter the kernel for an exception or an interrupt (`DECLARE_IDTENTRY`,
/// arch/x86/include/asm/idtentry.h). They end with `iretq`. For KVM the kernel exports one of
/// them: `asm_exc_nmi_noist`, since Linux 5.17 or so `asm_exc_nmi_kvm_vmx`.
fn is_interrupt(name: &str) -> bool {
    const ENTRIES: [&str; 6] = [
        "asm_exc_",
        "asm_sysvec_",
        "asm_int80_",
        "asm_common_interrupt",
        "asm_spurious_interrupt",
        // Of a guest of Xen's (arch/x86/xen/xen-asm.S).
        "xen_asm_",
    ];
    ENTRIES.iter().any(|entry| name.starts_with(entry))
}

/// The selector for `verw`, which the kernel has among its code and exports for KVM
/// (arch/x86/entry/entry.S): `18 00`, which is `sbb %al, (%rax)`, then `int3`.
const SELECTORS: [&str; 2] = ["mds_verw_sel", "x86_verw_sel"];

/// Offsets of the slow paths in the runtime's code, as the runtime itself has
/// them, if the runtime in the object is that one.
fn slow_paths<'o>(image: &Image<'o>, findings: &mut Findings<'o>) -> HashMap<u64, Routine> {
    let mut slow = HashMap::new();
    let mut different = String::new();
    let forms = [Returns::Thunk, Returns::Plain].into_iter();
    let found = forms.into_iter().find_map(|returns| {
        let bytes = twin_linux_runtime::object(image.scheme.scheme(), returns);
        let runtime = elf_loader::read(bytes).ok()?;
        let reason = same_runtime(image.object, &runtime).err();
        let Some(reason) = reason else {
            return Some(runtime);
        };
        different = reason;
        None
    });
    let Some(runtime) = found else {
        findings.object(ViolationCode::Runtime, different);
        return slow;
    };
    for copy in copies(image.object, &runtime) {
        for (_, symbol) in runtime.symbols() {
            let register = symbol.name.strip_prefix(names::SLOW_PREFIX);
            if let Some(Ok(r)) = register.map(slow_register) {
                slow.insert(copy + symbol.value, Routine::Slow(r));
            }
        }
    }
    slow
}

/// The calls in the runtime's code, which is compared: each slow path is
/// `push %reg; call twin_slow; ...`, and nothing else calls.
fn runtime_calls<'s>(object: &Object<'_>, slow: impl Iterator<Item = &'s u64>) -> HashSet<u64> {
    const REX_B: u8 = 0x41;
    const CALL: u8 = 0xe8;
    let text = object.section_named(sections::LINUX_TEXT);
    let Some(code) = text.map(|id| &object.section(id).data) else {
        return HashSet::new();
    };
    let byte = |at: u64| {
        usize::try_from(at)
            .ok()
            .and_then(|at| code.get(at))
            .copied()
    };
    let behind_push = slow.map(|entry| entry + 1 + u64::from(byte(*entry) == Some(REX_B)));
    behind_push.filter(|at| byte(*at) == Some(CALL)).collect()
}

/// Fills the runtime's code up to its alignment where another copy follows: `int3`.
const FILLING: u8 = 0xcc;

/// Distance between two copies of a section of the runtime, in bytes.
fn stride(section: &Section<'_>) -> u64 {
    section.size.next_multiple_of(section.align.max(1)).max(1)
}

/// Where copies of the runtime's code begin. A module that was linked from rewritten
/// texts has a copy from each of its objects.
fn copies(object: &Object<'_>, runtime: &Object<'_>) -> Vec<u64> {
    let size = |o: &Object<'_>| Some(stride(o.section(o.section_named(sections::LINUX_TEXT)?)));
    let (Some(whole), Some(one)) = (size(object), size(runtime)) else {
        return Vec::new();
    };
    (0..whole / one).map(|n| n * one).collect()
}

/// Whether the runtime in the object is the runtime.
fn same_runtime(object: &Object<'_>, runtime: &Object<'_>) -> Result<(), String> {
    for name in RUNTIME {
        let part = |o: &Object<'_>| o.section_named(name).map(|id| id.0 as usize);
        let (Some(mine), Some(theirs)) = (part(object), part(runtime)) else {
            return Err(format!("{name} is missing"));
        };
        let (mine, theirs) = (&object.sections[mine], &runtime.sections[theirs]);
        // One group is linked once; a group that was linked means nothing to a kernel.
        let flags = mine.flags & !SHF_GROUP;
        let same = match name {
            sections::LINUX_TEXT => is_copies(&mine.data, theirs),
            _ => mine.data == theirs.data,
        };
        if !same
            || mine.size != mine.data.len() as u64
            || (mine.kind, flags) != (theirs.kind, theirs.flags)
            || mine.align < theirs.align
        {
            return Err(format!("{name} is not the runtime's"));
        }
        let copies = match name {
            sections::LINUX_TEXT => copies(object, runtime),
            _ => vec![0],
        };
        let theirs = copies.iter().flat_map(|copy| {
            let list = relocated(runtime, theirs).into_iter();
            list.map(move |(offset, kind, addend, to)| (copy + offset, kind, addend, to))
        });
        if !relocated(object, mine).into_iter().eq(theirs) {
            return Err(format!("the relocations of {name} are not the runtime's"));
        }
    }
    Ok(())
}

/// Whether bytes are the runtime's code, at least once, each copy filled up.
fn is_copies(bytes: &[u8], theirs: &Section<'_>) -> bool {
    let is_copy = |copy: &[u8]| {
        let filling = copy.strip_prefix(&*theirs.data);
        filling.is_some_and(|filling| filling.iter().all(|byte| *byte == FILLING))
    };
    !bytes.is_empty() && bytes.chunks(stride(theirs) as usize).all(is_copy)
}

/// A relocation, in terms that do not depend on the object.
type PortableRelocation<'a> = (u64, u32, i64, Option<(Place, &'a str, u64)>);

fn relocated<'a>(object: &'a Object<'_>, section: &Section<'_>) -> Vec<PortableRelocation<'a>> {
    let list = section.relocations.iter();
    list.map(|r| {
        (
            r.offset,
            r.kind,
            r.addend,
            target(object, r.symbol.0 as usize),
        )
    })
    .collect()
}

/// Where a symbol is, its section's name and offset; or what the kernel resolves it
/// to, its own name.
fn target<'a>(object: &'a Object<'_>, symbol: usize) -> Option<(Place, &'a str, u64)> {
    let symbol = object.symbols.get(symbol)?;
    match symbol.place {
        // Sections have other numbers in another object.
        Place::In(id) => Some((
            Place::In(SectionId(0)),
            &object.section(id).name,
            symbol.value,
        )),
        Place::Undefined if symbol.binding != STB_WEAK => Some((Place::Undefined, &symbol.name, 0)),
        place => Some((place, &symbol.name, symbol.value)),
    }
}
