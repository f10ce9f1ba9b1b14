//! `.note.twin`: whether this version of the rewriter made the object, and what for.

use elf_loader::Object;
use elf_loader::consts::SHT_NOTE;
use twin_abi::{ABI_VERSION, Accesses, MadeFor, Processor, Scheme, Target, sections};

/// What the object's note says, or why the object is foreign.
pub(super) fn made_for(object: &Object<'_>) -> Result<MadeFor, String> {
    let id = object
        .section_named(sections::NOTE)
        .ok_or("it has no .note.twin")?;
    let note = &*object.section(id).data;
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(note.get(at..at + 4)?.try_into().ok()?))
    };
    // Elf64_Nhdr { namesz, descsz, type }, "twin\0" padded to 8, the version first of six
    // words.
    let header = (word(0), word(8));
    let owner = note.get(12..20).unwrap_or(&[]);
    let kind = object.section(id).kind;
    if kind != SHT_NOTE
        || header != (Some(5), Some(sections::NOTE_TYPE))
        || owner.strip_prefix(sections::NOTE_OWNER.as_bytes()) != Some(&[0, 0, 0, 0])
    {
        return Err("its .note.twin is not a note of type 1 by `twin`".into());
    }
    match word(20) {
        Some(ABI_VERSION) => {}
        version => {
            return Err(format!(
                "its ABI version is {}, this verifier knows {ABI_VERSION}",
                version.unwrap_or(0)
            ));
        }
    }
    if note.len() != 44 || word(4) != Some(24) {
        return Err("its .note.twin is not one note of six words".into());
    }
    let field = |at: usize| word(at).unwrap_or(u32::MAX);
    let (scheme, bits, target, accesses) = (field(24), field(28), field(32), field(36));
    let processor = field(40);
    if bits != 64 {
        return Err(format!("its word size is {bits} bits"));
    }
    Ok(MadeFor {
        scheme: Scheme::from_number(scheme).ok_or(format!("its scheme {scheme} is unknown"))?,
        target: Target::from_number(target).ok_or(format!("its target {target} is unknown"))?,
        accesses: Accesses::from_number(accesses).ok_or(format!(
            "which accesses it translates, {accesses}, is unknown"
        ))?,
        processor: Processor::from_number(processor).ok_or(format!(
            "which processors it is for, {processor}, is unknown"
        ))?,
    })
}
