//! One change of an object, made and taken back.

use std::ops::Range;

use elf_loader::{Object, Relocation, SectionId};
use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::{MutantKind, splice};

/// A change of one section.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What was done.
    pub kind: MutantKind,
    /// Whether it is confined as before or means the same, see the module.
    pub harmless: bool,
    /// For messages.
    pub text: String,
    pub(super) section: SectionId,
    pub(super) range: Range<u64>,
    pub(super) change: Change,
}

/// The new contents of a mutant's range.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// As many bytes as before.
    Replace(Vec<u8>, Vec<Relocation>),
    /// Other instructions, so that everything after them moves.
    Splice(Vec<splice::New>),
}

impl Mutant {
    /// The mutant, harmless if an argument says so.
    pub(super) fn harmless_if(self, harmless: bool) -> Mutant {
        Mutant { harmless, ..self }
    }

    /// The instructions that its bytes are; none if the last one needs more.
    pub(super) fn instructions(&self) -> Vec<Instruction> {
        let bytes: Vec<u8> = match &self.change {
            Change::Replace(bytes, _) => bytes.clone(),
            Change::Splice(new) => new.iter().flat_map(|n| n.bytes.clone()).collect(),
        };
        let decoder = Decoder::with_ip(64, &bytes, self.range.start, DecoderOptions::NONE);
        let found: Vec<_> = decoder.into_iter().collect();
        match found.iter().any(Instruction::is_invalid) {
            true => Vec::new(),
            false => found,
        }
    }

    /// The object with the change; `undo` takes it back. `None` if a branch does
    /// not reach its target any more.
    pub fn apply(&self, object: &mut Object<'static>) -> Option<Undo> {
        let (bytes, relocations) = match &self.change {
            Change::Replace(bytes, relocations) => (bytes, relocations),
            Change::Splice(new) => {
                let changed = splice::spliced(object, self.section, self.range.clone(), new)?;
                return Some(Undo::Whole(Box::new(std::mem::replace(object, changed))));
            }
        };
        let section = &mut object.sections[self.section.0 as usize];
        let was = section.data[self.range.start as usize..self.range.end as usize].to_vec();
        let inside = section.relocations.iter();
        let inside = inside.filter(|r| self.range.contains(&r.offset));
        let undo = Undo::Part {
            section: self.section,
            range: self.range.clone(),
            bytes: was,
            relocations: inside.copied().collect(),
        };
        replace(object, self.section, &self.range, bytes, relocations);
        Some(undo)
    }
}

/// What a mutant replaced.
#[derive(Clone, Debug)]
pub enum Undo {
    /// Bytes and relocations.
    Part {
        /// The section that was changed.
        section: SectionId,
        /// The bytes of it that were replaced.
        range: Range<u64>,
        /// Their contents before.
        bytes: Vec<u8>,
        /// Their relocations before.
        relocations: Vec<Relocation>,
    },
    /// The object before: bytes were inserted, so that later ones moved.
    Whole(Box<Object<'static>>),
}

impl Undo {
    /// Makes the object what it was.
    pub fn undo(self, object: &mut Object<'static>) {
        match self {
            Undo::Part {
                section,
                range,
                bytes,
                relocations,
            } => replace(object, section, &range, &bytes, &relocations),
            Undo::Whole(was) => *object = *was,
        }
    }
}

fn replace(
    object: &mut Object<'static>,
    section: SectionId,
    range: &Range<u64>,
    bytes: &[u8],
    relocations: &[Relocation],
) {
    let section = &mut object.sections[section.0 as usize];
    section.data.to_mut()[range.start as usize..range.end as usize].copy_from_slice(bytes);
    let from = section
        .relocations
        .partition_point(|r| r.offset < range.start);
    let to = section
        .relocations
        .partition_point(|r| r.offset < range.end);
    section
        .relocations
        .splice(from..to, relocations.iter().copied());
}
