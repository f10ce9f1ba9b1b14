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
