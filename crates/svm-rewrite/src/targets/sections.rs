//! Parts that the results of several targets share: the sections that twin adds, and
//! the relocations of emitted fields.

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHT_NOTE,
    SHT_PROGBITS,
};
use elf_loader::{Section, SectionId, WORD};
use twin_abi::{MadeFor, sections};

use crate::asm::{Field, Label};
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, Lifted};

/// A section with these contents.
pub fn section(name: String, kind: u32, flags: u64, align: u64, data: Vec<u8>) -> Section<'static> {
    Section {
        kind,
        ..Section::with_data(name, flags, align, data)
    }
}

/// `.note.twin`: the version that made the object, and what for.
pub fn note_section(made: MadeFor) -> Section<'static> {
    let owner = sections::NOTE_OWNER.as_bytes();
    let descriptor = [
        twin_abi::ABI_VERSION,
        made.scheme as u32,
        (8 * WORD) as u32,
        made.target as u32,
        made.accesses as u32,
        made.processor as u32,
    ];
    let mut data = Vec::new();
    for word in [
        owner.len() as u32 + 1,
        4 * descriptor.len() as u32,
        sections::NOTE_TYPE,
    ] {
        data.extend(word.to_le_bytes());
    }
    data.extend(owner);
    // A zero ends the owner, and fields are words.
    data.resize((data.len() + 1).next_multiple_of(4), 0);
    data.extend(descriptor.iter().flat_map(|w| w.to_le_bytes()));
    section(sections::NOTE.to_owned(), SHT_NOTE, SHF_ALLOC, 4, data)
}

/// `.twin.map`: new to original offsets, for reports. `id` is the index that a
/// code section has in the new object.
pub fn map_section(
    lifted: &Lifted<'_>,
    applied: &Applied,
    id: impl Fn(CodeIdx) -> SectionId,
) -> Section<'static> {
    let mut rows: Vec<(u32, u32, u32)> = Vec::with_capacity(
        lifted.insts.len() + applied.stubs.len() + applied.further_variants.len(),
    );
    let mut row = |label: Label, original: u64| {
        let (code, at) = applied.place(label);
        rows.push((id(code).0, at as u32, original as u32));
    };
    for (n, inst) in lifted.insts.iter().enumerate() {
        if !applied.left_out[n] {
            row(Label(n as u32), inst.offset());
        }
    }
    for (stub, inst) in applied.stubs.iter().chain(&applied.further_variants) {
        if !applied.left_out[inst.0 as usize] {
            row(*stub, lifted.inst(*inst).offset());
        }
    }
    // The rows are a few ascending runs, which a stable sort only has to merge.
    rows.sort();
    // A dropped instruction shares its place with the next one, whose code is there: of
    // several rows for a place the last is kept.
    let one_place = |a: &(u32, u32, u32), b: &(u32, u32, u32)| (a.0, a.1) == (b.0, b.1);
    let mut data = Vec::with_capacity(12 * rows.len());
    for (n, row) in rows.iter().enumerate() {
        if rows.get(n + 1).is_some_and(|next| one_place(row, next)) {
            continue;
        }
        let words = [row.0, row.1, row.2].map(u32::to_le_bytes);
        data.extend_from_slice(words.as_flattened());
    }
    section(sections::MAP.to_owned(), SHT_PROGBITS, 0, 4, data)
}

/// The relocation type of a field, and a correction of the addend: a relative field is
/// relative to its end, the relocation to its start (psABI 4.4.1).
pub fn relocation_kind(field: Field) -> (u32, i64) {
    match field {
        Field::Rel32 => (R_X86_64_PLT32, -4),
        Field::Data32 { behind } => (R_X86_64_PC32, -4 - i64::from(behind)),
        Field::Abs32 => (R_X86_64_32, 0),
        Field::Abs32S => (R_X86_64_32S, 0),
        Field::Abs64 => (R_X86_64_64, 0),
    }
}
