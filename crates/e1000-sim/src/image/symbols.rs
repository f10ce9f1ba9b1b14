//! Global symbols of dom0's objects, and stubs for names that none of them defines.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use elf_loader::Place;
use elf_loader::consts::{STB_LOCAL, STB_WEAK};
use elf_loader::link::{Protection, Segment};

use crate::error::LiveError;
use crate::image::{Image, Module};
use crate::memory::{FAR, PAGE};

/// Addresses of functions that kernel.o imports from the host process.
pub type Host<'h> = &'h dyn Fn(&str) -> Option<u64>;

/// Global symbols of all objects.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    symbols: HashMap<String, Global>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    address: u64,
    module: Module,
    weak: bool,
}

/// Names that the kernel's own loader does not take from modules either: each module
/// has them.
const EACH_HAS: [&str; 3] = ["__this_module", "init_module", "cleanup_module"];

impl Globals {
    pub(crate) fn new(images: &[Image<'_>]) -> Result<Globals, LiveError> {
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

    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).map(|global| global.address)
    }
}

/// Stubs for names that are not in any object:
///
/// ```text
/// host function   ff 25 00 00 00 00   jmp *0(%rip)
///                 .quad ADDRESS
///                 cc cc               int3; int3
/// undefined       0f 0b cc ...        ud2; int3 ...
/// ```
#[derive(Debug, Default)]
pub(crate) struct Far {
    pub(crate) bytes: Vec<u8>,
    pub(crate) addresses: HashMap<String, u64>,
    pub(crate) missing: Vec<String>,
}

pub(crate) const FAR_SLOT: usize = 16;

impl Far {
    pub(crate) fn new(images: &[Image<'_>], globals: &Globals, host: Host<'_>) -> Far {
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

    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }

    pub(crate) fn range(&self) -> Range<u64> {
        FAR..FAR + self.bytes.len() as u64
    }

    pub(crate) fn segment(&self) -> Option<Segment> {
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
