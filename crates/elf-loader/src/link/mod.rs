//! Link an object to addresses: a pure function from an object, a placement and
//! the addresses of its imports to the bytes that belong at those addresses.
//!
//! ```text
//! layout(object, base, filter) ─> Layout ─┐
//! Trampolines::new(...)  ─> Resolve ──────┴─> link(object, layout, resolve) ─> [Linked]
//! ```
//!
//! Nothing is mapped or copied to its place here: the caller does that. Arithmetic is
//! that of psABI x86-64 4.4.1 (table 4.9); a value that its field cannot hold is an
//! error, never truncated, unless [`LowHalves`] are asked for.

mod error;
mod layout;
mod trampolines;

pub use error::{LinkError, RelocationFault};
pub use layout::{Layout, Protection, Segment, layout};
pub use trampolines::{TRAMPOLINE_SIZE, Trampolines, called_imports};

use twin_abi::names;

use crate::model::{MAX_SECTION_SIZE, Object, Place, Relocation, Section, SectionId, consts};
use crate::reloc::relocation_type;

const LOW_HALF: u64 = 0xffff_ffff;

/// What a relocation does with the address of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolUse {
    /// Branches to it; the branch may go through a trampoline.
    Call,
    /// Reads it, or takes its address.
    Data,
}

/// Addresses of undefined symbols.
pub trait Resolve {
    /// The address of the undefined symbol `name`, or `None` if there is none.
    fn resolve(&self, name: &str, use_: SymbolUse) -> Option<u64>;

    /// Whether a field of type R_X86_64_32 holds the low half of its address, whatever the
    /// high half is. Otherwise the whole address must fit.
    fn is_low_half(&self, name: &str) -> bool {
        let _ = name;
        false
    }
}

impl<F: Fn(&str, SymbolUse) -> Option<u64>> Resolve for F {
    fn resolve(&self, name: &str, use_: SymbolUse) -> Option<u64> {
        self(name, use_)
    }
}

/// The resolver of an object of the scheme `window32` (`docs/spec/window.md`): its code
/// reaches dom0's symbols by the low halves of their addresses.
pub struct LowHalves<'r>(pub &'r dyn Resolve);

impl Resolve for LowHalves<'_> {
    fn resolve(&self, name: &str, use_: SymbolUse) -> Option<u64> {
        self.0.resolve(name, use_)
    }

    fn is_low_half(&self, name: &str) -> bool {
        name.starts_with(names::VM_PREFIX)
    }
}

/// A section with all relocations applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The section of the object.
    pub section: SectionId,
    /// Where it was linked to run.
    pub address: u64,
    /// Its bytes; those of `SHT_NOBITS` are zero.
    pub bytes: Vec<u8>,
}

/// Applies the relocations of every placed section, in section order.
///
/// An undefined weak symbol that `resolve` does not know is 0, as for the
/// kernel's loader.
///
/// # Errors
/// [`LinkError`] gives section, offset, symbol, value, reason and remedy of the first
/// relocation that cannot be applied, or the problem of the placement.
pub fn link(
    object: &Object<'_>,
    layout: &Layout,
    resolve: &dyn Resolve,
) -> Result<Vec<Linked>, LinkError> {
    layout.check(object)?;
    let linker = Linker {
        object,
        layout,
        resolve,
    };
    layout
        .placed()
        .map(|(id, address)| linker.section(id, address))
        .collect()
}

/// Whether the field at `offset` is the 32-bit displacement of a direct branch.
///
/// Exact for PC-relative fields: those of other instructions follow a ModRM
/// byte `00 reg 101`, which is neither `e8`/`e9` nor the second byte of
/// `0f 80`..`0f 8f` (SDM volume 2, table 2-2 and appendix A).
pub(crate) fn is_branch_field(section: &Section<'_>, offset: u64) -> bool {
    let Some(before) = section.data.get(..offset as usize) else {
        return false;
    };
    matches!(before, [.., 0xe8 | 0xe9] | [.., 0x0f, 0x80..=0x8f])
}

/// How `relocation` of `section` uses its symbol.
pub fn symbol_use(section: &Section<'_>, relocation: &Relocation) -> SymbolUse {
    let pc_relative = matches!(
        relocation.kind,
        consts::R_X86_64_PC32 | consts::R_X86_64_PLT32
    );
    if section.is_code() && pc_relative && is_branch_field(section, relocation.offset) {
        SymbolUse::Call
    } else {
        SymbolUse::Data
    }
}

struct Linker<'o> {
    object: &'o Object<'o>,
    layout: &'o Layout,
    resolve: &'o dyn Resolve,
}

impl Linker<'_> {
    fn section(&self, id: SectionId, address: u64) -> Result<Linked, LinkError> {
        let section = self.object.section(id);
        let mut bytes = section.data.to_vec();
        bytes.resize(section.size.min(MAX_SECTION_SIZE) as usize, 0);
        for relocation in &section.relocations {
            self.apply(section, address, relocation, &mut bytes)
                .map_err(|fault| LinkError::Relocation {
                    section: section.name.to_string(),
                    offset: relocation.offset,
                    symbol: self.symbol_name(relocation),
                    fault,
                })?;
        }
        Ok(Linked {
            section: id,
            address,
            bytes,
        })
    }

    fn symbol_name(&self, relocation: &Relocation) -> String {
        if relocation.symbol.0 as usize >= self.object.symbols.len() {
            return format!("number {}", relocation.symbol.0);
        }
        let base = self.object.symbol_name(relocation.symbol);
        match relocation.addend {
            0 => base.to_owned(),
            addend if addend < 0 => format!("{base}-{:#x}", addend.unsigned_abs()),
            addend => format!("{base}+{addend:#x}"),
        }
    }

    fn apply(
        &self,
        section: &Section<'_>,
        address: u64,
        relocation: &Relocation,
        bytes: &mut [u8],
    ) -> Result<(), RelocationFault> {
        let rule = rule(relocation.kind)?;
        if rule == Computation::Nothing {
            return Ok(());
        }
        let width = relocation_type(relocation.kind).map_or(0, |t| t.width);
        let symbol = self.symbol_address(section, relocation)?;
        let place = address.wrapping_add(relocation.offset);
        let value = symbol.wrapping_add_signed(relocation.addend);
        let value = match rule {
            Computation::Unsigned32 if self.is_low_half(relocation) => value & LOW_HALF,
            _ => value,
        };
        let value = rule.checked(value, place)?;
        let end = relocation.offset.checked_add(width);
        let range = end.map(|end| relocation.offset as usize..end as usize);
        let field = range.and_then(|range| bytes.get_mut(range));
        let field = field.ok_or(RelocationFault::PastEnd { width })?;
        field.copy_from_slice(&value.to_le_bytes()[..width as usize]);
        Ok(())
    }

    fn is_low_half(&self, relocation: &Relocation) -> bool {
        let symbol = self.object.symbols.get(relocation.symbol.0 as usize);
        symbol.is_some_and(|symbol| {
            symbol.place == Place::Undefined && self.resolve.is_low_half(&symbol.name)
        })
    }

    fn symbol_address(
        &self,
        section: &Section<'_>,
        relocation: &Relocation,
    ) -> Result<u64, RelocationFault> {
        if relocation.symbol.0 == 0 {
            return Ok(0);
        }
        let symbol = self
            .object
            .symbols
            .get(relocation.symbol.0 as usize)
            .ok_or(RelocationFault::NoSymbol)?;
        match symbol.place {
            Place::Absolute => Ok(symbol.value),
            Place::Common => Err(RelocationFault::Common),
            Place::In(id) => match self.layout.address(id) {
                Some(base) => Ok(base.wrapping_add(symbol.value)),
                None => Err(RelocationFault::NotPlaced {
                    section: self.object.sections.get(id.0 as usize).map_or_else(
                        || format!("number {}", id.0),
                        |section| section.name.to_string(),
                    ),
                }),
            },
            Place::Undefined => {
                let use_ = symbol_use(section, relocation);
                match self.resolve.resolve(&symbol.name, use_) {
                    Some(address) => Ok(address),
                    None if symbol.binding == consts::STB_WEAK => Ok(0),
                    None => Err(RelocationFault::Unresolved { use_ }),
                }
            }
        }
    }
}

/// How a field is computed, and what it can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Computation {
    Nothing,
    /// `S + A`, 64 bits.
    Address64,
    /// `S + A - P`, 64 bits.
    Distance64,
    /// `S + A - P`, signed 32 bits.
    Distance32,
    /// `S + A`, zero-extended by the processor.
    Unsigned32,
    /// `S + A`, sign-extended by the processor.
    Signed32,
}

fn rule(kind: u32) -> Result<Computation, RelocationFault> {
    use consts::*;
    Ok(match kind {
        R_X86_64_NONE => Computation::Nothing,
        R_X86_64_64 => Computation::Address64,
        R_X86_64_PC64 => Computation::Distance64,
        R_X86_64_PC32 | R_X86_64_PLT32 => Computation::Distance32,
        R_X86_64_32 => Computation::Unsigned32,
        R_X86_64_32S => Computation::Signed32,
        _ => {
            let name = crate::reloc::relocation_name(kind);
            return Err(RelocationFault::Unsupported { name });
        }
    })
}

impl Computation {
    /// The field's value for `target` (S + A) and `place` (P), if it fits.
    fn checked(self, target: u64, place: u64) -> Result<u64, RelocationFault> {
        let distance = target.wrapping_sub(place);
        let fits_signed = |value: u64| i32::try_from(value as i64).is_ok();
        let narrow = |value: u64| value <= u64::from(u32::MAX);
        let (fits, value, what) = match self {
            Computation::Nothing => (true, 0, ""),
            Computation::Address64 => (true, target, ""),
            Computation::Distance64 => (true, distance, ""),
            Computation::Distance32 => (fits_signed(distance), distance, "a distance within 2 GiB"),
            Computation::Unsigned32 => (narrow(target), target, "an address below 4 GiB"),
            Computation::Signed32 => (
                fits_signed(target),
                target,
                "an address in the lowest or highest 2 GiB",
            ),
        };
        if fits {
            Ok(value)
        } else {
            Err(RelocationFault::Overflow {
                target,
                place,
                what,
            })
        }
    }
}
