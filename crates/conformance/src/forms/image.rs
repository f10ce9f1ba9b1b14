//! Objects linked to addresses: the original at dom0's, the rewritten one at the
//! hypervisor's.

use std::collections::HashMap;

use elf_loader::link::{Linked, SymbolUse, Trampolines, layout, link};
use elf_loader::{Object, Place};
use process_lab::address_space::{MODULE, PAGE};
use process_lab::entries::Entries;
use process_lab::error::Error;
use process_lab::program::{CODE, NO_VIEW, STLB, Variant, WINDOW, WINDOW_MASK, link_as, map_rows};
use process_lab::runtime;
use twin_abi::names;

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

impl<'o> Rewritten<'o> {
    /// Links a rewritten object. Unlike a loader, it also accepts forms that the verifier
    /// refuses, so that they are run and compared.
    ///
    /// # Errors
    /// The linker's.
    pub fn new(object: Object<'o>, variant: Variant) -> Result<Rewritten<'o>, Error> {
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
    match name {
        names::STLB => Some(STLB),
        names::WINDOW => Some(WINDOW),
        names::WINDOW_MASK => Some(WINDOW_MASK),
        names::STACK_VIEW => Some(NO_VIEW),
        _ if use_ == SymbolUse::Call => runtime::entry(name),
        _ => None,
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
