//! Names of what may be nowhere.
//!
//! The kernel makes zero of a weak symbol that nobody exports (`simplify_symbols`,
//! kernel/module/main.c), and a call of it goes there. And it may enter code by any name, so one
//! behind a section's last instruction is none of a place in code.

use elf_loader::consts::{SHF_ALLOC, STB_LOCAL, STB_WEAK, STT_FUNC};
use elf_loader::special;
use elf_loader::{Place, Role, Section, Symbol, SymbolId};
use twin_abi::sections;

use crate::lift::{Destination, Inst, InstIdx, Lifted, names_function};
use crate::refusal::{self, Refusal, RefusalCode};

/// Refusals of such names in an object, where local labels lose theirs.
pub fn find(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let mut found = weak(lifted);
    found.extend(behind_code(lifted, names_function));
    found
}

/// The same in a text, which keeps its labels. Those that mark it are not in the result.
pub fn of_text(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let mut found = weak(lifted);
    found.extend(behind_code(lifted, |symbol| {
        !symbol.name.starts_with(sections::PREFIX)
    }));
    found
}

/// Refusals of names of places behind the code of their section, of symbols that are kept.
fn behind_code<'l>(
    lifted: &'l Lifted<'_>,
    is_kept: impl Fn(&Symbol<'_>) -> bool + 'l,
) -> impl Iterator<Item = Refusal> + 'l {
    let symbols = lifted.object.symbols().map(|(_, symbol)| symbol);
    symbols.filter_map(move |symbol| {
        let Place::In(id) = symbol.place else {
            return None;
        };
        let section = lifted.object.section(id);
        let behind = section.is_code() && symbol.value >= section.data.len() as u64;
        (behind && may_be_entered(symbol) && is_kept(symbol)).then(|| {
            let reason = format!("`{}` is behind the section's last instruction", symbol.name);
            Refusal::at(RefusalCode::Overlap, &section.name, symbol.value, reason)
        })
    })
}

/// Whether the kernel may enter code by this name: not by that of a cold part, which may be empty.
pub fn may_be_entered(symbol: &Symbol<'_>) -> bool {
    let is_local = (symbol.kind, symbol.binding) == (STT_FUNC, STB_LOCAL);
    let is_cold = is_local && symbol.name.contains(".cold");
    !symbol.name.is_empty() && !is_cold
}

/// Refusals of what names a weak symbol without a definition.
fn weak(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let is_open =
        |symbol: &Symbol<'_>| symbol.binding == STB_WEAK && symbol.place == Place::Undefined;
    let reason = |name: &str| {
        format!(
            "`{name}` is weak and not defined here: where the kernel has none, it is at address zero"
        )
    };
    naming(lifted, is_open, |_| true, (RefusalCode::Name, reason))
}

/// Refusals of what names one of these symbols, in data and in such instructions; the code of
/// each refusal, and its reason for a name.
pub fn naming(
    lifted: &Lifted<'_>,
    is_refused: impl Fn(&Symbol<'_>) -> bool,
    refuses: impl Fn(&Inst) -> bool,
    (code, reason): (RefusalCode, impl Fn(&str) -> String),
) -> Vec<Refusal> {
    let is_refused = |id: SymbolId| is_refused(lifted.object.symbol(id));
    let mut found = Vec::new();
    if !lifted.object.symbols().any(|(id, _)| is_refused(id)) {
        return found;
    }
    for (i, inst) in (0..).map(InstIdx).zip(&lifted.insts) {
        if let Some(symbol) = named(lifted, inst).find(|symbol| is_refused(*symbol))
            && refuses(inst)
        {
            let reason = reason(lifted.symbol_name(symbol));
            refusal::add(&mut found, lifted.refusal(code, i, reason));
        }
    }
    let data = lifted
        .object
        .sections()
        .filter(|(_, section)| is_data(section));
    for (_, section) in data {
        let relocations = section.relocations.iter();
        for r in relocations.filter(|r| is_refused(r.symbol)) {
            let reason = reason(lifted.symbol_name(r.symbol));
            let refused = Refusal::at(code, &section.name, r.offset, reason);
            refusal::add(&mut found, refused);
        }
    }
    found
}

/// Whether a section is loaded, and neither code nor a table about it.
pub fn is_data(section: &Section<'_>) -> bool {
    section.role == Role::Contents
        && section.flags & SHF_ALLOC != 0
        && !section.is_code()
        && special::kind_of(&section.name).is_none()
}

/// The symbols that an instruction names.
fn named(lifted: &Lifted<'_>, inst: &Inst) -> impl Iterator<Item = SymbolId> {
    let callee = match inst.target {
        Some(Destination::Import(symbol)) => Some(symbol),
        Some(Destination::Inst(_) | Destination::Hypercall(..) | Destination::Behind(_)) | None => {
            None
        }
    };
    lifted
        .values_of(inst)
        .map(|value| value.symbol)
        .chain(callee)
}
