//! Where small tables of answers keep what: one answer a place, the last one asked.

/// Which of `places`, a power of two, an answer is kept in, given the mixed bits of its
/// question (Fibonacci hashing; Knuth, volume 3, 6.4).
#[inline]
pub fn place(mixed: u64, places: usize) -> usize {
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - places.trailing_zeros())) as usize
}
