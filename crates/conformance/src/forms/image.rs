//! Objects linked to addresses: the original at dom0's, the rewritten one at the
//! hypervisor's.

use std::collections::HashMap;

use elf_loader::consts::STB_LOCAL;
use elf_loader::link::{Layout, Linked, SymbolUse, Trampolines, layout, link};
use elf_loader::{Object, Place, Section};
use process_lab::address_space::{MODULE, PAGE};
use process_lab::entries::Entries;
use process_lab::error::Error;
use process_lab::program::{CODE, NO_VIEW, Variant, link_as, map_rows, runtime_data};
use process_lab::runtime;
use twin_abi::names;

use super::got;
use super::memory::DATA;
use super::object::SYMBOL;

/// Code at addresses.
pub struct Image {
    /// First address.
    pub start: u64,
    /// Bytes from there on.
    pub bytes: Vec<u8>,
    /// Functions by name.
    pub functions: HashMap<String, u64>,
}

/// The rewritten code.
pub struct Rewritten<'o> {
    /// How it was rewritten.
    pub variant: Variant,
    pub object: Object<'o>,
    /// The code, trampolines included.
    pub image: Image,
    /// Bytes of instructions that the image begins with; trampolines follow.
    pub instructions: usize,
    /// Where it may be entered.
    pub entries: Entries,
    /// Offset in the code, offset in the original.
    map: Vec<(u32, u32)>,
}

/// Links the original.
///
/// # Errors
/// The linker's.
pub fn original(object: &Object<'_>) -> Result<Image, Error> {
    let placed = layout(object, MODULE, |_, _| true)?;
    let resolve = |name: &str, _: SymbolUse| (name == SYMBOL).then_some(DATA);
    let linked = link(object, &placed, &resolve)?;
    Ok(image(object, &linked, MODULE, |id| placed.address(id)))
}

/// An original with data of its own, which is in dom0's memory.
pub struct Module {
    /// Its code.
    pub image: Image,
    /// Its data: dom0 address and bytes.
    pub data: Vec<(u64, Vec<u8>)>,
    /// Address after the last byte of data.
    pub end: u64,
    /// Sections and symbols by name.
    names: HashMap<String, u64>,
}

impl Module {
    /// Links an original, its code at [`MODULE`], its data from `data` on, with a table of the
    /// addresses that it takes out of one. Thunks for indirect branches, which kernels have, are
    /// put after its code.
    ///
    /// # Errors
    /// The linker's.
    pub fn new(object: &Object<'_>, data: u64) -> Result<Module, Error> {
        let object = &*got::with_table(object);
        let code = layout(object, MODULE, |_, s| s.is_code())?;
        let is_data = |s: &Section<'_>| !s.is_code() && !s.name.starts_with(".note");
        let rest = layout(object, data, |_, s| is_data(s))?;
        let placed = Layout::from_fn(object, |id| code.address(id).or(rest.address(id)));
        let thunks = code.span().end.max(MODULE);
        let resolve = |name: &str, _: SymbolUse| match name {
            SYMBOL => Some(DATA),
            "__x86_return_thunk" => Some(thunks + 16 * THUNKS.len() as u64),
            _ => THUNKS.iter().zip(thunks..).find_map(|(register, at)| {
                let named = name.strip_prefix("__x86_indirect_thunk_") == Some(register);
                named.then_some(at + 15 * (at - thunks))
            }),
        };
        let linked = link(object, &placed, &resolve)?;
        let (code, data): (Vec<_>, Vec<_>) = linked
            .into_iter()
            .partition(|l| object.section(l.section).is_code());
        let mut image = image(object, &code, MODULE, |id| placed.address(id));
        image.bytes.resize((thunks - MODULE) as usize, 0xcc);
        for number in 0..THUNKS.len() as u8 {
            // jmp *%register
            let mut thunk = vec![0x41, 0xff, 0xe0 | number & 7];
            thunk[0] = if number < 8 { 0x40 } else { 0x41 };
            thunk.resize(16, 0xcc);
            image.bytes.extend(thunk);
        }
        image.bytes.push(0xc3);
        let sections = placed
            .placed()
            .map(|(id, at)| (&object.section(id).name, at));
        let mut names: HashMap<String, u64> = sections.map(|(n, at)| (n.to_string(), at)).collect();
        for (_, symbol) in object.symbols().filter(|(_, s)| s.binding != STB_LOCAL) {
            if let Place::In(section) = symbol.place
                && let Some(start) = placed.address(section)
            {
                names.insert(symbol.name.to_string(), start + symbol.value);
            }
        }
        Ok(Module {
            image,
            data: data.into_iter().map(|l| (l.address, l.bytes)).collect(),
            end: rest.span().end.max(DATA),
            names,
        })
    }

    /// Where dom0 has what a rewritten object of this one names.
    pub fn resolve(&self, name: &str, use_: SymbolUse) -> Option<u64> {
        let dom0 = name.strip_prefix(names::VM_PREFIX);
        dom0.and_then(|name| self.names.get(name).copied())
            .or_else(|| resolve(name, use_))
    }
}

/// Registers that thunks go through, by number.
const THUNKS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

impl<'o> Rewritten<'o> {
    /// Links a rewritten object. Unlike a loader, it also accepts forms that the verifier
    /// refuses, so that they are run and compared.
    ///
    /// # Errors
    /// The linker's.
    pub fn new(object: Object<'o>, variant: Variant) -> Result<Rewritten<'o>, Error> {
        Rewritten::with(object, variant, &resolve)
    }

    /// The same, with the addresses that `resolve` gives.
    ///
    /// # Errors
    /// The linker's.
    pub fn with(
        object: Object<'o>,
        variant: Variant,
        resolve: &dyn Fn(&str, SymbolUse) -> Option<u64>,
    ) -> Result<Rewritten<'o>, Error> {
        let placed = layout(&object, CODE, |_, _| true)?;
        let trampolines = Trampolines::new(&object, placed.span().end, &resolve)?;
        let linked = link_as(
            variant.scheme,
            &object,
            &placed,
            &trampolines.resolver(&resolve),
        )?;
        let mut image = image(&object, &linked, CODE, |id| placed.address(id));
        let code = linked
            .iter()
            .filter(|l| object.section(l.section).is_code());
        let ends = code.map(|l| (l.address - CODE) as usize + l.bytes.len());
        let instructions = ends.max().unwrap_or(0);
        let at = (trampolines.base - CODE) as usize;
        image.bytes.resize(at, 0xcc);
        image.bytes.extend(&trampolines.bytes);
        let entries = Entries::of(&object, &placed, &linked)?;
        // There is one code section, so its number is not needed.
        let rows = map_rows(&object).into_iter();
        let map = rows.map(|(_, offset, original)| (offset, original));
        Ok(Rewritten {
            variant,
            object,
            image,
            instructions,
            entries,
            map: map.collect(),
        })
    }

    /// The place in the original's code that `rip` stands for.
    pub fn original(&self, rip: u64) -> Option<u64> {
        let offset = rip.checked_sub(CODE)?;
        let after = self.map.partition_point(|row| u64::from(row.0) <= offset);
        Some(u64::from(self.map.get(after.checked_sub(1)?)?.1))
    }
}

fn resolve(name: &str, use_: SymbolUse) -> Option<u64> {
    match name.strip_prefix(names::VM_PREFIX) {
        Some(SYMBOL) => return Some(DATA),
        Some(".text") => return Some(MODULE),
        Some(_) => return None,
        None => {}
    }
    match (name, use_) {
        (names::STACK_VIEW, _) => Some(NO_VIEW),
        (_, SymbolUse::Call) => runtime::entry(name),
        (_, SymbolUse::Data) => runtime_data(name),
    }
}

fn image(
    object: &Object<'_>,
    linked: &[Linked],
    start: u64,
    address: impl Fn(elf_loader::SectionId) -> Option<u64>,
) -> Image {
    let mut bytes = Vec::new();
    for piece in linked {
        let at = (piece.address - start) as usize;
        bytes.resize(bytes.len().max(at + piece.bytes.len()), 0xcc);
        bytes[at..at + piece.bytes.len()].copy_from_slice(&piece.bytes);
    }
    let functions = object.symbols().filter_map(|(_, symbol)| {
        let Place::In(section) = symbol.place else {
            return None;
        };
        Some((symbol.name.to_string(), address(section)? + symbol.value))
    });
    Image {
        start,
        functions: functions.collect(),
        bytes,
    }
}

impl Image {
    /// First address, and address after the last page.
    pub fn span(&self) -> (u64, u64) {
        let end = self.start + self.bytes.len() as u64;
        (self.start, end.next_multiple_of(PAGE))
    }
}
