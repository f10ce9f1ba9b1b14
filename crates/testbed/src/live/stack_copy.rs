//! A driver's stack for dom0 to look at during an upcall: stack variables that
//! the driver passes by reference (paper, 4.2, leaves them open).
//!
//! dom0 gets a copy of the part in use at the same addresses, and what it writes
//! there comes back. Words that hold code addresses of the hypervisor are return
//! addresses, or were: dom0 sees zeroes in their place and cannot change them, so
//! it neither learns nor redirects where the driver returns to. No data of the
//! driver looks like that: code addresses in data are the VM instance's.

/// The copy, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackCopy {
    /// What dom0 gets: words from the stack pointer up.
    pub words: Vec<u64>,
    /// Which words are code addresses.
    hidden: Vec<bool>,
}

impl StackCopy {
    /// Copies `stack`; `is_code` tells the hypervisor's code addresses.
    pub fn new(stack: &[u64], is_code: impl Fn(u64) -> bool) -> StackCopy {
        let hidden: Vec<bool> = stack.iter().map(|word| is_code(*word)).collect();
        let shown = stack.iter().zip(&hidden);
        let words = shown.map(|(word, hidden)| if *hidden { 0 } else { *word });
        StackCopy {
            words: words.collect(),
            hidden,
        }
    }

    /// Writes what dom0 left to the stack, but for the hidden words.
    pub fn give_back(&self, answer: &[u64], stack: &mut [u64]) {
        let words = stack.iter_mut().zip(answer).zip(&self.hidden);
        for ((word, answer), hidden) in words {
            if !hidden {
                *word = *answer;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_addresses_are_neither_shown_nor_changed() {
        let mut stack = [1, 0x5000_1234, 3, 0x5100_0000];
        let copy = StackCopy::new(&stack, |word| word >> 28 == 5);
        assert_eq!(copy.words, [1, 0, 3, 0]);
        copy.give_back(&[10, 20, 30, 40], &mut stack);
        assert_eq!(stack, [10, 0x5000_1234, 30, 0x5100_0000]);
    }
}
