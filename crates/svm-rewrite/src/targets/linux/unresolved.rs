//! Code and data that name what may be nowhere: the kernel makes zero of a weak symbol that
//! nobody exports (`simplify_symbols`, kernel/module/main.c), and a call of it goes there.

use elf_loader::consts::{SHF_ALLOC, STB_WEAK};
use elf_loader::special;
use elf_loader::{Place, Role, Section, SymbolId};

use crate::lift::{Destination, Inst, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Refusals of what names a weak symbol without a definition.
pub fn find(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let mut found = Vec::new();
    if !lifted.object.symbols().any(|(id, _)| is_open(lifted, id)) {
        return found;
    }
    for (i, inst) in (0..).map(InstIdx).zip(&lifted.insts) {
        if let Some(symbol) = named(lifted, inst).find(|symbol| is_open(lifted, *symbol)) {
            let reason = reason(lifted, symbol);
            refusal::add(&mut found, lifted.refusal(RefusalCode::Name, i, reason));
        }
    }
    let data = lifted
        .object
        .sections()
        .filter(|(_, section)| is_data(section));
    for (_, section) in data {
        let open = section
            .relocations
            .iter()
            .filter(|r| is_open(lifted, r.symbol));
        for r in open {
            let reason = reason(lifted, r.symbol);
            let refused = Refusal::at(RefusalCode::Name, &section.name, r.offset, reason);
            refusal::add(&mut found, refused);
        }
    }
    found
}

fn reason(lifted: &Lifted<'_>, symbol: SymbolId) -> String {
    format!(
        "`{}` is weak and not defined here: where the kernel has none, it is at address zero",
        lifted.symbol_name(symbol)
    )
}

/// Whether a section is loaded, and neither code nor a table about it.
fn is_data(section: &Section<'_>) -> bool {
    section.role == Role::Contents
        && section.flags & SHF_ALLOC != 0
        && !section.is_code()
        && special::kind_of(&section.name).is_none()
}

fn is_open(lifted: &Lifted<'_>, symbol: SymbolId) -> bool {
    let symbol = lifted.object.symbol(symbol);
    symbol.binding == STB_WEAK && symbol.place == Place::Undefined
}

/// The symbols that an instruction names.
fn named(lifted: &Lifted<'_>, inst: &Inst) -> impl Iterator<Item = SymbolId> {
    let callee = match inst.target {
        Some(Destination::Import(symbol)) => Some(symbol),
        Some(Destination::Inst(_) | Destination::Hypercall(..)) | None => None,
    };
    lifted
        .values_of(inst)
        .map(|value| value.symbol)
        .chain(callee)
}
