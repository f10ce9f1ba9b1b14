//! All instructions of an object, by number and by place. [`crate::decode`] fills this;
//! the rest of the verifier works on it.

use super::{CodeAt, Insn};

/// Where instructions start in a section: a bit for each byte, and how many
/// instructions begin before each 64 bytes.
pub struct Starts {
    bits: Vec<u64>,
    before: Vec<u32>,
}

impl Starts {
    /// No instructions, in a section of `bytes` bytes.
    pub fn new(bytes: usize) -> Starts {
        let words = bytes.div_ceil(64);
        Starts {
            bits: vec![0; words],
            before: vec![0; words],
        }
    }

    /// Instruction `n` starts at byte `at`; called in ascending order.
    pub fn add(&mut self, at: usize, n: u32) {
        if self.bits[at / 64] == 0 {
            self.before[at / 64] = n;
        }
        self.bits[at / 64] |= 1 << (at % 64);
    }

    /// The instruction that starts at byte `at`.
    fn get(&self, at: usize) -> Option<u32> {
        let (word, bit) = (*self.bits.get(at / 64)?, 1 << (at % 64));
        (word & bit != 0).then(|| self.before[at / 64] + (word & (bit - 1)).count_ones())
    }

    /// The last instruction that starts at byte `at` or less than `most` bytes before it,
    /// where `most` is at most 64.
    fn last(&self, at: usize, most: usize) -> Option<u32> {
        let in_word = |word: usize, mask: u64| {
            let bits = self.bits.get(word)? & mask;
            let last = 63_u32.checked_sub(bits.leading_zeros())?;
            Some(word * 64 + last as usize)
        };
        let here = in_word(at / 64, u64::MAX >> (63 - at % 64));
        let start = here.or_else(|| in_word((at / 64).checked_sub(1)?, u64::MAX))?;
        if at - start < most {
            self.get(start)
        } else {
            None
        }
    }
}

/// All instructions of an object.
pub struct Disassembly {
    /// In the order of sections and offsets.
    pub insns: Vec<Insn>,
    /// Which of them are direct branches: all that have a target, in order.
    pub branches: Vec<u32>,
    /// Whether any of them, reached or not, may touch vector state.
    pub vectors: bool,
    /// For each code section, where they start.
    starts: Vec<Starts>,
}

impl Disassembly {
    /// An empty one with room for this many instructions.
    pub fn with_capacity(instructions: usize) -> Disassembly {
        Disassembly {
            insns: Vec::with_capacity(instructions),
            branches: Vec::new(),
            vectors: false,
            starts: Vec::new(),
        }
    }

    /// Adds where the instructions of the next code section start.
    pub fn add_section(&mut self, starts: Starts) {
        self.starts.push(starts);
    }

    /// Number of the instruction that starts there.
    pub fn at(&self, place: CodeAt) -> Option<u32> {
        let section = self.starts.get(usize::from(place.section))?;
        section.get(usize::try_from(place.offset).ok()?)
    }

    /// Number of the instruction that has a byte there.
    pub fn around(&self, place: CodeAt) -> Option<u32> {
        const LONGEST: usize = 15;
        let section = self.starts.get(usize::from(place.section))?;
        section.last(usize::try_from(place.offset).ok()?, LONGEST)
    }

    /// The instructions of a code section, with their numbers.
    pub fn of_section(&self, number: u16) -> impl Iterator<Item = (u32, &Insn)> {
        let first = self.insns.partition_point(|i| i.section < number);
        let own = self.insns[first..]
            .iter()
            .take_while(move |i| i.section == number);
        (first as u32..).zip(own)
    }

    /// The instructions of a section from number `n` on, with their numbers.
    pub fn from(&self, n: u32) -> impl Iterator<Item = (u32, &Insn)> {
        let rest = self.insns.get(n as usize..).unwrap_or_default();
        let section = rest.first().map(|i| i.section);
        let own = rest.iter().take_while(move |i| Some(i.section) == section);
        (n..).zip(own)
    }

    /// Instruction number `n`.
    pub fn get(&self, n: u32) -> Option<&Insn> {
        self.insns.get(n as usize)
    }

    /// The instruction after number `n`, if it is in the same section.
    pub fn next(&self, n: u32) -> Option<u32> {
        let next = n.checked_add(1)?;
        (self.get(next)?.section == self.get(n)?.section).then_some(next)
    }
}
