//! The general-purpose registers, and sets of them.

/// A general-purpose register by its number in the encoding: `rax rcx rdx rbx
/// rsp rbp rsi rdi r8 ... r15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gpr(pub u8);

impl Gpr {
    /// `%rax`.
    pub const RAX: Gpr = Gpr(0);
    /// `%rcx`.
    pub const RCX: Gpr = Gpr(1);
    /// `%rbx`.
    pub const RBX: Gpr = Gpr(3);
    /// `%rsp`.
    pub const RSP: Gpr = Gpr(4);
    /// `%rbp`.
    pub const RBP: Gpr = Gpr(5);
    /// `%rsi`.
    pub const RSI: Gpr = Gpr(6);
    /// `%rdi`.
    pub const RDI: Gpr = Gpr(7);

    /// The set with this register alone.
    pub fn set(self) -> GprSet {
        GprSet(1 << self.0)
    }
}

/// A set of general-purpose registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GprSet(pub u16);

impl GprSet {
    /// The empty set.
    pub const NONE: GprSet = GprSet(0);

    /// Whether the register is in the set.
    pub fn has(self, r: Gpr) -> bool {
        self.0 & r.set().0 != 0
    }

    /// Whether some register is in both sets.
    pub fn meets(self, other: GprSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The registers in the set.
    pub fn iter(self) -> impl Iterator<Item = Gpr> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let r = Gpr((left != 0).then(|| left.trailing_zeros() as u8)?);
            left &= left - 1;
            Some(r)
        })
    }

    /// Registers in this set that are not in the other.
    pub fn without(self, other: GprSet) -> GprSet {
        GprSet(self.0 & !other.0)
    }

    /// Registers in either set.
    pub fn or(self, other: GprSet) -> GprSet {
        GprSet(self.0 | other.0)
    }
}
