//! dom0's view of a driver's stack during an upcall, for stack variables that the
//! driver passes by reference (an open question in the paper, 4.2).
//!
//! dom0 gets the part in use at the same addresses, and its writes there are copied
//! back. Words that hold code addresses of the hypervisor are or were return
//! addresses. They are hidden: dom0 sees [`HIDDEN`] in their place, so it does not learn
//! where the driver returns to.
//!
//! A word that was a return address may be a variable now that nothing has been written to:
//! what dom0 writes there is its answer, zero too, and stays. What dom0 does not write is put
//! back. If it writes over a return address, the function that returns by it finds that it
//! differs from its shadow, and aborts.

/// What dom0 sees. No canonical address, so a use as a pointer faults (SDM volume 1,
/// 3.3.7.1).
const HIDDEN: u64 = 0x5eed_0f71_5eed_0f71;

/// Words taken out of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedWords(Vec<(usize, u64)>);

impl MaskedWords {
    /// Takes out the words that `is_code` knows.
    pub fn mask(stack: &mut [u64], is_code: impl Fn(u64) -> bool) -> MaskedWords {
        let mut masked = Vec::new();
        for (index, word) in stack.iter_mut().enumerate() {
            if is_code(*word) {
                masked.push((index, std::mem::replace(word, HIDDEN)));
            }
        }
        MaskedWords(masked)
    }

    /// Puts those back that dom0 has not written.
    ///
    /// # Panics
    /// If `stack` is shorter than the one they are from.
    pub fn restore(self, stack: &mut [u64]) {
        for (index, word) in self.0 {
            if stack[index] == HIDDEN {
                stack[index] = word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: [u64; 4] = [1, 0x5000_1234, 3, 0x5100_0000];

    fn masked(stack: &mut [u64]) -> MaskedWords {
        MaskedWords::mask(stack, |word| word >> 28 == 5)
    }

    #[test]
    fn return_addresses_are_not_shown_and_come_back() {
        let mut stack = STACK;
        let hidden = masked(&mut stack);
        assert_eq!(stack, [1, HIDDEN, 3, HIDDEN]);
        (stack[0], stack[2]) = (10, 30);
        hidden.restore(&mut stack);
        assert_eq!(stack, [10, 0x5000_1234, 30, 0x5100_0000]);
    }

    /// The word was a return address of an earlier call: dom0's answer is not lost.
    #[test]
    fn an_answer_in_a_stale_word_stays() {
        for answer in [0, 20, 0x5eed_0f71_0000_0007] {
            let mut stack = STACK;
            let hidden = masked(&mut stack);
            stack[1] = answer;
            hidden.restore(&mut stack);
            assert_eq!(stack, [1, answer, 3, 0x5100_0000]);
        }
    }
}
