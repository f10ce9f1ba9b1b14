//! The end of the work: notes, the loader's limits, and the bytes.
//!
//! The build-id is a hash of the file with zeroes in its place, so equal inputs give equal
//! bytes, and other payloads have other ids: Xen refuses two with one.

use elf_loader::consts::{SHT_NOBITS, SHT_NOTE};
use elf_loader::{Object, Section};
use ring::digest;
use svm_verify::Processor;
use twin_abi::sections;

use crate::code::PayloadCode;
use crate::livepatch::{
    self, BUILD_ID, DEPENDS, MAX_BYTES, NAME, NOTE_HEADER, SECTIONS, XEN_DEPENDS,
};
use crate::output::Output;
use crate::refusal::{Part, Refusal};
use crate::rewritten::Code;
use crate::table::{self, Table};

/// Completes the payload and gives its bytes.
///
/// # Errors
/// It is more than Xen takes, or driver and hot routines do not go together.
pub fn finish(output: Output, table: &Table, code: &[Code<'_>]) -> Result<Vec<u8>, Refusal> {
    let mut object = output.object;
    object.sections.extend(marks(code)?);
    for name in [DEPENDS, XEN_DEPENDS] {
        object
            .sections
            .push(livepatch::note(name, table.build_id()));
    }
    object
        .sections
        .push(livepatch::note(BUILD_ID, &[0; table::BUILD_ID]));
    let own = object.sections.len() - 1;
    check_names(&object, table)?;
    let id = digest::digest(&digest::SHA256, &write(&object)?);
    object.sections[own].data.to_mut()[NOTE_HEADER..]
        .copy_from_slice(&id.as_ref()[..table::BUILD_ID]);
    // --- the object is complete ---
    let bytes = write(&object)?;
    check_size(&object, &bytes)?;
    Ok(bytes)
}

/// The note of the code, for the proof of the output, and what it was made from, for people.
/// Neither is loaded.
fn marks(code: &[Code<'_>]) -> Result<Vec<Section<'static>>, Refusal> {
    let [first, rest @ ..] = code else {
        return Ok(Vec::new());
    };
    if let Some(other) = rest
        .iter()
        .find(|part| part.proof.scheme != first.proof.scheme)
    {
        let why = format!(
            "its scheme is `{}`, and the driver's is `{}`; rewrite both with the same",
            other.proof.scheme.as_str(),
            first.proof.scheme.as_str()
        );
        return Err(Refusal::new(PayloadCode::Scheme, other.role.part(), why));
    }
    let named = |part: &Code<'_>, name: &str| {
        let id = part.object.section_named(name)?;
        Some(part.object.section(id).data.to_vec())
    };
    let origins: Vec<u8> = code
        .iter()
        .filter_map(|c| named(c, sections::ORIGIN))
        .flatten()
        .collect();
    let note = named(most_demanding(first, rest), sections::NOTE).unwrap_or_default();
    let note = Section {
        kind: SHT_NOTE,
        ..Section::with_data(sections::NOTE, 0, 4, note)
    };
    Ok(vec![
        note,
        Section::with_data(sections::ORIGIN, 0, 1, origins),
    ])
}

/// The part whose note is that of both. They differ in processors alone: code for any runs
/// on those with BMI2, too.
fn most_demanding<'c, 'a>(first: &'c Code<'a>, rest: &'c [Code<'a>]) -> &'c Code<'a> {
    let demands = |part: &&Code<'_>| match part.proof.processor {
        Processor::Any => false,
        Processor::Bmi2 => true,
    };
    rest.iter().find(demands).unwrap_or(first)
}

fn write(object: &Object<'_>) -> Result<Vec<u8>, Refusal> {
    elf_loader::write(object).map_err(|error| {
        let why = format!("it cannot be written: {error}; please report this");
        Refusal::new(PayloadCode::Check, Part::Output, why)
    })
}

/// Xen refuses a symbol that it has itself, cuts long names, and prints them as they are.
fn check_names(object: &Object<'_>, table: &Table) -> Result<(), Refusal> {
    for (_, symbol) in object.symbols() {
        let defined = symbol.place != elf_loader::Place::Undefined;
        if defined && table.has(&symbol.name) {
            let why = format!(
                "`{}` is a symbol of Xen's as well; name it otherwise",
                symbol.name
            );
            return Err(Refusal::new(PayloadCode::Ambiguous, Part::Output, why));
        }
        if symbol.name.chars().any(char::is_control) {
            let why = format!(
                "the name `{}` has a control character, which Xen's console would take for its own; \
                 name it otherwise",
                symbol.name.escape_debug()
            );
            return Err(Refusal::new(PayloadCode::Section, Part::Output, why));
        }
        if symbol.name.len() > NAME {
            let why = format!(
                "the name `{}` has more than {NAME} characters; shorten it",
                symbol.name
            );
            return Err(limit(why));
        }
    }
    Ok(())
}

fn check_size(object: &Object<'_>, bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(limit(format!(
            "it has {} bytes, and Xen takes {MAX_BYTES}; leave out what is not needed, debug \
             information first",
            bytes.len()
        )));
    }
    // Tables that the writer adds: one of relocations a section at most, symbols, names.
    let relocated = object.sections.iter().filter(|s| !s.relocations.is_empty());
    let count = object.sections.len() + relocated.count() + 3;
    if count >= SECTIONS {
        return Err(limit(format!(
            "it has {count} sections, and Xen takes fewer than {SECTIONS}; link the runtime without \
             a section for each function"
        )));
    }
    let large = |s: &&Section<'_>| s.kind == SHT_NOBITS && s.size > MAX_BYTES;
    match object.sections.iter().find(large) {
        Some(section) => Err(limit(format!(
            "section `{}` takes {} bytes, and Xen gives {MAX_BYTES}; allocate the memory",
            section.name, section.size
        ))),
        None => Ok(()),
    }
}

fn limit(why: String) -> Refusal {
    Refusal::new(PayloadCode::Limit, Part::Output, why)
}
