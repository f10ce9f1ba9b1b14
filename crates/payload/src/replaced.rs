//! Xen's functions that the runtime replaces, and their originals.
//!
//! The runtime's section `.twin.replace` has a row `{ const char *name; const void *by }` for
//! each. Xen writes a jump over the function's beginning; so the original is the beginning's
//! instructions, from the table, and a jump to the rest:
//!
//! ```text
//! twin_original_NAME:   <first whole instructions>
//!                       e9 <rel32>   jmp NAME + their bytes
//! ```
//!
//! `struct livepatch_func` has the same bytes, which Xen compares before it applies anything.

use std::collections::BTreeSet;

use elf_loader::consts::{
    R_X86_64_64, R_X86_64_PC32, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, STT_FUNC,
};
use elf_loader::{Object, Place, Relocation, SectionId, SymbolId, WORD, resolve_target};

use crate::code::PayloadCode;
use crate::livepatch::{FUNCS, func};
use crate::output::{Output, names};
use crate::refusal::{Part, Refusal};
use crate::runtime::{REPLACE, Runtime};
use crate::table::Table;
use crate::{Inputs, arrays};

/// Bytes of a row of `.twin.replace`.
const ROW: u64 = 2 * WORD;

/// Makes `.livepatch.funcs` of the runtime's rows.
///
/// # Errors
/// A row is not what it has to be, or the table does not have the function.
pub fn place(
    output: &mut Output,
    inputs: &Inputs<'_>,
    runtime: &Runtime<'_>,
) -> Result<(), Refusal> {
    let object = runtime.object();
    let Some(section) = object.section_named(REPLACE) else {
        return Ok(());
    };
    let rows = object.section(section);
    let (pairs, rest) = rows.relocations.as_chunks::<2>();
    let whole = rows.size == pairs.len() as u64 * ROW && rest.is_empty();
    if !whole {
        return Err(bad(0, "its rows have not two addresses each"));
    }
    let mut replaced = BTreeSet::new();
    for (n, [name, by]) in pairs.iter().enumerate() {
        let at = n as u64 * ROW;
        let places = (name.offset, by.offset, name.kind, by.kind);
        if places != (at, at + WORD, R_X86_64_64, R_X86_64_64) {
            return Err(bad(n, "it has not two addresses"));
        }
        let name = text(object, name).ok_or_else(|| bad(n, "its first word is no text"))?;
        let (symbol, size) = function(object, by, runtime)
            .ok_or_else(|| bad(n, "its second word is no function of the runtime"))?;
        let own = inputs.table.name(name)?;
        // Xen would write both jumps, and take them back in the wrong order.
        if !replaced.insert(inputs.table.address(own)) {
            return Err(bad(n, "another row replaces the same function"));
        }
        row(output, inputs.table, own, (symbol, size))?;
    }
    Ok(())
}

fn bad(row: usize, why: &str) -> Refusal {
    let why = format!("{REPLACE}, row {row}: {why}; declare {{ name, function }}");
    Refusal::new(PayloadCode::Replace, Part::Runtime, why)
}

/// The text that a relocation points to.
fn text<'o>(object: &'o Object<'_>, r: &Relocation) -> Option<&'o str> {
    let (section, offset) = resolve_target(object, r)?;
    let bytes = object.section(section).data.get(offset as usize..)?;
    let end = bytes.iter().position(|&b| b == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

/// The function that a relocation points to: its symbol in the payload, and its size.
fn function(object: &Object<'_>, r: &Relocation, runtime: &Runtime<'_>) -> Option<(SymbolId, u32)> {
    let target: (SectionId, u64) = resolve_target(object, r)?;
    let mut symbols = object.symbols();
    let (id, symbol) = symbols.find(|(_, s)| {
        s.kind == STT_FUNC && s.size > 0 && (s.place, s.value) == (Place::In(target.0), target.1)
    })?;
    Some((runtime.symbol(id)?, u32::try_from(symbol.size).ok()?))
}

fn row(
    output: &mut Output,
    table: &Table,
    own: &str,
    (by, new_size): (SymbolId, u32),
) -> Result<(), Refusal> {
    let (head, old_size) = table.head(own)?;
    let old_size = u32::try_from(old_size).unwrap_or(u32::MAX);
    let section = output.generated(FUNCS, SHF_ALLOC | SHF_WRITE);
    let at = output.append(section, WORD, &func::bytes(new_size, old_size, head));
    let (text, addend) = arrays::place_text(output, own);
    let kind = R_X86_64_64;
    let offset = at + func::NAME;
    output.relocate(
        section,
        Relocation {
            offset,
            kind,
            symbol: text,
            addend,
        },
    );
    let offset = at + func::NEW_ADDR;
    output.relocate(
        section,
        Relocation {
            offset,
            kind,
            symbol: by,
            addend: 0,
        },
    );
    Ok(())
}

/// The symbol `twin_original_<name>`: the function as it was before it was replaced.
///
/// # Errors
/// Xen has no such function, or the table does not have its beginning.
pub fn original(output: &mut Output, table: &Table, name: &str) -> Result<SymbolId, Refusal> {
    const ALIGN: u64 = 16;
    let own = table.name(name)?;
    let (head, _) = table.head(own)?;
    let section = output.generated(names::ORIGINALS, SHF_ALLOC | SHF_EXECINSTR);
    let code = [head, &[0xe9, 0, 0, 0, 0]].concat();
    let at = output.append(section, ALIGN, &code);
    let symbol = output.of_xen(own);
    let field = head.len() as u64 + 1;
    output.relocate(
        section,
        Relocation {
            offset: at + field,
            kind: R_X86_64_PC32,
            symbol,
            addend: head.len() as i64 - 4,
        },
    );
    let name = format!("twin_original_{name}");
    Ok(output.define(&name, STT_FUNC, (section, at), code.len() as u64))
}
