//! One entry of a table at a time: names, symbols, relocations.

use std::borrow::Cow;

use goblin::elf::reloc::Reloc;
use goblin::elf::sym::Sym;

use super::error::{ReadError, RelocationProblem, SymbolProblem};
use crate::model::consts::STT_SECTION;
use crate::model::{Place, Relocation, Role, Section, SectionId, Symbol, SymbolId};
use crate::reloc::relocation_type;

/// Longest section or symbol name in bytes. A bound, so that reading takes
/// time linear in the file's length; compilers stay far below it.
const MAX_NAME: usize = 1 << 14;
/// First reserved section index; files with as many sections use another
/// numbering, which is refused.
const SHN_LORESERVE: u32 = 0xff00;
const SHN_ABS: u32 = 0xfff1;
const SHN_COMMON: u32 = 0xfff2;

/// The zero-terminated string at `offset` of a string table. `left` is what all names may
/// still have.
pub(super) fn string<'a>(
    table: &'a [u8],
    offset: u64,
    left: &mut u64,
) -> Result<&'a str, &'static str> {
    if offset == 0 && table.is_empty() {
        return Ok("");
    }
    let rest = usize::try_from(offset).ok().and_then(|o| table.get(o..));
    let rest = rest.filter(|r| !r.is_empty()).ok_or("outside the table")?;
    let bounded = &rest[..rest.len().min(MAX_NAME)];
    let length = bounded
        .iter()
        .position(|&b| b == 0)
        .ok_or("it has no end, or is too long")?;
    *left = left
        .checked_sub(length as u64)
        .ok_or("with the names before it, it has more than eight times the file's bytes")?;
    std::str::from_utf8(&bounded[..length]).map_err(|_| "not UTF-8")
}

/// A symbol with its name and place checked.
pub(super) fn symbol<'a>(
    index: u32,
    sym: &Sym,
    (names, left): (&'a [u8], &mut u64),
    sections: &[Section<'_>],
) -> Result<Symbol<'a>, ReadError> {
    let offset = sym.st_name as u64;
    let refuse = |name: &str, problem| ReadError::Symbol {
        index,
        name: name.into(),
        problem,
    };
    let name = string(names, offset, left)
        .map_err(|why| refuse("", SymbolProblem::Name { offset, why }))?;
    let place = place(sym, sections).map_err(|problem| refuse(name, problem))?;
    Ok(Symbol {
        name: Cow::Borrowed(name),
        binding: sym.st_bind(),
        kind: sym.st_type(),
        other: sym.st_other,
        place,
        value: sym.st_value,
        size: sym.st_size,
    })
}

fn place(sym: &Sym, sections: &[Section<'_>]) -> Result<Place, SymbolProblem> {
    let index = sym.st_shndx as u32;
    match index {
        // A kernel leaves it in place where a weak symbol is not resolved (`simplify_symbols`).
        0 if sym.st_value != 0 => return Err(SymbolProblem::UndefinedValue(sym.st_value)),
        0 => return Ok(Place::Undefined),
        SHN_ABS => return Ok(Place::Absolute),
        SHN_COMMON => return Ok(Place::Common),
        i if i >= SHN_LORESERVE => return Err(SymbolProblem::Reserved(i)),
        _ => {}
    }
    let Some(section) = sections.get(index as usize) else {
        return Err(SymbolProblem::NoSection {
            index,
            count: sections.len(),
        });
    };
    if sym.st_value > section.size {
        return Err(SymbolProblem::PastEnd {
            value: sym.st_value,
            section: section.name.to_string(),
            size: section.size,
        });
    }
    // The tables are written anew, so what was there is elsewhere.
    if section.role != Role::Contents && sym.st_value != 0 {
        return Err(SymbolProblem::InTable {
            section: section.name.to_string(),
            value: sym.st_value,
        });
    }
    // Consumers take it for the section's start, and would lose the rest.
    if sym.st_type() == STT_SECTION && sym.st_value != 0 {
        return Err(SymbolProblem::NotAtStart {
            section: section.name.to_string(),
            value: sym.st_value,
        });
    }
    Ok(Place::In(SectionId(index)))
}

/// A relocation of `target` with its type, field and symbol checked.
pub(super) fn relocation(
    raw: &Reloc,
    target: &Section<'_>,
    symbols: usize,
) -> Result<Relocation, RelocationProblem> {
    let kind = relocation_type(raw.r_type).ok_or(RelocationProblem::Type(raw.r_type))?;
    let past_end = RelocationProblem::PastEnd {
        width: kind.width,
        size: target.size,
    };
    let end = raw
        .r_offset
        .checked_add(kind.width)
        .filter(|&e| e <= target.size);
    end.and_then(|end| target.data.get(raw.r_offset as usize..end as usize))
        .ok_or(past_end)?;
    if raw.r_sym >= symbols {
        return Err(RelocationProblem::NoSymbol {
            index: raw.r_sym as u64,
            count: symbols,
        });
    }
    Ok(Relocation {
        offset: raw.r_offset,
        kind: raw.r_type,
        symbol: SymbolId(raw.r_sym as u32),
        addend: raw.r_addend.unwrap_or_default(),
    })
}
