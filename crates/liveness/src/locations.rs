//! Locations: the things that an instruction reads and writes and that this crate follows.
//!
//! A location is one piece of a general register or one flag. A set of them is one `u64`:
//!
//! ```text
//! bit   0..16   bits 0-7 of register 0..15          (al, cl, ... r15b)
//!      16..32   bits 8-15                           (ah, ch, ... and their unnamed kin)
//!      32..48   bits 16 and up, whatever the word size
//!      48..55   CF PF AF ZF SF OF DF
//! ```
//!
//! Three pieces are enough for every partial write of x86 (Intel SDM volume 1, 3.4.1.1): an 8-bit
//! write leaves the rest of the register alone, a 16-bit write leaves the part from bit 16 alone,
//! and a 32-bit write replaces the whole register, on i386 because that is all there is and in
//! 64-bit mode because the upper half becomes zero. So no location starts at bit 32, and the same
//! sets serve both word sizes.

use std::fmt;

/// How wide the general registers are, which also says how many of them there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordSize {
    /// i386: eight registers of 32 bits.
    Bits32,
    /// x86-64: sixteen registers of 64 bits.
    Bits64,
}

impl WordSize {
    /// The number of general registers.
    pub const fn register_count(self) -> u8 {
        match self {
            WordSize::Bits32 => 8,
            WordSize::Bits64 => 16,
        }
    }

    /// The general registers, in encoding order, the stack pointer among them.
    pub fn registers(self) -> impl Iterator<Item = Reg> {
        (0..self.register_count()).map(Reg)
    }
}

/// A general register, numbered as the hardware encodes it: rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u8);

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
    /// Registers of the largest register file; a word size may have fewer.
    pub const COUNT: u8 = 16;

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
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REG_NAMES[self.0 as usize])
    }
}

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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
    /// Locations there are; each has an index below this one.
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

/// A set of locations. Copying it is free and every operation is a few instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LocSet(u64);

impl LocSet {
    /// No location.
    pub const fn empty() -> LocSet {
        LocSet(0)
    }

    /// Every location that there is.
    pub const fn all() -> LocSet {
        LocSet((1 << Loc::COUNT) - 1)
    }

    /// One location.
    pub const fn loc(loc: Loc) -> LocSet {
        LocSet(1 << loc.index())
    }

    /// A whole register: its three pieces.
    pub const fn reg(reg: Reg) -> LocSet {
        LocSet::low16(reg).union(LocSet::piece(reg, Piece::Upper))
    }

    /// Bits 0 to 15 of a register.
    pub const fn low16(reg: Reg) -> LocSet {
        LocSet::piece(reg, Piece::Low).union(LocSet::piece(reg, Piece::High))
    }

    /// One piece of a register.
    pub const fn piece(reg: Reg, piece: Piece) -> LocSet {
        LocSet::loc(Loc::Reg(reg, piece))
    }

    /// One flag.
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

    /// Every register of a word size, whole, the stack pointer among them.
    pub const fn registers(word_size: WordSize) -> LocSet {
        let pieces = (1 << word_size.register_count()) - 1;
        let registers = Reg::COUNT;
        LocSet(pieces | pieces << registers | pieces << (2 * registers))
    }

    /// Every register of a word size, and every flag.
    pub const fn everything(word_size: WordSize) -> LocSet {
        LocSet::registers(word_size).union(LocSet::all_flags())
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
    pub fn touched_registers(self) -> impl Iterator<Item = Reg> {
        let mut left = !self.absent_registers();
        std::iter::from_fn(move || {
            let reg = Reg((left != 0).then(|| left.trailing_zeros() as u8)?);
            left &= left - 1;
            Some(reg)
        })
    }

    /// The registers none of whose pieces is here, as a bit per register number.
    const fn absent_registers(self) -> u16 {
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

/// Whole registers by name, pieces with their bits, then flags, the six arithmetic ones together as
/// `flags`: `{rax, rcx[0-15], rdx[8-15], CF, DF}`.
impl fmt::Display for LocSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = Part::of_set(*self).map(|part| part.to_string()).collect();
        write!(f, "{{{}}}", names.join(", "))
    }
}

impl fmt::Debug for LocSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A group of locations with a name of its own, for display.
enum Part {
    Reg(Reg),
    Low16(Reg),
    ArithmeticFlags,
    Loc(Loc),
}

impl Part {
    fn of_set(set: LocSet) -> impl Iterator<Item = Part> {
        let registers = WordSize::Bits64.registers();
        let registers = registers.flat_map(move |reg| Part::of_register(set, reg));
        registers.chain(Part::of_flags(set))
    }

    fn of_register(set: LocSet, reg: Reg) -> Vec<Part> {
        let here = set.intersect(LocSet::reg(reg));
        if here == LocSet::reg(reg) {
            vec![Part::Reg(reg)]
        } else if here.contains(LocSet::low16(reg)) {
            vec![Part::Low16(reg)]
        } else {
            here.iter().map(Part::Loc).collect()
        }
    }

    fn of_flags(set: LocSet) -> Vec<Part> {
        if !set.contains(LocSet::flags()) {
            return set
                .intersect(LocSet::all_flags())
                .iter()
                .map(Part::Loc)
                .collect();
        }
        let direction = set.intersect(LocSet::flag(Flag::Direction));
        let mut parts = vec![Part::ArithmeticFlags];
        parts.extend(direction.iter().map(Part::Loc));
        parts
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Reg(reg) => reg.fmt(f),
            Part::Low16(reg) => write!(f, "{reg}[0-15]"),
            Part::ArithmeticFlags => f.write_str("flags"),
            Part::Loc(loc) => loc.fmt(f),
        }
    }
}

/// Registers that are free for other use where `live_before` is live: all three pieces are dead.
///
/// The stack pointer is never among them. All sixteen registers are considered; on i386 use
/// [`dead_registers_of`].
pub fn dead_registers(live_before: LocSet) -> impl Iterator<Item = Reg> {
    dead_registers_of(WordSize::Bits64, live_before)
}

/// [`dead_registers`], among the registers that a word size has.
pub fn dead_registers_of(word_size: WordSize, live_before: LocSet) -> impl Iterator<Item = Reg> {
    let dead = live_before.absent_registers();
    word_size
        .registers()
        .filter(move |reg| *reg != Reg::RSP && dead & 1 << reg.0 != 0)
}
