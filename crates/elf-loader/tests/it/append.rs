//! One object appended to another, as `ld -r` does.

use elf_loader::append::append;
use elf_loader::consts::{R_X86_64_PC32, SHF_ALLOC, STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_NOTYPE};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId, read, write};

fn symbol(name: &'static str, binding: u8, kind: u8, place: Place, value: u64) -> Symbol<'static> {
    Symbol {
        name: name.into(),
        binding,
        kind,
        other: 0,
        place,
        value,
        size: 0,
    }
}

/// `.data` of these bytes, with a word at 4 that refers to `import`.
fn object(bytes: &'static [u8], local: &'static str) -> Object<'static> {
    let mut object = Object::new();
    let mut data = Section::with_data(".data", SHF_ALLOC, 8, bytes);
    data.relocations.push(Relocation {
        offset: 4,
        kind: R_X86_64_PC32,
        symbol: SymbolId(2),
        addend: 3,
    });
    object.sections.push(data);
    let place = Place::In(SectionId(1));
    object
        .symbols
        .push(symbol(local, STB_LOCAL, STT_FUNC, place, 2));
    object.symbols.push(symbol(
        "import",
        STB_GLOBAL,
        STT_NOTYPE,
        Place::Undefined,
        0,
    ));
    object
}

#[test]
fn sections_of_one_name_follow_each_other_and_what_they_hold_moves() {
    let mut first = object(&[1; 9], "one");
    let part = object(&[2; 8], "two");
    let appended = append(&mut first, &part);
    assert_eq!(appended.section(SectionId(1)), Some((SectionId(1), 16)));
    let bytes = write(&first).expect("a writable object");
    let read = read(&bytes).expect("a readable object");
    let data = read.section(read.section_named(".data").expect("it is there"));
    assert_eq!(data.data[..9], [1; 9]);
    assert_eq!(data.data[9..16], [0; 7]);
    assert_eq!(data.data[16..], [2; 8]);
    let places: Vec<_> = data
        .relocations
        .iter()
        .map(|r| (r.offset, r.addend))
        .collect();
    assert_eq!(places, [(4, 3), (20, 3)]);
    let named = |name: &str| read.symbols.iter().filter(|s| s.name == name).count();
    assert_eq!((named("one"), named("two"), named("import")), (1, 1, 1));
    let two = read.symbols.iter().find(|s| s.name == "two");
    assert_eq!(two.map(|s| s.value), Some(18));
}

#[test]
fn a_new_name_is_a_new_section_and_a_definition_answers() {
    let mut first = object(&[1; 8], "one");
    let mut part = object(&[2; 8], "two");
    part.sections[1].name = ".more".into();
    let place = Place::In(SectionId(1));
    first.symbols[2] = symbol("import", STB_GLOBAL, STT_FUNC, place, 6);
    let appended = append(&mut first, &part);
    assert_eq!(appended.section(SectionId(1)), Some((SectionId(2), 0)));
    assert_eq!(
        appended.symbol(SymbolId(2)),
        Some(SymbolId(2)),
        "defined there"
    );
    assert_eq!(first.sections[2].relocations[0].symbol, SymbolId(2));
    assert_eq!(first.sections[1].data[..], [1; 8]);
}
