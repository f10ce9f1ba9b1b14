//! Accesses that could share a translation, and their addresses.

use std::num::NonZeroU16;

use liveness::Reg;

use crate::analyse::class::{Class, Space};
use crate::lift::Inst;
use crate::plan::numbering::{NumberedValue, Values};
use crate::schemes::Row;

/// An access to `displacement(%base)` ([`crate::asm::Operand::simple`]), and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub(super) base: Reg,
    pub(super) displacement: i32,
    size: NonZeroU16,
}

impl Access {
    /// The heap access of an instruction that could share a translation. A prefetch can
    /// where no check decides whether it takes place.
    pub fn of(inst: &Inst, class: Class, scheme: &Row) -> Option<Access> {
        match class {
            Class::Memory(Space::Heap) => {}
            Class::Prefetch(Space::Heap) if !scheme.has_checks() => {}
            _ => return None,
        }
        let (base, displacement) = inst.operand().simple().filter(|(r, _)| *r != Reg::RSP)?;
        let size = u16::try_from(inst.iced.memory_size().size()).ok()?;
        Some(Access {
            base,
            displacement: displacement as i32,
            size: NonZeroU16::new(size)?,
        })
    }

    /// The base.
    pub fn base(&self) -> Reg {
        self.base
    }

    /// The same through the base alone.
    pub fn at_base(self) -> Access {
        Access {
            displacement: 0,
            ..self
        }
    }

    /// Bytes that are accessed.
    pub(super) fn size(&self) -> u16 {
        self.size.get()
    }

    /// Where it is, given what registers hold.
    pub fn place(&self, values: &Values) -> Option<AccessPlace> {
        let base = values.get(self.base);
        let offset = base.offset.checked_add(self.displacement)?;
        Some(AccessPlace {
            address: NumberedValue { offset, ..base },
            size: self.size(),
        })
    }
}

/// An access's address and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPlace {
    pub(super) address: NumberedValue,
    pub(super) size: u16,
}

#[cfg(test)]
impl Access {
    /// `displacement(%base)`, so many bytes.
    pub(super) fn at(base: Reg, displacement: i32, size: u16) -> Access {
        Access {
            base,
            displacement,
            size: NonZeroU16::new(size).expect("it reaches some"),
        }
    }
}
