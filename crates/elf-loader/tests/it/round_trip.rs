//! An object that is read and written again stays the same, for this crate and for
//! binutils.

use crate::common::{SAMPLE_64, assemble, run, stock_e1000};
use elf_loader::consts::*;
use elf_loader::{Object, Place, Relocation, Role, Section, Symbol, SymbolId, read, write};

fn is_table(role: Role) -> bool {
    role != Role::Contents
}

/// The objects have the same model; only the string tables may differ in size.
fn assert_same(a: &Object<'_>, b: &Object<'_>) {
    assert_eq!((a.flags, a.os_abi), (b.flags, b.os_abi));
    assert_eq!(a.sections.len(), b.sections.len());
    for (x, y) in a.sections.iter().zip(&b.sections) {
        assert_eq!(x.name, y.name);
        let fields =
            |s: &Section<'_>| (s.kind, s.flags, s.align, s.entsize, s.link, s.info, s.role);
        assert_eq!(fields(x), fields(y), "{}", x.name);
        assert_eq!(x.data, y.data, "{}", x.name);
        assert_eq!(x.relocations, y.relocations, "{}", x.name);
        assert!(x.size == y.size || is_table(x.role), "{}", x.name);
    }
    assert_eq!(format!("{:?}", a.symbols), format!("{:?}", b.symbols));
}

/// `readelf` on sections, symbols and relocations, without the file offsets
/// and without the sizes of string tables.
fn readelf(bytes: &[u8]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("o"), bytes).expect("write the object");
    let text = run("readelf", &["-SsrW", "o"], dir.path());
    text.lines()
        .map(without_offset)
        .filter(|l| !l.starts_with("There are"))
        .collect()
}

fn without_offset(line: &str) -> String {
    let line = match line.split_once(" at offset ") {
        Some((start, rest)) => {
            format!(
                "{start}{}",
                rest.split_once(" contains").map_or("", |(_, end)| end)
            )
        }
        None => line.to_string(),
    };
    let Some((start, rest)) = line.strip_prefix("  [").and_then(|l| l.split_once("] ")) else {
        return line;
    };
    // Name, type, address, offset, size, ...: the name may be missing.
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let width = |w: &&str| matches!(w.len(), 8 | 16) && w.chars().all(|c| c.is_ascii_hexdigit());
    if let Some(address) = words.iter().position(width) {
        let strings = words[..address].contains(&"STRTAB");
        words.drain(address + 1..address + if strings { 3 } else { 2 });
    }
    format!("[{start}] {}", words.join(" "))
}

fn round_trip(bytes: &[u8]) -> Vec<u8> {
    let before = read(bytes).expect("readable");
    let written = write(&before).expect("writable");
    assert_eq!(written, write(&before).expect("writable"), "deterministic");
    let after = read(&written).expect("readable again");
    assert_same(&before, &after);
    assert_eq!(readelf(bytes), readelf(&written));
    written
}

fn accepted_by_binutils(bytes: &[u8], emulation: &str) {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("o"), bytes).expect("write the object");
    run("objdump", &["-dr", "o"], dir.path());
    run(
        "ld",
        &["-m", emulation, "-r", "-o", "linked", "o"],
        dir.path(),
    );
    let linked = std::fs::read(dir.path().join("linked")).expect("ld's output");
    read(&linked).expect("ld's output is readable");
}

#[test]
fn samples() {
    accepted_by_binutils(&round_trip(&assemble(&[], SAMPLE_64)), "elf_x86_64");
}

#[test]
fn stock_module() {
    let stock = stock_e1000();
    let written = round_trip(&stock);
    assert!(
        !written.ends_with(b"~Module signature appended~\n"),
        "a stale signature is rejected"
    );
    accepted_by_binutils(&written, "elf_x86_64");
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("a"), &stock).expect("write");
    std::fs::write(dir.path().join("b"), &written).expect("write");
    let code = |name| {
        let text = run("objdump", &["-dr", name], dir.path());
        text.lines().skip(3).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(code("a"), code("b"));
}

#[test]
fn the_first_relocations_of_a_groups_member_are_in_the_group() {
    let bytes = assemble(&[], SAMPLE_64);
    let mut object = read(&bytes).expect("readable");
    let member = object.section_named(".text.grp").expect("the member");
    object.sections[member.0 as usize]
        .relocations
        .push(Relocation {
            offset: 0,
            kind: 14, // R_X86_64_8
            symbol: SymbolId(1),
            addend: 0,
        });
    let written = write(&object).expect("writable");
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("o"), &written).expect("write the object");
    let groups = run("readelf", &["-gW", "o"], dir.path());
    let members: Vec<&str> = groups
        .lines()
        .filter_map(|line| line.trim().strip_prefix('[')?.split("] ").nth(1))
        .map(str::trim)
        .collect();
    assert_eq!(members, ["Name", ".text.grp", ".rela.text.grp"], "{groups}");
    accepted_by_binutils(&written, "elf_x86_64");
    // Written again, nothing is added.
    round_trip(&written);
}

#[test]
fn an_object_without_symbols_stays_so() {
    let object = Object::new();
    let bytes = write(&object).expect("writable");
    let names: Vec<_> = read(&bytes)
        .expect("readable")
        .sections
        .iter()
        .map(|s| s.name.to_string())
        .collect();
    assert_eq!(names, ["", ".shstrtab"]);
}

fn symbol(name: &'static str, binding: u8, place: Place) -> Symbol<'static> {
    Symbol {
        name: name.into(),
        binding,
        kind: STT_FUNC,
        other: 0,
        place,
        value: 0,
        size: 0,
    }
}

/// `call far` in an object from scratch, a global symbol before a local one.
fn scratch() -> Object<'static> {
    let mut object = Object::new();
    let code = vec![0xe8, 0xfc, 0xff, 0xff, 0xff, 0xc3];
    let mut text = Section::with_data(".text", SHF_ALLOC | SHF_EXECINSTR, 16, code);
    text.relocations.push(Relocation {
        offset: 1,
        kind: R_X86_64_PLT32,
        symbol: SymbolId(1),
        addend: -4,
    });
    object.sections.push(text);
    object
        .symbols
        .push(symbol("far", STB_GLOBAL, Place::Undefined));
    object.symbols.push(symbol(
        "near",
        STB_LOCAL,
        Place::In(elf_loader::SectionId(1)),
    ));
    object
}

#[test]
fn tables_are_appended_to_new_objects() {
    let object = scratch();
    let bytes = write(&object).expect("writable");
    let again = read(&bytes).expect("readable");
    let names: Vec<_> = again.sections.iter().map(|s| s.name.as_ref()).collect();
    let expected = ["", ".text", ".rela.text", ".symtab", ".strtab", ".shstrtab"];
    assert_eq!(names, expected);
    assert_eq!(again.sections[1].data, object.sections[1].data);
    accepted_by_binutils(&bytes, "elf_x86_64");
}

#[test]
fn locals_are_moved_before_globals_and_relocations_follow() {
    let bytes = write(&scratch()).expect("writable");
    let object = read(&bytes).expect("readable");
    let names: Vec<_> = object.symbols.iter().map(|s| s.name.as_ref()).collect();
    assert_eq!(names, ["", "near", "far"]);
    assert_eq!(object.sections[1].relocations[0].symbol, SymbolId(2));
}

#[test]
fn a_changed_addend_is_written_beside_the_relocation() {
    let mut object = scratch();
    object.sections[1].relocations[0].addend = 0x1234;
    let bytes = write(&object).expect("writable");
    let again = read(&bytes).expect("readable");
    assert_eq!(again.sections[1].relocations[0].addend, 0x1234);
    assert_eq!(again.sections[1].data, object.sections[1].data);
}

#[test]
fn one_string_table_for_all_names_as_llvm_writes_it() {
    let mut object = scratch();
    let mut names = Section::with_data(".strtab", 0, 1, Vec::new());
    (names.kind, names.role) = (SHT_STRTAB, Role::SymbolNames);
    object.sections.push(names);
    let bytes = write(&object).expect("writable");
    let again = read(&bytes).expect("readable");
    let found: Vec<_> = again.sections.iter().map(|s| s.name.as_ref()).collect();
    assert_eq!(found, ["", ".text", ".strtab", ".rela.text", ".symtab"]);
    let written = round_trip(&bytes);
    accepted_by_binutils(&written, "elf_x86_64");
}

#[test]
fn mistakes_are_named() {
    let refused = |change: &dyn Fn(&mut Object<'static>)| {
        let mut object = scratch();
        change(&mut object);
        write(&object).expect_err("refused").to_string()
    };
    let message = refused(&|o| o.sections[1].relocations[0].offset = 3);
    assert!(message.contains("past the section's end"), "{message}");
    let message = refused(&|o| o.sections[1].relocations[0].symbol = SymbolId(9));
    assert!(message.contains("no symbol 9"), "{message}");
    let message = refused(&|o| o.sections[1].size = 1);
    assert!(message.contains("set size"), "{message}");
    let message = refused(&|o| o.symbols[2].place = Place::In(elf_loader::SectionId(7)));
    assert!(message.contains("`near`: it is in section 7"), "{message}");
    // A table is written anew: what is in it moves.
    let message = refused(&|o| {
        o.sections[1].role = Role::SymbolNames;
        o.sections[1].relocations.clear();
        o.symbols[2].value = 2;
    });
    assert!(message.contains("written anew"), "{message}");
    let message = refused(&|o| o.sections[1].align = 3);
    assert!(message.contains("power of two"), "{message}");
    let message = refused(&|o| o.sections.clear());
    assert!(message.contains("null section"), "{message}");
}
