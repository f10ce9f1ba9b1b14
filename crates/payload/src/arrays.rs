//! What the runtime is given as data: the codemap, the code's addresses, the imports, and
//! single numbers. All of it is read-only.
//!
//! ```text
//! twin_payload_codemap[]   { u64 vm; u64 hyp }                     ascending by vm
//! twin_payload_text[]      { u64 start; u64 end }                  driver, hot routines, stubs
//! twin_payload_imports[]   { const char *name; u64 vm; void *stub } by number
//! twin_payload_*_count     u64
//! twin_payload_abi_version, _scheme, _vector_free                   u32
//! twin_payload_build_id[20]                                        of the hypervisor
//! ```

use std::collections::HashMap;

use elf_loader::consts::{R_X86_64_64, SHF_ALLOC, STT_OBJECT};
use elf_loader::{Relocation, SectionId, SymbolId, WORD};

use crate::Inputs;
use crate::code::PayloadCode;
use crate::output::{Output, names};
use crate::refusal::{Part, Refusal};
use crate::rewritten::{Code, Row};
use crate::stubs::Stubs;

/// Makes all arrays.
///
/// # Errors
/// Two entries of the codemap have one VM address; an import has no address in dom0.
pub fn place(
    output: &mut Output,
    code: &[Code<'_>],
    rows: Vec<Row>,
    stubs: &Stubs,
    inputs: &Inputs<'_>,
) -> Result<(), Refusal> {
    codemap(output, rows)?;
    let mut text: Vec<SectionId> = code.iter().flat_map(Code::placed).collect();
    text.extend(stubs.section);
    let ranges: Vec<_> = text
        .into_iter()
        .map(|section| {
            let size = output.object.section(section).size;
            let start = output.of_section(section);
            [Word::At(start, 0), Word::At(start, size as i64)]
        })
        .collect();
    array(output, names::ARRAYS, "twin_payload_text", &ranges);
    imports(output, code, stubs, inputs)?;
    let scheme = code.first().map_or(0, |part| part.proof.scheme as u32);
    let abi = twin_abi::ABI_VERSION.to_le_bytes();
    constant(output, "twin_payload_abi_version", 4, &abi);
    constant(output, "twin_payload_scheme", 4, &scheme.to_le_bytes());
    // An object with vector registers was refused.
    constant(output, "twin_payload_vector_free", 4, &1u32.to_le_bytes());
    constant(output, "twin_payload_build_id", 4, inputs.table.build_id());
    Ok(())
}

/// A number of 8 bytes under this name.
pub fn number(output: &mut Output, name: &str, value: u64) -> SymbolId {
    constant(output, name, WORD, &value.to_le_bytes())
}

fn constant(output: &mut Output, name: &str, align: u64, bytes: &[u8]) -> SymbolId {
    let section = output.generated(names::ARRAYS, SHF_ALLOC);
    let at = output.append(section, align, bytes);
    output.define(name, STT_OBJECT, (section, at), bytes.len() as u64)
}

/// A word of an array.
#[derive(Clone, Copy)]
enum Word {
    Number(u64),
    At(SymbolId, i64),
}

/// An array under this name, and `<name>_count`.
fn array<const N: usize>(
    output: &mut Output,
    section: &'static str,
    name: &str,
    rows: &[[Word; N]],
) {
    let section = output.generated(section, SHF_ALLOC);
    let start = output.append(section, WORD, &[]);
    for word in rows.iter().flatten() {
        match *word {
            Word::Number(value) => {
                output.append(section, WORD, &value.to_le_bytes());
            }
            Word::At(symbol, addend) => {
                let offset = output.append(section, WORD, &[0; WORD as usize]);
                let kind = R_X86_64_64;
                output.relocate(
                    section,
                    Relocation {
                        offset,
                        kind,
                        symbol,
                        addend,
                    },
                );
            }
        }
    }
    let size = rows.len() as u64 * N as u64 * WORD;
    output.define(name, STT_OBJECT, (section, start), size);
    number(output, &format!("{name}_count"), rows.len() as u64);
}

fn codemap(output: &mut Output, mut rows: Vec<Row>) -> Result<(), Refusal> {
    rows.sort();
    if let Some(same) = rows.windows(2).find(|pair| pair[0].vm == pair[1].vm) {
        let why = format!(
            "two places of the code are for {:#x} in dom0: sections of its modules overlap; copy \
             the addresses of the modules that are loaded",
            same[0].vm
        );
        return Err(Refusal::new(PayloadCode::Ambiguous, Part::Sections, why));
    }
    let words = |row: &Row| {
        [
            Word::Number(row.vm),
            Word::At(SymbolId(row.symbol), row.addend),
        ]
    };
    let rows: Vec<_> = rows.iter().map(words).collect();
    array(output, names::CODEMAP, names::CODEMAP_SYMBOL, &rows);
    Ok(())
}

fn imports(
    output: &mut Output,
    code: &[Code<'_>],
    stubs: &Stubs,
    inputs: &Inputs<'_>,
) -> Result<(), Refusal> {
    let mut rows = Vec::new();
    let owners: HashMap<&str, Part> = code
        .iter()
        .rev()
        .flat_map(|part| {
            part.imports()
                .into_iter()
                .map(|name| (name, part.role.part()))
        })
        .collect();
    for name in &stubs.numbered {
        let part = owners.get(&**name).copied().unwrap_or(Part::Driver);
        let vm = inputs.dom0.symbol(part, name)?;
        let name_at = text(output, name);
        let Some(stub) = stubs.stub(name) else {
            continue;
        };
        rows.push([name_at, Word::Number(vm), Word::At(stub, 0)]);
    }
    array(output, names::ARRAYS, "twin_payload_imports", &rows);
    Ok(())
}

/// Where a text is, ended by a zero.
fn text(output: &mut Output, text: &str) -> Word {
    let (symbol, addend) = place_text(output, text);
    Word::At(symbol, addend)
}

/// Adds a text, ended by a zero. Gives its section's symbol and the offset.
pub fn place_text(output: &mut Output, text: &str) -> (SymbolId, i64) {
    let section = output.generated(names::TEXTS, SHF_ALLOC);
    let at = output.append(section, 1, text.as_bytes());
    output.append(section, 1, &[0]);
    (output.of_section(section), at as i64)
}
