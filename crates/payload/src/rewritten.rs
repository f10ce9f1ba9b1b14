//! Rewritten code in the payload: its sections and symbols, and what its references to dom0
//! are once dom0's addresses are known.
//!
//! What runs at a module's start and end (`.init*`, `.exit*`) is left out, and so are the
//! codemap's entries for it: dom0's instance does that. Of the other relocations
//!
//! ```text
//! twin_vm:NAME                 are filled in and disappear: R_X86_64_NONE would be refused
//! twin_window twin_stack_view  stay, to the runtime's absolute symbols
//! twin_window_mask, bounds     stay, to the runtime's
//! entries                      stay, to the runtime's
//! imports                      lead to the runtime's, a hot routine, or a stub
//! own code                     stay
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, STB_LOCAL, STT_FUNC,
    STT_SECTION,
};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};
use svm_verify::Proof;
use twin_abi::names::{RUNTIME_PREFIX, VM_PREFIX};
use twin_abi::sections;

use crate::Rewritten;
use crate::code::PayloadCode;
use crate::dom0::Dom0;
use crate::output::{Output, names};
use crate::refusal::{Part, Refusal};
use crate::runtime::PAGE;
use crate::stubs::Stubs;

/// Which of the two rewritten objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The driver.
    Driver,
    /// The hot routines.
    Hot,
}

impl Role {
    /// The input that it is.
    pub fn part(self) -> Part {
        match self {
            Role::Driver => Part::Driver,
            Role::Hot => Part::Hot,
        }
    }

    /// What its sections' names begin with.
    fn prefix(self) -> &'static str {
        match self {
            Role::Driver => names::DRIVER,
            Role::Hot => names::HOT,
        }
    }
}

/// An entry of the codemap whose VM address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The address in dom0.
    pub vm: u64,
    /// The place in the payload: a symbol, and bytes from it.
    pub symbol: u32,
    /// See `symbol`.
    pub addend: i64,
}

/// Rewritten code that has its place in the payload.
#[derive(Debug)]
pub struct Code<'a> {
    /// Which it is.
    pub role: Role,
    /// The module's name.
    pub module: &'a str,
    /// What was proved of it.
    pub proof: Proof,
    /// As it was given.
    pub object: &'a Object<'a>,
    /// Its sections in the payload.
    sections: BTreeMap<SectionId, SectionId>,
    symbols: HashMap<SymbolId, SymbolId>,
    /// Functions by name, each in the payload; `None` if there are several of the name.
    functions: HashMap<&'a str, Option<SymbolId>>,
    /// Functions that other objects may call.
    exported: HashMap<&'a str, SymbolId>,
}

impl<'a> Code<'a> {
    /// Gives sections and symbols their places.
    pub fn place(
        output: &mut Output,
        role: Role,
        rewritten: Rewritten<'a>,
        proof: Proof,
    ) -> Result<Code<'a>, Refusal> {
        let object = rewritten.object;
        let mut code = Code {
            role,
            module: rewritten.module,
            proof,
            object,
            sections: BTreeMap::new(),
            symbols: HashMap::new(),
            functions: HashMap::new(),
            exported: HashMap::new(),
        };
        for (id, section) in object.sections().filter(|(_, s)| stays(s)) {
            if section.align > PAGE {
                let why = format!(
                    "section `{}`: it is aligned to more than a page, which Xen does not keep; \
                     align it to 4096",
                    section.name
                );
                return Err(Refusal::new(PayloadCode::Section, role.part(), why));
            }
            let now = output.add_section(Section {
                name: Cow::Owned(format!("{}{}", role.prefix(), section.name)),
                data: Cow::Owned(section.data.to_vec()),
                relocations: Vec::new(),
                link: 0,
                info: 0,
                ..*section
            });
            code.sections.insert(id, now);
        }
        if code.sections.is_empty() {
            let why = "it has no code but a module's start and end; give the driver's object";
            return Err(Refusal::new(PayloadCode::Section, role.part(), why));
        }
        for (id, symbol) in object.symbols().skip(1) {
            code.place_symbol(output, id, symbol);
        }
        Ok(code)
    }

    fn place_symbol(&mut self, output: &mut Output, id: SymbolId, symbol: &'a Symbol<'a>) {
        let Place::In(section) = symbol.place else {
            return;
        };
        let Some(&section) = self.sections.get(&section) else {
            return;
        };
        if symbol.kind == STT_SECTION {
            self.symbols.insert(id, output.of_section(section));
            return;
        }
        // The module's name keeps it from being a symbol of Xen's.
        let now = output.add_symbol(Symbol {
            name: Cow::Owned(format!("{}:{}", self.module, symbol.name)),
            place: Place::In(section),
            ..*symbol
        });
        self.symbols.insert(id, now);
        if symbol.kind == STT_FUNC {
            let name: &str = &symbol.name;
            let known = self.functions.entry(name).or_insert(Some(now));
            if *known != Some(now) {
                *known = None;
            }
            if symbol.binding != STB_LOCAL {
                self.exported.insert(name, now);
            }
        }
    }

    /// Its sections in the payload, in their order.
    pub fn placed(&self) -> Vec<SectionId> {
        let mut all: Vec<SectionId> = self.sections.values().copied().collect();
        all.sort();
        all
    }

    /// Its function of this name: none, one (`Some`), or several.
    pub fn function(&self, name: &str) -> Option<Option<SymbolId>> {
        self.functions.get(name).copied()
    }

    /// Its function of this name that others may call.
    pub fn export(&self, name: &str) -> Option<SymbolId> {
        self.exported.get(name).copied()
    }

    /// The routines that its code calls and that it does not define, but for the runtime's.
    pub fn imports(&self) -> BTreeSet<&'a str> {
        let used = self.sections.keys().flat_map(|id| {
            let relocations = &self.object.section(*id).relocations;
            relocations.iter().map(|r| self.object.symbol(r.symbol))
        });
        used.filter(|s| s.place == Place::Undefined && !s.name.starts_with(RUNTIME_PREFIX))
            .map(|s| &*s.name)
            .collect()
    }

    /// Fills in dom0's addresses and ties all other references. Gives the codemap.
    ///
    /// # Errors
    /// A name has no address, or one that does not fit.
    pub fn resolve(
        &self,
        output: &mut Output,
        dom0: &Dom0<'_>,
        all: &[Code<'_>],
        stubs: &Stubs,
    ) -> Result<Vec<Row>, Refusal> {
        for (&from, &to) in &self.sections {
            for r in &self.object.section(from).relocations {
                match self.dom0_address(dom0, r)? {
                    Some(value) => self.fill(output, (from, to), r, value)?,
                    None => {
                        let tied = self.tie(output, from, r, all, stubs)?;
                        output.relocate(to, tied);
                    }
                }
            }
        }
        self.codemap(dom0)
    }

    /// S + A of a reference to dom0.
    fn dom0_address(&self, dom0: &Dom0<'_>, r: &Relocation) -> Result<Option<u64>, Refusal> {
        let symbol = self.object.symbol(r.symbol);
        let Some(name) = symbol.name.strip_prefix(VM_PREFIX) else {
            return Ok(None);
        };
        let address = dom0.address(self.role.part(), self.module, name)?;
        Ok(Some(address.wrapping_add_signed(r.addend)))
    }

    /// Writes an address of dom0's into the code (psABI 4.4.1).
    fn fill(
        &self,
        output: &mut Output,
        (from, to): (SectionId, SectionId),
        r: &Relocation,
        value: u64,
    ) -> Result<(), Refusal> {
        let bytes = value.to_le_bytes();
        let field = match r.kind {
            R_X86_64_64 => &bytes[..],
            // The low half of the address, whatever the high half is (docs/spec/window.md).
            R_X86_64_32 => &bytes[..4],
            R_X86_64_32S if value as i64 == i64::from(value as i32) => &bytes[..4],
            R_X86_64_32S => {
                let why = format!(
                    "{}: `{}` is at {value:#x} in dom0, which 32 bits extended by their sign do \
                     not reach; load the module where dom0 places modules",
                    self.place_of(from, r.offset),
                    self.object.symbol(r.symbol).name,
                );
                return Err(Refusal::new(PayloadCode::Overflow, self.role.part(), why));
            }
            kind => return Err(self.bad_kind(from, r, kind)),
        };
        let at = r.offset as usize;
        let data = output.section_mut(to).data.to_mut();
        data[at..at + field.len()].copy_from_slice(field);
        Ok(())
    }

    /// The relocation in the payload of a reference that stays.
    fn tie(
        &self,
        output: &Output,
        from: SectionId,
        r: &Relocation,
        all: &[Code<'_>],
        stubs: &Stubs,
    ) -> Result<Relocation, Refusal> {
        if !matches!(r.kind, R_X86_64_64 | R_X86_64_PC32 | R_X86_64_PLT32) {
            return Err(self.bad_kind(from, r, r.kind));
        }
        let name = self.object.symbol_name(r.symbol);
        let fail = |code, why: String| {
            let why = format!("{}: {why}", self.place_of(from, r.offset));
            Err(Refusal::new(code, self.role.part(), why))
        };
        let symbol = match self.object.symbol(r.symbol).place {
            Place::In(_) => self.symbols.get(&r.symbol).copied(),
            Place::Undefined if name.starts_with(RUNTIME_PREFIX) => output.find(name),
            Place::Undefined => stubs.target(name, all),
            Place::Absolute | Place::Common => None,
        };
        match (symbol, self.object.symbol(r.symbol).place) {
            (Some(symbol), _) => Ok(Relocation { symbol, ..*r }),
            (None, Place::In(section)) => fail(
                PayloadCode::Section,
                format!(
                    "it refers to `{}`, which is left out because dom0 runs it alone; rewrite a \
                     driver whose other code does not need it",
                    self.object.section(section).name
                ),
            ),
            (None, _) => fail(
                PayloadCode::Undefined,
                format!(
                    "it needs `{name}`, which the runtime does not have; link the platform's object"
                ),
            ),
        }
    }

    fn bad_kind(&self, section: SectionId, r: &Relocation, kind: u32) -> Refusal {
        let why = format!(
            "{}: a relocation of type {kind} against `{}`, which Xen does not take; rewrite it \
             with --scheme window",
            self.place_of(section, r.offset),
            self.object.symbol_name(r.symbol)
        );
        Refusal::new(PayloadCode::Relocation, self.role.part(), why)
    }

    fn place_of(&self, section: SectionId, offset: u64) -> String {
        format!("{}+{offset:#x}", self.object.section(section).name)
    }

    /// The codemap's entries for code that stays.
    fn codemap(&self, dom0: &Dom0<'_>) -> Result<Vec<Row>, Refusal> {
        let Some(id) = self.object.section_named(sections::CODEMAP) else {
            return Ok(Vec::new());
        };
        // Two relocations an entry: the input is proved.
        let (pairs, _) = self.object.section(id).relocations.as_chunks::<2>();
        let mut rows = Vec::new();
        for [vm, hyp] in pairs {
            let Some(symbol) = self.symbols.get(&hyp.symbol) else {
                continue;
            };
            if let Some(vm) = self.dom0_address(dom0, vm)? {
                let (symbol, addend) = (symbol.0, hyp.addend);
                rows.push(Row { vm, symbol, addend });
            }
        }
        Ok(rows)
    }
}

/// Code that runs between a module's start and its end.
fn stays(section: &Section<'_>) -> bool {
    let alone = [".init", ".exit"];
    section.is_code() && section.size > 0 && !alone.iter().any(|a| section.name.starts_with(a))
}
