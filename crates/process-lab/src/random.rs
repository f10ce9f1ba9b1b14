//! Repeatable random numbers: the same seed gives the same image, arguments and
//! import results in every process.

/// The SplitMix64 generator (Steele, Lea, Flood 2014): one word of state, any
/// seed is good.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// SplitMix64's finaliser: spreads the bits of `x` over the result.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seed that depends on `text` and `number`.
pub fn seed(text: &str, number: u64) -> u64 {
    text.bytes()
        .fold(mix(number ^ 0x7477_696e), |h, b| mix(h ^ u64::from(b)))
}

impl Random {
    /// A generator that continues from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
