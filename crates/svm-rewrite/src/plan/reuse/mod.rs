//! Translations that are used again: `disp(%base)` after `disp0(%base)` needs no
//! check of its own if the first one's result is still in a register.
//!
//! ```text
//!     <check of 8(%rdi)> -> %rcx
//!     mov   (%rcx), %rax              was 8(%rdi)
//!     mov   24(%rcx), %edx            was 32(%rdi)
//! ```
//!
//! Why it computes the same:
//! * A window is three pages. So [`stlb::COVERED`] bytes from a translated address on,
//!   and [`stlb::BELOW`] bytes before it, are the dom0 bytes around the original
//!   address; where dom0 has none, there is a hole.
//! * Table entries do not change while a CPU is inside a driver, and nothing between the
//!   two accesses leaves the driver.
//! * An access touches the same pages as before. If it aborts now, it aborted before, at
//!   the same instruction and address; only in a hole instead of in a check.
//! * The register is dead from the check on until the original program writes it,
//!   which ends its use here.
//!
//! Where paths meet, a translation is kept if registers hold it on all of them. The back
//! edge of a loop is planned after the place that it leads to, so no translation is kept
//! over it. The verifier checks by itself that a register holds the right translation.

mod access;
mod ahead;
mod available;

use liveness::Reg;

use crate::analyse::class::Class;
use crate::plan::numbering::NumberedValue;
use crate::schemes::Reach;

pub use access::{Access, AccessPlace};
pub use ahead::{REACH, Step, is_used, result_registers};
pub use available::{Available, Held};

/// An earlier translation serves this access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Holds the translated address of the earlier access.
    pub register: Reg,
    /// Distance between the two accesses, in bytes: less than a window.
    pub displacement: i16,
}

/// Whether translations survive an instruction of this class: it does not leave
/// the driver, and its sequence overwrites no register but its scratch. Branches
/// differ by where they lead.
pub fn survives(class: Class) -> bool {
    match class {
        Class::Plain
        | Class::Stack
        | Class::Drop
        | Class::Unreached(_)
        | Class::AddressOf(_)
        | Class::Memory(_)
        | Class::Prefetch(_)
        | Class::BitString(_) => true,
        // Some of these are branches; `plan/ahead.rs` tells them apart.
        Class::Keep(_) | Class::KeepOwnPlace(_) | Class::KeepBranch(_) | Class::StaticNop => false,
        Class::PushMemory(_)
        | Class::PopMemory(_)
        | Class::Xlat
        | Class::String(..)
        | Class::CallIndirect(_)
        | Class::JumpIndirect(_)
        | Class::Switch(_)
        | Class::Branch(_)
        | Class::Return
        | Class::Trap(_)
        | Class::Stop
        | Class::PopFlags
        | Class::TypeHash(_)
        | Class::Port(_)
        | Class::FramePointerToStack
        | Class::Realign(_)
        | Class::PortString(..) => false,
    }
}

impl Reach {
    /// Whether it covers `size` bytes at that distance from the address.
    fn covers(self, distance: i64, size: u16) -> bool {
        -self.below <= distance && distance + i64::from(size) <= self.from
    }

    /// The distance from an address to an access, if the address's translation covers the
    /// access.
    fn distance(self, from: NumberedValue, to: &AccessPlace) -> Option<i16> {
        let distance = i64::from(to.address.offset) - i64::from(from.offset);
        let covered = from.id == to.address.id && self.covers(distance, to.size);
        covered.then(|| i16::try_from(distance).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::numbering::{Ids, Values};

    #[test]
    fn what_a_window_covers() {
        let values = Values::unknown(&mut Ids::default());
        let from = Access::at(Reg::RDI, 8, 8).place(&values).unwrap().address;
        let covers = |base, displacement, size| {
            let place = Access::at(base, displacement, size).place(&values)?;
            Reach::TRANSLATION.distance(from, &place)
        };
        assert_eq!(covers(Reg::RDI, 8, 4), Some(0));
        assert_eq!(covers(Reg::RDI, 24, 8), Some(16));
        assert_eq!(covers(Reg::RDI, 8 + 4096, 1), Some(4096));
        assert_eq!(covers(Reg::RDI, 8 + 4096, 2), None);
        assert_eq!(covers(Reg::RDI, 7, 1), Some(-1));
        assert_eq!(covers(Reg::RDI, 8 - 4096, 8), Some(-4096));
        assert_eq!(covers(Reg::RDI, 8 - 4097, 8), None);
        assert_eq!(covers(Reg::RSI, 8, 8), None, "another base");
        assert_eq!(covers(Reg::RDI, i32::MAX, 1), None);
        assert_eq!(covers(Reg::RDI, i32::MIN, 1), None);
        for (displacement, size, expected) in [
            (8 + 0x7ff7, 8, Some(0x7ff7)),
            (8 + 0x7ff8, 8, None),
            (8 - 0x8000, 8, Some(i16::MIN)),
            (8 - 0x8001, 8, None),
        ] {
            let place = Access::at(Reg::RDI, displacement, size)
                .place(&values)
                .unwrap();
            assert_eq!(
                Reach::PLACE.distance(from, &place),
                expected,
                "{displacement}"
            );
        }
    }
}
