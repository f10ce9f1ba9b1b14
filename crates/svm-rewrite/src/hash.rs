//! Slots of small caches. A slot holds one answer, that to the latest question.

/// The slot for a question, out of `places`, a power of two, given the mixed bits of the
/// question (Fibonacci hashing; Knuth, volume 3, 6.4).
#[inline]
pub fn place(mixed: u64, places: usize) -> usize {
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - places.trailing_zeros())) as usize
}
