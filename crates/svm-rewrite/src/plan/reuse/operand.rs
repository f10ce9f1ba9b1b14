//! Operands that could share a translation, and their addresses.

use std::num::NonZeroU16;

use iced_x86::Register;
use liveness::Reg;

use crate::analyse::class::{Class, Space};
use crate::lift::Inst;
use crate::lift::operand::base_and_displacement;
use crate::plan::numbering::{Value, Values};
use crate::registers::gpr;

/// `displacement(%base)`, without index or segment, and the number of bytes accessed
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub(super) base: Reg,
    pub(super) displacement: i32,
    size: NonZeroU16,
}

impl Operand {
    /// The operand of a heap access that could share a translation.
    pub fn of(inst: &Inst, class: Class) -> Option<Operand> {
        // With a relocation, the displacement is a symbol's address.
        if !matches!(class, Class::Memory(Space::Heap)) || inst.displacement.is_some() {
            return None;
        }
        let iced = &inst.iced;
        let (base, displacement) = base_and_displacement(iced)?;
        if base == Register::RSP {
            return None;
        }
        let size = u16::try_from(iced.memory_size().size()).ok()?;
        Some(Operand {
            base: gpr(base)?,
            displacement: displacement as i32,
            size: NonZeroU16::new(size)?,
        })
    }

    /// Bytes that are accessed.
    pub(super) fn size(&self) -> u16 {
        self.size.get()
    }

    /// Where it is, given what registers hold.
    pub fn place(&self, values: &Values) -> Option<Place> {
        let base = values.get(self.base);
        let offset = base.offset.checked_add(self.displacement)?;
        Some(Place {
            address: Value { offset, ..base },
            size: self.size(),
        })
    }
}

/// An access's address and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) address: Value,
    pub(super) size: u16,
}

#[cfg(test)]
impl Operand {
    /// `displacement(%base)`, so many bytes.
    pub(super) fn at(base: Reg, displacement: i32, size: u16) -> Operand {
        Operand {
            base,
            displacement,
            size: NonZeroU16::new(size).expect("it reaches some"),
        }
    }
}
