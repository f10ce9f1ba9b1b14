//! The runtime of a module as a part of its texts.
//!
//! Each text brings the runtime along, so an object needs nothing but the linker
//! that kbuild runs:
//!
//! | part | |
//! |---|---|
//! | `.twin.text`: the slow paths | a copy in each object; the names are weak, so that all objects call the first copy |
//! | the table, the message and the note | one COMDAT group, linked once |
//!
//! The kernel's form of the runtime is what the build shows. A text whose functions jump to
//! the return thunk, or that is compiled to do so, is for a kernel that has it. The entry in
//! the kernel's table of BUGs has a form that depends on the kernel: it is in the text that
//! names the kernel ([`stop`]), which kbuild makes for each module.
//!
//! The code cannot be in the group. For each object of a module objtool makes tables
//! that name the places of its code, and the linker refuses such a name if the code is
//! dropped ("defined in discarded section"). Those tables ([`BY_OBJTOOL`]) are not
//! printed: objtool makes them of this code, too.
//!
//! The text is made from the assembled runtime, byte for byte. So every assembler, with
//! every option, makes of it what the verifier compares with.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOTE, STT_FUNC, STT_SECTION};
use elf_loader::reloc::relocation_type;
use elf_loader::special::SpecialKind;
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol};
use twin_abi::{MadeFor, names};
pub use twin_linux_runtime::Returns;
use twin_linux_runtime::STOP;

use crate::refusal::Refusal;
use crate::targets;

/// The group's signature.
const GROUP: &str = "twin_runtime";
/// Tables that objtool makes of the code of each object (tools/objtool/check.c and
/// orc_gen.c of Linux).
const BY_OBJTOOL: [&str; 3] = [".orc_unwind", ".orc_unwind_ip", ".return_sites"];
/// What fills the code up to its alignment, so that copies follow each other without
/// the linker's filling: `int3`.
const FILLING: u8 = 0xcc;
/// Bytes in a line.
const LINE: usize = 16;

/// How a text for a module returns, by the object that it was assembled to.
pub fn returns(object: &Object<'_>) -> Returns {
    targets::module_returns(object)
}

/// The entry in the kernel's table of BUGs, for the text that names the module's kernel.
/// `None` for other texts.
///
/// # Errors
/// A kernel that is not known.
pub fn stop(object: &Object<'_>) -> Result<Option<String>, Refusal> {
    let Some(stop) = targets::module_stop(object)? else {
        return Ok(None);
    };
    let mut text = "\n# twin: a refused access is a BUG\n".to_owned();
    let name = SpecialKind::BugTable.name();
    line(&mut text, &format!(".section {name},\"aw\",@progbits"));
    line(&mut text, ".balign 4");
    let mut at = 0;
    for (offset, symbol) in stop.fields {
        zeros(&mut text, offset - at);
        line(&mut text, &format!(".long {symbol} - ."));
        at = offset + 4;
    }
    zeros(&mut text, stop.size - at);
    Ok(Some(text))
}

/// The text to append to each rewritten text of a module.
pub fn print(made: MadeFor, returns: Returns) -> String {
    let bytes = twin_linux_runtime::object(made.scheme, returns);
    let mut object = elf_loader::read(bytes).expect("the runtime was assembled with twin");
    object.sections.push(targets::note_section(made));
    let mut text = "\n# twin: the runtime (runtime/platform/linux), assembled\n".to_owned();
    // clang 14 drops the symbol of a `.reloc` that nothing else names.
    for symbol in object.symbols.iter().filter(|s| is_import(s)) {
        line(&mut text, &format!(".globl {}", symbol.name));
    }
    for (id, section) in object.sections() {
        let loaded = section.flags & SHF_ALLOC != 0 && section.size != 0;
        if loaded && !BY_OBJTOOL.contains(&&*section.name) {
            print_section(&mut text, &object, id, section);
        }
    }
    text
}

fn is_import(symbol: &Symbol<'_>) -> bool {
    symbol.place == Place::Undefined && !symbol.name.is_empty()
}

fn print_section(text: &mut String, object: &Object<'_>, id: SectionId, section: &Section<'_>) {
    let code = section.flags & SHF_EXECINSTR != 0;
    let letters: String = [(SHF_ALLOC, 'a'), (SHF_WRITE, 'w'), (SHF_EXECINSTR, 'x')]
        .iter()
        .filter_map(|(flag, letter)| (section.flags & flag != 0).then_some(*letter))
        .collect();
    let kind = if section.kind == SHT_NOTE {
        "note"
    } else {
        "progbits"
    };
    let group = if code {
        String::new()
    } else {
        format!(",{GROUP},comdat")
    };
    let letters = if code { letters } else { format!("{letters}G") };
    line(
        text,
        &format!(".section {},\"{letters}\",@{kind}{group}", section.name),
    );
    line(text, &format!(".balign {}", section.align));
    let own: Vec<&Symbol<'_>> = symbols(object, id).collect();
    for at in cuts(&own, section) {
        for symbol in own.iter().filter(|s| s.value == at) {
            print_label(text, symbol, code);
        }
        let relocation = section.relocations.iter().find(|r| r.offset == at);
        if let Some(relocation) = relocation {
            let kind = relocation_type(relocation.kind).map_or("R_X86_64_NONE", |t| t.name);
            let to = referent(object, relocation);
            line(text, &format!(".reloc ., {kind}, {to}"));
        }
        let end = cuts(&own, section).find(|next| *next > at);
        let end = end.unwrap_or(section.size) as usize;
        print_bytes(text, &section.data[at as usize..end]);
    }
    if code {
        line(text, &format!(".balign {}, {FILLING:#x}", section.align));
    }
}

/// Places in a section before which something other than bytes is printed.
fn cuts(own: &[&Symbol<'_>], section: &Section<'_>) -> impl Iterator<Item = u64> + use<> {
    let symbols = own.iter().map(|s| s.value);
    let relocations = section.relocations.iter().map(|r| r.offset);
    let all: BTreeSet<u64> = [0].into_iter().chain(symbols).chain(relocations).collect();
    all.into_iter()
}

/// Symbols with a name in a section.
fn symbols<'s, 'o>(
    object: &'s Object<'o>,
    id: SectionId,
) -> impl Iterator<Item = &'s Symbol<'o>> + use<'s, 'o> {
    let here = move |s: &&Symbol<'_>| s.place == Place::In(id) && s.kind != STT_SECTION;
    object.symbols.iter().filter(here)
}

/// The label of a symbol. Data is in the group and named from elsewhere, so it is global;
/// what only the code names that it belongs to stays local.
fn print_label(text: &mut String, symbol: &Symbol<'_>, code: bool) {
    let name = &symbol.name;
    // What others name in the first copy.
    if name.starts_with(names::SLOW_PREFIX) || name == STOP {
        line(text, &format!(".weak {name}"));
    } else if !code {
        line(text, &format!(".globl {name}"));
    }
    let kind = match (code, symbol.kind) {
        (false, _) => "object",
        (true, STT_FUNC) => "function",
        (true, _) => "notype",
    };
    line(text, &format!(".type {name}, @{kind}"));
    line(text, &format!(".size {name}, {}", symbol.size));
    let _ = writeln!(text, "{name}:");
}

/// What a relocation refers to, by a name: a section's own symbol may be in a group
/// that is dropped.
fn referent<'o>(object: &'o Object<'_>, relocation: &Relocation) -> Cow<'o, str> {
    let symbol = object.symbol(relocation.symbol);
    let named = match symbol.place {
        Place::In(id) if symbol.kind == STT_SECTION => {
            symbols(object, id).find(|s| s.value == 0).unwrap_or(symbol)
        }
        _ => symbol,
    };
    Cow::Owned(format!("{}{:+}", named.name, relocation.addend))
}

fn print_bytes(text: &mut String, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        let length = if zeros >= LINE {
            zeros
        } else {
            rest.len().min(LINE)
        };
        let (now, later) = rest.split_at(length);
        rest = later;
        if zeros >= LINE {
            line(text, &format!(".zero {zeros}"));
            continue;
        }
        let bytes: Vec<String> = now.iter().map(|byte| format!("{byte:#04x}")).collect();
        line(text, &format!(".byte {}", bytes.join(",")));
    }
}

fn zeros(text: &mut String, count: u64) {
    if count != 0 {
        line(text, &format!(".zero {count}"));
    }
}

fn line(text: &mut String, directive: &str) {
    let _ = writeln!(text, "\t{directive}");
}
