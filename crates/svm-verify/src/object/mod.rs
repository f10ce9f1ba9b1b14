//! The object around the code: its kind, its sections, its symbols and its two tables.
//!
//! Takes the object as it was read, gives an [`Image`]: which sections are code, what
//! each symbol means, and where the code may be entered. Anything unexpected is a
//! violation. So nothing is loaded that the rest of the verifier did not check.

mod code_names;
pub mod loaded;
pub mod module;
pub mod names;
mod note;
mod sections;
mod symbols;
mod tables;

use crate::findings::{Findings, ViolationCode};
use crate::insn::{CodeAt, Insn, Routine};
use crate::schemes::{self, SchemeRules};
use crate::targets::{Contents, Contract, Rules};
use std::collections::HashSet;

use elf_loader::{Object, Relocation, Section, SectionId, SymbolId};

pub use names::hashes;
pub use symbols::{is_entry, slow_register};

/// What a symbol may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An address in dom0: a number.
    Vm,
    /// [`twin_abi::names::STLB`].
    Table,
    /// [`twin_abi::names::WINDOW`].
    Window,
    /// [`twin_abi::names::STACK_VIEW`]: a number.
    StackView,
    /// [`twin_abi::names::WINDOW_MASK`].
    WindowMask,
    /// [`twin_abi::names::LOWEST`] or [`twin_abi::names::HIGHEST`].
    Bound,
    /// Something to call.
    Routine(Routine),
    /// A place in this object's code.
    Code(CodeAt),
    /// A place in its data (target `linux`).
    Data(SectionId, i64),
    /// Nothing, for this reason.
    Unusable(&'static str),
}

/// The object with the meaning of its parts.
pub struct Image<'o> {
    /// As it was read.
    pub object: &'o Object<'o>,
    /// Its scheme: the form of its checks, or of its pointers to the window.
    pub scheme: &'static dyn SchemeRules,
    /// The rules that it has to keep: those of the target that it was made for.
    pub rules: &'static Rules,
    /// The code sections in file order.
    pub code: Vec<SectionId>,
    pub symbols: Vec<Meaning>,
    /// Codemap entries, each with its offset in the codemap.
    pub codemap: Vec<(u64, CodeAt)>,
    /// Places that are entered from outside by a symbol: for target `hypervisor`, those of
    /// [`is_entry`], for `linux` those of [`names`].
    pub entered: Vec<CodeAt>,
    /// Places that have another name, of a cold part or a hash (target `linux`): who probes one by it
    /// has a breakpoint written there.
    pub named: Vec<CodeAt>,
    /// Offsets in the runtime's code of the calls that it makes (target `linux`).
    pub runtime_calls: HashSet<u64>,
}

impl<'o> Image<'o> {
    /// Judges everything except the instructions. `None` if the object is foreign or made
    /// for another contract; then only that is reported.
    pub fn new(
        object: &'o Object<'o>,
        contract: Contract,
        findings: &mut Findings<'o>,
    ) -> Option<Image<'o>> {
        let made = match note::made_for(object) {
            Ok(made) => made,
            Err(reason) => {
                findings.object(ViolationCode::Foreign, reason);
                return None;
            }
        };
        if let Err(reason) = contract.admits(made) {
            findings.object(ViolationCode::Contract, reason);
            return None;
        }
        let Some(rules) = Rules::of(made) else {
            findings.object(ViolationCode::Contract, "nothing is proved of such objects");
            return None;
        };
        let mut image = Image {
            object,
            scheme: schemes::of(made.scheme),
            rules,
            code: Vec::new(),
            symbols: Vec::new(),
            codemap: Vec::new(),
            entered: Vec::new(),
            named: Vec::new(),
            runtime_calls: HashSet::new(),
        };
        match rules.contents {
            Contents::CodeAlone => {
                image.check_sections(findings);
                image.check_symbols(findings);
                image.check_codemap(findings);
            }
            Contents::Module => {
                module::sections(&mut image, findings);
                module::symbols(&mut image, findings);
            }
        }
        image.check_map(findings);
        Some(image)
    }

    /// The code section with this number.
    pub fn section(&self, number: u16) -> &'o Section<'o> {
        self.object.section(self.code[usize::from(number)])
    }

    /// Where an instruction is: section and offset.
    pub fn place(&self, insn: &Insn) -> (SectionId, u64) {
        (self.code[usize::from(insn.section)], insn.at.into())
    }

    /// The bytes of an instruction; `None` if it reaches beyond its section.
    pub fn bytes(&self, insn: &Insn) -> Option<&'o [u8]> {
        let at = insn.at as usize;
        let data = &self.section(insn.section).data;
        data.get(at..at + usize::from(insn.len))
    }

    /// The relocations in an instruction, in order.
    pub fn relocations(&self, insn: &Insn) -> impl Iterator<Item = &'o Relocation> + use<'o> {
        let (start, end) = (u64::from(insn.at), u64::from(insn.at) + u64::from(insn.len));
        let all = &self.section(insn.section).relocations;
        let first = all.partition_point(|r| r.offset < start);
        all[first..].iter().take_while(move |r| r.offset < end)
    }

    /// The number of a code section.
    pub fn number(&self, id: SectionId) -> Option<u16> {
        self.code.binary_search(&id).ok().map(|n| n as u16)
    }

    pub fn meaning(&self, symbol: SymbolId) -> Meaning {
        let known = self.symbols.get(symbol.0 as usize).copied();
        known.unwrap_or(Meaning::Unusable("there is no such symbol"))
    }
}
