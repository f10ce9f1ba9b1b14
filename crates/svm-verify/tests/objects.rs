//! Objects with good code and bad other parts, and objects that are damaged after they
//! were assembled.

mod common;
use common::*;
use elf_loader::consts::*;
use elf_loader::{Object, Place, Relocation, SymbolId};
use svm_verify::{Contract, Scheme, Target};

const GOOD: &str = ".globl f\n.type f,@function\nf: mov %edi, %eax; jmp imported\n";
const CODEMAP: &str = ".section .twin.codemap,\"a\",@progbits\n";
const MAP: &str = ".section .twin.map,\"\",@progbits\n";

#[track_caller]
fn refuse_source(source: &str, rule: &str) {
    let found = codes(&assemble(source));
    assert!(
        found.contains(&rule),
        "expected {rule}, found {found:?} in\n{source}"
    );
}

#[test]
fn foreign_objects_are_refused_clearly() {
    let text = format!(".text\n{GOOD}");
    refuse_source(&text, "object-foreign");
    for words in [
        [ABI + 1, 1, 64, 0],
        [ABI - 1, 1, 64, 0],
        [ABI, 99, 64, 0],
        [ABI, 1, 32, 0],
        [ABI, 1, 64, 3],
        [0, 1, 64, 0],
    ] {
        refuse_source(&(note(words) + &text), "object-foreign");
    }
    let good = note([ABI, 1, 64, 0]);
    for (from, to) in [
        ("5, 24, 1", "5, 24, 2"),
        ("5, 24, 1", "5, 20, 1"),
        ("\"twin\"", "\"twim\""),
        ("@note", "@progbits"),
        ("64, 0, 0, 0", "64, 0, 0, 0, 0"),
        ("64, 0, 0, 0", "64, 0, 0"),
        ("64, 0, 0, 0", "64, 0, 2, 0"),
        ("64, 0, 0, 0", "64, 0, 0, 2"),
    ] {
        refuse_source(&(good.replace(from, to) + &text), "object-foreign");
    }
    let error = verify(&assemble(&text), USER).unwrap_err();
    assert_eq!((error.total, error.list.len()), (1, 1));
    assert!(error.to_string().contains(".note.twin"), "{error}");
}

#[test]
fn sections_that_objects_do_not_have_are_refused() {
    let cases = [
        ".data\n.long 1",
        ".bss\n.zero 8",
        ".section .rodata,\"a\"\n.long 1",
        ".section .text.w,\"awx\"\nnop",
        ".section .wx,\"wx\"\nnop",
        ".section .tdata,\"awT\"\n.long 1",
        ".section .text.nobits,\"ax\",@nobits\n.zero 8",
        ".section .text.group,\"axG\",@progbits,g,comdat\nret",
        ".section .debug_info,\"\",@progbits\n.long 1",
        ".section .init_array,\"aw\",@init_array\n.quad 0",
        ".section .mergeable,\"aMS\",@progbits,1\n.asciz \"x\"",
        ".section .altinstructions,\"a\"\n.long 1",
    ];
    for case in cases {
        refuse_source(
            &format!("{}.text\n{GOOD}{case}", note([ABI, 1, 64, 0])),
            "object-section",
        );
    }
    let harmless = ".data\n.bss\n.ident \"x\"\n.section .note.GNU-stack,\"\",@progbits";
    let source = format!("{}.text\n{GOOD}{harmless}", note([ABI, 1, 64, 0]));
    assert_eq!(codes(&assemble(&source)), [""; 0]);
}

#[test]
fn symbols_that_objects_do_not_have_are_refused() {
    let cases = [
        ".comm buffer,64",
        ".globl abs\nabs = 0x1000",
        ".globl twin_stlb_call2\ntwin_stlb_call2: ret",
        ".globl twin_slow_rax\ntwin_slow_rax: ret",
        ".globl twin_stlb\n.set twin_stlb, f",
        ".globl out\n.data\nout:",
        "call __tls\n.type __tls,@tls_object",
        "call g\n.type h,@gnu_indirect_function\nh: ret\n.globl h",
        "call twin_unknown; ret",
        "mov $\"twin_vm:\", %rax; ret",
    ];
    for case in cases {
        refuse_source(
            &format!("{}.text\n{GOOD}{case}\n", note([ABI, 1, 64, 0])),
            "object-symbol",
        );
    }
}

#[test]
fn visible_names_of_code_are_entries_whatever_their_type() {
    let bad = ".globl g\ng: add $8, %rsp; ret";
    refuse(STLB, &format!("{GOOD}{bad}"), "P4-frame");
    refuse(STLB, &format!("{GOOD}.type g,@object\n{bad}"), "P4-frame");
    refuse(
        STLB,
        &format!("{GOOD}.weak g\n{}", bad.replace(".globl g", "")),
        "P4-frame",
    );
    refuse(
        STLB,
        ".globl f, g\nf: mov $0xc3c3c3c3, %eax; ret; g = f + 1",
        "P2-target",
    );
    refuse(STLB, ".globl f, g\nf: ret; g:", "P2-target");
    // A weak definition may be replaced by anything.
    refuse(
        STLB,
        &format!("{GOOD}.weak g\ng: ret; h: call g; ret"),
        "P2-relocation",
    );
    // Local functions that nothing refers to are verified all the same.
    refuse(
        STLB,
        &format!("{GOOD}.type g,@function\ng: mov (%rax), %al; ret"),
        "P1-untranslated",
    );
}

/// The audit's object: everything in it is allowed to a module for a stock kernel,
/// which is what it claims to be.
#[test]
fn an_object_does_not_choose_its_contract() {
    let kernel = "wrmsr; mov %rdi, %cr0; ret";
    let source = |scheme, target| {
        let note = note([ABI, scheme, 64, target]);
        format!("{note}.text\n.globl f\nf: {kernel}\n")
    };
    refuse_source(&source(STLB, 1), "object-contract");
    refuse_source(&source(STLB, 0), "P3-instruction");
    let good = object(STLB, GOOD);
    let linux = codes_for(Contract::of(Target::Linux), &good);
    assert_eq!(linux, ["object-contract"], "and nothing else is said");
    for (demanded, made) in [(Scheme::Stlb, PAPER), (Scheme::Paper, STLB)] {
        let found = codes_for(USER.with(demanded), &object(made, GOOD));
        assert_eq!(found, ["object-contract"]);
    }
    let proof = verify(&object(PAPER, GOOD), USER.with(Scheme::Paper)).unwrap();
    assert_eq!(
        (proof.target, proof.scheme),
        (Target::Hypervisor, Scheme::Paper)
    );
}

#[test]
fn codemaps_are_pairs_of_vm_address_and_entry() {
    let good = ".quad \"twin_vm:.text\", f\n";
    let source = |map: &str| format!("{}.text\n{GOOD}\n{CODEMAP}{map}", note([ABI, 1, 64, 0]));
    assert_eq!(codes(&assemble(&source(good))), [""; 0]);
    let cases = [
        ".quad f, \"twin_vm:.text\"",
        ".quad \"twin_vm:.text\", \"twin_vm:.text\"",
        ".quad \"twin_vm:.text\", imported",
        ".quad \"twin_vm:.data\", f",
        ".quad \"twin_vm:printk\", f",
        ".quad \"twin_vm:.text\", f + 1",
        ".quad \"twin_vm:.text\", f + 1000",
        ".quad \"twin_vm:.text\", f - 1000",
        ".quad \"twin_vm:.text\", 0x1000",
        ".quad 0, f",
        ".quad \"twin_vm:.text\", f, \"twin_vm:.text\"",
        ".quad \"twin_vm:.text\", f, \"twin_vm:.text\", f",
        ".quad \"twin_vm:.text\", f - .",
        ".long \"twin_vm:.text\", 0, f, 0",
        ".quad \"twin_vm:.text\", twin_stlb",
        ".quad \"twin_vm:.text\", twin_bug",
        ".quad \"twin_vm:.text\", f\n.byte 0",
        ".quad \"twin_vm:.text\", here\nhere:",
        ".zero 4\n.quad \"twin_vm:.text\", f\n.zero 12",
    ];
    for case in cases {
        refuse_source(&source(case), "P2-codemap");
    }
    refuse_source(
        &source(good).replace(",\"a\",", ",\"aw\","),
        "object-section",
    );
    refuse_source(
        &source(good).replace(",\"a\",", ",\"ax\","),
        "object-section",
    );
    refuse_source(&source(good).replace(",\"a\",", ",\"\","), "object-section");
    // An entry in the middle of a function: its frame is not empty.
    let middle = format!(
        "{}.text\n.globl f\nf: push %rax\n1: pop %rax; ret\n{CODEMAP}.quad \"twin_vm:.text\", 1b",
        note([ABI, 1, 64, 0])
    );
    refuse_source(&middle, "P4-frame");
}

/// What an object was made from is for people: not loaded, and nothing may depend on it.
#[test]
fn the_origin_is_text_that_nothing_refers_to() {
    let source = |origin: &str| format!("{}.text\n{GOOD}\n{origin}", note([ABI, 1, 64, 0]));
    let good = ".section .twin.origin,\"\",@progbits\n.asciz \"twin=1\"\n";
    assert_eq!(codes(&assemble(&source(good))), [""; 0]);
    for flags in ["a", "aw", "ax", "w", "M"] {
        let with = good.replace("\"\",@", &format!("\"{flags}\",@"));
        refuse_source(
            &source(&with.replace("\"M\",@progbits", "\"MS\",@progbits,1")),
            "object-section",
        );
    }
    let relocated = format!("{good}.quad f\n");
    refuse_source(&source(&relocated), "P2-relocation");
    let other = good.replace(".twin.origin", ".twin.other");
    refuse_source(&source(&other), "object-section");
    let twice = format!("{good}.section .twin.origin,\"\",@progbits,unique,1\n.byte 1\n");
    refuse_source(&source(&twice), "object-section");
}

#[test]
fn maps_are_sorted_tables_of_places_in_code() {
    let source = |map: &str| format!("{}.text\n{GOOD}\n{MAP}{map}", note([ABI, 1, 64, 0]));
    // .text is section 1 or 2, depending on the assembler: ask the object.
    let bytes = assemble(&source(""));
    let text = elf_loader::read(&bytes)
        .unwrap()
        .section_named(".text")
        .unwrap()
        .0;
    let accepted = source(&format!(".long {text}, 0, 0, {text}, 0, 5, {text}, 7, 9"));
    assert_eq!(codes(&assemble(&accepted)), [""; 0]);
    for case in [
        format!(".long {text}, 0"),
        format!(".long {text}, 0, 0, 0"),
        format!(".long {text}, 7, 0, {text}, 2, 9"),
        format!(".long {text}, 1000, 0"),
        ".long 0, 0, 0".to_string(),
        ".long 1000, 0, 0".to_string(),
    ] {
        refuse_source(&source(&case), "object-map");
    }
    refuse_source(&source(".long f, 0, 0"), "P2-relocation");
    refuse_source(&source("").replace(",\"\",", ",\"a\","), "object-section");
}

#[test]
fn a_name_is_not_both_imported_and_exported() {
    // An assembler cannot write it; a linker that joins tables could.
    let bytes = object(STLB, GOOD);
    let mut object = elf_loader::read(&bytes).unwrap();
    let imported = object
        .symbols
        .iter()
        .position(|s| s.name == "imported")
        .unwrap();
    object.symbols[imported].name = "f".into();
    assert!(refused(&object).contains(&"object-symbol"));
}

fn refused(object: &Object<'_>) -> Vec<&'static str> {
    match svm_verify::verify(object, USER) {
        Ok(_) => Vec::new(),
        Err(v) => v.list.iter().map(|v| v.code.as_str()).collect(),
    }
}

/// A good object with every kind of relocation, and the numbers of `.text` and
/// some symbols.
fn relocated() -> Vec<u8> {
    let code = format!(
        ".globl f\nf: {{KEEP}} {} mov (%rax), %rbx; mov $\"twin_vm:jiffies\", %rdi
         movabs $\"twin_vm:jiffies\", %rsi; call imported; call .text.b; {{RET}}
         .section .text.b,\"ax\",@progbits\nret\n.text",
        stlb("\"twin_vm:.data\"(%rdi)", 1)
    );
    object(STLB, &code)
}

#[test]
fn relocations_are_on_whole_operand_fields_only() {
    let bytes = relocated();
    let good = elf_loader::read(&bytes).unwrap();
    assert_eq!(refused(&good), [""; 0]);
    let text = good.section_named(".text").unwrap().0 as usize;
    for n in 0..good.sections[text].relocations.len() {
        for distance in [-8i64, -4, -3, -2, -1, 1, 2, 3, 4, 8] {
            let mut object = good.clone();
            let r = &mut object.sections[text].relocations[n];
            r.offset = r.offset.wrapping_add_signed(distance);
            object.sections[text].relocations.sort_by_key(|r| r.offset);
            assert!(
                !refused(&object).is_empty(),
                "relocation {n} moved by {distance}"
            );
        }
        for kind in 0..45 {
            let mut object = good.clone();
            let r = &mut object.sections[text].relocations[n];
            let branch = [R_X86_64_PC32, R_X86_64_PLT32];
            if kind == r.kind || (branch.contains(&kind) && branch.contains(&r.kind)) {
                continue;
            }
            r.kind = kind;
            assert!(
                !refused(&object).is_empty(),
                "relocation {n} as type {kind}"
            );
        }
        let mut object = good.clone();
        let copy = object.sections[text].relocations[n];
        object.sections[text].relocations.insert(n, copy);
        assert!(
            refused(&object).contains(&"P2-relocation"),
            "relocation {n} twice"
        );
    }
}

#[test]
fn relocations_keep_their_roles_whatever_symbol_they_name() {
    let bytes = relocated();
    let good = elf_loader::read(&bytes).unwrap();
    let text = good.section_named(".text").unwrap().0 as usize;
    let role = |symbol: SymbolId| {
        let s = good.symbol(symbol);
        match (s.place, &*s.name) {
            (Place::Undefined, name) if name.starts_with("twin_vm:") => 'v',
            (Place::Undefined, "imported" | "twin_smashed") => 'r',
            (Place::In(section), _) if good.section(section).is_code() => 'c',
            _ => 'x',
        }
    };
    let mut kept = 0;
    for n in 0..good.sections[text].relocations.len() {
        for (symbol, _) in good.symbols() {
            let mut object = good.clone();
            let r = &mut object.sections[text].relocations[n];
            if r.symbol == symbol {
                continue;
            }
            let same = role(r.symbol) == role(symbol) && role(symbol) != 'x';
            *r = Relocation { symbol, ..*r };
            let found = refused(&object);
            // Another dom0 address is another number, equally confined, except
            // in one half of a check. What a branch may lead to is decided by
            // the code there.
            if found.is_empty() {
                kept += 1;
                let call = matches!(role(symbol), 'r' | 'c')
                    && matches!(role(good.sections[text].relocations[n].symbol), 'r' | 'c');
                assert!(same || call, "relocation {n} to symbol {symbol:?}");
            }
        }
    }
    assert!(kept > 0);
}

#[test]
fn code_bytes_and_relocations_disagree_in_the_out_of_line_part() {
    let bytes = relocated();
    let good = elf_loader::read(&bytes).unwrap();
    let text = good.section_named(".text").unwrap().0 as usize;
    for n in 0..good.sections[text].relocations.len() {
        let r = good.sections[text].relocations[n];
        if r.kind != R_X86_64_32S || good.symbol(r.symbol).name != "twin_vm:.data" {
            continue;
        }
        let mut object = good.clone();
        object.sections[text].relocations[n].addend += 1;
        assert!(refused(&object).contains(&"P2-out-of-line"));
    }
}

#[test]
fn violations_name_the_place_and_serialize() {
    let code = ".globl f\n.type f,@function\nf: nop; mov %rax, 8(%rdi); ret";
    let error = verify(&object(STLB, code), USER).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("P1-untranslated: .text+0x1 (f+0x1): `mov %rax, 8(%rdi)`"),
        "{text}"
    );
    let json = serde_json::to_value(&error).unwrap();
    assert_eq!(json["list"][0]["code"], "P1-untranslated");
    assert_eq!(json["list"][0]["rule"], "P1");
    assert_eq!(json["list"][0]["function"], "f");
    let proof = verify(&object(STLB, GOOD), USER).unwrap();
    assert_eq!(serde_json::to_value(proof).unwrap()["instructions"], 2);
}

#[test]
fn violations_are_counted_beyond_the_limit() {
    let bytes = object(
        STLB,
        &format!(".globl f\nf: {} ret", "mov (%rdi), %al; ".repeat(50)),
    );
    let object = elf_loader::read(&bytes).unwrap();
    let options = svm_verify::Options { limit: 7 };
    let error = svm_verify::verify_with(&object, USER, options).unwrap_err();
    assert_eq!((error.list.len(), error.total), (7, 50));
    assert!(error.to_string().ends_with("and 43 more\n"));
}

#[test]
fn no_object_makes_it_panic() {
    // Every byte of the code replaced, and every relocation dropped.
    let bytes = relocated();
    let good = elf_loader::read(&bytes).unwrap();
    let text = good.section_named(".text").unwrap().0 as usize;
    for at in 0..good.sections[text].data.len() {
        for value in [
            0x00, 0x0f, 0x48, 0x66, 0x67, 0xe8, 0xeb, 0xf2, 0xff, 0x62, 0xc5,
        ] {
            let mut object = good.clone();
            object.sections[text].data.to_mut()[at] = value;
            let _ = svm_verify::verify(&object, USER);
        }
    }
    for n in 0..good.sections[text].relocations.len() {
        let mut object = good.clone();
        let r = object.sections[text].relocations.remove(n);
        // Without it a constant is another constant, and a call is one of the
        // next instruction; a check is none any more.
        let name = &good.symbol(r.symbol).name;
        let check = name.starts_with("twin_s") || name == "twin_vm:.data";
        assert!(
            !check || !refused(&object).is_empty(),
            "without relocation {n}"
        );
    }
}

/// Readers take the first section of a name. An empty table of relocations that has the
/// codemap's would hide the codemap: then nobody judges its entries, and a loader that looks
/// for a section with contents enters code at them.
#[test]
fn a_table_of_the_file_does_not_hide_one_of_the_abi() {
    for name in [".twin.codemap", ".twin.map", ".twin.origin"] {
        let source = format!(
            "{}.text\n{GOOD}.section .comment,\"\",@progbits\n.quad f\n{CODEMAP}.quad \"twin_vm:.text\", f+1\n",
            note([ABI, 1, 64, 0])
        );
        let bytes = assemble(&source);
        let mut object = elf_loader::read(&bytes).expect("an object");
        let id = object.section_named(".rela.comment").expect("a table");
        assert!(id < object.section_named(".twin.codemap").expect("the codemap"));
        let table = &mut object.sections[id.0 as usize];
        (table.name, table.size) = (name.into(), 0);
        let id = object.section_named(".comment").expect("a section");
        object.sections[id.0 as usize].relocations.clear();
        let violations = svm_verify::verify(&object, USER).expect_err("a hidden codemap");
        let found: Vec<_> = violations.list.iter().map(|v| v.code.as_str()).collect();
        assert!(found.contains(&"object-section"), "{name}: {found:?}");
    }
}

/// A linker drops relocations that are to be excluded, and the jump goes where its bytes say.
#[test]
fn tables_of_the_file_have_the_usual_flags_alone() {
    const EXCLUDE: u64 = 0x8000_0000;
    const GROUP: u64 = 0x200;
    let bytes = assemble(&format!("{}.text\n{GOOD}", note([ABI, 1, 64, 0])));
    let good = elf_loader::read(&bytes).expect("an object");
    assert!(svm_verify::verify(&good, USER).is_ok());
    for name in [".rela.text", ".symtab", ".strtab", ".shstrtab"] {
        let id = good.section_named(name).expect("a table").0 as usize;
        for flags in [EXCLUDE, GROUP, 1 << 40, SHF_ALLOC] {
            let mut object = good.clone();
            object.sections[id].flags |= flags;
            let violations = svm_verify::verify(&object, USER).expect_err("another flag");
            let found: Vec<_> = violations.list.iter().map(|v| v.code.as_str()).collect();
            assert_eq!(found, ["object-section"], "{name} {flags:#x}");
        }
    }
}

/// A linker leaves out the members of a group that it has seen before: relocations, perhaps.
#[test]
fn a_comment_is_no_group() {
    const GROUP: u32 = 17;
    let source = format!(
        "{}.text\n{GOOD}.ident \"x\"\n.section .note.GNU-stack,\"\",@progbits\n.long 1, 1",
        note([ABI, 1, 64, 0])
    );
    let bytes = assemble(&source);
    let good = elf_loader::read(&bytes).expect("an object");
    assert!(svm_verify::verify(&good, USER).is_ok());
    for name in [".comment", ".note.GNU-stack"] {
        let id = good.section_named(name).expect("a section").0 as usize;
        for (kind, flags) in [(GROUP, 0), (SHT_NOTE, 0), (SHT_PROGBITS, 0x80)] {
            let mut object = good.clone();
            object.sections[id].kind = kind;
            object.sections[id].flags |= flags;
            let violations = svm_verify::verify(&object, USER).expect_err("another kind");
            assert_eq!(
                violations.list[0].code.as_str(),
                "object-section",
                "{name} {kind}"
            );
        }
    }
}
