//! Which queue a frame belongs to: by its flow, so that the packets of a flow stay in order
//! whatever serves the queues.
//!
//! ```text
//! 0  destination, source | [802.1Q tag] | 0x0800
//!    IPv4: source, destination, [TCP, UDP: ports]  ──> Toeplitz ──> queue of the guest
//! ```
//!
//! The hash is receive-side scaling's (Microsoft, "RSS hashing types"), with the key and the
//! examples of "Verifying the RSS hash calculation". A fragment has no ports: all of a
//! datagram are hashed by their addresses. What is no IPv4 has hash 0.

/// Bytes that are hashed: two addresses, two ports.
const INPUT: usize = 12;

/// The key of the specification's examples, as far as so many bytes of input need it.
const KEY: [u8; INPUT + 4] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
];

/// What each byte contributes at each place: a frame costs a few instructions a byte.
static TABLE: [[u32; 256]; INPUT] = table();

const fn table() -> [[u32; 256]; INPUT] {
    let mut all = [[0; 256]; INPUT];
    let mut place = 0;
    while place < INPUT {
        let mut byte = 0;
        while byte < 256 {
            all[place][byte] = contribution(place, byte as u8);
            byte += 1;
        }
        place += 1;
    }
    all
}

/// For each bit that is set, the 32 bits of the key from there on.
const fn contribution(place: usize, byte: u8) -> u32 {
    let mut key = 0u64;
    let mut at = 0;
    while at < 5 {
        key = key << 8 | KEY[place + at] as u64;
        at += 1;
    }
    let mut sum = 0;
    let mut bit = 0;
    while bit < 8 {
        if byte >> (7 - bit) & 1 != 0 {
            sum ^= (key >> (8 - bit)) as u32;
        }
        bit += 1;
    }
    sum
}

fn toeplitz(input: &[u8]) -> u32 {
    let places = TABLE.iter().zip(input);
    places.fold(0, |sum, (place, byte)| sum ^ place[usize::from(*byte)])
}

const IPV4: [u8; 2] = [0x08, 0x00];
const TAG: [u8; 2] = [0x81, 0x00];
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The hash of a frame's flow.
pub fn flow_hash(frame: &[u8]) -> u32 {
    hash_ipv4(frame).unwrap_or(0)
}

fn hash_ipv4(frame: &[u8]) -> Option<u32> {
    let tagged = frame.get(12..14)? == TAG;
    let packet = if tagged { 16 } else { 12 };
    let (kind, packet) = frame.get(packet..)?.split_first_chunk::<2>()?;
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 15) * 4;
    if *kind != IPV4 || header[0] >> 4 != 4 || length < 20 {
        return None;
    }
    let addresses = &header[12..20];
    // More fragments, or one that is not the first (RFC 791, 3.1).
    let fragment = header[6] & 0x3f != 0 || header[7] != 0;
    let ports = match header[9] {
        TCP | UDP if !fragment => packet.get(length..length + 4),
        _ => None,
    };
    let Some(ports) = ports else {
        return Some(toeplitz(addresses));
    };
    let mut input = [0; INPUT];
    input[..8].copy_from_slice(addresses);
    input[8..].copy_from_slice(ports);
    Some(toeplitz(&input))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 frame of such a flow.
    fn frame(source: ([u8; 4], u16), destination: ([u8; 4], u16), protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&IPV4);
        frame[14] = 0x45;
        frame[23] = protocol;
        frame[26..30].copy_from_slice(&source.0);
        frame[30..34].copy_from_slice(&destination.0);
        frame[34..36].copy_from_slice(&source.1.to_be_bytes());
        frame[36..38].copy_from_slice(&destination.1.to_be_bytes());
        frame
    }

    /// The specification's examples: source, destination, hash with ports, hash without.
    type Example = (([u8; 4], u16), ([u8; 4], u16), u32, u32);

    const EXAMPLES: [Example; 5] = [
        (
            ([66, 9, 149, 187], 2794),
            ([161, 142, 100, 80], 1766),
            0x51cc_c178,
            0x323e_8fc2,
        ),
        (
            ([199, 92, 111, 2], 14230),
            ([65, 69, 140, 83], 4739),
            0xc626_b0ea,
            0xd718_262a,
        ),
        (
            ([24, 19, 198, 95], 12898),
            ([12, 22, 207, 184], 38024),
            0x5c2b_394a,
            0xd2d0_a5de,
        ),
        (
            ([38, 27, 205, 30], 48228),
            ([209, 142, 163, 6], 2217),
            0xafc7_327f,
            0x8298_9176,
        ),
        (
            ([153, 39, 163, 191], 44251),
            ([202, 188, 127, 2], 1303),
            0x10e8_28a2,
            0x5d18_09c5,
        ),
    ];

    #[test]
    fn the_hash_is_that_of_the_specification() {
        for (source, destination, ports, addresses) in EXAMPLES {
            for protocol in [TCP, UDP] {
                let frame = frame(source, destination, protocol);
                assert_eq!(flow_hash(&frame), ports);
            }
            assert_eq!(flow_hash(&frame(source, destination, 47)), addresses);
        }
    }

    #[test]
    fn a_datagrams_fragments_have_one_hash() {
        let (source, destination, _, addresses) = EXAMPLES[0];
        let mut fragment = frame(source, destination, UDP);
        for (flags, offset) in [(0x20, 0), (0x20, 185), (0, 185), (0x1f, 0)] {
            fragment[20..22].copy_from_slice(&[flags, offset]);
            assert_eq!(flow_hash(&fragment), addresses);
        }
        // Don't fragment is no fragment.
        fragment[20..22].copy_from_slice(&[0x40, 0]);
        assert_eq!(flow_hash(&fragment), EXAMPLES[0].2);
    }

    #[test]
    fn a_tag_changes_no_hash() {
        let (source, destination, ports, _) = EXAMPLES[1];
        let mut tagged = frame(source, destination, TCP);
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
        assert_eq!(flow_hash(&tagged), ports);
    }

    #[test]
    fn options_move_the_ports() {
        let (source, destination, ports, _) = EXAMPLES[2];
        let mut longer = frame(source, destination, TCP);
        longer[14] = 0x46;
        longer.splice(34..34, [1; 4]);
        assert_eq!(flow_hash(&longer), ports);
    }

    #[test]
    fn what_is_cut_or_no_ipv4_has_a_hash_too() {
        let (source, destination, _, addresses) = EXAMPLES[3];
        let whole = frame(source, destination, TCP);
        for length in 0..whole.len() {
            let expected = match length {
                0..34 => 0,
                34..38 => addresses,
                _ => EXAMPLES[3].2,
            };
            assert_eq!(flow_hash(&whole[..length]), expected, "{length} bytes");
        }
        let mut other = whole;
        other[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(flow_hash(&other), 0);
        other[12..14].copy_from_slice(&IPV4);
        other[14] = 0x44;
        assert_eq!(flow_hash(&other), 0);
    }
}
