//! General registers.

use std::fmt;

use super::LocSet;

/// A general register, numbered as the hardware encodes it: rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub(super) u8);

/// The 64-bit names of the registers, by number.
const REG_NAMES: [&str; Reg::COUNT as usize] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

#[allow(missing_docs, reason = "the names of the registers say it")]
impl Reg {
    pub const RAX: Reg = Reg(0);
    pub const RCX: Reg = Reg(1);
    pub const RDX: Reg = Reg(2);
    pub const RBX: Reg = Reg(3);
    pub const RSP: Reg = Reg(4);
    pub const RBP: Reg = Reg(5);
    pub const RSI: Reg = Reg(6);
    pub const RDI: Reg = Reg(7);
    pub const R8: Reg = Reg(8);
    pub const R9: Reg = Reg(9);
    pub const R10: Reg = Reg(10);
    pub const R11: Reg = Reg(11);
    pub const R12: Reg = Reg(12);
    pub const R13: Reg = Reg(13);
    pub const R14: Reg = Reg(14);
    pub const R15: Reg = Reg(15);
}

impl Reg {
    /// How many there are.
    pub const COUNT: u8 = 16;

    /// Every register in encoding order, the stack pointer among them.
    pub fn all() -> impl Iterator<Item = Reg> {
        (0..Reg::COUNT).map(Reg)
    }

    /// The register with this hardware number, if there is one.
    pub const fn new(number: u8) -> Option<Reg> {
        if number < Reg::COUNT {
            Some(Reg(number))
        } else {
            None
        }
    }

    /// The hardware number, 0 to 15.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The name of the 64-bit register, `rax` for one.
    pub const fn name(self) -> &'static str {
        REG_NAMES[self.0 as usize]
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A set of whole registers, in a quarter of the space of a [`LocSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeRegisters(u16);

impl WholeRegisters {
    /// None.
    pub const NONE: WholeRegisters = WholeRegisters(0);

    /// Each of them, the stack pointer, too.
    pub const ALL: WholeRegisters = WholeRegisters(u16::MAX);

    /// One register.
    pub const fn of(reg: Reg) -> WholeRegisters {
        WholeRegisters(1 << reg.0)
    }

    /// The registers of either set.
    #[must_use]
    pub const fn union(self, other: WholeRegisters) -> WholeRegisters {
        WholeRegisters(self.0 | other.0)
    }

    /// The registers of this set that `other` does not have.
    #[must_use]
    pub const fn minus(self, other: WholeRegisters) -> WholeRegisters {
        WholeRegisters(self.0 & !other.0)
    }

    /// Whether a register is in it.
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 & 1 << reg.0 != 0
    }

    /// All pieces of them.
    pub const fn locations(self) -> LocSet {
        LocSet::pieces_of(self.0)
    }
}

/// Some registers, in encoding order.
#[derive(Clone, Debug)]
pub struct Registers(pub(super) u16);

impl Iterator for Registers {
    type Item = Reg;

    fn next(&mut self) -> Option<Reg> {
        let reg = Reg((self.0 != 0).then(|| self.0.trailing_zeros() as u8)?);
        self.0 &= self.0 - 1;
        Some(reg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.count_ones() as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Registers {}
