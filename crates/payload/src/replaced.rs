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
//! If the last of them is a short conditional jump, it becomes a long one to the same place:
//!
//! ```text
//! 74 07   je NAME + place   ->   0f 84 <rel32>
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
use crate::table::{Head, SHORT_JUMP, Table};
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
    let at = output.append(section, WORD, &func::bytes(new_size, old_size, &head.bytes));
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
    let (mut code, rest) = (Vec::new(), head.bytes.len() as i64);
    let mut leads = Vec::new();
    if let Some((condition, place)) = conditional(own, head)? {
        code.extend(&head.bytes[..head.bytes.len() - SHORT_JUMP]);
        code.extend([0x0f, 0x80 | condition]);
        jump(&mut code, &mut leads, place);
    } else {
        code.extend(&head.bytes);
    }
    code.push(0xe9);
    jump(&mut code, &mut leads, rest);
    let section = output.generated(names::ORIGINALS, SHF_ALLOC | SHF_EXECINSTR);
    let at = output.append(section, ALIGN, &code);
    let symbol = output.of_xen(own);
    for (field, place) in leads {
        output.relocate(
            section,
            Relocation {
                offset: at + field,
                kind: R_X86_64_PC32,
                symbol,
                addend: place - 4,
            },
        );
    }
    let name = format!("twin_original_{name}");
    Ok(output.define(&name, STT_FUNC, (section, at), code.len() as u64))
}

/// The field of a jump to a place of Xen's function.
fn jump(code: &mut Vec<u8>, leads: &mut Vec<(u64, i64)>, place: i64) {
    leads.push((code.len() as u64, place));
    code.extend([0; 4]);
}

/// Condition and place, in bytes from the function's start, of the jump that ends its beginning
/// (SDM vol. 2, Jcc).
fn conditional(own: &str, head: &Head) -> Result<Option<(u8, i64)>, Refusal> {
    let [.., code, distance] = head.bytes[..] else {
        return Ok(None);
    };
    let behind = head.bytes.len() as i64;
    let place = behind + i64::from(distance.cast_signed());
    match head.jumps {
        false => Ok(None),
        true if place >= behind => Ok(Some((code & 15, place))),
        true => {
            let why = format!(
                "`{own}` cannot be replaced: it jumps into what is overwritten; make the table again"
            );
            Err(Refusal::new(PayloadCode::Replace, Part::Table, why))
        }
    }
}
