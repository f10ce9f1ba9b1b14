//! The lifter by itself: an object with any code, symbols and relocations is refused
//! with a place, or lifted without a byte lost.

use std::borrow::Cow;

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, STB_GLOBAL, STB_LOCAL,
    STT_FUNC, STT_NOTYPE, STT_SECTION,
};
use elf_loader::{Object, Place, Relocation, SectionId, Symbol, SymbolId};
use svm_rewrite::lift::{self, Destination, InstIdx, Lifted};

use super::object_of;
use super::program::{Choices, program};

/// Even first byte: a file; odd: choices of relocations and symbols, then of
/// instructions.
pub fn lift(data: &[u8]) {
    match data.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => {
            if let Ok(object) = elf_loader::read(rest) {
                lift_object(&object);
            }
        }
        Some((_, rest)) => lift_made(rest),
        None => {}
    }
}

/// A program with relocations and further symbols, of four bytes of choices
/// each.
fn lift_made(choices: &[u8]) {
    let (count, rest) = choices.split_first().unwrap_or((&0, &[]));
    let (edits, rest) = rest.split_at((usize::from(count % 16) * 4).min(rest.len()));
    let code = program(rest);
    let mut object = object_of(&code);
    object
        .symbols
        .push(symbol("import", STT_NOTYPE, Place::Undefined, 0));
    for edit in edits.chunks_exact(4) {
        let mut choices = Choices(edit);
        let (kind, at) = (
            choices.byte(),
            u64::from(choices.byte()) % code.len() as u64,
        );
        match kind % 8 {
            6 => object.symbols.push(symbol("g", STT_FUNC, text(), at)),
            7 => object.symbols.push(symbol("", STT_SECTION, text(), at)),
            kind => {
                let symbol = SymbolId(u32::from(choices.byte()) % object.symbols.len() as u32);
                let addend = i64::from(choices.byte() as i8);
                relocate(&mut object, kind, at, symbol, addend);
            }
        }
    }
    object.sections[1].relocations.sort_by_key(|r| r.offset);
    lift_object(&object);
}

fn text() -> Place {
    Place::In(SectionId(1))
}

fn symbol(name: &'static str, kind: u8, place: Place, value: u64) -> Symbol<'static> {
    Symbol {
        name: Cow::Borrowed(name),
        binding: if name == "import" {
            STB_GLOBAL
        } else {
            STB_LOCAL
        },
        kind,
        other: 0,
        place,
        value,
        size: 1,
    }
}

/// A relocation whose field is inside the section, as a reader promises.
fn relocate(object: &mut Object<'_>, kind: u8, offset: u64, symbol: SymbolId, addend: i64) {
    const KINDS: [(u32, u64); 6] = [
        (R_X86_64_PC32, 4),
        (R_X86_64_PLT32, 4),
        (R_X86_64_32S, 4),
        (R_X86_64_32, 4),
        (R_X86_64_64, 8),
        (R_X86_64_PC32, 4),
    ];
    let (kind, width) = KINDS[usize::from(kind) % KINDS.len()];
    if offset + width <= object.sections[1].size {
        object.sections[1].relocations.push(Relocation {
            offset,
            kind,
            symbol,
            addend,
        });
    }
}

/// Lifts, and checks that the result is the same as the object. Its analysis must not
/// panic either.
pub fn lift_object(object: &Object<'_>) {
    // A refusal because of size is not of interest here.
    if object
        .sections
        .iter()
        .any(|s| s.is_code() && s.size > 1 << 16)
    {
        return;
    }
    match lift::lift(object) {
        Ok(lifted) => check(object, &lifted),
        Err(refusals) => {
            assert!(!refusals.is_empty(), "refused without a reason");
            for refusal in refusals {
                assert!(!refusal.reason.is_empty() && !refusal.to_string().is_empty());
            }
        }
    }
    for accesses in svm_rewrite::Accesses::ALL {
        let _ = svm_rewrite::statistics(object, accesses);
    }
}

fn check(object: &Object<'_>, lifted: &Lifted<'_>) {
    for section in &lifted.sections {
        let insts = &lifted.insts[section.insts.start as usize..section.insts.end as usize];
        // Every byte once, in order.
        let mut at = 0;
        for inst in insts {
            assert_eq!(inst.offset(), at, "a gap");
            at += inst.iced.len() as u64;
        }
        assert_eq!(at, object.section(section.id).size, "bytes are left");
        // Every relocation in some instruction's operand.
        let fields = insts.iter().map(|i| {
            usize::from(i.displacement.is_some())
                + usize::from(i.immediate.is_some())
                + usize::from(matches!(i.target, Some(Destination::Import(_))))
        });
        let relocations = object.section(section.id).relocations.len();
        assert!(fields.sum::<usize>() <= relocations, "a value from nowhere");
    }
    let mut next = 0;
    for function in &lifted.functions {
        assert_eq!(
            function.insts.start, next,
            "functions do not cover the code"
        );
        next = function.insts.end;
    }
    assert_eq!(next as usize, lifted.insts.len());
    for inst in &lifted.insts {
        if let Some(Destination::Inst(InstIdx(n))) = inst.target {
            assert!((n as usize) < lifted.insts.len(), "a branch to nowhere");
        }
    }
}
