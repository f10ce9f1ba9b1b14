//! The linker against binutils' ld, byte for byte, and its refusals.

use std::fmt::Write;

use crate::common::{SAMPLE_64, assemble, run, stock_e1000};
use elf_loader::consts::*;
use elf_loader::link::{
    Layout, LinkError, LowHalves, Protection, Resolve, SymbolUse, Trampolines, called_imports,
    layout, link,
};
use elf_loader::{Object, Place, SectionId, read};

/// Addresses for undefined symbols, 0x40 apart.
fn imports(object: &Object<'_>, base: u64) -> Vec<(String, u64)> {
    let undefined = object
        .symbols
        .iter()
        .skip(1)
        .filter(|s| s.place == Place::Undefined);
    undefined
        .zip(0..)
        .map(|(s, i)| (s.name.to_string(), base + 0x40 * i))
        .collect()
}

fn resolver(imports: &[(String, u64)]) -> impl Resolve + '_ {
    |name: &str, _: SymbolUse| imports.iter().find(|(n, _)| n == name).map(|(_, a)| *a)
}

/// Compares the result of `ld` at the same addresses with ours, section by section.
fn same_as_ld(bytes: &[u8], base: u64, import_base: u64, emulation: &str) {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("in"), bytes).expect("write");
    // ld merges strings, which moves them: take the flags off.
    let mut arguments = vec!["in".to_string(), "o".to_string()];
    for (_, section) in read(bytes).expect("readable").sections() {
        if section.name.starts_with(".rodata.str") {
            arguments.push(format!(
                "--set-section-flags={}=alloc,readonly,data,contents",
                section.name
            ));
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run("objcopy", &arguments, dir.path());
    let bytes = std::fs::read(dir.path().join("o")).expect("objcopy's output");
    let object = read(&bytes).expect("readable");
    // ld makes build ids itself.
    let wanted = |name: &str| name != ".note.gnu.build-id";
    let placed = layout(&object, base, |_, s| s.size != 0 && wanted(&s.name)).expect("fits");
    let imports = imports(&object, import_base);
    let ours = link(&object, &placed, &resolver(&imports)).expect("linkable");

    let mut script = String::from("SECTIONS {\n");
    for (id, address) in placed.placed() {
        let name = &object.section(id).name;
        writeln!(script, "{name} {address:#x} : {{ *({name}) }}").expect("memory");
    }
    script.push_str("}\n");
    for (name, address) in &imports {
        writeln!(script, "{name} = {address:#x};").expect("memory");
    }
    std::fs::write(dir.path().join("script"), script).expect("write");
    run(
        "ld",
        &["-m", emulation, "-T", "script", "-o", "linked", "o"],
        dir.path(),
    );
    let mut compared = 0;
    for linked in &ours {
        let section = object.section(linked.section);
        if section.kind == SHT_NOBITS {
            assert!(linked.bytes.iter().all(|b| *b == 0));
            continue;
        }
        let only = format!("--only-section={}", section.name);
        run(
            "objcopy",
            &["-O", "binary", &only, "linked", "section"],
            dir.path(),
        );
        let theirs = std::fs::read(dir.path().join("section")).expect("objcopy's output");
        assert!(linked.bytes == theirs, "{} differs from ld's", section.name);
        compared += 1;
    }
    assert!(compared >= 2);
}

#[test]
fn samples_are_linked_as_ld_links_them() {
    let without_common = SAMPLE_64.replace(".comm   shared, 16, 8", "");
    same_as_ld(
        &assemble(&[], &without_common),
        0x40_0000,
        0x100_0000,
        "elf_x86_64",
    );
}

#[test]
fn the_stock_module_is_linked_as_ld_links_it() {
    let stock = stock_e1000();
    same_as_ld(&stock, 0x4000_0000, 0x5000_0000, "elf_x86_64");
    // Where the kernel puts modules and itself.
    same_as_ld(
        &stock,
        0xffff_ffff_c000_0000,
        0xffff_ffff_8100_0000,
        "elf_x86_64",
    );
}

#[test]
fn segments_are_page_separated_and_cover_their_sections() {
    let bytes = stock_e1000();
    let object = read(&bytes).expect("readable");
    let placed = layout(&object, 0x1234, |_, s| !s.name.starts_with(".init")).expect("fits");
    let protections: Vec<_> = placed.segments().iter().map(|s| s.protection).collect();
    assert_eq!(
        protections,
        [Protection::Code, Protection::ReadOnly, Protection::Writable]
    );
    assert_eq!(placed.span().start, 0x2000);
    for pair in placed.segments().windows(2) {
        assert_eq!(pair[0].addresses.end, pair[1].addresses.start);
    }
    for (id, section) in object.sections() {
        let wanted = section.flags & SHF_ALLOC != 0 && !section.name.starts_with(".init");
        let Some(address) = placed.address(id) else {
            assert!(!wanted, "{}", section.name);
            continue;
        };
        assert!(
            wanted && address.is_multiple_of(section.align),
            "{}",
            section.name
        );
        let segment = placed
            .segments()
            .iter()
            .find(|s| s.addresses.contains(&address));
        let segment = segment.expect("inside a segment");
        assert_eq!(
            segment.protection,
            Protection::of(section),
            "{}",
            section.name
        );
        assert!(
            address + section.size <= segment.addresses.end,
            "{}",
            section.name
        );
    }
}

#[test]
fn far_imports_are_called_through_trampolines() {
    let bytes = stock_e1000();
    let object = read(&bytes).expect("readable");
    let names = called_imports(&object);
    assert!(names.contains(&"__fentry__") && names.contains(&"napi_gro_receive"));
    assert!(!names.contains(&"jiffies"), "data");
    let far = imports(&object, 0x7fff_0000_0000);
    let near = |name: &str| (name.len() as u64) << 4 | 0x3000_0000;
    let inner = |name: &str, use_: SymbolUse| match use_ {
        SymbolUse::Call => resolver(&far).resolve(name, use_),
        SymbolUse::Data => Some(near(name)),
    };
    let base = 0x4000_0000 - Trampolines::size(&object).next_multiple_of(0x1000);
    let trampolines = Trampolines::new(&object, base, &inner).expect("all known");
    assert_eq!(trampolines.bytes.len() as u64, Trampolines::size(&object));
    let placed = layout(&object, 0x4000_0000, |_, _| true).expect("fits");
    assert!(link(&object, &placed, &inner).is_err(), "too far without");
    let linked = link(&object, &placed, &trampolines.resolver(&inner)).expect("near enough with");
    // The first instruction of .text is `call __fentry__`.
    let text = object.section_named(".text").expect(".text");
    let text = linked.iter().find(|l| l.section == text).expect("placed");
    let displacement = i32::from_le_bytes(text.bytes[1..5].try_into().expect("4 bytes"));
    let target = (text.address + 5).wrapping_add_signed(displacement.into());
    assert_eq!(Some(target), trampolines.address("__fentry__"));
    let at = (target - base) as usize;
    let wanted = resolver(&far)
        .resolve("__fentry__", SymbolUse::Call)
        .expect("known");
    assert_eq!(trampolines.bytes[at..at + 6], [0xff, 0x25, 0, 0, 0, 0]);
    assert_eq!(trampolines.bytes[at + 6..at + 14], wanted.to_le_bytes());
    let missing = Trampolines::new(&object, base, &|_: &str, _| None).expect_err("unresolved");
    assert!(matches!(missing, LinkError::Unresolved { .. }), "{missing}");
}

/// Links one section of x86-64 code or data at `base` with `far` at `import`.
fn link_one(source: &str, base: u64, import: u64) -> Result<Vec<u8>, String> {
    let bytes = assemble(&[], source);
    let object = read(&bytes).expect("readable");
    let placed = layout(&object, base, |_, _| true).expect("fits");
    let resolve = |name: &str, _: SymbolUse| (name == "far").then_some(import);
    let linked = link(&object, &placed, &resolve).map_err(|e| e.to_string())?;
    Ok(linked
        .into_iter()
        .find(|l| !l.bytes.is_empty())
        .expect("one section")
        .bytes)
}

#[test]
fn values_up_to_the_limit_fit_and_one_more_does_not() {
    let low = 0x1000_0000u64;
    // call: rel32 counts from the end of the field at base + 5.
    let reach = low + 5 + 0x7fff_ffff;
    assert_eq!(
        link_one("call far", low, reach).expect("fits")[1..],
        [0xff, 0xff, 0xff, 0x7f]
    );
    let message = link_one("call far", low, reach + 1).expect_err("too far");
    assert!(
        message.contains("section `.text` offset 0x1, symbol `far-0x4`"),
        "{message}"
    );
    assert!(message.contains("a distance within 2 GiB"), "{message}");
    assert!(message.contains("trampolines"), "{message}");
    let top = 0xffff_ffff_8000_0000;
    let back = |import| link_one("call far", top, import);
    assert_eq!(
        back(top + 5 - 0x8000_0000).expect("fits")[1..],
        [0, 0, 0, 0x80]
    );
    back(top + 5 - 0x8000_0001).expect_err("too far");
    // 32S: sign-extended.
    let signed = |import| link_one("mov $far, %rax", low, import);
    assert_eq!(
        signed(0x7fff_ffff).expect("fits")[3..],
        [0xff, 0xff, 0xff, 0x7f]
    );
    assert_eq!(signed(top).expect("fits")[3..], [0, 0, 0, 0x80]);
    signed(0x8000_0000).expect_err("would become negative");
    signed(top - 1).expect_err("would become positive");
    // 32: zero-extended.
    let unsigned = |import| link_one(".data\n.long far", low, import);
    assert_eq!(unsigned(0xffff_ffff).expect("fits"), [0xff; 4]);
    let message = unsigned(0x1_0000_0000).expect_err("too large");
    assert!(
        message.contains("value 0x100000000") && message.contains("below 4 GiB"),
        "{message}"
    );
    // 64 and PC64 wrap.
    assert_eq!(
        link_one(".data\n.quad far+1", low, u64::MAX).expect("fits"),
        [0; 8]
    );
    let distance = link_one(".data\n.quad far-.", low, top).expect("fits");
    assert_eq!(distance, (top - low).to_le_bytes());
}

/// Code of the scheme `window32` has low halves of dom0's addresses, and of no others.
#[test]
fn low_halves_are_of_dom0s_symbols_alone() {
    let linked = |field: &str, name: &str| {
        let bytes = assemble(&[], &format!(".data\n{field} \"{name}\"+8"));
        let object = read(&bytes).expect("readable");
        let placed = layout(&object, 0x1000, |_, _| true).expect("fits");
        let resolve = |_: &str, _: SymbolUse| Some(0xffff_ffff_8100_0000u64);
        let linked = link(&object, &placed, &LowHalves(&resolve)).map_err(|e| e.to_string())?;
        let data = linked.into_iter().find(|l| !l.bytes.is_empty());
        Ok::<_, String>(data.expect("one section").bytes)
    };
    assert_eq!(linked(".long", "twin_vm:far"), Ok(vec![8, 0, 0, 0x81]));
    let whole = 0xffff_ffff_8100_0008u64.to_le_bytes();
    assert_eq!(linked(".quad", "twin_vm:far"), Ok(whole.to_vec()));
    let message = linked(".long", "far").expect_err("an address of the hypervisor's");
    assert!(message.contains("below 4 GiB"), "{message}");
}

#[test]
fn refusals_say_what_to_do() {
    let refused = |source: &str| link_one(source, 0x1000, 0x2000).expect_err("refused");
    let message = refused("call nowhere");
    assert!(
        message.contains("nobody provides it (it is called)"),
        "{message}"
    );
    let message = refused(".data\n.quad nowhere");
    assert!(message.contains("used as data"), "{message}");
    assert_eq!(
        link_one(".weak nowhere\n.data\n.quad nowhere", 0, 0).expect("weak is 0"),
        [0; 8]
    );
    let message = refused(".comm c,4\nmov $c, %eax");
    assert!(message.contains("-fno-common"), "{message}");
    let message = refused("mov far@GOTPCREL(%rip), %rax");
    assert!(
        message.contains("R_X86_64_REX_GOTPCRELX is not handled"),
        "{message}"
    );
    let message = refused("mov $d, %eax\n.section .debug_x\nd: .long 0");
    assert!(
        message.contains("`.debug_x`, which is not placed"),
        "{message}"
    );
}

#[test]
fn calls_and_data_are_told_apart() {
    let source = "call far\njmp far\njne far\nlea far(%rip), %rbp\nmov far(%rip), %r13\n\
                  cmpl $5, far(%rip)\nmov $far, %rdi\n.data\n.quad far\n.long far - .\n";
    let bytes = assemble(&[], source);
    let object = read(&bytes).expect("readable");
    let placed = layout(&object, 0x1000, |_, _| true).expect("fits");
    let uses = std::cell::RefCell::new(Vec::new());
    let resolve = |_: &str, use_: SymbolUse| {
        uses.borrow_mut().push(use_);
        Some(0x2000)
    };
    link(&object, &placed, &resolve).expect("linkable");
    let (call, data) = (SymbolUse::Call, SymbolUse::Data);
    assert_eq!(
        uses.into_inner(),
        [call, call, call, data, data, data, data, data, data]
    );
}

#[test]
fn bad_placements_are_refused() {
    let bytes = assemble(&[], ".text\nret\n.data\n.balign 16\n.quad 1\n");
    let object = read(&bytes).expect("readable");
    let none = |_: &str, _: SymbolUse| None;
    let place = |text: u64, data: u64| {
        let placed = Layout::from_fn(&object, |id| match object.section(id).name.as_ref() {
            ".text" => Some(text),
            ".data" => Some(data),
            _ => None,
        });
        link(&object, &placed, &none)
    };
    assert_eq!(place(0x10f, 0x110).expect("adjacent").len(), 2);
    assert!(matches!(
        place(0x110, 0x110),
        Err(LinkError::Overlap { .. })
    ));
    assert!(matches!(
        place(0x100, 0x118),
        Err(LinkError::Misaligned { .. })
    ));
    let other = Object::new();
    let placed = Layout::from_fn(&other, |_| None);
    assert!(matches!(
        link(&object, &placed, &none),
        Err(LinkError::OtherObject { .. })
    ));
    let top = layout(&object, u64::MAX - 10, |_, _| true);
    assert!(matches!(top, Err(LinkError::TooLarge { .. })), "{top:?}");
    assert_eq!(Layout::default().address(SectionId(3)), None);
}
