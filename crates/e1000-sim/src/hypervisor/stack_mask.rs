//! dom0's view of a driver's stack during an upcall, for stack variables that the
//! driver passes by reference (an open question in the paper, 4.2).
//!
//! dom0 gets the part in use at the same addresses, and its writes there are copied
//! back. Words that hold code addresses of the hypervisor are or were return
//! addresses. They are hidden: dom0 sees zeroes in their place and cannot change them,
//! so it neither learns nor redirects where the driver returns to. The driver's data
//! never hold such words: code addresses in data are the VM instance's.

/// Words taken out of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedWords(Vec<(usize, u64)>);

impl MaskedWords {
    /// Takes out the words that `is_code` knows.
    pub fn mask(stack: &mut [u64], is_code: impl Fn(u64) -> bool) -> MaskedWords {
        let mut masked = Vec::new();
        for (index, word) in stack.iter_mut().enumerate() {
            if is_code(*word) {
                masked.push((index, std::mem::take(word)));
            }
        }
        MaskedWords(masked)
    }

    /// Puts them back, whatever is there now.
    ///
    /// # Panics
    /// If `stack` is shorter than the one they are from.
    pub fn restore(self, stack: &mut [u64]) {
        for (index, word) in self.0 {
            stack[index] = word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_addresses_are_neither_shown_nor_changed() {
        let mut stack = [1, 0x5000_1234, 3, 0x5100_0000];
        let masked = MaskedWords::mask(&mut stack, |word| word >> 28 == 5);
        assert_eq!(stack, [1, 0, 3, 0]);
        stack = [10, 20, 30, 40];
        masked.restore(&mut stack);
        assert_eq!(stack, [10, 0x5000_1234, 30, 0x5100_0000]);
    }
}
