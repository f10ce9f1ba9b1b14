//! Makes one object of rewritten code and the parts of the original that are not code.

use std::borrow::Cow;

use elf_loader::consts::{
    SHF_ALLOC, SHF_EXECINSTR, SHT_LLVM_ADDRSIG, SHT_LLVM_CALL_GRAPH_PROFILE, STB_LOCAL, STT_NOTYPE,
    STT_SECTION,
};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};
use foldhash::{HashMap, HashSet};
use twin_abi::MadeFor;

use super::super::Build;
use super::super::sections::{map_section, note_section, relocation_kind};
use super::places::{Offsets, Places};
use super::runtime::Runtime;
use super::series::Kernel;
use super::{assembly, nameless, orc, tables, unresolved};
use crate::analyse::switches::Switches;
use crate::asm::import::Import;
use crate::asm::{Field, Referent};
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, Lifted};
use crate::plan::InstPlan;
use crate::refusal::Refusal;

/// The object with all that does not depend on where code will be, and what is left to do.
struct Prepared<'l> {
    lifted: &'l Lifted<'l>,
    object: Object<'static>,
    section_symbols: HashMap<CodeIdx, SymbolId>,
    moves: tables::Moves,
    unwinding: Option<orc::Unwinding>,
    kernel: Kernel,
}

/// Decides how references to code follow it.
///
/// # Errors
/// References that could not.
pub fn prepare<'l>(
    lifted: &'l Lifted<'l>,
    plans: &[InstPlan],
    switches: &Switches,
) -> Result<Build<'l>, Vec<Refusal>> {
    let mut refused = unresolved::find(lifted);
    refused.extend(assembly::find(lifted));
    refused.extend(nameless::find(lifted));
    if !refused.is_empty() {
        return Err(refused);
    }
    let kernel = Kernel::of(lifted.object).map_err(|refusal| vec![refusal])?;
    let mut object = owned(lifted);
    number_cases(&mut object, switches);
    let section_symbols = section_symbols(&mut object, lifted);
    let places = Places { lifted, plans };
    let (moves, unwinding) = match (
        tables::plan(&mut object, &places, &section_symbols),
        orc::plan(lifted, plans, kernel.unwinding),
    ) {
        (Ok(moves), Ok(unwinding)) => (moves, unwinding),
        (moves, unwinding) => {
            let refusals = [moves.err(), unwinding.err()];
            return Err(refusals.into_iter().flatten().flatten().collect());
        }
    };
    let prepared = Prepared {
        lifted,
        object,
        section_symbols,
        moves,
        unwinding,
        kernel,
    };
    Ok(Box::new(|applied, _, made| prepared.emit(applied, made)))
}

impl Prepared<'_> {
    /// Completes the object, and takes the code for it.
    fn emit(self, applied: &mut Applied, made: MadeFor) -> Object<'static> {
        let (lifted, mut object) = (self.lifted, self.object);
        self.moves.apply(&mut object, &Offsets::new(applied));
        if let Some(unwinding) = &self.unwinding {
            unwinding.remake(&mut object, lifted, applied, &self.section_symbols);
        }
        // --- the original's own parts have their new places; the rest is added ---
        let runtime = Runtime::link(&mut object, self.kernel, made.scheme);
        let sections = applied.sections.iter_mut();
        let code: Vec<Vec<u8>> = sections
            .map(|laid| std::mem::take(&mut laid.bytes))
            .collect();
        let names = Names {
            lifted,
            applied,
            section_symbols: self.section_symbols,
            runtime,
        };
        names.code(&mut object, code);
        object.sections.push(note_section(made));
        let id = |code: CodeIdx| lifted.sections[usize::from(code.0)].id;
        object.sections.push(map_section(lifted, applied, id));
        object
    }
}

/// The original without its code, on its own.
fn owned(lifted: &Lifted<'_>) -> Object<'static> {
    let object = lifted.object;
    let section = |(id, s): (SectionId, &Section<'_>)| match lifted.code_section(id) {
        Some(_) => Section {
            name: Cow::Owned(s.name.to_string()),
            data: Cow::Borrowed(&[]),
            relocations: Vec::new(),
            ..*s
        },
        // Hints for a linker, by the numbers of symbols, which change. Nothing is loaded.
        None if matches!(s.kind, SHT_LLVM_ADDRSIG | SHT_LLVM_CALL_GRAPH_PROFILE) => {
            Section::with_data(s.name.to_string(), 0, 1, Vec::new())
        }
        None => Section {
            name: Cow::Owned(s.name.to_string()),
            data: Cow::Owned(s.data.to_vec()),
            relocations: s.relocations.clone(),
            flags: s.flags & !executable_marker(s),
            ..*s
        },
    };
    let named = nameless::labels(lifted);
    let keeps_name = |s: &Symbol<'_>| match s.place {
        Place::In(id) => lifted
            .code_section(id)
            .is_some_and(|code| named.contains(&(code, s.value))),
        Place::Undefined | Place::Absolute | Place::Common => false,
    };
    let symbol = |s: &Symbol<'_>| Symbol {
        name: match is_label(lifted, s) && !keeps_name(s) {
            true => Cow::Borrowed(""),
            false => Cow::Owned(s.name.to_string()),
        },
        ..*s
    };
    Object {
        sections: object.sections().map(section).collect(),
        symbols: object.symbols.iter().map(symbol).collect(),
        ..*object
    }
}

/// The flag that says of an empty section that it is code. `.note.GNU-stack` has it in assembly
/// that does not say whether it needs the stack to be executable (`ld(1)`, `-z execstack`). Such a
/// section is not loaded, and the kernel does not ask.
fn executable_marker(section: &Section<'_>) -> u64 {
    match section.size == 0 && section.flags & SHF_ALLOC == 0 {
        true => SHF_EXECINSTR,
        false => 0,
    }
}

/// Whether a symbol is a label of assembly, often a place inside a frame, or a constant of it. By a
/// name the kernel could enter it, as what a FUNC in some module's `.BTF` names (`add_kfunc_call`,
/// kernel/bpf/verifier.c).
fn is_label(lifted: &Lifted<'_>, symbol: &Symbol<'_>) -> bool {
    let named = match symbol.place {
        Place::In(id) => lifted.code_section(id).is_some(),
        Place::Absolute => true,
        Place::Undefined | Place::Common => false,
    };
    named && (symbol.kind, symbol.binding) == (STT_NOTYPE, STB_LOCAL)
}

/// Puts numbers into jump tables, in place of addresses of code: rewritten jumps compare
/// these ([`crate::encode`]).
fn number_cases(object: &mut Object<'static>, switches: &Switches) {
    let mut words: HashSet<(SectionId, u64)> = HashSet::default();
    for (id, offset, word) in switches.words() {
        let section = &mut object.sections[id.0 as usize];
        let (at, width) = (offset as usize, word.width as usize);
        let number = u64::from(word.number).to_le_bytes();
        section.data.to_mut()[at..at + width].copy_from_slice(&number[..width]);
        words.insert((id, offset));
    }
    for (n, section) in object.sections.iter_mut().enumerate() {
        let id = SectionId(n as u32);
        let relocations = &mut section.relocations;
        relocations.retain(|r| !words.contains(&(id, r.offset)));
    }
}

/// The section symbol of each code section; made where there is none.
fn section_symbols(
    object: &mut Object<'static>,
    lifted: &Lifted<'_>,
) -> HashMap<CodeIdx, SymbolId> {
    let mut found = HashMap::default();
    let mut known: HashMap<SectionId, SymbolId> = HashMap::default();
    for (id, symbol) in object.symbols() {
        if let (Place::In(section), STT_SECTION) = (symbol.place, symbol.kind) {
            known.entry(section).or_insert(id);
        }
    }
    for (n, section) in lifted.sections.iter().enumerate() {
        let place = Place::In(section.id);
        let id = known.get(&section.id).copied();
        let id = id.unwrap_or(SymbolId(object.symbols.len() as u32));
        if id.0 as usize == object.symbols.len() {
            object.symbols.push(Symbol {
                name: Cow::Borrowed(""),
                binding: STB_LOCAL,
                kind: STT_SECTION,
                other: 0,
                place,
                value: 0,
                size: 0,
            });
        }
        found.insert(CodeIdx(n as u16), id);
    }
    found
}

/// Symbols for the references of emitted code.
struct Names<'n, 'a> {
    lifted: &'n Lifted<'a>,
    applied: &'n Applied,
    section_symbols: HashMap<CodeIdx, SymbolId>,
    runtime: Runtime,
}

impl Names<'_, '_> {
    fn code(&self, object: &mut Object<'static>, code: Vec<Vec<u8>>) {
        for (n, (laid, bytes)) in self.applied.sections.iter().zip(code).enumerate() {
            let section = &mut object.sections[self.lifted.sections[n].id.0 as usize];
            section.size = bytes.len() as u64;
            section.data = Cow::Owned(bytes);
            // Functions keep the alignment that they had, up to 16 bytes.
            section.align = section.align.max(16);
            section.relocations = laid
                .references()
                .map(|(offset, field, referent)| self.relocation(offset, field, &referent))
                .collect();
            section.relocations.sort_by_key(|r| r.offset);
        }
    }

    fn relocation(&self, offset: u64, field: Field, referent: &Referent) -> Relocation {
        let (kind, from_end) = relocation_kind(field);
        let (symbol, addend) = match referent {
            Referent::Label(label) => {
                let (code, at) = self.applied.place(*label);
                (self.section_symbols[&code], at as i64)
            }
            Referent::Import(import, addend) => (self.symbol(*import), *addend),
        };
        Relocation {
            offset,
            kind,
            symbol,
            addend: addend + from_end,
        }
    }

    fn symbol(&self, import: Import) -> SymbolId {
        match import {
            Import::Own(id) | Import::Routine(id) => id,
            Import::Slow(register) => self.runtime.slow(register),
            Import::Stlb => self.runtime.symbol(twin_abi::names::STLB),
            Import::Section(_)
            | Import::Data(_)
            | Import::Runtime(_)
            | Import::Window
            | Import::StackView
            | Import::WindowMask
            | Import::Lowest
            | Import::Highest => {
                unreachable!("a module for a stock kernel has no other runtime")
            }
        }
    }
}
