//! The meaning of the status flags, as far as a branch or a conditional move that the
//! verifier follows depends on it.

use super::Name;
use crate::insn::{Gpr, GprSet};

/// The meaning of the status flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// Nothing that matters.
    Unknown,
    /// `cmp $PAGE_SIZE-1, %v` where `%v` is [`super::Form::Offset`] of the name.
    Window {
        /// `%v`, not written since.
        register: Gpr,
        /// The address that the check is for.
        address: Name,
    },
    /// `cmp twin_stlb(%i), %p`: the page of the name with the tag of its entry.
    Tag(Name),
    /// `cmp` of the caller's return address with the word at `rsp` at entry, which
    /// nothing can have written since.
    ReturnWord,
    /// `cmp %right, %left`, both 64 bits wide and not written since.
    Compared {
        /// The minuend.
        left: Gpr,
        /// The subtrahend.
        right: Gpr,
    },
}

impl Flags {
    pub(super) fn mentions(self, x: Name) -> bool {
        matches!(self, Flags::Window { address, .. } | Flags::Tag(address) if address == x)
    }

    pub(super) fn speaks_of(self, written: GprSet) -> bool {
        match self {
            Flags::Unknown | Flags::Tag(_) | Flags::ReturnWord => false,
            Flags::Window { register, .. } => written.has(register),
            Flags::Compared { left, right } => written.has(left) || written.has(right),
        }
    }
}
