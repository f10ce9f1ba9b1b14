//! Names in code that a rewritten object cannot have as the original had them.
//!
//! Other objects see them, so they may not be left out; and code is entered at them, so it has to
//! be known which code that is. And names that would stand for two places of dom0.

use elf_loader::consts::{
    SHF_ALLOC, STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_NOTYPE, STT_OBJECT,
};
use elf_loader::{Object, Place, Section, Symbol};
use foldhash::{HashMap, HashSet};
use twin_abi::names;

use crate::analyse::classify::Refused;
use crate::analyse::routines;
use crate::lift::{Destination, Inst, Lifted};
use crate::refusal::{Refusal, RefusalCode};
use crate::targets::code;

/// A function of which the loader calls a resolver to learn its address (`STT_GNU_IFUNC`).
const INDIRECT: u8 = 10;

/// What the names of dom0's places stand for: `twin_vm:<name>` is a section of the driver there, or
/// a variable that the driver imports.
pub struct Owners<'o> {
    /// How many sections have a name.
    sections: HashMap<&'o str, u32>,
    /// Names that the object does not define.
    imported: HashSet<&'o str>,
}

impl<'o> Owners<'o> {
    /// Those of `object`.
    pub fn of(object: &'o Object<'_>) -> Owners<'o> {
        let mut sections: HashMap<&str, u32> = HashMap::default();
        for (_, section) in object.sections().filter(|(_, s)| !s.name.is_empty()) {
            *sections.entry(&section.name).or_default() += 1;
        }
        let imported = object.symbols().map(|(_, symbol)| symbol);
        let imported = imported.filter(|symbol| symbol.place == Place::Undefined);
        Owners {
            sections,
            imported: imported.map(|symbol| &*symbol.name).collect(),
        }
    }

    /// Why `name` does not say which place it is; `None` if it does.
    pub fn ambiguous(&self, name: &str) -> Option<&'static str> {
        match self.sections.get(name) {
            None => None,
            Some(1) if self.imported.contains(name) => {
                Some("a section and a symbol of another object have that name")
            }
            Some(1) => None,
            Some(_) => Some("several sections have that name"),
        }
    }
}

/// Refuses an object with such a name.
///
/// # Errors
/// The first one, with its place.
pub fn check(object: &Object<'_>) -> Result<(), Refusal> {
    let owners = Owners::of(object);
    for (_, section) in object.sections().filter(|(_, section)| section.is_code()) {
        // The codemap says by this name where dom0 has the code.
        if let Some(why) = owners.ambiguous(&section.name) {
            let reason = format!("code is in section `{}`, and {why}", section.name);
            return Err(Refusal::at(RefusalCode::Name, &section.name, 0, reason));
        }
    }
    code::check(object, RefusalCode::Name)?;
    nameless(object)?;
    defined_again(object)?;
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

/// Refuses loaded sections without a name: `twin_vm:<name>` says of none where dom0 has it.
fn nameless(object: &Object<'_>) -> Result<(), Refusal> {
    let loaded = |section: &Section<'_>| section.flags & SHF_ALLOC != 0 && section.size > 0;
    let mut sections = object.sections().map(|(_, section)| section);
    match sections.any(|section| loaded(section) && section.name.is_empty()) {
        true => {
            let reason = "a section that is loaded has no name, so nobody finds it in dom0";
            Err(Refusal::of_object(RefusalCode::Name, reason))
        }
        false => Ok(()),
    }
}

/// Refuses a name in code that other objects see and that has two meanings: no loader knows which
/// one others mean. No linker makes such an object.
fn defined_again(object: &Object<'_>) -> Result<(), Refusal> {
    let mut defined = HashSet::default();
    let visible = |symbol: &Symbol<'_>| symbol.binding != STB_LOCAL && !symbol.name.is_empty();
    for (_, symbol) in object.symbols().filter(|(_, symbol)| visible(symbol)) {
        let Place::In(id) = symbol.place else {
            continue;
        };
        if object.section(id).is_code() && !defined.insert(&*symbol.name) {
            return Err(twice(symbol, "is defined twice"));
        }
    }
    let undefined = |symbol: &Symbol<'_>| symbol.place == Place::Undefined;
    let mut symbols = object.symbols().map(|(_, symbol)| symbol);
    match symbols.find(|symbol| undefined(symbol) && defined.contains(&*symbol.name)) {
        Some(symbol) => Err(twice(symbol, "is both defined and undefined")),
        None => Ok(()),
    }
}

fn twice(symbol: &Symbol<'_>, why: &str) -> Refusal {
    let reason = format!("symbol `{}` {why}", symbol.name);
    Refusal::of_object(RefusalCode::Name, reason)
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

/// Refuses a direct call or jump to a name of the runtime, where only what the rewriter makes may
/// go, to a thunk that is not known, and to a symbol without a name, which no loader resolves.
///
/// # Errors
/// It is one.
pub fn refuse_names(lifted: &Lifted<'_>, inst: &Inst) -> Result<(), Refused> {
    let Some(Destination::Import(symbol)) = inst.target else {
        return Ok(());
    };
    match lifted.symbol_name(symbol) {
        "" => Err((RefusalCode::Name, "it goes to a symbol without a name")),
        name if name.starts_with(names::RUNTIME_PREFIX) => {
            Err((RefusalCode::Name, "it goes to a name that is the runtime's"))
        }
        name if routines::is_other_thunk(name) => Err((
            RefusalCode::Name,
            "it goes to a thunk that is not known: it may continue at any address",
        )),
        _ => Ok(()),
    }
}
