//! What the reader sees, and what it refuses and how it says so.

use crate::common::{SAMPLE_64, assemble, stock_e1000};
use elf_loader::consts::*;
use elf_loader::{Object, Place, ReadError, Relocation, Role, read};

fn relocations<'o>(object: &'o Object<'_>, section: &str) -> &'o [Relocation] {
    let id = object.section_named(section).expect("the section exists");
    &object.section(id).relocations
}

#[test]
fn x86_64_sample() {
    let bytes = assemble(&[], SAMPLE_64);
    let object = read(&bytes).expect("readable");
    let text = object.section(object.section_named(".text").expect(".text"));
    assert!(text.is_code());
    assert!(matches!(text.data, std::borrow::Cow::Borrowed(_)));
    let first = text.relocations[0];
    assert_eq!(
        (first.offset, first.kind, first.addend),
        (1, R_X86_64_PLT32, -4)
    );
    assert_eq!(object.symbol(first.symbol).name, "callee");
    assert_eq!(object.symbol(first.symbol).place, Place::Undefined);
    let bss = object.section(object.section_named(".bss").expect(".bss"));
    assert_eq!(
        (bss.kind, bss.size, bss.data.len(), bss.align),
        (SHT_NOBITS, 100, 0, 64)
    );
    let place = |name: &str| {
        object
            .symbols
            .iter()
            .find(|s| s.name == name)
            .map(|s| s.place)
    };
    assert_eq!(place("shared"), Some(Place::Common));
    assert_eq!(place("constant"), Some(Place::Absolute));
    assert_eq!(place("f"), object.section_named(".text").map(Place::In));
}

#[test]
fn objects_of_i386_are_refused() {
    let bytes = assemble(&["--32"], "f: call g\n .data\n .long f\n");
    let refused = (
        "this object is for i386 (ELF machine 3, 32-bit, little-endian); twin takes objects for ",
        "x86-64 (ELF machine 62, 64-bit, little-endian) only: compile it for x86-64",
    );
    assert_eq!(message(&bytes), [refused.0, refused.1].concat());
}

#[test]
fn stock_module() {
    let bytes = stock_e1000();
    assert!(
        bytes.ends_with(b"~Module signature appended~\n"),
        "not the stock file"
    );
    let object = read(&bytes).expect("readable");
    assert_eq!(object.sections.len(), 55);
    assert_eq!(object.symbols.len(), 711);
    assert_eq!(relocations(&object, ".text").len(), 2081);
    assert_eq!(
        object.sections[4].role,
        Role::Relocations(elf_loader::SectionId(3))
    );
    let undefined = object
        .symbols
        .iter()
        .skip(1)
        .filter(|s| s.place == Place::Undefined)
        .count();
    assert_eq!(undefined, 154);
}

#[test]
fn appended_bytes_do_not_disturb() {
    let mut bytes = assemble(&[], SAMPLE_64);
    let before = format!("{:?}", read(&bytes).expect("readable"));
    bytes.extend_from_slice(b"signature");
    assert_eq!(format!("{:?}", read(&bytes).expect("readable")), before);
}

fn message(bytes: &[u8]) -> String {
    read(bytes).expect_err("refused").to_string()
}

#[test]
fn files_of_another_kind_are_refused_by_name() {
    assert_eq!(read(&[]).expect_err("refused"), ReadError::Empty);
    assert!(message(b"#!/bin/sh\n").contains("not an ELF file"));
    let good = assemble(&[], SAMPLE_64);
    let with = |offset: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[offset] = value;
        message(&bytes)
    };
    assert!(with(16, 2).contains("an executable"), "{}", with(16, 2));
    assert!(with(16, 3).contains("shared object"));
    assert!(with(5, 2).contains("big-endian"));
    assert!(with(18, 183).contains("for AArch64 (ELF machine 183"));
    assert!(with(4, 1).contains("for x32 (ELF machine 62, 32-bit"));
    assert!(message(&good[..good.len() - 1]).contains("truncated"));
    assert!(message(&good[..40]).contains("the ELF header"));
}

/// A copy of the sample with `change` applied to the bytes of its relocation
/// table for `.text` (entry 0: `call callee`).
fn with_relocation(change: impl Fn(&mut [u8])) -> String {
    let mut bytes = assemble(&[], SAMPLE_64);
    let object = read(&bytes).expect("readable");
    let first = relocations(&object, ".text")[0];
    let mut raw = first.offset.to_le_bytes().to_vec();
    raw.extend((u64::from(first.symbol.0) << 32 | u64::from(first.kind)).to_le_bytes());
    let at = bytes
        .windows(16)
        .position(|w| w == raw)
        .expect("the entry is in the file");
    change(&mut bytes[at..at + 24]);
    message(&bytes)
}

#[test]
fn bad_relocations_are_refused_with_their_place() {
    let offset = with_relocation(|entry| entry[1] = 0x10);
    assert!(
        offset.starts_with("relocation 0 in `.rela.text` (offset 0x1001 in `.text`)"),
        "{offset}"
    );
    assert!(offset.contains("past the section's end"), "{offset}");
    let huge = with_relocation(|entry| entry[..8].fill(0xff));
    assert!(huge.contains("past the section's end"), "{huge}");
    let kind = with_relocation(|entry| entry[8] = 5);
    assert!(kind.contains("type 5 is unknown"), "{kind}");
    let symbol = with_relocation(|entry| entry[14] = 1);
    assert!(symbol.contains("names symbol"), "{symbol}");
}

#[test]
fn bad_sections_are_refused_with_their_name() {
    let good = assemble(&[], SAMPLE_64);
    let table = u64::from_le_bytes(good[40..48].try_into().expect("8 bytes")) as usize;
    let set = |bytes: &mut [u8], section: usize, field: usize, value: u64, width: usize| {
        let at = table + 64 * section + field;
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    };
    let with = |section: usize, field: usize, value: u64, width: usize| {
        let mut bytes = good.clone();
        set(&mut bytes, section, field, value, width);
        message(&bytes)
    };
    let object = read(&good).expect("readable");
    let text = object.section_named(".text").expect(".text").0 as usize;
    let rela = text + 1;
    assert!(with(text, 48, 3, 8).contains("`.text`: its alignment 0x3"));
    assert!(with(text, 48, 1 << 63, 8).contains("up to 2 GiB"));
    assert!(
        with(text, 24, u64::MAX, 8).contains("section 2 `.text`"),
        "{}",
        with(text, 24, u64::MAX, 8)
    );
    assert!(with(text, 32, 1 << 32, 8).contains("2 GiB"));
    assert!(with(text, 0, 0xffff, 4).contains("outside the table"));
    let data = object.section_named(".data").expect(".data").0 as usize;
    let mut bytes = good.clone();
    for section in [text, data] {
        set(&mut bytes, section, 24, 0, 8);
        set(&mut bytes, section, 32, good.len() as u64 / 2 + 1, 8);
    }
    let overlap = message(&bytes);
    assert!(
        overlap.contains("shares bytes of the file with"),
        "{overlap}"
    );
    // Nothing else in the file becomes smaller, and the sum fits.
    let long = format!("{SAMPLE_64}\n .section .room\n .skip 4096\n");
    let mut bytes = assemble(&[], &long);
    let headers = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes"));
    let start = |bytes: &[u8], section: usize| {
        let at = headers as usize + 64 * section + 24;
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
    };
    let room = read(&bytes).expect("readable").section_named(".room");
    let room = room.expect(".room").0 as usize;
    for (place, with) in [
        (0, "a header"),
        (headers, "a header"),
        (start(&bytes, room) + 1, "`.room`"),
    ] {
        let at = headers as usize + 64 * text + 24;
        bytes[at..at + 8].copy_from_slice(&place.to_le_bytes());
        let shared = message(&bytes);
        assert!(shared.contains("shares bytes of the file with"), "{shared}");
        assert!(shared.contains(with), "{shared}");
    }
    assert!(with(rela, 44, 0, 4).contains("sh_info"));
    assert!(with(rela, 44, 999, 4).contains("sh_info"));
    assert!(with(rela, 40, 1, 4).contains("sh_link"));
    assert!(with(rela, 4, 9, 4).contains("RELA"));
    assert!(with(rela, 56, 16, 8).contains("entries of 0x18"));
    let no_names = with(text, 4, 2, 4);
    assert!(
        no_names.contains("`.text`: sh_link is 0, which is not a string table"),
        "{no_names}"
    );
    let names = object
        .sections
        .iter()
        .position(|s| s.role == Role::SymbolNames)
        .expect("names");
    let mut bytes = good.clone();
    set(&mut bytes, text, 4, 2, 4);
    set(&mut bytes, text, 40, names as u64, 4);
    assert!(message(&bytes).contains("`.symtab`: it is a second symbol table"));
    assert!(with(text, 4, 18, 4).contains("65280"));
    let inactive = with(text, 4, 0, 4);
    assert!(
        inactive.contains("`.text`: an inactive section (SHT_NULL)"),
        "{inactive}"
    );
}

/// `.strtab` may have one name of which all others are an end. Who copies each name would take
/// a thousand times the file's length.
#[test]
fn names_that_share_bytes_are_not_much_longer_than_the_file() {
    let names = |count: usize| -> String {
        let name = |n: usize| format!("{}:\n", "x".repeat(4000 + n));
        (0..count).map(name).collect()
    };
    let few = assemble(&[], &names(4));
    assert!(few.len() < 6000, "the assembler has them share");
    assert_eq!(read(&few).expect("readable").symbols.len(), 5);
    let many = message(&assemble(&[], &names(100)));
    assert!(
        many.contains("more than eight times the file's bytes"),
        "{many}"
    );
}

/// A kernel does not resolve it, so a name or value of it would be taken for another symbol's.
#[test]
fn the_null_symbol_is_nothing() {
    let good = assemble(&[], SAMPLE_64);
    let object = read(&good).expect("readable");
    let index = object
        .sections
        .iter()
        .position(|s| s.role == Role::SymbolTable);
    let headers = u64::from_le_bytes(good[40..48].try_into().expect("8 bytes")) as usize;
    let header = &good[headers + 64 * index.expect("a symbol table")..];
    let table = u64::from_le_bytes(header[24..32].try_into().expect("8 bytes")) as usize;
    for at in 0..24 {
        let mut bytes = good.clone();
        bytes[table + at] = 1;
        let text = message(&bytes);
        assert!(text.contains("it is the null symbol"), "{at}: {text}");
    }
}

/// GNU ld takes symbols before `sh_info` for local: it does not resolve an undefined one there,
/// but has its value for the address that is called.
#[test]
fn an_undefined_symbol_has_no_value_and_is_not_among_the_local_ones() {
    let good = assemble(&[], ".globl f\nf: jmp imported\n");
    let object = read(&good).expect("readable");
    let index = object
        .sections
        .iter()
        .position(|s| s.role == Role::SymbolTable)
        .expect("a symbol table");
    let headers = u64::from_le_bytes(good[40..48].try_into().expect("8 bytes")) as usize;
    let header = headers + 64 * index;
    let word = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().expect("8 bytes"));
    let table = word(header + 24) as usize;
    let imported = object.symbols.iter().position(|s| s.name == "imported");
    let imported = imported.expect("an undefined symbol");
    let mut bytes = good.clone();
    bytes[table + 24 * imported + 8] = 0x10;
    let value = message(&bytes);
    assert!(
        value.contains("undefined and has the value 0x10"),
        "{value}"
    );
    let first = object.sections[index].info;
    assert_eq!(object.symbols[first as usize - 1].binding, STB_LOCAL);
    for other in [
        0,
        first - 1,
        first + 1,
        object.symbols.len() as u32,
        u32::MAX,
    ] {
        let mut bytes = good.clone();
        bytes[header + 44..header + 48].copy_from_slice(&other.to_le_bytes());
        let order = message(&bytes);
        assert!(order.contains("sh_info of the symbol table is"), "{order}");
    }
}

/// Whoever reads it takes it for the section's start.
#[test]
fn the_symbol_of_a_section_is_at_its_start() {
    let mut bytes = assemble(&[], SAMPLE_64);
    let object = read(&bytes).expect("readable");
    let text = object.section_named(".text").expect(".text").0 as u16;
    let mut entry = vec![0, 0, 0, 0, STT_SECTION, 0];
    entry.extend(text.to_le_bytes());
    let at = bytes.windows(8).position(|w| w == entry);
    let value = at.expect("the section's symbol") + 8;
    bytes[value] = 4;
    let text = message(&bytes);
    assert!(
        text.contains("section `.text` itself, but at 0x4"),
        "{text}"
    );
}

/// Its relocations mean the expanded bytes, and nobody reads it.
#[test]
fn compressed_debug_information_is_left_out() {
    let source = "f: ret\n .section .debug_info,\"\",@progbits\n .rept 400\n .quad f\n .endr\n";
    for format in ["zlib-gabi", "zlib-gnu"] {
        let bytes = assemble(&[&format!("--compress-debug-sections={format}")], source);
        let object = read(&bytes).expect("readable");
        let mut sections = object.sections();
        let named = |name: &str| matches!(name, ".debug_info" | ".zdebug_info");
        let found = sections.find(|(_, s)| named(&s.name));
        let (_, section) = found.expect("it stays, without contents");
        assert_eq!(
            (section.size, section.relocations.len()),
            (0, 0),
            "{format}"
        );
    }
}

#[test]
fn other_compressed_contents_with_relocations_are_refused_with_the_remedy() {
    const SHF_COMPRESSED: u64 = 0x800;
    let source = "f: ret\n .section .note.own,\"\",@progbits\n .rept 400\n .quad f\n .endr\n";
    let bytes = assemble(&[], source);
    let mut object = read(&bytes).expect("readable");
    let id = object.section_named(".note.own").expect("it is there");
    object.sections[id.0 as usize].flags |= SHF_COMPRESSED;
    let bytes = elf_loader::write(&object).expect("writable");
    let text = message(&bytes);
    assert!(text.contains("decompress-debug-sections"), "{text}");
}
