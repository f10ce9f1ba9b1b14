//! Who defines what: global symbols of dom0's objects, stubs for what none of
//! them has, and names by address.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use elf_loader::Place;
use elf_loader::consts::{STB_LOCAL, STB_WEAK, STT_FILE, STT_FUNC, STT_SECTION};
use elf_loader::link::{Protection, Segment};

use super::error::LiveError;
use super::image::{Image, Module};
use super::memory::{FAR, PAGE};

/// Addresses of functions that kernel.o imports from the host process.
pub type Host<'h> = &'h dyn Fn(&str) -> Option<u64>;

/// Global symbols of all objects.
#[derive(Debug, Default)]
pub(super) struct Globals {
    symbols: HashMap<String, Global>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Global {
    address: u64,
    module: Module,
    weak: bool,
}

/// What the kernel's own loader does not take from modules either: each has it.
const EACH_HAS: [&str; 3] = ["__this_module", "init_module", "cleanup_module"];

impl Globals {
    pub(super) fn new(images: &[Image<'_>]) -> Result<Globals, LiveError> {
        let mut globals = Globals::default();
        for image in images {
            for (_, symbol) in image.object.symbols() {
                let address = image.address_of(symbol.place, symbol.value);
                let Some(address) = address.filter(|_| symbol.binding != STB_LOCAL) else {
                    continue;
                };
                let weak = symbol.binding == STB_WEAK;
                globals.add(
                    &symbol.name,
                    Global {
                        address,
                        module: image.module,
                        weak,
                    },
                )?;
            }
        }
        Ok(globals)
    }

    fn add(&mut self, name: &str, new: Global) -> Result<(), LiveError> {
        match self.symbols.get(name) {
            Some(old) if EACH_HAS.contains(&name) && old.module == Module::Driver => Ok(()),
            Some(old) if !old.weak && !new.weak && !EACH_HAS.contains(&name) => {
                Err(LiveError::Duplicate {
                    name: name.to_owned(),
                    first: old.module,
                    second: new.module,
                })
            }
            Some(old) if !old.weak && new.weak => Ok(()),
            _ => {
                self.symbols.insert(name.to_owned(), new);
                Ok(())
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).map(|global| global.address)
    }
}

/// Stubs for what is not in any object:
///
/// ```text
/// host function   ff 25 00 00 00 00   jmp *0(%rip)
///                 .quad ADDRESS
///                 cc cc               int3; int3
/// nobody's        0f 0b cc ...        ud2; int3 ...
/// ```
#[derive(Debug, Default)]
pub(super) struct Far {
    pub(super) bytes: Vec<u8>,
    addresses: HashMap<String, u64>,
    pub(super) missing: Vec<String>,
}

const FAR_SLOT: usize = 16;

impl Far {
    pub(super) fn new(images: &[Image<'_>], globals: &Globals, host: Host<'_>) -> Far {
        let mut far = Far::default();
        for (name, needed) in undefined(images) {
            if globals.get(&name).is_some() {
                continue;
            }
            match host(&name) {
                Some(address) => far.push(name, host_stub(address)),
                None if needed => {
                    far.missing.push(name.clone());
                    far.push(name, MISSING_STUB);
                }
                None => {}
            }
        }
        far
    }

    fn push(&mut self, name: String, stub: [u8; FAR_SLOT]) {
        self.addresses.insert(name, FAR + self.bytes.len() as u64);
        self.bytes.extend(stub);
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }

    pub(super) fn range(&self) -> Range<u64> {
        FAR..FAR + self.bytes.len() as u64
    }

    pub(super) fn segment(&self) -> Option<Segment> {
        (!self.bytes.is_empty()).then(|| Segment {
            protection: Protection::Code,
            addresses: FAR..self.range().end.next_multiple_of(PAGE),
        })
    }
}

const MISSING_STUB: [u8; FAR_SLOT] = {
    let mut stub = [0xcc; FAR_SLOT];
    stub[0] = 0x0f;
    stub[1] = 0x0b;
    stub
};

fn host_stub(address: u64) -> [u8; FAR_SLOT] {
    let mut stub = [0xcc; FAR_SLOT];
    stub[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    stub[6..14].copy_from_slice(&address.to_le_bytes());
    stub
}

/// Names that objects do not define themselves, in order, and whether one of
/// them needs it (is not weak).
fn undefined(images: &[Image<'_>]) -> impl Iterator<Item = (String, bool)> {
    let symbols = images.iter().flat_map(|image| image.object.symbols());
    let undefined: Vec<_> = symbols
        .filter(|(id, s)| id.0 != 0 && s.place == Place::Undefined && !s.name.is_empty())
        .map(|(_, s)| (s.name.to_string(), s.binding != STB_WEAK))
        .collect();
    let needed: BTreeSet<_> = undefined
        .iter()
        .filter(|(_, needed)| *needed)
        .map(|(name, _)| name.clone())
        .collect();
    let all: BTreeSet<_> = undefined.into_iter().map(|(name, _)| name).collect();
    all.into_iter().map(move |name| {
        let needed = needed.contains(&name);
        (name, needed)
    })
}

// ---- Names by address ------------------------------------------------------------

/// A piece of dom0's address space that has a name.
#[derive(Clone, Debug)]
struct Name {
    address: u64,
    size: u64,
    name: String,
    module: Module,
    is_function: bool,
}

impl Name {
    fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size.max(1)
    }
}

/// Symbols and sections by address, for messages.
#[derive(Debug)]
pub(super) struct Names {
    symbols: Vec<Name>,
    sections: Vec<Name>,
}

impl Names {
    pub(super) fn new(images: &[Image<'_>], far: &Far) -> Names {
        let mut symbols: Vec<_> = images.iter().flat_map(symbol_names).collect();
        symbols.extend(far.addresses.iter().map(|(name, address)| Name {
            address: *address,
            size: FAR_SLOT as u64,
            name: format!("stub of {name}"),
            module: Module::Kernel,
            is_function: false,
        }));
        // Of symbols at one address the largest is last, which `describe` takes.
        symbols.sort_by_key(|name| (name.address, name.size));
        Names {
            symbols,
            sections: images.iter().flat_map(section_names).collect(),
        }
    }

    /// `name+0x12 (module)`, else with the section's name, else the number.
    pub(super) fn describe(&self, address: u64) -> String {
        let after = self.symbols.partition_point(|name| name.address <= address);
        let before = after.checked_sub(1).map(|last| &self.symbols[last]);
        let symbol = before.filter(|name| name.holds(address));
        let mut sections = self.sections.iter();
        match symbol.or_else(|| sections.find(|name| name.holds(address))) {
            Some(name) => {
                let offset = address - name.address;
                format!("{}+{offset:#x} ({})", name.name, name.module)
            }
            None => format!("{address:#x}"),
        }
    }
}

impl Names {
    /// The function that begins at `address`.
    pub(super) fn function_at(&self, address: u64) -> Option<(Module, &str)> {
        let first = self.symbols.partition_point(|name| name.address < address);
        let here = self.symbols[first..].iter();
        let mut functions = here
            .take_while(|name| name.address == address)
            .filter(|name| name.is_function);
        functions.next().map(|name| (name.module, &*name.name))
    }
}

fn symbol_names<'i>(image: &'i Image<'_>) -> impl Iterator<Item = Name> + 'i {
    let symbols = image.object.symbols();
    let named = symbols
        .filter(|(_, s)| !s.name.is_empty() && s.kind != STT_SECTION && s.kind != STT_FILE)
        .filter(|(_, s)| matches!(s.place, Place::In(_)));
    named.filter_map(|(_, symbol)| {
        Some(Name {
            address: image.address_of(symbol.place, symbol.value)?,
            size: symbol.size,
            name: symbol.name.to_string(),
            module: image.module,
            is_function: symbol.kind == STT_FUNC,
        })
    })
}

fn section_names<'i>(image: &'i Image<'_>) -> impl Iterator<Item = Name> + 'i {
    image.layout.placed().map(|(id, address)| {
        let section = image.object.section(id);
        Name {
            address,
            size: section.size,
            name: section.name.to_string(),
            module: image.module,
            is_function: false,
        }
    })
}
