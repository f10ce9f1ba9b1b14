//! Packets that prove on arrival that they are whole, in order and somebody's.
//!
//! A datagram, from the Ethernet header on:
//!
//! ```text
//!  0  destination, source, 0x0800
//! 14  IPv4 header, 20 bytes, protocol 17       34  UDP header
//! 42  magic u32 | flow u32 | number u64 | CRC-32 of all that follows u32 | filler
//! ```
//!
//! A segment of a stream (TSO) has a TCP header at 34 and the stream's bytes from
//! 54 on; what a stream holds at an offset depends on the flow and the offset only,
//! so a segment can be checked by itself.
//!
//! All numbers in headers are big-endian (RFC 791, 768, 9293), our own are
//! little-endian.

use std::fmt;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Bytes before the payload of a datagram.
pub const DATAGRAM_HEADERS: usize = 42;
/// Bytes before the payload of a segment.
pub const SEGMENT_HEADERS: usize = 54;
/// Bytes of our own header in a datagram.
const OWN_HEADER: usize = 20;
/// The shortest datagram, which is Ethernet's shortest frame without FCS too
/// (62 bytes carry the whole own header; shorter frames are cut to 60).
pub const SHORTEST: usize = 60;
/// The longest frame without FCS and VLAN tag.
pub const LONGEST: usize = 1514;

const MAGIC: u32 = u32::from_le_bytes(*b"twin");
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Who sends to whom, as packets say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its number: the guest's.
    pub number: u32,
    /// Sender.
    pub source: Mac,
    /// Receiver.
    pub destination: Mac,
}

/// What a whole packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Datagram `number` of a flow.
    Datagram {
        /// The flow's number.
        flow: u32,
        /// Counted from 0.
        number: u64,
    },
    /// A piece of a flow's stream.
    Segment {
        /// The flow's number.
        flow: u32,
        /// Offset in the stream, modulo 2^32.
        offset: u32,
        /// Bytes of it.
        length: u32,
    },
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// Shorter than its headers.
    Short,
    /// Not IPv4 with TCP or UDP.
    Kind,
    /// Lengths disagree.
    Length,
    /// The IPv4 header's checksum is wrong.
    HeaderChecksum,
    /// The UDP or TCP checksum is wrong.
    PayloadChecksum,
    /// Not our packet.
    Magic,
    /// The payload is not what was sent.
    Payload,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Corruption::Short => "shorter than its headers",
            Corruption::Kind => "neither UDP nor TCP over IPv4",
            Corruption::Length => "lengths disagree",
            Corruption::HeaderChecksum => "wrong IPv4 checksum",
            Corruption::PayloadChecksum => "wrong UDP or TCP checksum",
            Corruption::Magic => "not a packet of this test",
            Corruption::Payload => "another payload than was sent",
        })
    }
}

// ---- Checksums (RFC 1071) --------------------------------------------------------

fn sum(bytes: &[u8], start: u64) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs
        .remainder()
        .first()
        .map_or(0, |byte| u64::from(*byte) << 8);
    let words = pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    start + odd + words.sum::<u64>()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The pseudo header's sum (RFC 768, RFC 9293 3.1).
fn pseudo(ip: &[u8], protocol: u8, length: usize) -> u64 {
    sum(&ip[12..20], u64::from(protocol) + length as u64)
}

// ---- Making ----------------------------------------------------------------------

fn ethernet(flow: &Flow, frame: &mut [u8]) {
    frame[..6].copy_from_slice(&flow.destination);
    frame[6..12].copy_from_slice(&flow.source);
    frame[12..14].copy_from_slice(&ETHERTYPE_IPV4);
}

fn ipv4(flow: &Flow, protocol: u8, total: u16, header: &mut [u8]) {
    header[..20].fill(0);
    header[0] = 0x45;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&[10, 0, 0, 1]);
    header[16..20].copy_from_slice(&[10, 0, 1, flow.number as u8]);
    let checksum = !fold(sum(&header[..20], 0));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Neighbours differ, and no short piece comes back soon (Knuth's multiplier).
fn filler(flow: u32, offset: u32) -> u8 {
    (offset
        .wrapping_add(flow.wrapping_mul(0x9e37))
        .wrapping_mul(0x9e37_79b1)
        >> 24) as u8
}

/// A maker of datagrams of one size of one flow; most of a frame is made once.
pub struct Datagrams {
    flow: Flow,
    frame: Vec<u8>,
}

impl Datagrams {
    /// Datagrams of `size` bytes without FCS.
    ///
    /// # Panics
    /// If `size` is not in [`SHORTEST`]`..=`[`LONGEST`].
    pub fn new(flow: Flow, size: usize) -> Datagrams {
        assert!(
            (SHORTEST..=LONGEST).contains(&size),
            "frames are 60 to 1514 bytes"
        );
        let mut frame = vec![0; size];
        ethernet(&flow, &mut frame);
        ipv4(&flow, PROTOCOL_UDP, (size - 14) as u16, &mut frame[14..34]);
        frame[34..36].copy_from_slice(&9u16.to_be_bytes());
        frame[36..38].copy_from_slice(&9u16.to_be_bytes());
        frame[38..40].copy_from_slice(&((size - 34) as u16).to_be_bytes());
        for (at, byte) in frame.iter_mut().enumerate().skip(DATAGRAM_HEADERS) {
            *byte = filler(flow.number, at as u32);
        }
        Datagrams { flow, frame }
    }

    /// Datagram `number`, complete but for its UDP checksum, which is the sum of
    /// the pseudo header as a sender leaves it for the card. For receivers,
    /// [`Datagrams::finished`].
    pub fn make(&mut self, number: u64) -> &[u8] {
        self.number(number);
        let length = self.frame.len() - 34;
        let partial = fold(pseudo(&self.frame[14..34], PROTOCOL_UDP, length));
        self.frame[40..42].copy_from_slice(&partial.to_be_bytes());
        &self.frame
    }

    /// Datagram `number`, with its UDP checksum.
    pub fn finished(&mut self, number: u64) -> &[u8] {
        self.number(number);
        self.frame[40..42].fill(0);
        let length = self.frame.len() - 34;
        let checksum = !fold(sum(
            &self.frame[34..],
            pseudo(&self.frame[14..34], PROTOCOL_UDP, length),
        ));
        // Zero means none; its complement is the same number (RFC 768).
        let checksum = if checksum == 0 { 0xffff } else { checksum };
        self.frame[40..42].copy_from_slice(&checksum.to_be_bytes());
        &self.frame
    }

    /// Where the checksum is to be computed from, and its offset from there.
    pub const CHECKSUM: (u16, u16) = (34, 6);

    fn number(&mut self, number: u64) {
        let own = &mut self.frame[DATAGRAM_HEADERS..];
        let mut header = [0; OWN_HEADER];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&self.flow.number.to_le_bytes());
        header[8..16].copy_from_slice(&number.to_le_bytes());
        let rest = own.get(OWN_HEADER..).unwrap_or_default();
        let crc = payload_crc(&header, rest);
        header[16..].copy_from_slice(&crc.to_le_bytes());
        // A frame of 60 bytes has room for 18 of them: its CRC is cut.
        let room = own.len().min(OWN_HEADER);
        own[..room].copy_from_slice(&header[..room]);
    }
}

/// CRC-32 of the flow, the number and what follows the own header.
fn payload_crc(header: &[u8; OWN_HEADER], rest: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[4..16]);
    crc.update(rest);
    crc.finalize()
}

/// The headers of a large segment that the card is to cut: the IPv4 header as if
/// there was one packet (the card sets length and checksum), and the TCP checksum
/// field holding the pseudo header's sum without the length, as the 8254x wants it.
pub fn segment_headers(flow: &Flow, offset: u32) -> [u8; SEGMENT_HEADERS] {
    let mut frame = [0; SEGMENT_HEADERS];
    ethernet(flow, &mut frame);
    ipv4(flow, PROTOCOL_TCP, 0, &mut frame[14..34]);
    frame[24..26].fill(0);
    frame[34..36].copy_from_slice(&80u16.to_be_bytes());
    frame[36..38].copy_from_slice(&(flow.number as u16).to_be_bytes());
    frame[38..42].copy_from_slice(&offset.to_be_bytes());
    frame[46] = 5 << 4;
    frame[47] = 0x18;
    frame[48..50].copy_from_slice(&0xffffu16.to_be_bytes());
    let partial = fold(pseudo(&frame[14..34], PROTOCOL_TCP, 0));
    frame[50..52].copy_from_slice(&partial.to_be_bytes());
    frame
}

/// Fills `bytes` with a flow's stream from `offset` on.
pub fn fill_stream(flow: u32, offset: u32, bytes: &mut [u8]) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = filler(flow, offset.wrapping_add(i as u32));
    }
}

// ---- Checking --------------------------------------------------------------------

/// What a frame (without FCS) says.
///
/// # Errors
/// What is wrong with it.
pub fn check(frame: &[u8]) -> Result<Content, Corruption> {
    let packet = frame.get(14..).ok_or(Corruption::Short)?;
    if frame[12..14] != ETHERTYPE_IPV4 || packet.len() < 20 || packet[0] != 0x45 {
        return Err(Corruption::Kind);
    }
    if fold(sum(&packet[..20], 0)) != 0xffff {
        return Err(Corruption::HeaderChecksum);
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let body = packet.get(20..total).ok_or(Corruption::Length)?;
    let protocol = packet[9];
    if fold(sum(body, pseudo(packet, protocol, body.len()))) != 0xffff {
        return Err(Corruption::PayloadChecksum);
    }
    match protocol {
        PROTOCOL_UDP => check_datagram(body),
        PROTOCOL_TCP => check_segment(body),
        _ => Err(Corruption::Kind),
    }
}

fn check_datagram(udp: &[u8]) -> Result<Content, Corruption> {
    let word = |at: usize| u32::from_le_bytes(udp[at..at + 4].try_into().expect("four bytes"));
    if udp.len() < 8 + 16 {
        return Err(Corruption::Short);
    }
    if usize::from(u16::from_be_bytes([udp[4], udp[5]])) != udp.len() {
        return Err(Corruption::Length);
    }
    if word(8) != MAGIC {
        return Err(Corruption::Magic);
    }
    let mut header = [0; OWN_HEADER];
    let room = (udp.len() - 8).min(OWN_HEADER);
    header[..room].copy_from_slice(&udp[8..8 + room]);
    let crc = payload_crc(&header, udp.get(8 + OWN_HEADER..).unwrap_or_default()).to_le_bytes();
    if header[16..room] != crc[..room - 16] {
        return Err(Corruption::Payload);
    }
    Ok(Content::Datagram {
        flow: word(12),
        number: u64::from(word(16)) | u64::from(word(20)) << 32,
    })
}

fn check_segment(tcp: &[u8]) -> Result<Content, Corruption> {
    if tcp.len() < 20 || tcp[12] >> 4 != 5 {
        return Err(Corruption::Short);
    }
    let flow = u32::from(u16::from_be_bytes([tcp[2], tcp[3]]));
    let offset = u32::from_be_bytes(tcp[4..8].try_into().expect("four bytes"));
    let payload = &tcp[20..];
    let whole = payload.iter().enumerate();
    for (i, byte) in whole {
        if *byte != filler(flow, offset.wrapping_add(i as u32)) {
            return Err(Corruption::Payload);
        }
    }
    Ok(Content::Segment {
        flow,
        offset,
        length: payload.len() as u32,
    })
}

/// Counts what arrives of several flows.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    /// By flow.
    pub flows: Vec<Arrived>,
    /// Frames that were not as sent.
    pub corrupted: u64,
    /// What was wrong with the first.
    pub first: Option<Corruption>,
    /// Whole frames of flows that are not expected here.
    pub strangers: u64,
}

/// What arrived of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Frames.
    pub packets: u64,
    /// Bytes of frames, without FCS.
    pub bytes: u64,
    /// The number after the highest seen.
    pub next: u64,
    /// Numbers passed over, less those that came late.
    pub missing: u64,
    /// Frames whose number was lower than one seen before.
    pub reordered: u64,
    /// The stream's next offset, modulo 2^32.
    pub offset: u32,
}

impl Sink {
    /// Expects flows 0 to `flows` - 1.
    pub fn new(flows: usize) -> Sink {
        Sink {
            flows: vec![Arrived::default(); flows],
            ..Sink::default()
        }
    }

    /// Takes a frame.
    pub fn take(&mut self, frame: &[u8]) {
        match check(frame) {
            Ok(Content::Datagram { flow, number }) => self.datagram(flow, number, frame.len()),
            Ok(Content::Segment {
                flow,
                offset,
                length,
            }) => self.segment(flow, offset, length, frame.len()),
            Err(corruption) => {
                self.corrupted += 1;
                self.first.get_or_insert(corruption);
            }
        }
    }

    fn flow(&mut self, flow: u32, length: usize) -> Option<&mut Arrived> {
        let Some(arrived) = self.flows.get_mut(flow as usize) else {
            self.strangers += 1;
            return None;
        };
        arrived.packets += 1;
        arrived.bytes += length as u64;
        Some(arrived)
    }

    fn datagram(&mut self, flow: u32, number: u64, length: usize) {
        let Some(arrived) = self.flow(flow, length) else {
            return;
        };
        if number < arrived.next {
            arrived.reordered += 1;
            arrived.missing = arrived.missing.saturating_sub(1);
            return;
        }
        arrived.missing += number - arrived.next;
        arrived.next = number + 1;
    }

    fn segment(&mut self, flow: u32, offset: u32, payload: u32, length: usize) {
        let Some(arrived) = self.flow(flow, length) else {
            return;
        };
        if offset != arrived.offset {
            arrived.missing += 1;
        }
        arrived.offset = offset.wrapping_add(payload);
    }

    /// Frames of all flows.
    pub fn packets(&self) -> u64 {
        self.flows.iter().map(|flow| flow.packets).sum()
    }

    /// Bytes of all flows.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow {
        number: 3,
        source: [2, 0, 0, 0, 0, 3],
        destination: [2, 0, 0, 0, 1, 0],
    };

    #[test]
    fn a_datagram_of_any_size_says_its_number() {
        for size in SHORTEST..=LONGEST {
            let mut datagrams = Datagrams::new(FLOW, size);
            let number = 0x1234_5678_9abc + size as u64;
            assert_eq!(
                check(datagrams.finished(number)),
                Ok(Content::Datagram { flow: 3, number }),
                "{size} bytes"
            );
        }
    }

    #[test]
    fn no_flipped_bit_after_the_addresses_goes_unnoticed() {
        let frame = Datagrams::new(FLOW, 128).finished(7).to_vec();
        for bit in 12 * 8..frame.len() * 8 {
            let mut changed = frame.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_payload_with_a_right_checksum_but_wrong_bytes_is_corrupt() {
        let mut frame = Datagrams::new(FLOW, 128).finished(7).to_vec();
        // Swapping two words changes no Internet checksum.
        frame.swap(100, 102);
        frame.swap(101, 103);
        assert_eq!(check(&frame), Err(Corruption::Payload));
    }

    #[test]
    fn a_sink_counts_gaps_and_late_ones() {
        let mut datagrams = Datagrams::new(FLOW, 64);
        let mut sink = Sink::new(4);
        for number in [0, 1, 4, 3] {
            sink.take(datagrams.finished(number));
        }
        let arrived = sink.flows[3];
        assert_eq!(
            (
                arrived.packets,
                arrived.missing,
                arrived.reordered,
                arrived.next
            ),
            (4, 1, 1, 5)
        );
        sink.take(&[0; 20]);
        assert_eq!(sink.corrupted, 1);
    }

    #[test]
    fn a_segment_is_checked_by_itself() {
        let mut frame = segment_headers(&FLOW, 1000).to_vec();
        frame.resize(SEGMENT_HEADERS + 100, 0);
        fill_stream(3, 1000, &mut frame[SEGMENT_HEADERS..]);
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        let header = !fold(sum(&frame[14..34], 0));
        frame[24..26].copy_from_slice(&header.to_be_bytes());
        let length = frame.len() - 34;
        frame[50..52].fill(0);
        let checksum = !fold(sum(
            &frame[34..],
            pseudo(&frame[14..34], PROTOCOL_TCP, length),
        ));
        frame[50..52].copy_from_slice(&checksum.to_be_bytes());
        let expected = Content::Segment {
            flow: 3,
            offset: 1000,
            length: 100,
        };
        assert_eq!(check(&frame), Ok(expected));
    }
}
