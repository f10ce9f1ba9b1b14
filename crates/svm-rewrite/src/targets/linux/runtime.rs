//! The runtime, linked into the module.

use elf_loader::append::append;
use elf_loader::consts::STB_LOCAL;
use elf_loader::{Object, SymbolId};
use foldhash::HashMap;
use twin_abi::Scheme;

/// Symbols of the runtime by name.
pub struct Runtime(HashMap<String, SymbolId>);

impl Runtime {
    /// Links the runtime for a scheme into `object`.
    pub fn link(object: &mut Object<'static>, scheme: Scheme) -> Runtime {
        let bytes = twin_linux_runtime::object(scheme);
        let part = elf_loader::read(bytes).expect("the runtime was assembled with twin");
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
