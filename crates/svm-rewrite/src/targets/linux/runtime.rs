//! The runtime, linked into the module.

use elf_loader::append::append;
use elf_loader::consts::{R_X86_64_PC32, SHF_ALLOC, SHF_WRITE, STB_LOCAL};
use elf_loader::special::{FieldRole, SpecialKind};
use elf_loader::{Object, Place, Relocation, Section, SymbolId};
use foldhash::HashMap;
use liveness::Reg;
use twin_abi::{Scheme, names};
use twin_linux_runtime::Returns;

use super::series::Kernel;

/// Symbols of the runtime.
pub struct Runtime {
    by_name: HashMap<String, SymbolId>,
    /// The slow paths, by register, which there are most references to.
    slow: [Option<SymbolId>; 16],
}

/// The routine that returns jump to in kernels that have it.
const RETURN_THUNK: &str = "__x86_return_thunk";

/// How an object returns, and so the runtime in it: it imports nothing more by that.
pub fn returns(object: &Object<'_>) -> Returns {
    let mut symbols = object.symbols.iter();
    match symbols.any(|s| s.place == Place::Undefined && s.name == RETURN_THUNK) {
        true => Returns::Thunk,
        false => Returns::Plain,
    }
}

impl Runtime {
    /// Links the runtime for a scheme into `object`, in the form that the object's kernel has.
    /// The object imports nothing more by that: it jumps to the return thunk only if it did so
    /// before.
    pub fn link(object: &mut Object<'static>, kernel: Kernel, scheme: Scheme) -> Runtime {
        let bytes = twin_linux_runtime::object(scheme, returns(object));
        let mut part = elf_loader::read(bytes).expect("the runtime was assembled with twin");
        encode_again(&mut part, kernel);
        stop_as_bug(&mut part, kernel);
        let appended = append(object, &part);
        let own = part
            .symbols()
            .filter(|(_, s)| s.binding == STB_LOCAL && !s.name.is_empty());
        let named = own.filter_map(|(id, s)| Some((s.name.to_string(), appended.symbol(id)?)));
        let by_name: HashMap<String, SymbolId> = named.collect();
        let slow = std::array::from_fn(|number| {
            let name = format!("{}{}", names::SLOW_PREFIX, Reg::new(number as u8)?.name());
            by_name.get(&name).copied()
        });
        Runtime { by_name, slow }
    }

    /// The slow path for an address in a register.
    ///
    /// # Panics
    /// If the runtime has none.
    pub fn slow(&self, register: Reg) -> SymbolId {
        let found = self.slow[usize::from(register.number())];
        found.expect("the runtime has one for each register that sequences use")
    }

    /// The symbol of that name.
    ///
    /// # Panics
    /// If the runtime has none. The names are fixed in its source.
    pub fn symbol(&self, name: &str) -> SymbolId {
        self.by_name[name]
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
                part.sections[id.0 as usize].empty();
            }
        }
    }
}

/// The entry of `__bug_table` that makes a BUG of the instruction that stops the driver:
/// flags 0, line 0.
pub struct Stop {
    /// Its size in bytes; what no field holds is zero.
    pub size: u64,
    /// Fields of 32 bits by their offsets: each holds the distance to this symbol of the
    /// runtime.
    pub fields: Vec<(u64, &'static str)>,
}

impl Stop {
    /// The entry in the form that a kernel has, if that is known. The fields are those of
    /// [`SpecialKind::layouts`].
    pub fn of(kernel: Kernel) -> Option<Stop> {
        let layout = kernel.bugs?;
        let fields = layout.fields.iter().filter_map(|field| match field.role {
            FieldRole::Site => Some((field.offset, twin_linux_runtime::STOP)),
            FieldRole::File => Some((field.offset, twin_linux_runtime::MESSAGE)),
            _ => None,
        });
        Some(Stop {
            size: layout.size,
            fields: fields.collect(),
        })
    }
}

fn stop_as_bug(part: &mut Object<'_>, kernel: Kernel) {
    let Some(stop) = Stop::of(kernel) else {
        return;
    };
    let named = |name: &str| {
        let mut symbols = part.symbols();
        let (id, _) = symbols
            .find(|(_, s)| s.name == name)
            .expect("its source names it");
        id
    };
    let relocations = stop.fields.iter().map(|(offset, name)| Relocation {
        offset: *offset,
        kind: R_X86_64_PC32,
        symbol: named(name),
        addend: 0,
    });
    let relocations = relocations.collect();
    let data = vec![0; stop.size as usize];
    let name = SpecialKind::BugTable.name();
    let mut table = Section::with_data(name, SHF_ALLOC | SHF_WRITE, 4, data);
    table.relocations = relocations;
    part.sections.push(table);
}
