//! Addresses by which code may be reached, as far as general registers hold them (target `linux`).

use crate::insn::{Gpr, GprSet};

/// What may be in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// The address of a symbol: that of a function may be called.
    Named,
    /// One less the tag that a check compares, which is no place in code: the second half of the
    /// translation makes it the address again.
    Halved,
    /// A place in the object's own code that is not the start of a function, the own return address
    /// among them, or a number that was computed from an address: it may be passed on as a value,
    /// but not called.
    Counted,
}

/// Registers that may hold addresses, whatever else is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// [`Address::Named`].
    pub named: GprSet,
    /// [`Address::Halved`].
    pub halved: GprSet,
    /// [`Address::Counted`].
    pub counted: GprSet,
}

impl Addresses {
    /// Registers may hold this. What `rsp` holds is a place in the frame.
    pub fn add(&mut self, address: Address, registers: GprSet) {
        let registers = registers.without(Gpr::RSP.set());
        let set = match address {
            Address::Named => &mut self.named,
            Address::Halved => &mut self.halved,
            Address::Counted => &mut self.counted,
        };
        *set = set.or(registers);
    }

    /// What these registers may hold.
    pub fn of(self, registers: GprSet) -> Addresses {
        Addresses {
            named: GprSet(self.named.0 & registers.0),
            halved: GprSet(self.halved.0 & registers.0),
            counted: GprSet(self.counted.0 & registers.0),
        }
    }

    /// What they hold when two of them are exchanged.
    pub fn exchanged(self, a: Gpr, b: Gpr) -> Addresses {
        let exchange = |set: GprSet| {
            let of = |from: Gpr, to: Gpr| {
                if set.has(from) {
                    to.set()
                } else {
                    GprSet::NONE
                }
            };
            set.without(a.set().or(b.set())).or(of(a, b)).or(of(b, a))
        };
        Addresses {
            named: exchange(self.named),
            halved: exchange(self.halved),
            counted: exchange(self.counted),
        }
    }

    /// Those by which no code may be reached.
    pub fn refused(self) -> GprSet {
        self.counted.or(self.halved)
    }

    /// Registers are written with something else.
    pub(super) fn forget(&mut self, written: GprSet) {
        self.named = self.named.without(written);
        self.halved = self.halved.without(written);
        self.counted = self.counted.without(written);
    }

    /// Adds what `other` has. True if that is more.
    pub fn join(&mut self, other: Addresses) -> bool {
        let before = *self;
        self.add(Address::Named, other.named);
        self.add(Address::Halved, other.halved);
        self.add(Address::Counted, other.counted);
        *self != before
    }
}
