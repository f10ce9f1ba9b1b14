//! The runtime's object in the payload: its sections and symbols, and who defines what it
//! leaves undefined.
//!
//! ```text
//! twin_value_KEY       8 bytes: a number of the table          twin_payload_*  arrays
//! twin_dom0_NAME       8 bytes: the address of NAME in dom0
//! twin_function_NAME   the rewritten function NAME
//! twin_original_NAME   Xen's function NAME as it was before it was replaced
//! other twin_*         nobody: the runtime lacks a part of its own
//! any other            Xen
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use elf_loader::consts::{
    R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, STB_LOCAL,
    STT_FILE, STT_FUNC, STT_SECTION,
};
use elf_loader::reloc::relocation_name;
use elf_loader::{
    Object, Place, Relocation, Role, Section, SectionId, Symbol, SymbolId, WORD, resolve_target,
};
use twin_abi::names::{RUNTIME_PREFIX, WINDOW_MASK};

use crate::code::PayloadCode;
use crate::output::{Output, names};
use crate::refusal::{Part, Refusal};
use crate::rewritten::Code;
use crate::{Inputs, arrays, check, replaced};

/// The runtime's table of functions to replace; it is not carried over.
pub const REPLACE: &str = ".twin.replace";
/// Pointers to functions that Xen's loader calls.
const HOOKS: &str = ".livepatch.hooks.";
/// The rewritten function of the name that follows.
const FUNCTION: &str = "twin_function_";
/// Hooks that are an array of functions; of the others there is one.
const SEVERAL: [&str; 2] = ["load", "unload"];
const SINGLE: [&str; 6] = [
    "preapply", "apply", "postapply", "prerevert", "revert", "postrevert",
];
/// What other sections' names begin with.
const KINDS: [&str; 5] = [".text", ".rodata", ".data", ".bss", ".ex_table"];
/// Loaded sections that mean nothing to Xen.
const DROPPED: [&str; 2] = [".note", ".eh_frame"];
/// Largest alignment that Xen's loader keeps: it places sections from a page on.
pub const PAGE: u64 = twin_abi::stlb::PAGE_SIZE;

/// The runtime's object, which has its place in the payload.
#[derive(Debug)]
pub struct Runtime<'a> {
    object: &'a Object<'a>,
    sections: BTreeMap<SectionId, SectionId>,
    symbols: HashMap<SymbolId, SymbolId>,
    functions: HashMap<&'a str, SymbolId>,
}

/// Gives sections and symbols their places.
///
/// # Errors
/// A section or symbol that Xen would not take.
pub fn place<'a>(output: &mut Output, object: &'a Object<'a>) -> Result<Runtime<'a>, Refusal> {
    let mut runtime = Runtime {
        object,
        sections: BTreeMap::new(),
        symbols: HashMap::new(),
        functions: HashMap::new(),
    };
    let mut meant = BTreeSet::new();
    for (id, section) in object.sections() {
        if section.name.starts_with(HOOKS) || section.name == REPLACE {
            once(&mut meant, section)?;
        }
        if stays(section)? {
            let now = output.add_section(Section {
                name: Cow::Owned(section.name.to_string()),
                data: Cow::Owned(section.data.to_vec()),
                relocations: Vec::new(),
                flags: section.flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR),
                entsize: 0,
                link: 0,
                info: 0,
                ..*section
            });
            runtime.sections.insert(id, now);
        }
    }
    for (id, symbol) in object.symbols().skip(1) {
        runtime.place_symbol(output, id, symbol)?;
    }
    let routines = runtime.routines();
    for &id in runtime.sections.keys() {
        runtime.check_hooks(object.section(id), &routines)?;
    }
    Ok(runtime)
}

/// Xen's loader and the builder take the first section of a name.
fn once<'a>(meant: &mut BTreeSet<&'a str>, section: &'a Section<'_>) -> Result<(), Refusal> {
    match meant.insert(&section.name) {
        true => Ok(()),
        false => {
            let why = format!(
                "section `{}` is there twice, and the second would be passed over; link them to one",
                section.name
            );
            Err(Refusal::new(PayloadCode::Section, Part::Runtime, why))
        }
    }
}

/// Whether a section is part of the payload.
fn stays(section: &Section<'_>) -> Result<bool, Refusal> {
    let name = &*section.name;
    let loaded = section.role == Role::Contents && section.flags & SHF_ALLOC != 0;
    if !loaded || section.size == 0 || DROPPED.iter().any(|d| name.starts_with(d)) {
        return Ok(false);
    }
    let fail = |why: &str| {
        let why = format!("section `{name}`: {why}");
        Err(Refusal::new(PayloadCode::Section, Part::Runtime, why))
    };
    const EITHER: u64 = SHF_WRITE | SHF_EXECINSTR;
    if section.flags & EITHER == EITHER {
        return fail("it is writable and executable, which Xen refuses; make it one of them");
    }
    if section.align > PAGE {
        return fail(
            "it is aligned to more than a page, which Xen does not keep; align it to 4096",
        );
    }
    if name == REPLACE {
        return Ok(false);
    }
    if let Some(hook) = name.strip_prefix(HOOKS) {
        let several = SEVERAL.contains(&hook) && section.size.is_multiple_of(WORD);
        return match several || SINGLE.contains(&hook) && section.size == WORD {
            true => Ok(true),
            false => fail("Xen has no such hook, or takes one function for it; declare one"),
        };
    }
    let own = [
        names::STUBS,
        names::ORIGINALS,
        names::CODEMAP,
        names::ARRAYS,
        names::TEXTS,
    ];
    if own.contains(&name) {
        return fail("the builder makes one of that name; choose another");
    }
    match KINDS.iter().any(|kind| name.starts_with(kind)) {
        true => Ok(true),
        false => fail("a payload has no such section; put it into .text, .rodata, .data or .bss"),
    }
}

impl<'a> Runtime<'a> {
    fn place_symbol(
        &mut self,
        output: &mut Output,
        id: SymbolId,
        symbol: &'a Symbol<'a>,
    ) -> Result<(), Refusal> {
        let place = match symbol.place {
            Place::Undefined => return Ok(()),
            Place::Absolute if symbol.kind == STT_FILE => return Ok(()),
            Place::Absolute => Place::Absolute,
            Place::Common => {
                let why = format!(
                    "`{}` is a common symbol; compile with -fno-common",
                    symbol.name
                );
                return Err(Refusal::new(PayloadCode::Section, Part::Runtime, why));
            }
            Place::In(section) => match self.sections.get(&section) {
                None => return Ok(()),
                Some(&now) if symbol.kind == STT_SECTION => {
                    self.symbols.insert(id, output.of_section(now));
                    return Ok(());
                }
                Some(&now) => Place::In(now),
            },
        };
        let now = output.add_symbol(Symbol {
            name: Cow::Owned(own_name(&symbol.name)),
            binding: STB_LOCAL,
            place,
            ..*symbol
        });
        self.symbols.insert(id, now);
        if symbol.binding == STB_LOCAL {
            return Ok(());
        }
        if symbol.name == WINDOW_MASK {
            self.check_mask(symbol)?;
        }
        if output.publish(&symbol.name, now).is_some() {
            let why = format!("it defines `{}` twice; link one of them", symbol.name);
            return Err(Refusal::new(PayloadCode::Ambiguous, Part::Runtime, why));
        }
        if symbol.kind == STT_FUNC {
            self.functions.insert(&symbol.name, now);
        }
        Ok(())
    }

    /// As it was given.
    pub fn object(&self) -> &'a Object<'a> {
        self.object
    }

    /// The payload's symbol for one of its own.
    pub fn symbol(&self, id: SymbolId) -> Option<SymbolId> {
        self.symbols.get(&id).copied()
    }

    /// The function of this name that it shows to all.
    pub fn function(&self, name: &str) -> Option<SymbolId> {
        self.functions.get(name).copied()
    }

    /// What cuts the pointers of all rewritten code.
    fn check_mask(&self, symbol: &Symbol<'_>) -> Result<(), Refusal> {
        let good = match symbol.place {
            Place::In(section) => check::mask(self.object.section(section), symbol).is_ok(),
            _ => false,
        };
        match good {
            true => Ok(()),
            false => {
                let why = format!(
                    "`{WINDOW_MASK}` is not 2^42 - 1, or may be written; define it in .rodata"
                );
                Err(Refusal::new(PayloadCode::Section, Part::Runtime, why))
            }
        }
    }

    /// Xen calls what is in a section of hooks, whatever it is.
    fn check_hooks(
        &self,
        section: &Section<'_>,
        routines: &HashSet<(SectionId, u64)>,
    ) -> Result<(), Refusal> {
        if !section.name.starts_with(HOOKS) {
            return Ok(());
        }
        let words = (0..section.size).step_by(WORD as usize);
        let places = words.map(|at| (at, R_X86_64_64));
        let whole = section
            .relocations
            .iter()
            .map(|r| (r.offset, r.kind))
            .eq(places);
        let function =
            |r| resolve_target(self.object, r).is_some_and(|place| routines.contains(&place));
        match whole && section.relocations.iter().all(function) {
            true => Ok(()),
            false => {
                let why = format!(
                    "section `{}`: each word has to be the address of a function of the runtime, \
                     which Xen calls; declare one",
                    section.name
                );
                Err(Refusal::new(PayloadCode::Section, Part::Runtime, why))
            }
        }
    }

    /// The places in its code that have names: where routines begin, those of assembly as well.
    fn routines(&self) -> HashSet<(SectionId, u64)> {
        let named = self.object.symbols.iter().filter(|s| s.kind != STT_SECTION);
        let places = named.filter_map(|s| match s.place {
            Place::In(section) => Some((section, s.value)),
            _ => None,
        });
        let code = |id: &SectionId| self.object.section(*id).is_code();
        places
            .filter(|(id, _)| self.sections.contains_key(id) && code(id))
            .collect()
    }

    /// Ties its references.
    ///
    /// # Errors
    /// A relocation that Xen does not take, or a name that nobody defines.
    pub fn resolve(
        &self,
        output: &mut Output,
        inputs: &Inputs<'_>,
        code: &[Code<'_>],
    ) -> Result<(), Refusal> {
        for (&from, &to) in &self.sections {
            for r in &self.object.section(from).relocations {
                let symbol = self.tie(output, from, r, inputs, code)?;
                output.relocate(to, Relocation { symbol, ..*r });
            }
        }
        Ok(())
    }

    fn tie(
        &self,
        output: &mut Output,
        from: SectionId,
        r: &Relocation,
        inputs: &Inputs<'_>,
        code: &[Code<'_>],
    ) -> Result<SymbolId, Refusal> {
        let place = || format!("{}+{:#x}", self.object.section(from).name, r.offset);
        let name = self.object.symbol_name(r.symbol);
        if !matches!(r.kind, R_X86_64_64 | R_X86_64_PC32 | R_X86_64_PLT32) {
            let kind = relocation_name(r.kind);
            let why = format!(
                "{}: {kind} against `{name}`, which Xen does not take; compile with \
                 -fpic -fvisibility=hidden -fno-jump-tables, Xen's symbols hidden too",
                place()
            );
            return Err(Refusal::new(PayloadCode::Relocation, Part::Runtime, why));
        }
        let start = match r.kind {
            R_X86_64_64 => r.addend == 0,
            _ => r.addend == -4,
        };
        if name.starts_with(FUNCTION) && !start {
            let why = format!(
                "{}: it refers to `{name}`, but not to its start; enter functions there",
                place()
            );
            return Err(Refusal::new(PayloadCode::Relocation, Part::Runtime, why));
        }
        match self.object.symbol(r.symbol).place {
            Place::Undefined => needed(output, name, inputs, code),
            _ => self.symbol(r.symbol).ok_or_else(|| {
                let why = format!(
                    "{}: it refers to `{name}`, which is not part of the payload; leave the \
                     reference out",
                    place()
                );
                Refusal::new(PayloadCode::Section, Part::Runtime, why)
            }),
        }
    }
}

/// The name in the payload: one that Xen cannot have.
fn own_name(name: &str) -> String {
    match name.starts_with(RUNTIME_PREFIX) || name.is_empty() {
        true => name.to_owned(),
        false => format!("twin:{name}"),
    }
}

/// The symbol for a name that the runtime leaves undefined.
fn needed(
    output: &mut Output,
    name: &str,
    inputs: &Inputs<'_>,
    code: &[Code<'_>],
) -> Result<SymbolId, Refusal> {
    if let Some(known) = output.find(name) {
        return Ok(known);
    }
    if let Some(key) = name.strip_prefix("twin_value_") {
        let value = inputs.table.value(key).ok_or_else(|| {
            let why = format!(
                "it needs `value {key}`, which the table does not have; make the table again"
            );
            Refusal::new(PayloadCode::NoValue, Part::Runtime, why)
        })?;
        return Ok(arrays::number(output, name, value));
    }
    if let Some(symbol) = name.strip_prefix("twin_dom0_") {
        let value = inputs.dom0.symbol(Part::Runtime, symbol)?;
        return Ok(arrays::number(output, name, value));
    }
    if let Some(function) = name.strip_prefix(FUNCTION) {
        let id = rewritten(function, code)?;
        output.publish(name, id);
        return Ok(id);
    }
    if let Some(original) = name.strip_prefix("twin_original_") {
        return replaced::original(output, inputs.table, original);
    }
    if name.starts_with(RUNTIME_PREFIX) {
        let why =
            format!("it needs `{name}`, a part of the runtime; link runtime/core and the platform");
        return Err(Refusal::new(PayloadCode::Undefined, Part::Runtime, why));
    }
    let own = inputs.table.name(name)?;
    Ok(output.of_xen(own))
}

/// The one rewritten function of this name.
fn rewritten(name: &str, code: &[Code<'_>]) -> Result<SymbolId, Refusal> {
    let mut found = code.iter().filter_map(|part| part.function(name));
    let why = match (found.next(), found.next()) {
        (Some(Some(id)), None) => return Ok(id),
        (None, _) => format!(
            "it enters `{name}`, which neither the driver nor the hot routines have; give the \
             object that has it"
        ),
        _ => format!("it enters `{name}`, which is there several times; name one function"),
    };
    Err(Refusal::new(PayloadCode::Undefined, Part::Runtime, why))
}
