//! The general-purpose registers, and sets of them.

/// A general-purpose register by its number in the encoding: `rax rcx rdx rbx
/// rsp rbp rsi rdi r8 ... r15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub u8);

impl Reg {
    /// `%rax`.
    pub const RAX: Reg = Reg(0);
    /// `%rcx`.
    pub const RCX: Reg = Reg(1);
    /// `%rsp`.
    pub const RSP: Reg = Reg(4);
    /// `%rbp`.
    pub const RBP: Reg = Reg(5);
    /// `%rsi`.
    pub const RSI: Reg = Reg(6);
    /// `%rdi`.
    pub const RDI: Reg = Reg(7);

    /// The set with this register alone.
    pub fn set(self) -> RegSet {
        RegSet(1 << self.0)
    }
}

/// A set of general-purpose registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegSet(pub u16);

impl RegSet {
    /// The empty set.
    pub const NONE: RegSet = RegSet(0);

    /// Whether the register is in the set.
    pub fn has(self, r: Reg) -> bool {
        self.0 & r.set().0 != 0
    }

    /// The registers in the set.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let r = Reg((left != 0).then(|| left.trailing_zeros() as u8)?);
            left &= left - 1;
            Some(r)
        })
    }

    /// Registers in either set.
    pub fn or(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }
}
