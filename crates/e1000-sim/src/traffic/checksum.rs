//! Internet checksums (RFC 1071). The card's model has its own: the two check
//! each other.

pub(super) fn sum(bytes: &[u8], start: u64) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs
        .remainder()
        .first()
        .map_or(0, |byte| u64::from(*byte) << 8);
    let words = pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    start + odd + words.sum::<u64>()
}

pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The pseudo header's sum (RFC 768, RFC 9293 3.1).
pub(super) fn pseudo(ip: &[u8], protocol: u8, length: usize) -> u64 {
    sum(&ip[12..20], u64::from(protocol) + length as u64)
}

/// The sum of 16-bit words as they are in memory, eight bytes at a time as a kernel does it
/// (RFC 1071, 2 C): what it costs is measured.
pub(super) fn sum_words(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    words.fold(u64::from_le_bytes(rest), |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u64::from(carry)
    })
}

/// Folds such a sum.
pub(super) fn fold_words(sum: u64) -> u16 {
    fold((sum >> 32) + (sum & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sums_are_the_same() {
        let bytes: Vec<u8> = (0..3000u32).map(|i| (i * 7 + (i >> 5)) as u8).collect();
        for length in [0, 1, 2, 7, 8, 9, 63, 1480, 2999] {
            let at_once = fold_words(sum_words(&bytes[..length]));
            assert_eq!(at_once.swap_bytes(), fold(sum(&bytes[..length], 0)));
        }
        assert_eq!(fold_words(sum_words(&[0xff; 4096])), 0xffff);
    }
}
