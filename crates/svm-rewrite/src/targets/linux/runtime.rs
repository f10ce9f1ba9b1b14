//! The runtime, linked into the module.

use elf_loader::append::append;
use elf_loader::consts::{R_X86_64_PC32, SHF_ALLOC, SHF_WRITE, STB_LOCAL};
use elf_loader::special::{FieldRole, SpecialKind};
use elf_loader::{Object, Place, Relocation, Section, SymbolId};
use foldhash::HashMap;
use twin_abi::Scheme;
use twin_linux_runtime::Returns;

use super::series::Kernel;
use super::tables::empty;

/// Symbols of the runtime by name.
pub struct Runtime(HashMap<String, SymbolId>);

/// The routine that returns jump to in kernels that have it.
const RETURN_THUNK: &str = "__x86_return_thunk";

impl Runtime {
    /// Links the runtime for a scheme into `object`, in the form that the object's kernel has.
    /// The object imports nothing more by that: it jumps to the return thunk only if it did so
    /// before.
    pub fn link(object: &mut Object<'static>, kernel: Kernel, scheme: Scheme) -> Runtime {
        let imports = |name| {
            let mut symbols = object.symbols.iter();
            symbols.any(|s| s.place == Place::Undefined && s.name == name)
        };
        let returns = match imports(RETURN_THUNK) {
            true => Returns::Thunk,
            false => Returns::Plain,
        };
        let bytes = twin_linux_runtime::object(scheme, returns);
        let mut part = elf_loader::read(bytes).expect("the runtime was assembled with twin");
        encode_again(&mut part, kernel);
        stop_as_bug(&mut part, kernel);
        let appended = append(object, &part);
        let own = part
            .symbols()
            .filter(|(_, s)| s.binding == STB_LOCAL && !s.name.is_empty());
        let named = own.filter_map(|(id, s)| Some((s.name.to_string(), appended.symbol(id)?)));
        Runtime(named.collect())
    }

    /// The symbol of that name.
    ///
    /// # Panics
    /// If the runtime has none. The names are fixed in its source.
    pub fn symbol(&self, name: &str) -> SymbolId {
        self.0[name]
    }
}

/// Encodes the runtime's unwind entries as the kernel's are.
fn encode_again(part: &mut Object<'_>, kernel: Kernel) {
    let table = SpecialKind::OrcUnwind.name();
    let own = part.section_named(table).expect("the runtime has one");
    let section = &mut part.sections[own.0 as usize];
    let places = SpecialKind::OrcUnwindIp.name();
    match kernel.unwinding {
        Some(encoding) => {
            for entry in section.data.to_mut().as_chunks_mut::<6>().0 {
                *entry = encoding.encoded(*entry);
            }
        }
        // The kernel would have one table for part of the module's code.
        None => {
            let places = part.section_named(places).expect("the runtime has one");
            for id in [own, places] {
                empty(&mut part.sections[id.0 as usize]);
            }
        }
    }
}

/// Adds the entry of `__bug_table` that makes a BUG of the instruction that stops the driver:
/// flags 0, line 0. The fields are those of [`SpecialKind::layouts`].
fn stop_as_bug(part: &mut Object<'_>, kernel: Kernel) {
    let Some(layout) = kernel.bugs else {
        return;
    };
    let named = |name: &str| {
        let mut symbols = part.symbols();
        let (id, _) = symbols
            .find(|(_, s)| s.name == name)
            .expect("its source names it");
        id
    };
    let relocations = layout.fields.iter().filter_map(|field| {
        let symbol = match field.role {
            FieldRole::Site => named(twin_linux_runtime::STOP),
            FieldRole::File => named(twin_linux_runtime::MESSAGE),
            _ => return None,
        };
        Some(Relocation {
            offset: field.offset,
            kind: R_X86_64_PC32,
            symbol,
            addend: 0,
        })
    });
    let relocations = relocations.collect();
    let data = vec![0; layout.size as usize];
    let name = SpecialKind::BugTable.name();
    let mut table = Section::with_data(name, SHF_ALLOC | SHF_WRITE, 4, data);
    table.relocations = relocations;
    part.sections.push(table);
}
