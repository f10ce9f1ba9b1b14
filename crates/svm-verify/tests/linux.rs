//! Modules for a stock kernel whose file is changed after it was linked: the runtime
//! in it, and tables of the object file. `tests/attacks/linux` tests their code.

mod common;

use common::module::module as linked;
use common::{ABI, LINUX, codes_for, note};
use twin_abi::Scheme;
use twin_linux_runtime::Returns;

fn runtime(scheme: Scheme) -> &'static [u8] {
    twin_linux_runtime::object(scheme, Returns::Thunk)
}

/// A module with this code and these further sections, the runtime linked in.
fn module(source: &str) -> Vec<u8> {
    linked(source, runtime(Scheme::Stlb))
}

/// The function `f` with this body.
fn function(body: &str) -> String {
    format!(".globl f\n.type f,@function\nf:\n{body}\n.size f,.-f\n")
}

#[test]
fn a_runtime_with_one_byte_changed_is_refused() {
    let mut runtime = runtime(Scheme::Stlb).to_vec();
    // The first instruction of the first slow path.
    let object = elf_loader::read(&runtime).expect("the runtime");
    let id = object.section_named(".twin.text").expect("its code");
    let code = object.section(id).data.to_vec();
    let at = runtime
        .windows(code.len())
        .position(|w| w == code)
        .expect("its bytes");
    runtime[at] ^= 1;
    assert!(codes_for(LINUX, &linked(&function("ret"), &runtime)).contains(&"P5-runtime"));
}

/// The runtime's code again, as text: bytes, with their relocations.
fn second_copy(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let runtime = elf_loader::read(twin_linux_runtime::object(Scheme::Stlb, Returns::Thunk))
        .expect("the runtime");
    let id = runtime.section_named(".twin.text").expect("its code");
    let section = runtime.section(id);
    let mut bytes = section.data.to_vec();
    change(&mut bytes);
    let mut text = ".section .twin.text, \"ax\"\n.balign 16, 0xcc\n".to_owned();
    for (at, byte) in bytes.iter().enumerate() {
        let here = section.relocations.iter().find(|r| r.offset == at as u64);
        if let Some(r) = here {
            let kind = elf_loader::reloc::relocation_type(r.kind)
                .expect("known")
                .name;
            let symbol = runtime.symbol(r.symbol);
            let name = match symbol.place {
                elf_loader::Place::In(id) => &runtime.section(id).name,
                _ => &symbol.name,
            };
            text += &format!(".reloc ., {kind}, {name}{:+}\n", r.addend);
        }
        text += &format!(".byte {byte}\n");
    }
    text + ".balign 16, 0xcc\n"
}

/// A module with a further copy of the runtime's code, which comes first.
fn with_second_copy(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let second = second_copy(change);
    // The sections that the copy names exist where it is assembled, too.
    let sections = ".section .twin.rodata, \"a\"\n.section .twin.stlb, \"aw\"\n";
    module(&format!("{}{sections}{second}.text\n", function("ret")))
}

#[test]
fn a_second_copy_of_the_runtime_s_code_is_the_runtime() {
    assert_eq!(codes_for(LINUX, &with_second_copy(|_| ())), [""; 0]);
}

#[test]
fn a_second_copy_with_one_byte_changed_is_refused() {
    let size = second_copy(|_| ()).matches(".byte").count();
    for at in [0, size / 2, size - 1] {
        let module = with_second_copy(|bytes| bytes[at] ^= 1);
        assert!(codes_for(LINUX, &module).contains(&"P5-runtime"), "{at}");
    }
}

#[test]
fn what_is_no_whole_copy_is_refused() {
    let shorter = with_second_copy(|bytes| bytes.truncate(0x80));
    assert!(codes_for(LINUX, &shorter).contains(&"P5-runtime"));
    let longer = with_second_copy(|bytes| bytes.push(0x90));
    assert!(codes_for(LINUX, &longer).contains(&"P5-runtime"));
    let further = with_second_copy(|bytes| bytes.extend([0xcc; 32]));
    assert!(codes_for(LINUX, &further).contains(&"P5-runtime"));
}

/// A kernel without the return thunk: the runtime has `ret` instead.
#[test]
fn a_runtime_that_returns_by_itself_is_one() {
    let runtime = twin_linux_runtime::object(Scheme::Stlb, Returns::Plain);
    assert!(codes_for(LINUX, &linked(&function("ret"), runtime)).is_empty());
}

#[test]
fn the_other_scheme_s_runtime_is_refused() {
    let module = linked(&function("ret"), runtime(Scheme::Paper));
    assert!(codes_for(LINUX, &module).contains(&"P5-runtime"));
}

#[test]
fn without_a_runtime_it_is_refused() {
    let source = format!("{}.text\n{}", note([ABI, 1, 64, 1]), function("ret"));
    assert!(codes_for(LINUX, &common::assemble(&source)).contains(&"P5-runtime"));
}

/// `SHF_RELA_LIVEPATCH` (include/uapi/linux/elf.h): the kernel leaves this table to live
/// patching, and the code unrelocated.
#[test]
fn relocations_that_the_kernel_applies_later_are_refused() {
    const HEADERS: usize = 0x28;
    let mut module = module(&function("call g; ret"));
    assert!(codes_for(LINUX, &module).is_empty());
    let object = elf_loader::read(&module).expect("the module");
    let is_table = |role| matches!(role, elf_loader::Role::Relocations(_));
    let table = object.sections.iter().position(|s| is_table(s.role));
    let word = |at: usize| module[at..at + 8].try_into().expect("eight bytes");
    let headers = u64::from_le_bytes(word(HEADERS)) as usize;
    let flags = headers + 64 * table.expect("relocations") + 8;
    drop(object);
    module[flags + 2] |= 0x10;
    assert!(codes_for(LINUX, &module).contains(&"object-section"));
}

/// The kernel keeps symbols and their names with the module's data, and adds up sizes and alignments
/// with 32 bits: behind 2 GiB the next table is at the start, where code of `.init` is.
#[test]
fn tables_of_the_file_that_the_kernel_keeps_are_aligned_to_a_page_at_most() {
    let bytes = module(&function("ret"));
    let good = elf_loader::read(&bytes).expect("a module");
    for (name, align, found) in [
        (".symtab", 4096, &[][..]),
        (".strtab", 4096, &[]),
        (".symtab", 1 << 31, &["object-size", "object-section"]),
        (".strtab", 1 << 31, &["object-size", "object-section"]),
    ] {
        let id = good.section_named(name).expect("a table").0 as usize;
        let mut object = good.clone();
        object.sections[id].align = align;
        let violations = svm_verify::verify(&object, LINUX).err();
        let list = violations.map(|v| v.list).unwrap_or_default();
        let codes: Vec<_> = list.iter().map(|v| v.code.as_str()).collect();
        assert_eq!(codes, found, "{name} {align}");
    }
}

/// The kernel copies the name of each symbol (`add_kallsyms`, kernel/module.c of Linux 5.10), also where
/// names share bytes of the file, and adds up their lengths with 32 bits. Behind 4 GiB it writes to where
/// others are.
#[test]
fn names_that_share_bytes_count_for_each_symbol() {
    const LONGEST: usize = 16_383;
    const GIGABYTE: usize = 1 << 30;
    let bytes = module(&function("ret"));
    let name = "x".repeat(LONGEST);
    for (count, found) in [(100, &[][..]), (GIGABYTE / LONGEST + 1, &["object-size"])] {
        let mut object = elf_loader::read(&bytes).expect("a module");
        let id = object.section_named(".text").expect("code");
        let label = elf_loader::Symbol {
            name: name.as_str().into(),
            binding: elf_loader::consts::STB_LOCAL,
            kind: elf_loader::consts::STT_NOTYPE,
            other: 0,
            place: elf_loader::Place::In(id),
            value: 0,
            size: 0,
        };
        object.symbols.extend(std::iter::repeat_n(label, count));
        let violations = svm_verify::verify(&object, LINUX).err();
        let list = violations.map(|v| v.list).unwrap_or_default();
        let codes: Vec<_> = list.iter().map(|v| v.code.as_str()).collect();
        assert_eq!(codes, found, "{count}");
    }
}
