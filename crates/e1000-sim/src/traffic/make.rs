//! Makers of packets.

use super::checksum::{fold, pseudo, sum};
use super::{
    DATAGRAM_HEADERS, ETHERTYPE_IPV4, Flow, LONGEST, MAGIC, OWN_HEADER, PROTOCOL_TCP, PROTOCOL_UDP,
    SEGMENT_HEADERS, SHORTEST, filler, payload_crc,
};

pub(super) fn ethernet(flow: &Flow, frame: &mut [u8]) {
    frame[..6].copy_from_slice(&flow.destination);
    frame[6..12].copy_from_slice(&flow.source);
    frame[12..14].copy_from_slice(&ETHERTYPE_IPV4);
}

pub(super) fn ipv4(flow: &Flow, protocol: u8, total: u16, header: &mut [u8]) {
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

    /// Datagram `number`, complete except for its UDP checksum: the field has the sum
    /// of the pseudo header, as a sender leaves it for the card. For receivers,
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

/// The headers of a large segment that the card is to split: the IPv4 header as for
/// one packet (the card sets length and checksum), and the TCP checksum field with the
/// pseudo header's sum without the length, as the 8254x requires.
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
