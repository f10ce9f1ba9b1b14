//! Inserts instructions into code, or replaces some by more or fewer bytes: everything
//! after them moves, and all references to it follow.
//!
//! Branches to the place itself reach the inserted instructions.

use std::ops::Range;

use elf_loader::consts::{R_X86_64_PC32, R_X86_64_PLT32};
use elf_loader::{Object, Place, Relocation, SectionId};

use super::Piece;
use super::check::decode;
use super::replaced::write_target;

/// An instruction to put into code.
#[derive(Clone, Debug)]
pub struct New {
    pub bytes: Vec<u8>,
    /// Its relocations; offsets are relative to it.
    pub relocations: Vec<Relocation>,
    /// Where it branches to, as an offset of the code as it was.
    pub target: Option<u64>,
}

impl New {
    /// An instruction that refers to nothing.
    pub fn plain(bytes: &[u8]) -> New {
        New {
            bytes: bytes.to_vec(),
            relocations: Vec::new(),
            target: None,
        }
    }

    /// A copy of an instruction of the code.
    pub fn copy(piece: &Piece) -> New {
        New {
            bytes: piece.bytes.clone(),
            relocations: piece.relocations.clone(),
            target: branch_target(piece),
        }
    }
}

/// The target of a direct branch without relocation.
fn branch_target(piece: &Piece) -> Option<u64> {
    let i = &piece.decoded;
    let direct = i.is_jcc_short_or_near()
        || i.is_jmp_short_or_near()
        || i.is_call_near()
        || i.is_jcx_short()
        || i.is_loop()
        || i.is_loopcc();
    (direct && piece.relocations.is_empty()).then(|| i.near_branch_target())
}

/// What moves, and how far.
struct Shift {
    range: Range<u64>,
    by: i64,
}

impl Shift {
    /// Where a byte is afterwards.
    fn byte(&self, at: u64) -> u64 {
        match at >= self.range.end {
            true => at.wrapping_add_signed(self.by),
            false => at,
        }
    }

    /// The new target of a reference to a place.
    fn place(&self, at: u64) -> u64 {
        match at == self.range.start {
            true => at,
            false => self.byte(at),
        }
    }
}

/// The object with the bytes at `range` replaced. `None` if a short branch does
/// not reach as far any more.
pub fn spliced(
    object: &Object<'static>,
    id: SectionId,
    range: Range<u64>,
    new: &[New],
) -> Option<Object<'static>> {
    let bytes: Vec<u8> = new.iter().flat_map(|n| n.bytes.clone()).collect();
    let by = bytes.len() as i64 - (range.end - range.start) as i64;
    let shift = Shift { range, by };
    let old = object.section(id);
    let mut data = old.data[..shift.range.start as usize].to_vec();
    data.extend(bytes);
    data.extend(&old.data[shift.range.end as usize..]);
    for piece in decode(object, id, 0..old.size) {
        let replaced = shift.range.contains(&piece.at);
        if let (Some(target), false) = (branch_target(&piece), replaced) {
            let (at, length) = (shift.byte(piece.at), piece.bytes.len());
            write_target(&mut data, at, length, shift.place(target))?;
        }
    }
    let mut at = shift.range.start;
    let mut relocations: Vec<Relocation> = Vec::new();
    for n in new {
        if let Some(target) = n.target {
            write_target(&mut data, at, n.bytes.len(), shift.place(target))?;
        }
        relocations.extend(n.relocations.iter().map(|r| Relocation {
            offset: r.offset + at,
            ..*r
        }));
        at += n.bytes.len() as u64;
    }
    let kept = old.relocations.iter();
    let kept = kept.filter(|r| !shift.range.contains(&r.offset));
    relocations.extend(kept.map(|r| Relocation {
        offset: shift.byte(r.offset),
        ..*r
    }));
    relocations.sort_by_key(|r| r.offset);
    let mut out = object.clone();
    let section = &mut out.sections[id.0 as usize];
    section.size = data.len() as u64;
    section.data = data.into();
    section.relocations = relocations;
    // References from inside the section, too.
    refer(&mut out, id, &shift);
    Some(out)
}

/// Makes symbols and relocations refer to where things are afterwards.
fn refer(object: &mut Object<'static>, id: SectionId, shift: &Shift) {
    let before: Vec<Option<u64>> = object
        .symbols
        .iter()
        .map(|s| (s.place == Place::In(id)).then_some(s.value))
        .collect();
    for symbol in object
        .symbols
        .iter_mut()
        .filter(|s| s.place == Place::In(id))
    {
        let end = shift.byte(symbol.value + symbol.size);
        symbol.value = shift.place(symbol.value);
        symbol.size = end - symbol.value;
    }
    for section in &mut object.sections {
        let is_code = section.is_code();
        for r in &mut section.relocations {
            let Some(value) = before[r.symbol.0 as usize] else {
                continue;
            };
            // The field of a branch ends where its distance counts from; in a table of
            // distances each counts from its own start.
            let bias = match r.kind {
                R_X86_64_PC32 | R_X86_64_PLT32 if is_code => 4,
                _ => 0,
            };
            let place = value.wrapping_add_signed(r.addend + bias);
            r.addend = shift.place(place) as i64 - shift.place(value) as i64 - bias;
        }
    }
}
