//! Small objects for tests: one function `f`, what it refers to, and a table of the kernel's.

use elf_loader::consts::{
    R_X86_64_32S, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR,
    STB_GLOBAL, STT_FUNC,
};
use elf_loader::{Object, Place, Relocation, Section, SectionId, SymbolId};

use super::reach;

pub const TEXT: SectionId = SectionId(1);
/// The symbol of `f`.
const F: SymbolId = SymbolId(1);

/// The place at an offset of `f`.
pub fn at(offset: u64) -> reach::Place {
    (TEXT, offset)
}

/// The object whose `f` consists of these bytes.
pub fn function(code: &[u8]) -> Object<'static> {
    let mut object = Object::new();
    let flags = SHF_ALLOC | SHF_EXECINSTR;
    let text = Section::with_data(".text", flags, 1, code.to_vec());
    object.sections.push(text);
    object.symbols.push(elf_loader::Symbol {
        name: "f".into(),
        kind: STT_FUNC,
        binding: STB_GLOBAL,
        place: Place::In(TEXT),
        ..object.symbols[0].clone()
    });
    object
}

/// The object with the field at `offset` referring to a symbol elsewhere.
fn with_field(
    mut object: Object<'static>,
    offset: u64,
    kind: u32,
    name: &str,
    addend: i64,
) -> Object<'static> {
    let symbol = SymbolId(object.symbols.len() as u32);
    object.symbols.push(elf_loader::Symbol {
        name: name.to_owned().into(),
        binding: STB_GLOBAL,
        ..object.symbols[0].clone()
    });
    let fields = &mut object.sections[TEXT.0 as usize].relocations;
    fields.push(Relocation {
        offset,
        kind,
        symbol,
        addend,
    });
    fields.sort_by_key(|r| r.offset);
    object
}

/// The object with the call at `offset` leading to `name`.
pub fn with_call(object: Object<'static>, offset: u64, name: &str) -> Object<'static> {
    with_field(object, offset + 1, R_X86_64_PLT32, name, -4)
}

/// The object with the word at `name` and an addend as the absolute address at `offset`.
pub fn with_word(object: Object<'static>, offset: u64, name: &str, addend: i64) -> Object<'static> {
    with_field(object, offset, R_X86_64_32S, name, addend)
}

/// The object with one entry of `__bug_table`, for the `ud2` at `offset`.
pub fn with_bug(object: Object<'static>, offset: i64, flags: u8) -> Object<'static> {
    let entry = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, flags, 0];
    with_table(
        object,
        "__bug_table",
        &entry,
        &[(0, R_X86_64_PC32, offset), (4, R_X86_64_PC32, 0)],
    )
}

/// The object with one entry of `__jump_table`.
pub fn with_jump(object: Object<'static>, offset: i64, target: i64) -> Object<'static> {
    let fields = [
        (0, R_X86_64_PC32, offset),
        (4, R_X86_64_PC32, target),
        (8, R_X86_64_PC64, 0),
    ];
    with_table(object, "__jump_table", &[0; 16], &fields)
}

/// The object with a table whose fields count from `f`.
pub fn with_table(
    mut object: Object<'static>,
    name: &'static str,
    data: &[u8],
    fields: &[(u64, u32, i64)],
) -> Object<'static> {
    let mut table = Section::with_data(name, SHF_ALLOC, 8, data.to_vec());
    let relocations = fields.iter().map(|(offset, kind, addend)| Relocation {
        offset: *offset,
        kind: *kind,
        symbol: F,
        addend: *addend,
    });
    table.relocations.extend(relocations);
    object.sections.push(table);
    object
}
