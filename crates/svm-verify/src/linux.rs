//! Objects for `--target linux`: the sections and symbols of a module that a
//! stock kernel loads.
//!
//! The data of the original is there, symbols name it, and the kernel has tables
//! of places in the code that it looks into or writes to. So an object keeps the
//! contract if, beside what is asked of all code,
//!
//! * the runtime in it is the runtime, byte for byte ([`same_runtime`]);
//! * nothing but checks names the translation table, and nothing but calls the
//!   runtime's code ([`crate::relocation`], [`crate::references`]);
//! * whatever refers to code refers to the start of an instruction, and data to
//!   the start of a function, which is then one more entry
//!   ([`crate::references`]);
//! * what the kernel may write over is an instruction of the kind that it
//!   expects, and the paths that open then are interpreted with the others
//!   ([`crate::patches`]).

use std::collections::{HashMap, HashSet};

use elf_loader::consts::{
    SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_PROGBITS, STB_LOCAL, STT_FILE, STT_FUNC,
};
use elf_loader::{Object, Place, Relocation, Symbol};
use twin_abi::{names, sections};

use crate::object::{CodeAt, Image, Meaning, Routine, slow_register};
use crate::report::Report;
use crate::violation::Code;

/// The sections of the runtime.
pub const RUNTIME: [&str; 3] = [
    sections::LINUX_TEXT,
    sections::LINUX_RODATA,
    sections::LINUX_STLB,
];

/// Sorts the sections: fills [`Image::code`].
pub fn sections<'o>(image: &mut Image<'o>, report: &mut Report<'o>) {
    let mut own = HashSet::new();
    for (id, section) in image.object.sections() {
        let name = &*section.name;
        let code = section.flags & SHF_EXECINSTR != 0;
        let twin = RUNTIME.contains(&name) || [sections::NOTE, sections::MAP].contains(&name);
        if twin && !own.insert(name) {
            report.at(id, 0, Code::Section, "a second one of this name");
        } else if name == sections::CODEMAP {
            report.at(id, 0, Code::Section, "a module for a stock kernel has none");
        } else if code && section.flags & SHF_WRITE != 0 {
            report.at(id, 0, Code::Section, "it is writable and executable");
        } else if code
            && (section.kind != SHT_PROGBITS || section.data.len() as u64 != section.size)
        {
            report.at(id, 0, Code::Section, "code without its bytes");
        } else if code && section.flags & SHF_ALLOC == 0 {
            report.at(id, 0, Code::Section, "code that is not loaded");
        } else if code && !RUNTIME.contains(&name) {
            match image.code.len() < usize::from(u16::MAX) {
                true => image.code.push(id),
                false => report.at(id, 0, Code::Section, "too many code sections"),
            }
        }
    }
    for name in RUNTIME {
        if !own.contains(name) {
            report.object(Code::Runtime, format!("it has no {name}"));
        }
    }
}

/// What symbols mean: fills [`Image::symbols`], [`Image::globals`] and
/// [`Image::locals`].
pub fn symbols<'o>(image: &mut Image<'o>, report: &mut Report<'o>) {
    let slow = slow_paths(image, report);
    for (id, symbol) in image.object.symbols() {
        let meaning = if id.0 == 0 {
            Meaning::Unusable("it is the null symbol")
        } else {
            meaning(image, symbol, &slow)
        };
        image.symbols.push(meaning);
        if let (Meaning::Code(at), STT_FUNC) = (meaning, symbol.kind) {
            if symbol.binding != STB_LOCAL {
                image.globals.push(at);
            } else if !symbol.name.contains(".cold") {
                // A cold part is entered with the frame of its hot one.
                image.locals.push(at);
            }
        }
    }
}

fn meaning(image: &Image<'_>, symbol: &Symbol<'_>, slow: &HashMap<u64, Routine>) -> Meaning {
    let Place::In(id) = symbol.place else {
        return match symbol.place {
            Place::Undefined if symbol.name.is_empty() => {
                Meaning::Unusable("an undefined symbol without a name")
            }
            Place::Undefined => Meaning::Routine(Routine::Imported),
            Place::Absolute if symbol.kind == STT_FILE => Meaning::Unusable("it names a file"),
            _ => Meaning::Unusable("it has no place in a section"),
        };
    };
    let Ok(offset) = i64::try_from(symbol.value) else {
        return Meaning::Unusable("its value is outside its section");
    };
    if let Some(section) = image.number(id) {
        return Meaning::Code(CodeAt { section, offset });
    }
    match &*image.object.section(id).name {
        sections::LINUX_STLB if offset == 0 => Meaning::Table,
        sections::LINUX_STLB => Meaning::Unusable("a place inside the translation table"),
        sections::LINUX_RODATA => Meaning::Unusable("it belongs to the runtime"),
        sections::LINUX_TEXT => match slow.get(&symbol.value) {
            Some(routine) if symbol.kind == STT_FUNC => Meaning::Routine(*routine),
            _ => Meaning::Unusable("it is no entry of the runtime"),
        },
        _ => Meaning::Data(id, offset),
    }
}

/// Offsets of the slow paths in the runtime's code, as the runtime itself has
/// them, if the runtime in the object is that one.
fn slow_paths<'o>(image: &Image<'o>, report: &mut Report<'o>) -> HashMap<u64, Routine> {
    let mut slow = HashMap::new();
    let Ok(runtime) = elf_loader::read(twin_linux_runtime::object(image.scheme)) else {
        report.object(Code::Runtime, "the verifier's own copy cannot be read");
        return slow;
    };
    if let Err(reason) = same_runtime(image.object, &runtime) {
        report.object(Code::Runtime, reason);
        return slow;
    }
    for (_, symbol) in runtime.symbols() {
        let register = symbol.name.strip_prefix(names::SLOW_PREFIX);
        if let Some(Ok(r)) = register.map(slow_register) {
            slow.insert(symbol.value, Routine::Slow(r));
        }
    }
    slow
}

/// Whether the runtime in the object is the runtime.
fn same_runtime(object: &Object<'_>, runtime: &Object<'_>) -> Result<(), String> {
    for name in RUNTIME {
        let part = |o: &Object<'_>| o.section_named(name).map(|id| id.0 as usize);
        let (Some(mine), Some(theirs)) = (part(object), part(runtime)) else {
            return Err(format!("{name} is missing"));
        };
        let (mine, theirs) = (&object.sections[mine], &runtime.sections[theirs]);
        if mine.data != theirs.data
            || (mine.size, mine.kind, mine.flags) != (theirs.size, theirs.kind, theirs.flags)
            || mine.align < theirs.align
        {
            return Err(format!("{name} is not the runtime's"));
        }
        let relocated = |o: &Object<'_>, r: &Relocation| {
            (r.offset, r.kind, r.addend, target(o, r.symbol.0 as usize))
        };
        let mine: Vec<_> = mine
            .relocations
            .iter()
            .map(|r| relocated(object, r))
            .collect();
        let theirs: Vec<_> = theirs
            .relocations
            .iter()
            .map(|r| relocated(runtime, r))
            .collect();
        if mine != theirs {
            return Err(format!("the relocations of {name} are not the runtime's"));
        }
    }
    Ok(())
}

/// Where a symbol is: section name and offset, or its own name.
fn target(object: &Object<'_>, symbol: usize) -> (String, u64) {
    match object.symbols.get(symbol) {
        Some(symbol) => match symbol.place {
            Place::In(id) => (object.section(id).name.to_string(), symbol.value),
            _ => (format!("undefined {}", symbol.name), 0),
        },
        None => (String::new(), 0),
    }
}
