//! `.note.twin`: whether this version of the rewriter made the object, and for which
//! scheme and target.

use elf_loader::Object;
use elf_loader::consts::SHT_NOTE;
use twin_abi::{ABI_VERSION, Scheme, Target, sections};

/// Scheme and target in the object's note, or why the object is foreign.
pub(super) fn made_for(object: &Object<'_>) -> Result<(Scheme, Target), String> {
    let id = object
        .section_named(sections::NOTE)
        .ok_or("it has no .note.twin")?;
    let note = &*object.section(id).data;
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(note.get(at..at + 4)?.try_into().ok()?))
    };
    // Elf64_Nhdr { namesz, descsz, type }, "twin\0" padded to 8, four words.
    let header = (word(0), word(4), word(8));
    let owner = note.get(12..20).unwrap_or(&[]);
    let kind = object.section(id).kind;
    if kind != SHT_NOTE
        || note.len() != 36
        || header != (Some(5), Some(16), Some(sections::NOTE_TYPE))
        || owner.strip_prefix(sections::NOTE_OWNER.as_bytes()) != Some(&[0, 0, 0, 0])
    {
        return Err("its .note.twin is not one note of type 1 by `twin`".into());
    }
    match (word(20), word(24), word(28), word(32)) {
        (Some(ABI_VERSION), Some(scheme), Some(64), Some(target)) => {
            let scheme =
                Scheme::from_number(scheme).ok_or(format!("its scheme {scheme} is unknown"))?;
            let target =
                Target::from_number(target).ok_or(format!("its target {target} is unknown"))?;
            Ok((scheme, target))
        }
        (Some(ABI_VERSION), _, Some(bits), _) => Err(format!("its word size is {bits} bits")),
        (version, ..) => Err(format!(
            "its ABI version is {}, this verifier knows {ABI_VERSION}",
            version.unwrap_or(0)
        )),
    }
}
