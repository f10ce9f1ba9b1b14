//! Kernel metadata: decoded from the stock module and from hand-written tables.

use crate::common::{assemble, stock_e1000};
use elf_loader::special::{
    AlternativeFlags, EntryData, FieldRole, KINDS, Referent, SpecialError, SpecialKind, entries,
    kind_of,
};
use elf_loader::{Object, SectionId, read, refers_to_code, resolve_biased, resolve_target};

fn all(object: &Object<'_>, name: &str) -> Result<Vec<elf_loader::special::Entry>, SpecialError> {
    entries(
        object,
        object.section_named(name).expect("the section exists"),
    )
}

#[test]
fn names_and_kinds_agree() {
    for (kind, name) in KINDS {
        // Linked into a module it has another name.
        let in_modules = match name {
            ".kcfi_traps" => "__kcfi_traps",
            name => name,
        };
        assert_eq!((kind_of(name), kind.name()), (Some(kind), in_modules));

        assert!(
            kind.layouts()
                .iter()
                .all(|l| l.fields.iter().all(|f| f.offset + 4 <= l.size)),
            "{name}"
        );
    }
    assert_eq!(kind_of(".text"), None);
}

#[test]
fn stock_module() {
    let bytes = stock_e1000();
    let object = read(&bytes).expect("readable");
    let text = object.section_named(".text").expect(".text");
    let count = |name| all(&object, name).expect(name).len();
    // Entry counts are section size over entry size, as readelf shows them.
    assert_eq!(count("__mcount_loc"), 158);
    assert_eq!(count(".smp_locks"), 48);
    assert_eq!(count(".retpoline_sites"), 9);
    assert_eq!(count(".return_sites"), 222);
    assert_eq!(count(".orc_unwind"), 1526);
    assert_eq!(count(".orc_unwind_ip"), 1526);
    let bugs = all(&object, "__bug_table").expect("__bug_table");
    assert_eq!(bugs.len(), 15);
    assert_eq!(bugs[0].site(), Some((text, 0x2798)));
    let jumps = all(&object, "__jump_table").expect("__jump_table");
    assert_eq!(jumps.len(), 126);
    assert_eq!(jumps[0].site(), Some((text, 0x1042)));
    assert_eq!(jumps[0].target(), Some((text, 0x11b6)));
    let dyndbg = object.section_named("__dyndbg").expect("__dyndbg");
    assert_eq!(jumps[0].key(), Some(Referent::Here(dyndbg, 0x28)));
    assert_eq!(
        jumps[0].data,
        EntryData::Jump {
            branch: false,
            nop: true
        }
    );
    let calls = all(&object, ".static_call_sites").expect(".static_call_sites");
    assert_eq!(calls.len(), 4);
    let Some(Referent::Symbol(key, 0)) = calls[0].key() else {
        panic!("{:?}", calls[0])
    };
    assert_eq!(object.symbol(key).name, "__SCT__preempt_schedule");
}

#[test]
fn every_site_of_the_stock_module_holds_its_instruction() {
    let bytes = stock_e1000();
    let object = read(&bytes).expect("readable");
    let at = |(section, offset): (SectionId, u64)| &object.section(section).data[offset as usize..];
    let check = |name: &str, good: &dyn Fn(&[u8]) -> bool| {
        for entry in all(&object, name).expect(name) {
            let site = at(entry.site().expect("a site"));
            assert!(
                good(site),
                "{name} +{:#x}: {:02x?}",
                entry.offset,
                &site[..6]
            );
        }
    };
    check("__mcount_loc", &|code| code[0] == 0xe8);
    check(".smp_locks", &|code| code[0] == 0xf0);
    check(".return_sites", &|code| code[0] == 0xe9);
    check("__bug_table", &|code| code[..2] == [0x0f, 0x0b]);
    check("__jump_table", &|code| {
        code[..2] == [0x66, 0x90] || code[..2] == [0x0f, 0x1f]
    });
    check(".static_call_sites", &|code| code[0] == 0xe8);
}

#[test]
fn references_from_data_of_the_stock_module() {
    let bytes = stock_e1000();
    let object = read(&bytes).expect("readable");
    let all: Vec<_> = refers_to_code(&object)
        .collect::<Result<_, _>>()
        .expect("all inside code");
    assert!(
        all.iter()
            .all(|r| object.section(r.target.0).is_code() && r.loaded)
    );
    let text = object.section_named(".text").expect(".text");
    let data = object.section_named(".data").expect(".data");
    let probe = all
        .iter()
        .find(|r| r.section == data && r.relocation.offset == 0x40);
    assert_eq!(
        probe.map(|r| (r.target, r.special)),
        Some(((text, 0x4e90), None))
    );
    let locks = all
        .iter()
        .filter(|r| r.special == Some(SpecialKind::SmpLocks))
        .count();
    assert_eq!(locks, 48);
}

const TABLES: &str = r#"
        .text
        nop
site:   ud2
other:  ret
        .section .text.unlikely, "ax"
fix:    ret
        .section .altinstr_replacement, "ax"
new:    lfence
        .section .altinstructions, "a"
        .long   site - ., new - .
        .word   0x8001
        .byte   2, 3
        .section __bug_table, "aw"
        .long   site - ., file - .
        .word   77, 0x905
        .long   other - ., file - .
        .word   78, 0
        .section __ex_table, "a"
        .long   site - ., fix - .
        .long   0x10003
        .section .parainstructions, "a"
        .quad   site
        .byte   9, 2
        .skip   6
        .section .ibt_endbr_seal, "a"
        .long   other - .
        .data
file:   .asciz  "f.c"
"#;

#[test]
fn fields_of_hand_written_tables() {
    let bytes = assemble(&[], TABLES);
    let object = read(&bytes).expect("readable");
    let id = |name: &str| object.section_named(name).expect("the section exists");
    let site = Some((id(".text"), 1));
    let one = |name: &str| all(&object, name).expect(name)[0].clone();
    let alternative = one(".altinstructions");
    assert_eq!(alternative.site(), site);
    assert_eq!(alternative.target(), Some((id(".altinstr_replacement"), 0)));
    assert_eq!(
        (alternative.site_len(), alternative.replacement_len()),
        (2, 3)
    );
    let data = EntryData::Alternative {
        feature: 1,
        flags: AlternativeFlags {
            not: true,
            ..AlternativeFlags::default()
        },
        site_len: 2,
        replacement_len: 3,
    };
    assert_eq!(alternative.data, data);
    let bugs = all(&object, "__bug_table").expect("__bug_table");
    assert_eq!(
        bugs[0].data,
        EntryData::Bug {
            line: 77,
            flags: 0x905
        }
    );
    assert_eq!((bugs[0].is_warning(), bugs[1].is_warning()), (true, false));
    assert_eq!(bugs[1].reference(FieldRole::File), Some((id(".data"), 0)));
    let exception = one("__ex_table");
    assert_eq!(
        (exception.site(), exception.target()),
        (site, Some((id(".text.unlikely"), 0)))
    );
    assert_eq!(exception.data, EntryData::Exception(0x10003));
    let paravirt = one(".parainstructions");
    assert_eq!(
        paravirt.data,
        EntryData::Paravirt {
            operation: 9,
            site_len: 2
        }
    );
    assert_eq!((paravirt.site(), paravirt.site_len()), (site, 2));
    assert_eq!(one(".ibt_endbr_seal").site(), Some((id(".text"), 3)));
    assert_eq!(
        all(&object, ".altinstr_replacement").expect("no entries"),
        []
    );
}

#[test]
fn flags_of_a_key_are_its_low_bits() {
    let source = "f: ud2\n .section __bug_table,\"aw\"\n .long f - ., 0\n .word 5, 1\n \
                  .section __mcount_loc,\"a\"\n .quad f\n \
                  .section __jump_table,\"aw\"\n .long f - ., f - .\n .quad key + 3 - .\n";
    let bytes = assemble(&[], source);
    let object = read(&bytes).expect("readable");
    let text = object.section_named(".text").expect(".text");
    let bug = &all(&object, "__bug_table").expect("__bug_table")[0];
    assert_eq!((bug.site(), bug.is_warning()), (Some((text, 0)), true));
    assert_eq!(
        all(&object, "__mcount_loc").expect("__mcount_loc")[0].site(),
        Some((text, 0))
    );
    let jump = &all(&object, "__jump_table").expect("__jump_table")[0];
    assert_eq!(
        jump.data,
        EntryData::Jump {
            branch: true,
            nop: true
        }
    );
    assert!(matches!(jump.key(), Some(Referent::Symbol(_, 0))));
}

fn refused(source: &str, section: &str) -> String {
    let bytes = assemble(&[], source);
    let object = read(&bytes).expect("readable");
    all(&object, section).expect_err("refused").to_string()
}

#[test]
fn what_does_not_fit_the_layout_is_refused_with_its_place() {
    let message = refused(
        "f: ret\n .section .smp_locks,\"a\"\n .long f - .\n .word 1\n",
        ".smp_locks",
    );
    assert!(
        message.contains("`.smp_locks` has 0x6 bytes, not a multiple of 4"),
        "{message}"
    );
    let message = refused(
        "f: ret\n .section .smp_locks,\"a\"\n .long f - ., 0\n",
        ".smp_locks",
    );
    assert!(
        message.contains("offset 0x4: expected R_X86_64_PC32, found no relocation"),
        "{message}"
    );
    let message = refused(
        "f: ret\n .section .smp_locks,\"a\"\n .long f\n",
        ".smp_locks",
    );
    assert!(
        message.contains("expected R_X86_64_PC32, found R_X86_64_32"),
        "{message}"
    );
    let message = refused(" .section .smp_locks,\"a\"\n .long far - .\n", ".smp_locks");
    assert!(
        message.contains("refers to `far`, which is no code"),
        "{message}"
    );
    let message = refused(
        " .data\nd: .long 0\n .section .smp_locks,\"a\"\n .long d - .\n",
        ".smp_locks",
    );
    assert!(message.contains("`.data`, which is no code"), "{message}");
    let message = refused(
        "f: ret\n .section __bug_table,\"a\"\n .long f - ., f - ., f - .\n",
        "__bug_table",
    );
    assert!(
        message.contains("offset 0x8: expected no relocation"),
        "{message}"
    );
    let message = refused("f: ret\n", ".text");
    assert!(message.contains("no entries that twin knows"), "{message}");
}

#[test]
fn targets_with_and_without_bias() {
    let source = "jmp cold\n lea cold+3(%rip), %rax\n .section .text.unlikely,\"ax\"\n\
                  cold: nop; nop; nop; ret\n .data\n .quad cold + 2, cold + 5\n";
    let bytes = assemble(&[], source);
    let object = read(&bytes).expect("readable");
    let id = |name: &str| object.section_named(name).expect("the section exists");
    let cold = id(".text.unlikely");
    let [jump, lea] = object.section(id(".text")).relocations[..] else {
        panic!("two")
    };
    assert_eq!(
        resolve_target(&object, &jump),
        None,
        "4 bytes before the section"
    );
    assert_eq!(resolve_biased(&object, &jump, 4), Some((cold, 0)));
    assert_eq!(resolve_biased(&object, &lea, 4), Some((cold, 3)));
    let [inside, outside] = object.section(id(".data")).relocations[..] else {
        panic!("two")
    };
    assert_eq!(resolve_target(&object, &inside), Some((cold, 2)));
    assert_eq!(resolve_target(&object, &outside), None);
    let error = refers_to_code(&object)
        .find_map(Result::err)
        .expect("the second is outside");
    assert!(error.to_string().contains("`.data` offset 0x8"), "{error}");
}

#[test]
fn the_padding_of_an_alternative_is_in_the_layout_of_13_bytes_alone() {
    for (last, padding) in [("3, 0, 2", 2), ("3, 0", 0)] {
        let source = format!(
            "f: nop; nop; nop; ret\n .section .altinstructions,\"a\"\n \
             .long f - ., f - .\n .short 1\n .byte {last}\n"
        );
        let bytes = assemble(&[], &source);
        let object = read(&bytes).expect("readable");
        let entry = &all(&object, ".altinstructions").expect("entries")[0];
        assert_eq!((entry.site_len(), entry.padding), (3, padding));
    }
}

#[test]
fn a_replacement_without_bytes_may_be_without_a_place() {
    let table = |length: u8| {
        format!(
            "f: nop; nop; nop; ret\n .section .altinstructions,\"a\"\n \
             .long f - ., 0\n .short 1\n .byte 3, {length}, 0\n"
        )
    };
    let bytes = assemble(&[], &table(0));
    let object = read(&bytes).expect("readable");
    let entry = &all(&object, ".altinstructions").expect("entries")[0];
    assert_eq!((entry.replacement_len(), entry.target()), (0, None));
    let message = refused(&table(2), ".altinstructions");
    assert!(
        message.contains("offset 0x4: expected R_X86_64_PC32, found no relocation"),
        "{message}"
    );
}
