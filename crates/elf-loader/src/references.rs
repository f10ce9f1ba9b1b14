//! Resolves relocations to places in the object.
//!
//! A relocation means `S + A`: the address of its symbol plus its addend. If the symbol
//! is defined in a section of the object, that is a place `(section, offset)`, whatever
//! addresses the sections get later. These functions find the place, and collect the
//! references to code from outside the code: the addresses that may be taken, and the
//! metadata that moves with the code.

use crate::model::{Object, Place, Relocation, SectionId};
use crate::special::{SpecialError, SpecialKind, kind_of};

/// The place `S + A` in this object, or `None` if the symbol is not defined in
/// a section (undefined, absolute, common) or the place lies outside it. The
/// end of the section is a place of it.
///
/// For a field that holds an address, or a distance from the field itself
/// (`.long f - .`, all kernel metadata), this is what is referred to. A
/// PC-relative field *of an instruction* is relative to the instruction's end:
/// use [`resolve_biased`] for those.
pub fn resolve_target(object: &Object<'_>, relocation: &Relocation) -> Option<(SectionId, u64)> {
    resolve_biased(object, relocation, 0)
}

/// As [`resolve_target`] for a PC-relative field of an instruction: the place
/// `S + A + bias`, where `bias` is the distance in bytes from the field to the
/// end of the instruction. It is 4 for the rel32 of a branch, 4 plus the bytes
/// of the immediate for a RIP-relative operand. It cannot be added afterwards: `S + A`
/// of a branch to the first bytes of a section is before the section, hence `None`.
pub fn resolve_biased(
    object: &Object<'_>,
    relocation: &Relocation,
    bias: i64,
) -> Option<(SectionId, u64)> {
    let symbol = object.symbols.get(relocation.symbol.0 as usize)?;
    let Place::In(id) = symbol.place else {
        return None;
    };
    let section = object.sections.get(id.0 as usize)?;
    let addend = relocation.addend.checked_add(bias)?;
    let offset = symbol.value.checked_add_signed(addend)?;
    (offset <= section.size).then_some((id, offset))
}

/// A relocation outside code that means a place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeReference {
    /// The section that refers.
    pub section: SectionId,
    /// The relocation there; its offset is the field's.
    pub relocation: Relocation,
    /// The code section and the offset in it that are referred to: `S + A`.
    ///
    /// For an address and for `.long f - .` that is exact. A PC-relative field
    /// in plain data may also be an entry of a jump table (`.long .L5 -
    /// .Ltable`). Its place is lower, by the distance of the field from the
    /// table's start; only the code that uses the table has that distance.
    pub target: (SectionId, u64),
    /// What the referring section is, if the kernel gives it a meaning.
    pub special: Option<SpecialKind>,
    /// Whether the referring section is loaded (`SHF_ALLOC`). Debug
    /// information is not, and takes no address at run time.
    pub loaded: bool,
}

/// All relocations in sections that are not code, whose symbol is defined in a
/// code section: in section order, then by offset.
///
/// # Errors
/// An item is [`SpecialError::Outside`] if the reference does not lie within
/// the code section of its symbol.
pub fn refers_to_code<'o>(
    object: &'o Object<'_>,
) -> impl Iterator<Item = Result<CodeReference, SpecialError>> + 'o {
    let data = object.sections().filter(|(_, section)| !section.is_code());
    data.flat_map(move |(id, section)| {
        let special = kind_of(&section.name);
        let loaded = section.flags & crate::model::consts::SHF_ALLOC != 0;
        let to_code = section.relocations.iter().filter(|r| means_code(object, r));
        to_code.map(
            move |&relocation| match resolve_target(object, &relocation) {
                Some(target) => Ok(CodeReference {
                    section: id,
                    relocation,
                    target,
                    special,
                    loaded,
                }),
                None => Err(SpecialError::Outside {
                    section: section.name.to_string(),
                    offset: relocation.offset,
                }),
            },
        )
    })
}

fn means_code(object: &Object<'_>, relocation: &Relocation) -> bool {
    let symbol = object.symbols.get(relocation.symbol.0 as usize);
    match symbol.map(|s| s.place) {
        Some(Place::In(id)) => object
            .sections
            .get(id.0 as usize)
            .is_some_and(|s| s.is_code()),
        _ => false,
    }
}
