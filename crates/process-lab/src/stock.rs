//! The stock driver as dom0 has it: found, read, linked at dom0's addresses.
//!
//! ```text
//! file ─read─> Object ─layout, link─> Stock { space, pristine bytes, names }
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use elf_loader::consts::STT_FUNC;
use elf_loader::link::{Layout, SymbolUse, layout, link};
use elf_loader::{Object, Place, SectionId};

use crate::address_space::{AddressSpace, KERNEL, MODULE, PERCPU, RegionAccess, VARIABLES};
use crate::error::Error;
use crate::imports::{self, IMPORTS};

/// Bytes of one stub in the kernel region.
pub const STUB: u64 = 32;
/// Imported routines with code of their own in place of a stub.
const SPECIAL: [(&str, &[u8]); 5] = [
    ("__fentry__", &[0xc3]),
    ("__x86_return_thunk", &[0xc3]),
    ("__x86_indirect_thunk_rax", &[0xff, 0xe0]),
    ("__x86_indirect_thunk_rcx", &[0xff, 0xe1]),
    ("__x86_indirect_thunk_r8", &[0x41, 0xff, 0xe0]),
];

/// Where the stock e1000.ko is: `$TWIN_STOCK_E1000`, else `target/stock/e1000.ko`
/// of the workspace.
pub fn path() -> PathBuf {
    const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/stock/e1000.ko");
    std::env::var_os("TWIN_STOCK_E1000").map_or_else(|| TARGET.into(), PathBuf::from)
}

/// Reads the stock e1000.ko.
///
/// # Errors
/// [`Error::NoStock`] says how to get it.
pub fn find() -> Result<Vec<u8>, Error> {
    let path = path();
    std::fs::read(&path).map_err(|source| Error::NoStock { path, source })
}

/// A function of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As the symbol table has it.
    pub name: String,
    /// Its dom0 address.
    pub address: u64,
    /// Bytes of code.
    pub size: u64,
}

/// The driver, linked.
pub struct Stock<'f> {
    /// As it was read.
    pub object: Object<'f>,
    /// Where its sections are.
    pub layout: Layout,
    /// dom0's regions.
    pub space: AddressSpace,
    /// The initial contents of the regions' file: the module and the stubs, zero
    /// elsewhere.
    pub pristine: Vec<u8>,
    /// Functions by address.
    pub functions: Vec<Function>,
    /// Addresses of `ud2` instructions that are WARNs.
    pub warns: HashSet<u64>,
}

impl<'f> Stock<'f> {
    /// Links `file` at dom0's addresses. `import_entry` is where the native
    /// worker's stubs go, with the import's number pushed.
    ///
    /// # Errors
    /// The file cannot be read or linked.
    pub fn new(file: &'f [u8], import_entry: u64) -> Result<Stock<'f>, Error> {
        let object = elf_loader::read(file)?;
        let layout = layout(&object, MODULE, |_, _| true)?;
        let resolve = |name: &str, _: SymbolUse| dom0_address(name);
        let linked = link(&object, &layout, &resolve)?;
        let stubs = stubs(import_entry);
        let space = AddressSpace::new(&layout, stubs.len() as u64);
        let mut pristine = vec![0; space.size() as usize];
        let mut place = |address: u64, bytes: &[u8]| {
            let (at, _) = space
                .offset(address, bytes.len() as u64)
                .expect("regions hold what is linked");
            pristine[at..at + bytes.len()].copy_from_slice(bytes);
        };
        for section in linked.iter().filter(|s| !s.bytes.is_empty()) {
            place(section.address, &section.bytes);
        }
        place(KERNEL, &stubs);
        let functions = functions(&object, &layout);
        let warns = warns(&object, &layout);
        Ok(Stock {
            object,
            layout,
            space,
            pristine,
            functions,
            warns,
        })
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// dom0 addresses of code, first to last.
    pub fn code(&self) -> std::ops::Range<u64> {
        let mut code = self
            .space
            .regions()
            .iter()
            .filter(|r| r.access == RegionAccess::Code && r.start < KERNEL);
        code.next().map_or(0..0, |r| r.start..r.start + r.length)
    }

    /// dom0 address of the named section.
    pub fn section(&self, name: &str) -> Option<u64> {
        self.layout.address(self.object.section_named(name)?)
    }

    /// Section and offset of a dom0 code address.
    pub fn place(&self, address: u64) -> Option<(SectionId, u64)> {
        let placed = self
            .layout
            .placed()
            .filter(|(id, _)| self.object.section(*id).is_code());
        placed
            .map(|(id, start)| (id, start, self.object.section(id).size))
            .find(|(_, start, size)| address.wrapping_sub(*start) < *size)
            .map(|(id, start, _)| (id, address - start))
    }
}

/// Where dom0 has the imported symbol `name`.
pub fn dom0_address(name: &str) -> Option<u64> {
    if let Some(number) = imports::number(name) {
        return Some(KERNEL + u64::from(number) * STUB);
    }
    if let Some(i) = SPECIAL.iter().position(|(special, _)| *special == name) {
        return Some(KERNEL + (IMPORTS.len() + i) as u64 * STUB);
    }
    if let Some((_, offset)) = imports::PERCPU_VARIABLES.iter().find(|(n, _)| *n == name) {
        return Some(*offset);
    }
    variable(name)
}

/// The address of an imported variable.
pub fn variable(name: &str) -> Option<u64> {
    let i = imports::VARIABLES.iter().position(|(n, _)| *n == name)?;
    let before: u64 = imports::VARIABLES[..i]
        .iter()
        .map(|(_, size)| size.next_multiple_of(64))
        .sum();
    Some(VARIABLES + before)
}

/// The per-CPU canary (psABI's `%gs:40` in kernels).
pub const CANARY: u64 = PERCPU + 0x28;

/// The register that a thunk at this address jumps to, as `rax rcx r8`.
pub fn thunk_register(address: u64) -> Option<&'static str> {
    let index = address.wrapping_sub(KERNEL) / STUB;
    let (name, _) = SPECIAL.get(index.checked_sub(IMPORTS.len() as u64)? as usize)?;
    name.strip_prefix("__x86_indirect_thunk_")
}

/// ```text
/// +0   68 NUMBER              push $number
/// +5   ff 25 0d 00 00 00      jmp *+24
/// +24  .quad import_entry
/// ```
fn stubs(import_entry: u64) -> Vec<u8> {
    let mut all = vec![0xcc; (IMPORTS.len() + SPECIAL.len()) * STUB as usize];
    let (normal, special) = all.split_at_mut(IMPORTS.len() * STUB as usize);
    for (number, stub) in normal.chunks_mut(STUB as usize).enumerate() {
        stub[0] = 0x68;
        stub[1..5].copy_from_slice(&(number as u32).to_le_bytes());
        stub[5..11].copy_from_slice(&[0xff, 0x25, 13, 0, 0, 0]);
        stub[24..].copy_from_slice(&import_entry.to_le_bytes());
    }
    for ((_, code), stub) in SPECIAL.iter().zip(special.chunks_mut(STUB as usize)) {
        stub[..code.len()].copy_from_slice(code);
    }
    all
}

fn functions(object: &Object<'_>, layout: &Layout) -> Vec<Function> {
    let mut by_address: BTreeMap<u64, Function> = BTreeMap::new();
    for (_, symbol) in object.symbols().filter(|(_, s)| s.kind == STT_FUNC) {
        let Place::In(section) = symbol.place else {
            continue;
        };
        let Some(base) = layout.address(section) else {
            continue;
        };
        let address = base + symbol.value;
        // Of two names the longer: `init_module` is the kernel's.
        let function = Function {
            name: symbol.name.to_string(),
            address,
            size: symbol.size,
        };
        match by_address.get(&address) {
            Some(other) if function.name.len() <= other.name.len() => {}
            _ => drop(by_address.insert(address, function)),
        }
    }
    by_address.into_values().collect()
}

/// `struct bug_entry` (12 bytes): place of the `ud2` relative to the field,
/// file, line, flags, of which bit 0 says WARN.
fn warns(object: &Object<'_>, layout: &Layout) -> HashSet<u64> {
    const ENTRY: u64 = 12;
    const FLAGS: u64 = 10;
    let mut found = HashSet::new();
    let Some(table) = object
        .section_named("__bug_table")
        .map(|id| object.section(id))
    else {
        return found;
    };
    let targets: HashMap<u64, u64> = table
        .relocations
        .iter()
        .filter_map(|r| {
            let symbol = object.symbol(r.symbol);
            let Place::In(section) = symbol.place else {
                return None;
            };
            Some((
                r.offset,
                layout
                    .address(section)?
                    .wrapping_add(symbol.value)
                    .wrapping_add_signed(r.addend),
            ))
        })
        .collect();
    for entry in 0..table.size / ENTRY {
        let flags = table.data[(entry * ENTRY + FLAGS) as usize];
        if let (1, Some(address)) = (flags & 1, targets.get(&(entry * ENTRY))) {
            found.insert(*address);
        }
    }
    found
}
