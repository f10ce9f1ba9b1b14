//! Payloads: what is in them, that equal inputs give equal bytes, and that a payload in which
//! anything was changed that confinement depends on is not accepted.

mod common;

use common::{Set, refused};
use elf_loader::{Object, Place, Relocation, SectionId, SymbolId};
use payload::{Payload, PayloadError, check};
use twin_abi::{Processor, names};

fn payload() -> Payload {
    Set::new().build().expect("a payload")
}

fn section<'o>(object: &'o Object<'_>, name: &str) -> (SectionId, &'o elf_loader::Section<'o>) {
    let id = object
        .section_named(name)
        .unwrap_or_else(|| panic!("{name}"));
    (id, object.section(id))
}

/// The symbol and addend of the relocation at a place.
fn at(object: &Object<'_>, name: &str, offset: u64) -> (String, i64) {
    let (_, section) = section(object, name);
    let r = section.relocations.iter().find(|r| r.offset == offset);
    let r = r.unwrap_or_else(|| panic!("{name}+{offset:#x}"));
    (object.symbol_name(r.symbol).to_owned(), r.addend)
}

fn word(object: &Object<'_>, name: &str) -> u64 {
    let mut symbols = object.symbols();
    let (_, symbol) = symbols
        .find(|(_, s)| s.name == name)
        .unwrap_or_else(|| panic!("{name}"));
    let Place::In(id) = symbol.place else {
        panic!("{name} is in no section")
    };
    let from = symbol.value as usize;
    let bytes = &object.section(id).data[from..from + 8];
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

#[test]
fn equal_inputs_give_equal_bytes() {
    let (one, other) = (payload().bytes, payload().bytes);
    assert!(one == other);
    // The build-id is of the contents: the slightest change is another payload.
    let mut set = Set::new();
    set.table = set
        .table
        .replace("domain_refcnt 0x220", "domain_refcnt 0x221");
    let changed = set.build().expect("a payload").bytes;
    let id = |bytes: &[u8]| {
        let object = elf_loader::read(bytes).expect("a payload");
        section(&object, ".note.gnu.build-id").1.data.to_vec()
    };
    assert_ne!(id(&one), id(&changed));
    assert_eq!(id(&one)[..16], id(&changed)[..16]);
    assert_ne!(id(&one)[16..], [0; 20]);
}

#[test]
fn only_relocations_that_xen_takes_remain() {
    use elf_loader::consts::{R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32};
    let bytes = payload().bytes;
    let object = elf_loader::read(&bytes).expect("a payload");
    let all = object.sections.iter().flat_map(|s| &s.relocations);
    let mut count = 0;
    for r in all {
        assert!(
            [R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32].contains(&r.kind),
            "{r:?}"
        );
        assert!(!object.symbol(r.symbol).name.starts_with(names::VM_PREFIX));
        count += 1;
    }
    assert!(count > 20);
    let undefined = object
        .symbols()
        .skip(1)
        .filter(|(_, s)| s.place == Place::Undefined);
    let undefined: std::collections::BTreeSet<&str> = undefined.map(|(_, s)| &*s.name).collect();
    let expected = [
        "common/grant_table.c#acquire_grant",
        "evtchn_send",
        "printk",
    ];
    assert_eq!(undefined, expected.into());
}

#[test]
fn what_the_runtime_is_given() {
    let bytes = payload().bytes;
    let object = elf_loader::read(&bytes).expect("a payload");
    assert_eq!(word(&object, "twin_value_domain_refcnt"), 0x220);
    assert_eq!(word(&object, "twin_dom0_jiffies"), 0xffff_ffff_8260_0000);
    assert_eq!(word(&object, "twin_payload_codemap_count"), 3);
    assert_eq!(word(&object, "twin_payload_imports_count"), 2);
    assert_eq!(word(&object, "twin_payload_text_count"), 4);
    // The codemap: by address, without the module's start.
    let (_, map) = section(&object, ".rodata.twin.codemap");
    let vm =
        |n: usize| u64::from_le_bytes(map.data[16 * n..16 * n + 8].try_into().expect("a word"));
    let expected = [
        (0xffff_ffff_c040_0100, "e1000:probe"),
        (0xffff_ffff_c040_0200, "e1000:poll"),
        (0xffff_ffff_c050_0020, "twin_hot:hot_poll"),
    ];
    for (n, (address, name)) in expected.into_iter().enumerate() {
        assert_eq!(vm(n), address);
        assert_eq!(
            at(&object, ".rodata.twin.codemap", 16 * n as u64 + 8),
            (name.to_owned(), 0)
        );
    }
}

#[test]
fn functions_to_replace_and_their_originals() {
    let bytes = payload().bytes;
    let object = elf_loader::read(&bytes).expect("a payload");
    let (_, funcs) = section(&object, ".livepatch.funcs");
    assert_eq!(funcs.size, 104);
    let number = |at: usize| u32::from_le_bytes(funcs.data[at..at + 4].try_into().expect("a word"));
    // `send` is a jump of 5 bytes; evtchn_send goes up to memcpy.
    assert_eq!((number(24), number(28), funcs.data[32]), (5, 0x100, 2));
    let expected = [1 | 6 << 1, 0x8b, 0x87, 0xdc, 0, 0, 0, 0];
    assert_eq!(funcs.data[72..80], expected);
    assert_eq!(
        at(&object, ".livepatch.funcs", 8),
        ("twin:send".to_owned(), 0)
    );
    let (text, from) = at(&object, ".livepatch.funcs", 0);
    let (_, texts) = section(&object, &text);
    assert!(texts.data[from as usize..].starts_with(b"evtchn_send\0"));
    let (_, originals) = section(&object, ".text.twin.originals");
    assert_eq!(
        originals.data[..],
        [0x8b, 0x87, 0xdc, 0, 0, 0, 0xe9, 0, 0, 0, 0]
    );
    // To the seventh byte: 6 - 4 for the field.
    assert_eq!(
        at(&object, ".text.twin.originals", 7),
        ("evtchn_send".to_owned(), 2)
    );
}

/// `test %rsi, %rsi; je 12`, as in some builds of Xen 4.20: the jump is long elsewhere.
#[test]
fn a_head_may_end_with_a_short_jump() {
    let mut set = Set::new();
    set.table = set.table.replace("8b87dc000000", "4885f6 7407");
    let bytes = set.build().expect("a payload").bytes;
    let object = elf_loader::read(&bytes).expect("a payload");
    let (_, funcs) = section(&object, ".livepatch.funcs");
    assert_eq!(
        funcs.data[72..78],
        [1 | 5 << 1, 0x48, 0x85, 0xf6, 0x74, 0x07]
    );
    let (_, originals) = section(&object, ".text.twin.originals");
    let expected = [0x48, 0x85, 0xf6, 0x0f, 0x84, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
    assert_eq!(originals.data[..], expected);
    // To bytes 12 and 5: less 4 for the field.
    let place = |offset| at(&object, ".text.twin.originals", offset);
    assert_eq!(
        (place(5), place(10)),
        (("evtchn_send".to_owned(), 8), ("evtchn_send".to_owned(), 1))
    );
}

#[test]
fn imports_lead_to_the_runtime_to_hot_routines_or_to_dom0() {
    let bytes = payload().bytes;
    let object = elf_loader::read(&bytes).expect("a payload");
    let calls = |name: &str| -> Vec<String> {
        let (_, code) = section(&object, name);
        let calls = code
            .relocations
            .iter()
            .map(|r| object.symbol_name(r.symbol));
        let calls = calls.filter(|s| s.contains(':') && !s.starts_with("e1000"));
        calls.map(str::to_owned).collect()
    };
    assert_eq!(
        calls(".driver.text"),
        ["stub:kfree", "stub:memcpy", "twin_hot:netif_wake"]
    );
    assert_eq!(calls(".hot.text"), ["stub:kfree", "stub:host_receive"]);
    let stub = |offset| at(&object, ".text.twin.stubs", offset).0;
    // host_receive: lea, jmp; kfree: mov $0, jmp; memcpy: mov $1, jmp.
    assert_eq!(
        (stub(3), stub(8)),
        ("twin_import_host_receive".into(), "twin_call_out".into())
    );
    assert_eq!(
        (stub(16 + 7), stub(32 + 7)),
        ("twin_import_entry".into(), "twin_import_entry".into())
    );
    let (_, stubs) = section(&object, ".text.twin.stubs");
    assert_eq!(stubs.data[16..22], [0x41, 0xbb, 0, 0, 0, 0]);
    assert_eq!(stubs.data[32..38], [0x41, 0xbb, 1, 0, 0, 0]);
}

/// The runtime's `twin_import_entry` is where stubs lead, and is no function for an import of
/// the name `entry`, which a driver may choose.
#[test]
fn no_import_is_the_runtimes_entry() {
    let mut set = Set::new();
    let types = ".type   twin_stlb_call,@function\n        .type   twin_import_entry,@function";
    set.runtime = set
        .runtime
        .replace(".type   twin_stlb_call,@function", types);
    set.driver = set.driver.replace("call    memcpy", "call    entry");
    set.kallsyms.push_str("ffffffff81a00300 T entry\n");
    let payload = set.build().expect("a payload");
    assert_eq!(payload.imports, ["entry", "kfree"]);
    let object = elf_loader::read(&payload.bytes).expect("a payload");
    let stub = at(&object, ".text.twin.stubs", 7).0;
    assert_eq!(stub, "twin_import_entry");
}

#[test]
fn without_hot_routines() {
    let mut set = Set::new();
    set.hot = None;
    set.runtime = set.runtime.replace("call    twin_function_hot_poll", "");
    set.kallsyms.push_str("ffffffff81a00300 T netif_wake\n");
    let payload = set.build().expect("a payload");
    assert_eq!(payload.imports, ["kfree", "memcpy", "netif_wake"]);
}

/// Code for any processor runs on those with BMI2.
#[test]
fn a_payload_is_for_the_processors_of_both_parts() {
    // The cuts that `--processor any` has, by which no flags are kept here.
    let for_any = |text: &mut String| {
        *text = text
            .replace(", 3, 64, 0, 0, 1", ", 3, 64, 0, 0, 0")
            .replace(
                "pext    twin_window_mask(%rip), %rdi, %rax",
                "mov     twin_window_mask(%rip), %rax\nand %rdi, %rax",
            )
            .replace(
                "pext    twin_window_mask(%rip), %rdi, %rdi",
                "and     twin_window_mask(%rip), %rdi",
            );
    };
    let mut set = Set::new();
    let hot = set.hot.as_mut().expect("hot routines");
    let load = "mov     %gs:\"twin_vm:.data\", %rax";
    let with_pext = "pext twin_window_mask(%rip), %rdi, %rax\nmov %gs:(%rax), %rax";
    *hot = hot.replace(load, with_pext);
    let bmi2 = set.clone();
    for_any(&mut set.driver);
    let driver_for_any = set.clone();
    let hot = set.hot.as_mut().expect("hot routines");
    *hot = hot.replace(with_pext, load);
    for_any(hot);
    let any = set.clone();
    set.driver = bmi2.driver.clone();
    let hot_for_any = set;
    for (set, processor) in [
        (bmi2, Processor::Bmi2),
        (driver_for_any, Processor::Bmi2),
        (hot_for_any, Processor::Bmi2),
        (any, Processor::Any),
    ] {
        let payload = set
            .build()
            .unwrap_or_else(|why| panic!("{processor:?}: {why}"));
        assert_eq!(payload.proof.processor, processor);
    }
}

/// Code as `--strict` makes it.
fn strict() -> Set {
    let mut set = Set::new();
    set.driver = set.driver.replace(
        "probe:",
        "1: push %rdi
            cld
            call twin_wild
            ud2
            probe: cmp twin_lowest(%rip), %rdi
            jb 1b
            cmp twin_highest(%rip), %rdi
            ja 1b\n",
    );
    set
}

#[test]
fn strict_code_reads_the_runtimes_bounds() {
    let payload = strict().build().expect("a payload");
    let dies = |by: &str, change: &dyn Fn(&mut Object<'_>)| {
        let mut object = elf_loader::read(&payload.bytes).expect("a payload");
        change(&mut object);
        let bytes = elf_loader::write(&object).expect("the mutant");
        let (_, why) = refused(check(&bytes).map(|_| unreachable!("{by}")));
        assert!(why.contains(by), "{by}: {why}");
    };
    let bounds = |object: &Object<'_>| object.section_named(".rodata.bounds").expect("bounds");
    dies("bound of dom0's", &|object| {
        let id = bounds(object);
        object.sections[id.0 as usize].flags |= elf_loader::consts::SHF_WRITE;
    });
    dies("bound of dom0's", &|object| {
        let bound = symbol(object, names::HIGHEST);
        object.symbols[bound.0 as usize].value += 1;
    });
    dies("P2", &|object| {
        to(object, ".driver.text", names::LOWEST).addend += 8;
    });
    dies("P1", &|object| {
        let bound = symbol(object, names::LOWEST);
        to(object, ".driver.text", names::WINDOW_MASK).symbol = bound;
    });
}

// ---- Mutants of a finished payload ---------------------------------------------------

/// The verdict on a payload after a change.
fn verdict(
    change: impl FnOnce(&mut Object<'_>),
) -> Result<(), (Option<payload::PayloadCode>, String)> {
    let bytes = payload().bytes;
    let mut object = elf_loader::read(&bytes).expect("a payload");
    change(&mut object);
    let bytes = elf_loader::write(&object).expect("the mutant");
    match check(&bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(Err::<Payload, PayloadError>(error))),
    }
}

/// It is refused by the rule that is named: a code of the verifier, or words of `check`.
fn dies(by: &str, change: impl FnOnce(&mut Object<'_>)) {
    let (_, why) = verdict(change).expect_err(by);
    assert!(why.contains(by), "{by}: {why}");
}

fn symbol(object: &Object<'_>, name: &str) -> SymbolId {
    let mut symbols = object.symbols();
    symbols
        .find(|(_, s)| s.name == name)
        .unwrap_or_else(|| panic!("{name}"))
        .0
}

/// The relocation to this symbol in a section.
fn to<'o>(object: &'o mut Object<'_>, section: &str, name: &str) -> &'o mut Relocation {
    let id = symbol(object, name);
    let section = object.section_named(section).expect("the section");
    let all = &mut object.sections[section.0 as usize].relocations;
    all.iter_mut()
        .find(|r| r.symbol == id)
        .expect("the relocation")
}

fn data<'o>(object: &'o mut Object<'_>, name: &str) -> &'o mut Vec<u8> {
    let id = object.section_named(name).expect("the section");
    object.sections[id.0 as usize].data.to_mut()
}

#[test]
fn an_unchanged_payload_is_accepted_whatever_the_addresses_are() {
    assert_eq!(verdict(|_| {}), Ok(()));
    // Addresses of dom0 are numbers: another one is no less confined.
    let other = verdict(|object| {
        let code = data(object, ".driver.text");
        let rodata = 0xc041_0000u32.to_le_bytes();
        let at = code
            .windows(4)
            .position(|w| w == rodata)
            .expect("the address");
        code[at] ^= 0x55;
    });
    assert_eq!(other, Ok(()));
}

#[test]
fn changed_code_dies() {
    // The prefix 65, pext's destination, the window's start in a string's pointer.
    dies("P1", |object| data(object, ".driver.text")[9] = 0x64);
    dies("P1", |object| data(object, ".driver.text")[4] ^= 0x08);
    dies("P1", |object| {
        let code = data(object, ".driver.text");
        let lea = [0x48, 0x8d, 0x3c, 0x0f];
        let at = code.windows(4).position(|w| w == lea).expect("lea");
        code[at..at + 4].fill(0x90);
    });
    dies("P3", |object| data(object, ".driver.text")[9] = 0x06);
}

#[test]
fn changed_references_of_code_die() {
    let code = ".driver.text";
    dies("to a symbol of Xen's", |object| {
        let printk = symbol(object, "printk");
        to(object, code, "stub:kfree").symbol = printk;
    });
    dies("no stub", |object| {
        let section = object.section_named(".text.twin.stubs").expect("stubs");
        let kfree = symbol(object, "stub:kfree");
        object.symbols[kfree.0 as usize].value += 1;
        assert_eq!(object.symbol(kfree).place, Place::In(section));
    });
    dies("not the runtime's entry", |object| {
        let load = symbol(object, "twin:load");
        to(object, code, "stub:kfree").symbol = load;
    });
    // An entry that exists, but that code may not call.
    dies("object-symbol", |object| {
        let entry = symbol(object, "twin_import_entry");
        to(object, code, "stub:kfree").symbol = entry;
    });
    dies("P2", |object| to(object, code, "stub:kfree").addend += 1);
    dies("P2", |object| to(object, code, names::CALL).addend -= 1);
    dies("P", |object| {
        to(object, code, "e1000:helper.cold").addend += 1
    });
    dies("absolute number", |object| {
        let window = symbol(object, names::WINDOW);
        object.symbols[window.0 as usize].name = "twin_elsewhere".into();
    });
    dies("P", |object| {
        let view = symbol(object, names::STACK_VIEW);
        to(object, code, names::WINDOW).symbol = view;
    });
    dies("P", |object| to(object, code, names::WINDOW).addend = 8);
    dies("Xen does not take", |object| {
        to(object, code, names::WINDOW_MASK).kind = 11
    });
}

#[test]
fn a_changed_mask_dies() {
    dies("2^42", |object| data(object, ".rodata")[5] = 0x07);
    dies("2^42", |object| {
        let id = object.section_named(".rodata").expect("the mask");
        object.sections[id.0 as usize].flags |= elf_loader::consts::SHF_WRITE;
    });
    dies("2^42", |object| {
        let (symbol, kind) = (symbol(object, "printk"), elf_loader::consts::R_X86_64_64);
        let id = object.section_named(".rodata").expect("the mask");
        let relocation = Relocation {
            offset: 0,
            kind,
            symbol,
            addend: 0,
        };
        object.sections[id.0 as usize].relocations.push(relocation);
    });
    dies("P2", |object| {
        to(object, ".driver.text", names::WINDOW_MASK).addend += 8
    });
}

#[test]
fn changed_stubs_die() {
    dies("no stub", |object| {
        data(object, ".text.twin.stubs")[16] = 0x90
    });
    dies("no stub", |object| {
        data(object, ".text.twin.stubs")[31] = 0x90
    });
    dies("no stub", |object| {
        to(object, ".text.twin.stubs", "twin_import_entry").addend = 0
    });
    dies("no stub", |object| {
        let warn = symbol(object, "twin_warn");
        to(object, ".text.twin.stubs", "twin_import_entry").symbol = warn;
    });
    // Of the routine that is called on the hypervisor's stack.
    for other in ["twin_import_entry", "twin_warn", "twin:load", "e1000:probe"] {
        dies("no stub", |object| {
            let other = symbol(object, other);
            to(object, ".text.twin.stubs", "twin_import_host_receive").symbol = other;
        });
    }
}

#[test]
fn stubs_that_others_may_write_die() {
    const STUBS: &str = ".text.twin.stubs";
    // Eight bytes from before the stub on, the last of which are its first.
    dies("no stub", |object| {
        let printk = symbol(object, "printk");
        let id = object.section_named(STUBS).expect("stubs");
        let section = &mut object.sections[id.0 as usize];
        section.relocations.push(Relocation {
            offset: 16 - 4,
            kind: elf_loader::consts::R_X86_64_64,
            symbol: printk,
            addend: 0,
        });
        section.relocations.sort_by_key(|r| r.offset);
    });
    dies("no stub", |object| {
        let id = object.section_named(STUBS).expect("stubs");
        object.sections[id.0 as usize].flags |= elf_loader::consts::SHF_WRITE;
    });
}

#[test]
fn a_changed_codemap_dies() {
    let map = ".rodata.twin.codemap";
    dies("P", |object| to(object, map, "e1000:probe").addend = 1);
    dies("codemap", |object| {
        let load = symbol(object, "twin:load");
        to(object, map, "e1000:probe").symbol = load;
    });
    dies("codemap", |object| data(object, map)[8] = 1);
    dies("codemap", |object| {
        let first = data(object, map)[..8].to_vec();
        data(object, map)[16..24].copy_from_slice(&first);
    });
    dies("codemap", |object| {
        let id = object.section_named(map).expect("the codemap");
        object.sections[id.0 as usize].flags |= elf_loader::consts::SHF_WRITE;
    });
}

/// What the runtime is told of the code decides what it enters.
#[test]
fn changed_words_about_the_code_die() {
    let arrays = ".rodata.twin.arrays";
    let number = |object: &mut Object<'_>, name: &str, value: u8| {
        let at = object.symbol(symbol(object, name)).value as usize;
        data(object, arrays)[at] = value;
    };
    dies("codemap", |object| {
        number(object, "twin_payload_codemap_count", 4)
    });
    dies("codemap", |object| {
        number(object, "twin_payload_codemap_count", 2)
    });
    dies("codemap", |object| {
        let map = symbol(object, "twin_payload_codemap");
        object.symbols[map.0 as usize].value = 16;
    });
    dies("codemap", |object| {
        let (map, text) = (
            symbol(object, "twin_payload_codemap"),
            symbol(object, "twin_payload_text"),
        );
        object.symbols[map.0 as usize].place = object.symbol(text).place;
    });
    dies("not one `twin_payload_codemap`", |object| {
        let again = object
            .symbol(symbol(object, "twin_payload_codemap"))
            .clone();
        object.symbols.push(again);
    });
    dies("ranges of code", |object| {
        number(object, "twin_payload_text_count", 3)
    });
    dies("range", |object| {
        let ranges = object.symbol(symbol(object, "twin_payload_text")).value;
        let id = object.section_named(arrays).expect("arrays");
        let all = &mut object.sections[id.0 as usize].relocations;
        let end = all
            .iter_mut()
            .find(|r| r.offset == ranges + 8)
            .expect("an end");
        end.addend += 1;
    });
    dies("imports", |object| {
        number(object, "twin_payload_imports_count", 1)
    });
    dies("imports", |object| data(object, ".text.twin.stubs")[18] = 1);
    dies("imports", |object| {
        let memcpy = symbol(object, "stub:memcpy");
        to(object, arrays, "stub:kfree").symbol = memcpy;
    });
    // Relocations that are none of a word's own, or beside it: the last one is what is there.
    let further = |object: &mut Object<'_>, name: &str, by: u64| {
        let at = object.symbol(symbol(object, name)).value + by;
        let id = object.section_named(arrays).expect("arrays");
        let all = &mut object.sections[id.0 as usize].relocations;
        let r = Relocation {
            offset: at,
            ..all[0]
        };
        all.push(r);
        all.sort_by_key(|r| r.offset);
    };
    dies("`twin_payload_codemap_count`", |object| {
        further(object, "twin_payload_codemap_count", 4)
    });
    dies("`twin_payload_text`", |object| {
        further(object, "twin_payload_text", 0)
    });
    dies("`twin_payload_imports`", |object| {
        further(object, "twin_payload_imports", 12)
    });
    dies("`twin_payload_scheme`", |object| {
        number(object, "twin_payload_scheme", 1)
    });
    dies("`twin_payload_abi_version`", |object| {
        number(object, "twin_payload_abi_version", 0)
    });
    dies("`twin_payload_vector_free`", |object| {
        number(object, "twin_payload_vector_free", 0)
    });
    // Numbers that may be written are no numbers: what they say may not lead into code.
    dies("middle of the code", |object| {
        let id = object.section_named(arrays).expect("arrays");
        object.sections[id.0 as usize].flags |= elf_loader::consts::SHF_WRITE;
    });
}

#[test]
fn references_into_the_middle_of_code_die() {
    dies("middle of the code", |object| {
        to(object, ".text", "twin_hot:hot_poll").addend += 1;
    });
    dies("middle of the code", |object| {
        let code = object.section_named(".driver.text").expect("code");
        let hook = object
            .section_named(".livepatch.hooks.load")
            .expect("a hook");
        let is_start = |s: &elf_loader::Symbol<'_>| s.place == Place::In(code) && s.name.is_empty();
        let start = object.symbols.iter().position(is_start);
        let start = SymbolId(start.expect("the section's symbol") as u32);
        object.sections[hook.0 as usize].relocations[0].symbol = start;
    });
}

#[test]
fn changed_sections_die() {
    dies("is not code", |object| {
        let id = object.section_named(".driver.text").expect("code");
        object.sections[id.0 as usize].flags |= elf_loader::consts::SHF_WRITE;
    });
    dies("no note", |object| {
        let id = object.section_named(".note.twin").expect("the note");
        object.sections[id.0 as usize].name = ".note.other".into();
    });
    dies("object", |object| data(object, ".note.twin")[20] ^= 1);
}
