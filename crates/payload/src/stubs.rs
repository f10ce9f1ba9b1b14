//! Stubs: where a call of an imported routine leads. In this order
//!
//! ```text
//! the runtime has twin_import_NAME       4c 8d 1d <rel32>   lea  twin_import_NAME(%rip), %r11
//!                                        e9 <rel32>         jmp  twin_call_out
//! the hot routines have NAME             none: the call leads there
//! else                                   41 bb <imm32>      mov  $number, %r11d
//!                                        e9 <rel32>         jmp  twin_import_entry
//! ```
//!
//! Each has 16 bytes, filled up with `int3`. A `jmp` to the runtime is what `<twin/runtime.h>`
//! asks of stubs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use elf_loader::consts::{R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR, STT_FUNC};
use elf_loader::{Relocation, SectionId, SymbolId};

use crate::code::PayloadCode;
use crate::output::{Output, names};
use crate::refusal::{Part, Refusal};
use crate::rewritten::{Code, Role};
use crate::runtime::Runtime;

/// Bytes of a stub.
pub const STUB: u64 = 16;
/// The runtime's function that does what an imported routine does has this and its name;
/// see [`own_name`].
const OWN_PREFIX: &str = "twin_import_";
/// Where stubs lead: with a number in `r11d`, and with a function in `r11`.
pub const ENTRY: &str = "twin_import_entry";
/// See [`ENTRY`].
pub const CALL_OUT: &str = "twin_call_out";

/// The stubs, in the payload.
#[derive(Debug)]
pub struct Stubs {
    /// The section that holds them; `None` if nothing is imported.
    pub section: Option<SectionId>,
    /// The names of those with a number, by number.
    pub numbered: Vec<String>,
    symbols: HashMap<String, SymbolId>,
}

impl Stubs {
    /// Where a call of `name` leads.
    pub fn target(&self, name: &str, all: &[Code<'_>]) -> Option<SymbolId> {
        let stub = self.symbols.get(name).copied();
        stub.or_else(|| hot(name, all))
    }

    /// The stub of an imported routine.
    pub fn stub(&self, name: &str) -> Option<SymbolId> {
        self.symbols.get(name).copied()
    }
}

/// The name of the runtime's function that does what an imported routine does. The driver
/// chooses the names that it imports: by one of them ([`ENTRY`] has the prefix, too) it would
/// have an entry run as a C function, on the hypervisor's stack.
pub fn own_name(import: &str) -> Option<String> {
    let name = format!("{OWN_PREFIX}{import}");
    (name != ENTRY).then_some(name)
}

/// The hot routine of this name.
fn hot(name: &str, all: &[Code<'_>]) -> Option<SymbolId> {
    let mut hot = all.iter().filter(|code| code.role == Role::Hot);
    hot.find_map(|code| code.export(name))
}

/// Makes a stub for each routine that is imported and needs one.
///
/// # Errors
/// The runtime lacks one of the entries.
pub fn place(
    output: &mut Output,
    all: &[Code<'_>],
    runtime: &Runtime<'_>,
) -> Result<Stubs, Refusal> {
    let imports: BTreeSet<&str> = all.iter().flat_map(Code::imports).collect();
    let own = |name: &str| runtime.function(&own_name(name)?);
    let own: BTreeMap<&str, SymbolId> = imports
        .iter()
        .filter_map(|name| Some((*name, own(name)?)))
        .collect();
    let mut stubs = Stubs {
        section: None,
        numbered: Vec::new(),
        symbols: HashMap::new(),
    };
    let needed = imports
        .iter()
        .filter(|name| own.contains_key(*name) || hot(name, all).is_none());
    let needed: Vec<&str> = needed.copied().collect();
    if needed.is_empty() {
        return Ok(stubs);
    }
    let (entry, call_out) = (entry(output, ENTRY)?, entry(output, CALL_OUT)?);
    let flags = SHF_ALLOC | SHF_EXECINSTR;
    let section = output.generated(names::STUBS, flags);
    stubs.section = Some(section);
    for name in needed {
        let (bytes, relocations) = match own.get(name) {
            Some(&routine) => direct(routine, call_out),
            None => {
                stubs.numbered.push(name.to_owned());
                numbered(stubs.numbered.len() as u32 - 1, entry)
            }
        };
        let at = output.append(section, STUB, &bytes);
        for r in relocations {
            let offset = at + r.offset;
            output.relocate(section, Relocation { offset, ..r });
        }
        let symbol = format!("{}{name}", names::STUB_PREFIX);
        let id = output.define(&symbol, STT_FUNC, (section, at), STUB);
        stubs.symbols.insert(name.to_owned(), id);
    }
    Ok(stubs)
}

fn entry(output: &Output, name: &str) -> Result<SymbolId, Refusal> {
    output.find(name).ok_or_else(|| {
        let why = format!("it does not define `{name}`; link runtime/core into it");
        Refusal::new(PayloadCode::Undefined, Part::Runtime, why)
    })
}

/// `lea routine(%rip), %r11; jmp twin_call_out`
fn direct(routine: SymbolId, call_out: SymbolId) -> ([u8; STUB as usize], Vec<Relocation>) {
    let mut stub = [0xcc; STUB as usize];
    stub[..8].copy_from_slice(&[0x4c, 0x8d, 0x1d, 0, 0, 0, 0, 0xe9]);
    stub[8..12].fill(0);
    let lea = relative(3, R_X86_64_PC32, routine);
    (stub, vec![lea, relative(8, R_X86_64_PLT32, call_out)])
}

/// `mov $number, %r11d; jmp twin_import_entry`
fn numbered(number: u32, entry: SymbolId) -> ([u8; STUB as usize], Vec<Relocation>) {
    let mut stub = [0xcc; STUB as usize];
    stub[..2].copy_from_slice(&[0x41, 0xbb]);
    stub[2..6].copy_from_slice(&number.to_le_bytes());
    stub[6] = 0xe9;
    stub[7..11].fill(0);
    (stub, vec![relative(7, R_X86_64_PLT32, entry)])
}

/// A field of 4 bytes that ends its instruction.
fn relative(offset: u64, kind: u32, symbol: SymbolId) -> Relocation {
    Relocation {
        offset,
        kind,
        symbol,
        addend: -4,
    }
}
