//! `crates/abi` and `runtime/include/twin/abi.h` state the same numbers and
//! names, each of them in both.

use std::collections::BTreeMap;

use process_lab::runtime;
use twin_abi::{
    ABI_VERSION, Accesses, Processor, Scheme, Target, names, sections, stack, stlb, window,
};

fn rust_constants() -> BTreeMap<&'static str, i64> {
    BTreeMap::from([
        ("ABI_VERSION", i64::from(ABI_VERSION)),
        ("PAGE_SHIFT", i64::from(stlb::PAGE_SHIFT)),
        ("PAGE_SIZE", stlb::PAGE_SIZE as i64),
        ("STLB_ENTRIES", stlb::ENTRIES as i64),
        ("ENTRY_SHIFT", i64::from(stlb::ENTRY_SHIFT)),
        ("TAG", stlb::TAG as i64),
        ("XLATE", stlb::XLATE as i64),
        ("INDEX_SHIFT", i64::from(stlb::INDEX_SHIFT)),
        ("INDEX_MASK", stlb::INDEX_MASK as i64),
        ("WINDOW_PAGES", stlb::WINDOW_PAGES as i64),
        ("COVERED", stlb::COVERED as i64),
        ("BELOW", stlb::BELOW as i64),
        ("SCHEME_PAPER", Scheme::Paper as i64),
        ("SCHEME_STLB", Scheme::Stlb as i64),
        ("SCHEME_WINDOW32", Scheme::Window32 as i64),
        ("SCHEME_WINDOW", Scheme::Window as i64),
        ("TARGET_HYPERVISOR", Target::Hypervisor as i64),
        ("TARGET_LINUX", Target::Linux as i64),
        ("TARGET_PROCESS", Target::Process as i64),
        ("ACCESSES_ALL", Accesses::All as i64),
        ("ACCESSES_STORES", Accesses::Stores as i64),
        ("PROCESSOR_ANY", Processor::Any as i64),
        ("PROCESSOR_BMI2", Processor::Bmi2 as i64),
        ("BLOCK", stack::BLOCK as i64),
        ("LOW", stack::LOW as i64),
        ("HIGH", stack::HIGH as i64),
        ("CONTEXT", stack::CONTEXT as i64),
        ("HOST", stack::HOST as i64),
        ("SHADOW", stack::SHADOW as i64),
        ("FS_BASE_FROM_TOP", stack::FS_BASE_FROM_TOP),
        ("GS_BASE_FROM_TOP", stack::GS_BASE_FROM_TOP),
        ("MAX_FRAME", stack::MAX_FRAME),
        ("BELOW_RSP", stack::BELOW_RSP),
        ("INCOMING_ARGS", stack::INCOMING_ARGS),
        ("SIZE", window::SIZE as i64),
        ("GUARD", window::GUARD as i64),
        ("NULL_GUARD", window::NULL_GUARD as i64),
        ("WIDE_BITS", i64::from(window::wide::BITS)),
        ("WIDE_SIZE", window::wide::SIZE as i64),
        ("WIDE_MIRROR", window::wide::MIRROR as i64),
        ("WIDE_GUARD", window::wide::GUARD as i64),
        ("WIDE_MASK", window::wide::MASK as i64),
        ("NOTE_TYPE", i64::from(sections::NOTE_TYPE)),
        ("MAP_ENTRY", sections::MAP_ENTRY as i64),
    ])
}

fn rust_names() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("VM_PREFIX", names::VM_PREFIX),
        ("STLB", names::STLB),
        ("SLOW_PREFIX", names::SLOW_PREFIX),
        ("CALL", names::CALL),
        ("WARN", names::WARN),
        ("BUG", names::BUG),
        ("SMASHED", names::SMASHED),
        ("WINDOW", names::WINDOW),
        ("STACK_VIEW", names::STACK_VIEW),
        ("WINDOW_MASK", names::WINDOW_MASK),
        ("WILD", names::WILD),
        ("LOWEST", names::LOWEST),
        ("HIGHEST", names::HIGHEST),
        ("RUNTIME_PREFIX", names::RUNTIME_PREFIX),
        ("NOTE", sections::NOTE),
        ("NOTE_OWNER", sections::NOTE_OWNER),
        ("CODEMAP", sections::CODEMAP),
        ("MAP", sections::MAP),
        ("LINUX_TEXT", sections::LINUX_TEXT),
        ("LINUX_RODATA", sections::LINUX_RODATA),
        ("LINUX_STLB", sections::LINUX_STLB),
    ];
    all.extend(names::PORT_IN.map(|name| ("PORT_IN", name)));
    all.extend(names::PORT_OUT.map(|name| ("PORT_OUT", name)));
    all.sort_unstable();
    all
}

#[test]
fn numbers_agree_both_ways() {
    let c: BTreeMap<String, i64> = runtime::constants().into_iter().collect();
    let rust: BTreeMap<String, i64> = rust_constants()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    assert_eq!(c, rust);
}

#[test]
fn names_agree_both_ways() {
    let mut c = runtime::strings();
    c.sort_unstable();
    let rust: Vec<(String, String)> = rust_names()
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    assert_eq!(c, rust);
}

#[test]
fn the_runtime_has_every_entry() {
    let slow = names::SLOW_REGISTERS.map(|register| format!("{}{register}", names::SLOW_PREFIX));
    let others = [
        names::CALL,
        names::WARN,
        names::BUG,
        names::SMASHED,
        names::WILD,
    ];
    let others = others.map(str::to_owned);
    let ports = names::PORT_IN
        .into_iter()
        .chain(names::PORT_OUT)
        .map(str::to_owned);
    for name in slow.into_iter().chain(others).chain(ports) {
        assert!(runtime::entry(&name).is_some(), "{name}");
    }
    assert_eq!(runtime::entry("twin_enter"), None, "not for drivers");
}
