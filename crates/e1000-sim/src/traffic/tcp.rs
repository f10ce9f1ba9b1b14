//! TCP streams from the wire to guests: a peer that keeps a window full, and the guest's
//! endpoint, which accounts segments as Linux does and acknowledges them.
//!
//! ```text
//! Peer ─ segments ─> card ─ ... ─> guest ─ Endpoint
//!   ^                                          │ acknowledgements
//!   └──────────── card <─ ... <── guest <──────┘
//! ```
//!
//! A segment has 1,448 bytes, a time stamp and an Ethernet frame of full size. What a
//! stream holds at an offset is known (`filler`), so that each byte is checked. The window
//! is fixed: there is no loss to react to, and a segment that does not arrive stops the
//! stream, which its user notices.

use std::collections::VecDeque;

use super::checksum::{fold, pseudo, sum};
use super::make::{ethernet, ipv4};
use super::{Flow, PROTOCOL_TCP, fill_stream};

/// Payload of a segment that fills a frame of 1,514 bytes.
pub const MSS: usize = 1448;
/// Bytes before it: Ethernet, IPv4, TCP with a time stamp.
pub const HEADERS: usize = 14 + 20 + 32;
/// Segments of one write of the sending program (64 KiB, as Linux cuts it): the last one
/// has PSH.
const WRITE: u32 = 45;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// The peer's port of a stream: each has its own, as programs that connect do.
fn port(flow: &Flow) -> u16 {
    40_000 + flow.number as u16
}

/// The headers of a segment, checksums missing: its TCP length is `length`.
fn headers(flow: &Flow, ports: [u16; 2], payload: usize, out: &mut [u8]) {
    ethernet(flow, out);
    let total = (HEADERS - 14 + payload) as u16;
    ipv4(flow, PROTOCOL_TCP, total, &mut out[14..34]);
    out[34..36].copy_from_slice(&ports[0].to_be_bytes());
    out[36..38].copy_from_slice(&ports[1].to_be_bytes());
    out[46] = 8 << 4;
    out[47] = ACK;
    out[48..50].copy_from_slice(&0xffffu16.to_be_bytes());
    out[54..58].copy_from_slice(&[1, 1, 8, 10]);
}

/// The sender at the other end of the cable.
pub struct Peer {
    flow: Flow,
    /// Offset of the next byte.
    next: u32,
    /// Offset of the first byte that is not acknowledged.
    acknowledged: u32,
    window: u32,
    payload: usize,
    sent: u32,
    frame: Vec<u8>,
}

impl Peer {
    /// A sender of `flow` with at most `window` segments of `payload` bytes on the way.
    ///
    /// # Panics
    /// If such a segment is empty, or no Ethernet frame holds it.
    pub fn new(flow: Flow, window: u32, payload: usize) -> Peer {
        assert!((1..=MSS).contains(&payload), "a segment fits a frame");
        let mut frame = vec![0; HEADERS + payload];
        headers(
            &flow,
            [port(&flow), flow.number as u16],
            payload,
            &mut frame,
        );
        Peer {
            flow,
            next: 0,
            acknowledged: 0,
            window,
            payload,
            sent: 0,
            frame,
        }
    }

    /// The next segment, if the window has room.
    pub fn segment(&mut self) -> Option<Vec<u8>> {
        if self.outstanding() / self.payload as u32 >= self.window {
            return None;
        }
        self.sent += 1;
        let last = self.sent.is_multiple_of(WRITE) || self.payload < MSS;
        let frame = &mut self.frame;
        frame[38..42].copy_from_slice(&self.next.to_be_bytes());
        frame[42..46].copy_from_slice(&1u32.to_be_bytes());
        frame[47] = if last { ACK | PSH } else { ACK };
        // A millisecond for some hundred segments.
        frame[58..62].copy_from_slice(&(self.sent / 128).to_be_bytes());
        fill_stream(self.flow.number, self.next, &mut frame[HEADERS..]);
        frame[50..52].fill(0);
        let pseudo = pseudo(&frame[14..34], PROTOCOL_TCP, frame.len() - 34);
        let checksum = !fold(sum(&frame[34..], pseudo));
        frame[50..52].copy_from_slice(&checksum.to_be_bytes());
        self.next = self.next.wrapping_add(self.payload as u32);
        Some(frame.clone())
    }

    /// The receiver has all bytes before this offset.
    pub fn acknowledged(&mut self, offset: u32) {
        if offset.wrapping_sub(self.acknowledged) <= self.outstanding() {
            self.acknowledged = offset;
        }
    }

    /// Bytes that are not acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.next.wrapping_sub(self.acknowledged)
    }
}

/// When an endpoint acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// Every second segment by itself, whatever packet it came in.
    EverySecond,
    /// Each packet that brings two segments or more: a stock Linux, which accounts
    /// segments (`tcp_measure_rcv_mss`, `__tcp_ack_snd_check`) but acknowledges once.
    EachPacket,
}

/// Why a packet is not a segment of this stream, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder;

/// The guest's end of a stream.
pub struct Endpoint {
    /// The addresses of its acknowledgements.
    flow: Flow,
    acknowledge: Acknowledge,
    expected: u32,
    /// Segments that are not acknowledged.
    pending: u32,
    stamp: [u8; 4],
    /// Offsets to acknowledge.
    due: VecDeque<u32>,
    /// Segments that came.
    pub segments: u64,
    /// Packets that they came in.
    pub packets: u64,
    /// Packets that were not the stream's next.
    pub out_of_order: u64,
}

impl Endpoint {
    /// An endpoint that has nothing yet.
    pub fn new(flow: Flow, acknowledge: Acknowledge) -> Endpoint {
        Endpoint {
            flow,
            acknowledge,
            expected: 0,
            pending: 0,
            stamp: [0; 4],
            due: VecDeque::new(),
            segments: 0,
            packets: 0,
            out_of_order: 0,
        }
    }

    /// Changes when it acknowledges.
    pub fn set_acknowledge(&mut self, acknowledge: Acknowledge) {
        self.acknowledge = acknowledge;
    }

    /// Accounts a packet of `segments` segments, each of which but the last has `size`
    /// bytes.
    pub fn take(&mut self, packet: &[u8], segments: u32, size: u32) {
        let Some(head) = packet.first_chunk::<HEADERS>() else {
            self.out_of_order += 1;
            return;
        };
        let seq = u32::from_be_bytes([head[38], head[39], head[40], head[41]]);
        let header = 34 + usize::from(head[46] >> 4) * 4;
        let total = 14 + usize::from(u16::from_be_bytes([head[16], head[17]]));
        let payload = total.saturating_sub(header) as u32;
        if seq != self.expected || payload == 0 {
            self.out_of_order += 1;
            return;
        }
        self.stamp.copy_from_slice(&head[58..62]);
        self.packets += 1;
        self.segments += u64::from(segments);
        self.expected = seq.wrapping_add(payload);
        match self.acknowledge {
            Acknowledge::EverySecond => self.every_second(seq, segments, size),
            Acknowledge::EachPacket => {
                self.pending += segments;
                if self.pending >= 2 {
                    self.due.push_back(self.expected);
                    self.pending = 0;
                }
            }
        }
    }

    fn every_second(&mut self, seq: u32, segments: u32, size: u32) {
        for number in 1..=segments {
            self.pending += 1;
            if self.pending == 2 {
                self.pending = 0;
                let end = seq.wrapping_add(number.wrapping_mul(size));
                let last = number == segments;
                self.due.push_back(if last { self.expected } else { end });
            }
        }
    }

    /// What the timer of delayed acknowledgements would send: the rest.
    pub fn hurry(&mut self) {
        if self.pending > 0 {
            self.due.push_back(self.expected);
            self.pending = 0;
        }
    }

    /// Acknowledgements that are to be sent.
    pub fn due(&self) -> usize {
        self.due.len()
    }

    /// The next acknowledgement, complete except for its TCP checksum: the field has the sum
    /// of the pseudo header, as a sender leaves it for the card.
    pub fn acknowledgement(&mut self) -> Option<[u8; HEADERS]> {
        let offset = self.due.pop_front()?;
        let mut frame = [0; HEADERS];
        headers(
            &self.flow,
            [self.flow.number as u16, port(&self.flow)],
            0,
            &mut frame,
        );
        frame[38..42].copy_from_slice(&1u32.to_be_bytes());
        frame[42..46].copy_from_slice(&offset.to_be_bytes());
        frame[62..66].copy_from_slice(&self.stamp);
        let partial = fold(pseudo(&frame[14..34], PROTOCOL_TCP, HEADERS - 34));
        frame[50..52].copy_from_slice(&partial.to_be_bytes());
        Some(frame)
    }

    /// Takes the numbers of further acknowledgements, which differ from the last one that was taken
    /// in nothing else: as many as `numbers` has room for; gives how many.
    pub fn further(&mut self, numbers: &mut [u32]) -> usize {
        let taken = self.due.len().min(numbers.len());
        for (number, offset) in numbers.iter_mut().zip(self.due.drain(..taken)) {
            *number = offset;
        }
        taken
    }

    /// The acknowledgement that was taken last was not sent.
    pub fn again(&mut self, frame: &[u8; HEADERS]) {
        let offset = [frame[42], frame[43], frame[44], frame[45]];
        self.due.push_front(u32::from_be_bytes(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Content, Sink, check};

    const IN: Flow = Flow {
        number: 3,
        source: [2, 0, 0, 0, 1, 0],
        destination: [2, 0, 0, 0, 0, 3],
    };
    const OUT: Flow = Flow {
        number: 3,
        source: IN.destination,
        destination: IN.source,
    };

    #[test]
    fn a_window_is_filled_and_goes_on_when_it_is_acknowledged() {
        let mut peer = Peer::new(IN, 4, MSS);
        let frames: Vec<_> = std::iter::from_fn(|| peer.segment()).collect();
        assert_eq!(frames.len(), 4);
        let length = MSS as u32;
        for (number, frame) in frames.iter().enumerate() {
            let (flow, offset) = (3, number as u32 * length);
            assert_eq!(
                check(frame),
                Ok(Content::Segment {
                    flow,
                    offset,
                    length
                })
            );
        }
        peer.acknowledged(2 * length);
        peer.acknowledged(length);
        peer.acknowledged(9 * length);
        assert_eq!(peer.outstanding(), 2 * length);
        assert_eq!(std::iter::from_fn(|| peer.segment()).count(), 2);
    }

    fn acknowledged(endpoint: &mut Endpoint) -> Vec<u32> {
        let frames = std::iter::from_fn(|| endpoint.acknowledgement());
        let offsets = frames.map(|f| u32::from_be_bytes([f[42], f[43], f[44], f[45]]));
        offsets.collect()
    }

    #[test]
    fn segments_are_acknowledged_by_twos_or_by_packets() {
        let mss = MSS as u32;
        let mut peer = Peer::new(IN, 16, MSS);
        let first = peer.segment().expect("the window is open");
        // Seven segments in one packet, then one by itself.
        let mut seven = first.clone();
        seven[16..18].copy_from_slice(&((52 + 7 * MSS) as u16).to_be_bytes());
        let eighth = (0..7).filter_map(|_| peer.segment()).last().expect("open");
        for (acknowledge, expected) in [
            (
                Acknowledge::EverySecond,
                vec![2 * mss, 4 * mss, 6 * mss, 8 * mss],
            ),
            (Acknowledge::EachPacket, vec![7 * mss]),
        ] {
            let mut endpoint = Endpoint::new(OUT, acknowledge);
            endpoint.take(&seven, 7, mss);
            endpoint.take(&eighth, 1, mss);
            assert_eq!(acknowledged(&mut endpoint), expected);
            assert_eq!((endpoint.segments, endpoint.packets), (8, 2));
            endpoint.take(&first, 1, mss);
            assert_eq!(endpoint.out_of_order, 1);
        }
    }

    #[test]
    fn an_acknowledgement_on_the_wire_says_how_far() {
        let mut peer = Peer::new(IN, 2, MSS);
        let mut endpoint = Endpoint::new(OUT, Acknowledge::EverySecond);
        while let Some(frame) = peer.segment() {
            endpoint.take(&frame, 1, MSS as u32);
        }
        let mut frame = endpoint.acknowledgement().expect("two came");
        // The card's work.
        frame[50..52].fill(0);
        let checksum = !fold(sum(&frame[34..], pseudo(&frame[14..34], 6, 32)));
        frame[50..52].copy_from_slice(&checksum.to_be_bytes());
        let mut sink = Sink::new(4);
        sink.take(&frame);
        assert_eq!((sink.corrupted, sink.strangers), (0, 0));
        let arrived = sink.flows[3];
        assert_eq!(
            (arrived.acknowledgements, arrived.acknowledged),
            (1, 2 * MSS as u32)
        );
        peer.acknowledged(arrived.acknowledged);
        assert_eq!(peer.outstanding(), 0);
    }
}
