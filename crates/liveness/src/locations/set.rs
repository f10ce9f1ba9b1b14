//! Sets of locations.

use super::{FLAGS_AT, Flag, Loc, Piece, Reg, Registers};

/// A set of locations. Copying it is free and every operation is a few instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LocSet(u64);

impl LocSet {
    /// The set without any location.
    pub const fn empty() -> LocSet {
        LocSet(0)
    }

    /// Every location that there is.
    pub const fn all() -> LocSet {
        LocSet((1 << Loc::COUNT) - 1)
    }

    /// The set of this location alone.
    pub const fn loc(loc: Loc) -> LocSet {
        LocSet(1 << loc.index())
    }

    /// A whole register: its three pieces.
    pub const fn reg(reg: Reg) -> LocSet {
        LocSet::pieces_of(1 << reg.number())
    }

    /// All pieces of the registers that have a bit in a mask.
    pub(super) const fn pieces_of(registers: u16) -> LocSet {
        // Pieces of one kind are in the order of the registers.
        let low = registers as u64;
        LocSet(low | low << Reg::COUNT | low << (2 * Reg::COUNT))
    }

    /// Bits 0 to 15 of a register.
    pub const fn low16(reg: Reg) -> LocSet {
        LocSet::piece(reg, Piece::Low).union(LocSet::piece(reg, Piece::High))
    }

    /// One piece of a register.
    pub const fn piece(reg: Reg, piece: Piece) -> LocSet {
        LocSet::loc(Loc::Reg(reg, piece))
    }

    /// The set of this flag alone.
    pub const fn flag(flag: Flag) -> LocSet {
        LocSet::loc(Loc::Flag(flag))
    }

    /// The six arithmetic flags: CF PF AF ZF SF OF. DF is not one of them.
    pub const fn flags() -> LocSet {
        LocSet::all_flags().minus(LocSet::flag(Flag::Direction))
    }

    /// The six arithmetic flags and DF.
    pub const fn all_flags() -> LocSet {
        LocSet(((1 << Flag::ALL.len()) - 1) << FLAGS_AT)
    }

    /// Every register, whole, the stack pointer among them.
    pub const fn registers() -> LocSet {
        LocSet::all().minus(LocSet::all_flags())
    }

    /// The locations of either set.
    #[must_use]
    pub const fn union(self, other: LocSet) -> LocSet {
        LocSet(self.0 | other.0)
    }

    /// The locations of this set that `other` does not have.
    #[must_use]
    pub const fn minus(self, other: LocSet) -> LocSet {
        LocSet(self.0 & !other.0)
    }

    /// The locations of both sets.
    #[must_use]
    pub const fn intersect(self, other: LocSet) -> LocSet {
        LocSet(self.0 & other.0)
    }

    /// Whether every location of `other` is here. True of an empty `other`.
    pub const fn contains(self, other: LocSet) -> bool {
        other.minus(self).is_empty()
    }

    /// Whether some location of `other` is here.
    pub const fn intersects(self, other: LocSet) -> bool {
        !self.intersect(other).is_empty()
    }

    /// Whether there is no location.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many locations there are.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The locations one by one: low pieces, high pieces, upper pieces, flags.
    pub fn iter(self) -> LocIter {
        LocIter(self.0)
    }

    /// The registers some of whose pieces are here, in encoding order.
    pub fn touched_registers(self) -> Registers {
        Registers(!self.absent_registers())
    }

    /// The registers none of whose pieces is here, as a bit per register number.
    pub(super) const fn absent_registers(self) -> u16 {
        let registers = Reg::COUNT;
        let present = self.0 | self.0 >> registers | self.0 >> (2 * registers);
        !(present as u16)
    }
}

impl From<Loc> for LocSet {
    fn from(loc: Loc) -> LocSet {
        LocSet::loc(loc)
    }
}

impl FromIterator<LocSet> for LocSet {
    /// The union of the sets.
    fn from_iter<I: IntoIterator<Item = LocSet>>(sets: I) -> LocSet {
        sets.into_iter().fold(LocSet::empty(), LocSet::union)
    }
}

impl IntoIterator for LocSet {
    type Item = Loc;
    type IntoIter = LocIter;

    fn into_iter(self) -> LocIter {
        self.iter()
    }
}

/// The locations of a set, see [`LocSet::iter`].
#[derive(Clone, Debug)]
pub struct LocIter(u64);

impl Iterator for LocIter {
    type Item = Loc;

    fn next(&mut self) -> Option<Loc> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(Loc::from_index(index))
    }
}
