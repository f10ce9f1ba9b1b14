//! Calls of routines that are more than 2 GiB away.
//!
//! A `call` reaches 2 GiB; a hypervisor's or a test process's routines may be
//! farther. Each called import gets 16 bytes near the driver (the kernel's
//! module loader on other architectures does the same):
//!
//! ```text
//! +0  ff 25 00 00 00 00       jmp *0(%rip)        # by the 8 bytes after it
//! +6  .quad ADDRESS
//! +14 cc cc                   int3; int3
//! ```
//!
//! No register is touched, so they suit any calling convention. Only branches
//! go to them; an address taken as data stays the import's own.

use std::collections::{HashMap, HashSet};

use super::{LinkError, Resolve, SymbolUse, symbol_use};
use crate::model::{Object, Place, consts};

/// Bytes of one trampoline.
pub const TRAMPOLINE_SIZE: u64 = 16;

/// Names of the undefined symbols that branches in code sections go to, each
/// once, in symbol order.
pub fn called_imports<'o>(object: &'o Object<'_>) -> Vec<&'o str> {
    let mut called = HashSet::new();
    for (_, section) in object.sections().filter(|(_, section)| section.is_code()) {
        for relocation in &section.relocations {
            if symbol_use(section, relocation) == SymbolUse::Call {
                called.insert(relocation.symbol);
            }
        }
    }
    let undefined = object
        .symbols()
        .filter(|(_, symbol)| symbol.place == Place::Undefined);
    let mut seen = HashSet::new();
    undefined
        .filter(|(id, _)| id.0 != 0 && called.contains(id))
        .map(|(_, symbol)| symbol.name.as_ref())
        .filter(|name| seen.insert(*name))
        .collect()
}

/// Trampolines for the called imports of one object.
#[derive(Clone, Debug, Default)]
pub struct Trampolines {
    /// Where [`Trampolines::bytes`] must be, executable.
    pub base: u64,
    /// The code of all trampolines, 16 bytes each.
    pub bytes: Vec<u8>,
    addresses: HashMap<String, u64>,
}

impl Trampolines {
    /// Bytes that the trampolines of an object take, known before any address.
    pub fn size(object: &Object<'_>) -> u64 {
        called_imports(object).len() as u64 * TRAMPOLINE_SIZE
    }

    /// Makes a trampoline for each called import, from `base` on, which jumps to the
    /// address that `resolve` gives for [`SymbolUse::Call`]. A weak import without an
    /// address gets none.
    ///
    /// # Errors
    /// [`LinkError::Unresolved`] names an import that has no address.
    pub fn new(
        object: &Object<'_>,
        base: u64,
        resolve: &dyn Resolve,
    ) -> Result<Trampolines, LinkError> {
        let strong: HashSet<&str> = object
            .symbols()
            .filter(|(_, s)| s.place == Place::Undefined && s.binding != consts::STB_WEAK)
            .map(|(_, s)| s.name.as_ref())
            .collect();
        let mut made = Trampolines {
            base,
            ..Trampolines::default()
        };
        for name in called_imports(object) {
            match resolve.resolve(name, SymbolUse::Call) {
                Some(address) => made.push(name, address),
                None if strong.contains(name) => {
                    return Err(LinkError::Unresolved { name: name.into() });
                }
                None => {}
            }
        }
        Ok(made)
    }

    fn push(&mut self, name: &str, address: u64) {
        let here = self.base.wrapping_add(self.bytes.len() as u64);
        self.addresses.insert(name.to_string(), here);
        self.bytes.extend([0xff, 0x25, 0, 0, 0, 0]); // jmp *0(%rip)
        self.bytes.extend(address.to_le_bytes()); //    .quad ADDRESS
        self.bytes.extend([0xcc, 0xcc]); //             int3; int3
    }

    /// The address of the trampoline for `name`, if it has one.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }

    /// A resolver that gives the trampoline for calls and `inner`'s answer for
    /// everything else.
    pub fn resolver<'t>(&'t self, inner: &'t dyn Resolve) -> impl Resolve + 't {
        move |name: &str, use_: SymbolUse| match (use_, self.address(name)) {
            (SymbolUse::Call, Some(address)) => Some(address),
            _ => inner.resolve(name, use_),
        }
    }
}
