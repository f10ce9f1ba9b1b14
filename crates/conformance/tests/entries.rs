//! The places that the loader enters, and the objects that it does not load.

use std::borrow::Cow;

use conformance::fuzz::object_of;
use elf_loader::consts::{STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_NOTYPE};
use elf_loader::link::SymbolUse;
use elf_loader::{Object, Place, SectionId, Symbol};
use process_lab::error::Error;
use process_lab::program::{CODE, LinkedCode, Variant};
use svm_rewrite::{Options, Scheme};
use twin_abi::names;

/// `push %rbx; pop %rbx; ret`
const CODE_OF_F: [u8; 3] = [0x53, 0x5b, 0xc3];
/// Where dom0 has the code.
const VM: u64 = 0x1000_0000;

fn rewritten(scheme: Scheme) -> Object<'static> {
    let rewritten = svm_rewrite::rewrite(&object_of(&CODE_OF_F), Options::new(scheme));
    rewritten.expect("plain code is rewritten").object
}

fn variant(scheme: Scheme) -> Variant {
    Variant::plain(scheme)
}

fn link(object: Object<'static>, scheme: Scheme) -> Result<LinkedCode, Error> {
    let resolve = |name: &str, _: SymbolUse| name.starts_with(names::VM_PREFIX).then_some(VM);
    LinkedCode::link_at(CODE, variant(scheme), object, &resolve)
}

/// A symbol at the first instruction of `.text`, or some bytes on.
fn symbol(name: &str, binding: u8, kind: u8, value: u64) -> Symbol<'static> {
    Symbol {
        name: Cow::Owned(name.to_owned()),
        binding,
        kind,
        other: 0,
        place: Place::In(SectionId(1)),
        value,
        size: 0,
    }
}

#[test]
fn functions_are_entered_and_labels_are_not() {
    let mut object = rewritten(Scheme::Stlb);
    object.symbols.extend([
        symbol("local", STB_LOCAL, STT_FUNC, 0),
        symbol("f.cold", STB_LOCAL, STT_NOTYPE, 1),
        symbol("exported", STB_GLOBAL, STT_NOTYPE, 0),
    ]);
    let entries = link(object, Scheme::Stlb).expect("good code").entries;
    assert_eq!(entries.function("f"), Some(CODE));
    assert_eq!(entries.function("local"), Some(CODE));
    assert_eq!(entries.function("f.cold"), None, "entered with a frame");
    assert_eq!(entries.exported("exported"), Some(CODE));
    assert_eq!(entries.exported("f"), Some(CODE));
    assert_eq!(entries.exported("local"), None, "nobody else's name");
    let hyp: Vec<_> = entries.codemap().iter().map(|e| (e.vm, e.hyp)).collect();
    assert_eq!(hyp, [(VM, CODE)]);
}

/// A function's symbol where its frame is not empty, by any name and binding.
#[test]
fn an_object_that_would_be_entered_mid_frame_is_not_loaded() {
    for (name, binding) in [
        ("g", STB_LOCAL),
        ("f.cold", STB_LOCAL),
        ("hot_transmit", STB_LOCAL),
        ("twin_slow_rax", STB_LOCAL),
        ("g", STB_GLOBAL),
    ] {
        let mut object = rewritten(Scheme::Stlb);
        object.symbols.push(symbol(name, binding, STT_FUNC, 1));
        match link(object, Scheme::Stlb) {
            Err(Error::Rejected(why)) => assert!(why.contains("P4-"), "{name}: {why}"),
            Err(other) => panic!("{name}: {other}"),
            Ok(_) => panic!("{name} is loaded"),
        }
    }
}

#[test]
fn an_object_for_another_instance_is_not_loaded() {
    for (made, instance) in [(Scheme::Paper, Scheme::Stlb), (Scheme::Stlb, Scheme::Paper)] {
        let refused = link(rewritten(made), instance).err();
        let why = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(why.contains("object-contract"), "{why}");
        link(rewritten(made), made).expect("its own instance loads it");
    }
}

#[test]
fn a_kernel_s_code_is_not_loaded_whatever_it_claims() {
    // mov %rdi,%cr0; ret
    let original = object_of(&[0x0f, 0x22, 0xc7, 0xc3]);
    let options = Options::of(svm_rewrite::Target::Linux, Scheme::Stlb);
    let module = svm_rewrite::rewrite(&original, options).expect("a kernel may");
    let refused = link(module.object, Scheme::Stlb).err();
    let why = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(why.contains("object-contract"), "{why}");
}
