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
