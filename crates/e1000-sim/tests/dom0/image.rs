//! The refusals of an image's plan, and its look-ups of addresses.

use e1000_sim::dom0::host;
use e1000_sim::image::{KernelPlan, Missing, Module};
use e1000_sim::memory::{DIRECT_MAP, VMEMMAP, percpu};

use crate::world::{SIZES, World, small, value};

#[test]
fn a_missing_import_is_refused_by_name() {
    let files = [(Module::Kernel, small())];
    let error =
        KernelPlan::new(SIZES, &files, &host::address, Missing::Refuse).expect_err("missing");
    assert!(error.to_string().contains("nobodys"), "{error}");
}

#[test]
fn two_definitions_are_refused() {
    let files = [(Module::Hot, small()), (Module::Kernel, small())];
    let error = KernelPlan::new(SIZES, &files, &host::address, Missing::Trap).expect_err("twice");
    assert!(
        error.to_string().contains("hot.o and by kernel.o"),
        "{error}"
    );
}

#[test]
fn variables_of_the_machine_and_percpu_copies_are_set() {
    let world = World::new();
    let mut dom0 = world.dom0();
    assert_eq!(value(&mut dom0, "small_bases", &[0]), DIRECT_MAP);
    assert_eq!(value(&mut dom0, "small_bases", &[1]), VMEMMAP);
    assert_eq!(value(&mut dom0, "small_bases", &[2 + 3]), percpu(3));
    assert_eq!(value(&mut dom0, "small_cpu", &[]), 0);
    assert_eq!(value(&mut dom0, "small_percpu", &[]), 41);
    assert_eq!(value(&mut dom0, "small_percpu", &[]), 42);
}

#[test]
fn addresses_have_names() {
    let world = World::new();
    let plan = &world.plan;
    let function = plan.symbol("small_wild").expect("defined");
    assert_eq!(
        plan.function_at(function),
        Some((Module::Kernel, "small_wild"))
    );
    assert_eq!(plan.function_at(function + 1), None);
    assert_eq!(plan.describe(function + 1), "small_wild+0x1 (kernel.o)");
    assert_eq!(plan.module_of(function), Some(Module::Kernel));
    let data = plan.symbol("vmemmap_base").expect("defined");
    assert_eq!(plan.function_at(data), None);
    assert!(!plan.is_code(data));
    assert_eq!(plan.describe(data + 7), "vmemmap_base+0x7 (kernel.o)");
    let calls = plan
        .symbol_in(Module::Kernel, "calls")
        .expect("a local symbol");
    assert_eq!(
        plan.section(Module::Kernel, ".bss").map(|bss| bss <= calls),
        Some(true)
    );
    assert_eq!(plan.vm_address(Module::Kernel, "vmemmap_base"), Some(data));
    assert_eq!(
        plan.vm_address(Module::Kernel, ".text"),
        plan.section(Module::Kernel, ".text")
    );
    assert_eq!(plan.symbol("calls"), None);
    assert_eq!(plan.missing(), ["nobodys"]);
    assert_eq!(plan.describe(0x1234_5678_9abc), "0x123456789abc");
}
