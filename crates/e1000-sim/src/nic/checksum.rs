//! The Internet checksum (RFC 1071) and the Ethernet frame check sequence
//! (IEEE 802.3 3.2.9).

/// The one's complement sum of `bytes` as big-endian 16-bit words, not folded
/// below 32 bits and not complemented; an odd last byte is padded with 0.
/// Sums of pieces add up while every piece but the last has an even length.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    // Summing native 32-bit words and swapping at the end is the same sum:
    // RFC 1071, section 2 (B). Four lanes, so that they can be one register.
    let (chunks, rest) = bytes.as_chunks::<16>();
    let mut lanes = [0u64; 4];
    for chunk in chunks {
        let (words, _) = chunk.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_le_bytes(*word));
        }
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let (words, _) = last.as_chunks::<4>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane += u64::from(u32::from_le_bytes(*word));
    }
    let wide = lanes.iter().sum();
    u64::from(fold(wide).swap_bytes())
}

/// Folds a sum to 16 bits with end-around carry.
#[inline]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum field's value for a sum: its complement.
#[inline]
pub fn finish(sum: u64) -> u16 {
    !fold(sum)
}

/// Slicing by 16: table `k` advances a byte over `k` more bytes of zeros.
static TABLES: [[u32; 256]; 16] = tables();

const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// What four bytes add when `after` to `after + 3` bytes follow them.
#[inline(always)]
fn quarter(word: u32, after: usize) -> u32 {
    let look = |at: usize| TABLES[after + 3 - at][(word >> (8 * at) & 0xff) as usize];
    (look(0) ^ look(1)) ^ (look(2) ^ look(3))
}

/// The frame check sequence of a frame, in the order of transmission.
pub fn fcs(frame: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    let (chunks, rest) = frame.as_chunks::<16>();
    for chunk in chunks {
        let (words, _) = chunk.as_chunks::<4>();
        let word = |at: usize| u32::from_le_bytes(words[at]);
        // Pairwise, so that the look-ups do not wait for each other.
        let known = (quarter(word(1), 8) ^ quarter(word(2), 4)) ^ quarter(word(3), 0);
        crc = quarter(word(0) ^ crc, 12) ^ known;
    }
    for &byte in rest {
        crc = crc >> 8 ^ TABLES[0][(crc as u8 ^ byte) as usize];
    }
    (!crc).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use process_lab::random::Random;

    /// RFC 1071's definition, word by word.
    fn simple(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_sum_is_that_of_the_definition() {
        let mut random = Random::new(1);
        for length in 0..300 {
            let bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
            assert_eq!(fold(sum(&bytes)), simple(&bytes), "{length} bytes");
        }
        // RFC 1071, section 3.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&example)), 0xddf2);
    }

    #[test]
    fn the_fcs_is_that_of_the_definition() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(u32::from_le_bytes(fcs(b"123456789")), 0xcbf4_3926);
        let mut random = Random::new(2);
        for length in 0..100 {
            let bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
            let mut crc = u32::MAX;
            for &byte in &bytes {
                crc ^= u32::from(byte);
                for _ in 0..8 {
                    crc = (crc >> 1) ^ ((crc & 1) * 0xedb8_8320);
                }
            }
            assert_eq!(u32::from_le_bytes(fcs(&bytes)), !crc, "{length} bytes");
        }
    }
}
