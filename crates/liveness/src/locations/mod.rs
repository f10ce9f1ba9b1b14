//! Locations: the things that an instruction reads and writes and that this crate follows.
//!
//! A location is one piece of a general register or one flag. A set of them is one `u64`:
//!
//! ```text
//! bit   0..16   bits 0-7 of register 0..15          (al, cl, ... r15b)
//!      16..32   bits 8-15                           (ah, ch, ...; most have no name)
//!      32..48   bits 16 and up
//!      48..55   CF PF AF ZF SF OF DF
//! ```
//!
//! Three pieces are enough for every partial write of x86 (Intel SDM volume 1, 3.4.1.1): an 8-bit
//! write leaves the rest of the register unchanged, a 16-bit write leaves the part from bit 16
//! unchanged, and a 32-bit write replaces the whole register, because the upper half becomes
//! zero. So no location starts at bit 32.

use std::fmt;

mod display;
mod registers;
mod set;

pub use registers::{Reg, Registers, WholeRegisters};
pub use set::{LocIter, LocSet};

/// A part of a general register that can be written without touching the other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// Bits 0 to 7: `al`.
    Low,
    /// Bits 8 to 15: `ah`.
    High,
    /// Bits 16 and up.
    Upper,
}

impl Piece {
    const ALL: [Piece; 3] = [Piece::Low, Piece::High, Piece::Upper];
}

/// A flag of `rflags` that code computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Carry, CF.
    Carry,
    /// Parity, PF.
    Parity,
    /// Auxiliary carry, AF.
    Adjust,
    /// Zero, ZF.
    Zero,
    /// Sign, SF.
    Sign,
    /// Overflow, OF.
    Overflow,
    /// Direction of string instructions, DF. Not an arithmetic flag.
    Direction,
}

impl Flag {
    /// Every flag, in the order of its bits in `rflags` except that OF comes before DF.
    pub const ALL: [Flag; 7] = [
        Flag::Carry,
        Flag::Parity,
        Flag::Adjust,
        Flag::Zero,
        Flag::Sign,
        Flag::Overflow,
        Flag::Direction,
    ];

    /// The name that the manuals use.
    pub const fn name(self) -> &'static str {
        match self {
            Flag::Carry => "CF",
            Flag::Parity => "PF",
            Flag::Adjust => "AF",
            Flag::Zero => "ZF",
            Flag::Sign => "SF",
            Flag::Overflow => "OF",
            Flag::Direction => "DF",
        }
    }
}

/// One location: a piece of a register, or a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loc {
    /// A piece of a general register.
    Reg(Reg, Piece),
    /// A flag.
    Flag(Flag),
}

impl Loc {
    /// Number of locations; each has an index below this.
    pub const COUNT: u32 = FLAGS_AT + Flag::ALL.len() as u32;

    const fn index(self) -> u32 {
        match self {
            Loc::Reg(reg, piece) => piece as u32 * Reg::COUNT as u32 + reg.0 as u32,
            Loc::Flag(flag) => FLAGS_AT + flag as u32,
        }
    }

    fn from_index(index: u32) -> Loc {
        if index >= FLAGS_AT {
            return Loc::Flag(Flag::ALL[(index - FLAGS_AT) as usize]);
        }
        let registers = u32::from(Reg::COUNT);
        let reg = Reg((index % registers) as u8);
        Loc::Reg(reg, Piece::ALL[(index / registers) as usize])
    }
}

/// Index of the first flag.
const FLAGS_AT: u32 = 3 * Reg::COUNT as u32;
const _: () = assert!(Loc::COUNT <= u64::BITS);

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loc::Reg(reg, Piece::Low) => write!(f, "{reg}[0-7]"),
            Loc::Reg(reg, Piece::High) => write!(f, "{reg}[8-15]"),
            Loc::Reg(reg, Piece::Upper) => write!(f, "{reg}[16-]"),
            Loc::Flag(flag) => f.write_str(flag.name()),
        }
    }
}

/// Registers that are free for other use where `live_before` is live: all three pieces are dead.
///
/// The stack pointer is never among them.
pub fn dead_registers(live_before: LocSet) -> Registers {
    Registers(live_before.absent_registers() & !(1 << Reg::RSP.0))
}
