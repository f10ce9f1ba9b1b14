//! Names by address, for messages and traces.

use elf_loader::Place;
use elf_loader::consts::{STT_FILE, STT_FUNC, STT_SECTION};

use super::symbols::{FAR_SLOT, Far};
use crate::image::{Image, Module};

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
pub(crate) struct Names {
    symbols: Vec<Name>,
    sections: Vec<Name>,
}

impl Names {
    pub(crate) fn new(images: &[Image<'_>], far: &Far) -> Names {
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
    pub(crate) fn describe(&self, address: u64) -> String {
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

    /// The function that begins at `address`.
    pub(crate) fn function_at(&self, address: u64) -> Option<(Module, &str)> {
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
