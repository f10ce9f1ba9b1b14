//! Where instructions start in a section: a bit for each byte, and for each 64 bytes
//! the count of instructions that start before them. A number for each byte would take
//! thirty times the memory, and look-ups are spread over the whole section.

/// Offsets at which instructions start, in ascending order, and their numbers.
#[derive(Clone, Debug)]
pub struct Starts {
    /// Bytes of the section.
    len: usize,
    words: Vec<Word>,
}

/// 64 bytes of a section.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// Where instructions start.
    bits: u64,
    first: u32,
}

/// What is at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This instruction starts there.
    Of(u32),
    /// The middle of one.
    Middle,
    /// The section's end, or after it.
    End,
}

impl Starts {
    /// No instructions, in a section of `len` bytes.
    pub fn new(len: usize) -> Starts {
        Starts {
            len,
            words: vec![Word::default(); len.div_ceil(64)],
        }
    }

    /// Instruction `n` starts at `offset`; called in ascending order.
    pub fn add(&mut self, offset: usize, n: u32) {
        let word = &mut self.words[offset / 64];
        if word.bits == 0 {
            word.first = n;
        }
        word.bits |= 1 << (offset % 64);
    }

    /// What is at an offset.
    pub fn get(&self, offset: u64) -> Start {
        let at = match usize::try_from(offset) {
            Ok(at) if at < self.len => at,
            _ => return Start::End,
        };
        let (word, bit) = (self.words[at / 64], 1 << (at % 64));
        match word.bits & bit {
            0 => Start::Middle,
            _ => Start::Of(word.first + (word.bits & (bit - 1)).count_ones()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_offset_is_a_start_a_middle_or_behind_the_end() {
        let starting = [0, 1, 7, 63, 64, 70, 130, 191, 192, 200];
        let mut starts = Starts::new(201);
        for (n, at) in (5..).zip(starting) {
            starts.add(at, n);
        }
        for at in 0..300 {
            let expected = match starting.iter().position(|s| *s == at) {
                Some(n) => Start::Of(5 + n as u32),
                None if at < 201 => Start::Middle,
                None => Start::End,
            };
            assert_eq!(starts.get(at as u64), expected, "at {at}");
        }
        assert_eq!(starts.get(u64::MAX), Start::End);
    }
}
