//! Names in code that a rewritten object cannot have as the original had them.
//!
//! Other objects see them, so they may not be left out; and code is entered at them, so it has to
//! be known which code that is.

use elf_loader::consts::{STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_NOTYPE, STT_OBJECT};
use elf_loader::{Object, Place, Symbol};
use twin_abi::names;

use crate::analyse::classify::Refused;
use crate::lift::{Destination, Inst, Lifted};
use crate::refusal::{Refusal, RefusalCode};

/// A function of which the loader calls a resolver to learn its address (`STT_GNU_IFUNC`).
const INDIRECT: u8 = 10;

/// Refuses an object with such a name.
///
/// # Errors
/// The first one, with its place.
pub fn check(object: &Object<'_>) -> Result<(), Refusal> {
    for (_, symbol) in object.symbols() {
        let Place::In(id) = symbol.place else {
            continue;
        };
        let section = object.section(id);
        if section.is_code()
            && let Some(why) = refused(symbol)
        {
            let reason = format!("symbol `{}`: {why}", symbol.name);
            let code = RefusalCode::Name;
            return Err(Refusal::at(code, &section.name, symbol.value, reason));
        }
    }
    Ok(())
}

fn refused(symbol: &Symbol<'_>) -> Option<&'static str> {
    let is_ordinary = matches!(symbol.binding, STB_GLOBAL | STB_WEAK)
        && matches!(symbol.kind, STT_NOTYPE | STT_OBJECT | STT_FUNC);
    match symbol.binding != STB_LOCAL {
        _ if symbol.kind == INDIRECT => Some("a resolver says at run time which code it is"),
        true if !is_ordinary => Some("its type or binding is none of a function"),
        true if symbol.name.starts_with(names::RUNTIME_PREFIX) => Some("the name is the runtime's"),
        true | false => None,
    }
}

/// Refuses a direct call or jump to a name of the runtime: only what the rewriter makes may
/// go there.
///
/// # Errors
/// It is one.
pub fn refuse_runtimes(lifted: &Lifted<'_>, inst: &Inst) -> Result<(), Refused> {
    let Some(Destination::Import(symbol)) = inst.target else {
        return Ok(());
    };
    match lifted
        .symbol_name(symbol)
        .starts_with(names::RUNTIME_PREFIX)
    {
        true => Err((RefusalCode::Name, "it goes to a name that is the runtime's")),
        false => Ok(()),
    }
}
