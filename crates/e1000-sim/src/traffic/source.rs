//! A traffic source sends and receives packets: a guest, or a program in dom0. It
//! has its own memory, from which the card reads packets, and checks received
//! packets.
//!
//! ```text
//! memory   | slot 0 | slot 1 | ...      one packet each, until its completion
//! ```
//!
//! A [`Request`] describes a packet to the sender: the first bytes copied (paper, 5.3),
//! the rest by machine address, one piece for each page.

use std::ops::Range;

use crate::memory::{Machine, PAGE};
use crate::packets::rings::{Fragment, GSO_TCPV4, HEADER, Request};
use crate::traffic::checksum::{fold_words, sum_words};
use crate::traffic::tcp::{self, Endpoint};
use crate::traffic::{self, Datagrams, Flow, SEGMENT_HEADERS, Sink};

/// Bytes of a packet that are copied to the sender's side (paper, 5.3).
pub const HEADER_COPY: usize = 96;
const _: () = assert!(HEADER_COPY <= HEADER);
/// Bytes of a slot for frames.
const FRAME_SLOT: u64 = 2048;
/// Bytes of a slot for segments that the card cuts.
const SEGMENT_SLOT: u64 = 68 << 10;
/// Bytes before a packet in the inbox: its length, its segments, and their size.
const RECORD: usize = 8;
/// The longest packet that comes in: IPv4's, and the Ethernet header.
const LONGEST_PACKET: usize = 14 + 0xffff;
/// Bytes that may come in between two checks: all that the driver's pool of 2,048 buffers
/// holds.
const INBOX: usize = 4 << 20;
/// Where TCP's checksum is, from its header on.
const TCP_CHECKSUM: u16 = 16;
/// Payload of one segment on the wire.
pub const SEGMENT_SIZE: u16 = 1460;

/// The packets to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Datagrams of that many bytes, without FCS.
    Frames(usize),
    /// TCP segments with that many bytes of payload, which the card cuts.
    Segments(usize),
}

/// A packet in its slot.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    slot: u32,
    at: u64,
    /// Bytes to be copied.
    header: usize,
    /// Bytes in all.
    length: usize,
    /// The request's `checksum_offset`, `gso_size` and `gso_type`.
    checksum_offset: u16,
    gso: (u16, u16),
}

/// Where a prepared packet is, for a front end that grants its pages.
#[derive(Clone, Copy, Debug)]
pub struct Outline {
    /// Machine address of its first byte.
    pub at: u64,
    /// Bytes.
    pub length: u32,
    /// Its name in the completion.
    pub cookie: u64,
    /// The transport's checksum is left to whoever sends it.
    pub blank: bool,
    /// The request's `gso_size` and `gso_type`.
    pub gso: (u16, u16),
}

/// A part of a packet that came into the guest's own page.
#[derive(Clone, Copy, Debug)]
pub struct Landed {
    /// Machine address.
    pub at: u64,
    /// Bytes.
    pub length: u32,
}

/// A traffic source.
pub struct TrafficSource<'m> {
    machine: &'m Machine,
    flow: Flow,
    memory: Range<u64>,
    shape: Shape,
    datagrams: Datagrams,
    free: Vec<u32>,
    busy: Vec<bool>,
    /// Packets described so far: the next one's number.
    pub sent: u64,
    /// Stream bytes described so far.
    pub streamed: u32,
    /// Packets whose completion was seen.
    pub completed: u64,
    /// Completions of nothing that was outstanding.
    pub bad_completions: u64,
    /// Packets that were refused.
    pub refused: u64,
    /// What came in.
    pub received: Sink,
    /// It computes the checksums of its frames by itself; else whoever sends them does.
    pub sums: bool,
    /// Its end of a TCP stream that comes in. What it sends is then acknowledgements only.
    pub endpoint: Option<Endpoint>,
    buffer: Vec<u8>,
    inbox: Vec<u8>,
    used: usize,
    /// Packets in its own pages, which are not in the inbox yet.
    landed: Vec<(Landed, Landing)>,
}

/// Whether a packet goes on, or ends with how many segments of what size.
#[derive(Clone, Copy, Debug)]
enum Landing {
    More,
    Last(u16, u16),
}

impl<'m> TrafficSource<'m> {
    /// A traffic source of `flow` whose memory is `memory` (machine addresses, whole
    /// slots), and which expects packets of flows below `flows`.
    ///
    /// # Panics
    /// If the memory does not exist or holds no slot.
    pub fn new(
        machine: &'m Machine,
        flow: Flow,
        memory: Range<u64>,
        shape: Shape,
        flows: usize,
    ) -> TrafficSource<'m> {
        let length = memory.end - memory.start;
        assert!(machine.at(memory.start, length).is_some(), "no such memory");
        let slots = (length / slot_size(shape)) as u32;
        assert!(slots > 0, "memory for a slot");
        let size = match shape {
            Shape::Frames(size) => size,
            Shape::Segments(_) => traffic::SHORTEST,
        };
        TrafficSource {
            machine,
            flow,
            memory,
            shape,
            datagrams: Datagrams::new(flow, size),
            free: (0..slots).rev().collect(),
            busy: vec![false; slots as usize],
            sent: 0,
            streamed: 0,
            completed: 0,
            bad_completions: 0,
            refused: 0,
            received: Sink::new(flows),
            sums: false,
            endpoint: None,
            buffer: vec![0; SEGMENT_SLOT as usize],
            inbox: vec![0; INBOX],
            used: 0,
            landed: Vec::new(),
        }
    }

    /// The machine that it is on.
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// The flow and addresses.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Writes the next packet into a free slot, or `None` if all slots wait for
    /// completion. This is the test's work, not the traffic source's.
    pub fn prepare(&mut self) -> Option<Prepared> {
        let slot = self.free.pop()?;
        let at = self.memory.start + u64::from(slot) * slot_size(self.shape);
        let (mut checksum_offset, mut gso) = (TCP_CHECKSUM, (0, 0));
        let written = match (&mut self.endpoint, self.shape) {
            (Some(endpoint), _) => write_acknowledgement(self.machine, endpoint, at),
            (None, Shape::Frames(_)) => {
                checksum_offset = Datagrams::CHECKSUM.1;
                Some(self.write_frame(at))
            }
            (None, Shape::Segments(payload)) => {
                gso = (SEGMENT_SIZE, GSO_TCPV4);
                Some(self.write_segment(at, payload))
            }
        };
        let Some((header, length)) = written else {
            self.free.push(slot);
            return None;
        };
        self.busy[slot as usize] = true;
        self.sent += 1;
        Some(Prepared {
            slot,
            at,
            header,
            length,
            checksum_offset,
            gso,
        })
    }

    fn write_frame(&mut self, at: u64) -> (usize, usize) {
        let frame = self.datagrams.make(self.sent);
        self.machine.write(at, frame).expect("own memory");
        (frame.len().min(HEADER_COPY), frame.len())
    }

    fn write_segment(&mut self, at: u64, payload: usize) -> (usize, usize) {
        let length = SEGMENT_HEADERS + payload;
        let frame = &mut self.buffer[..length];
        frame[..SEGMENT_HEADERS]
            .copy_from_slice(&traffic::segment_headers(&self.flow, self.streamed));
        traffic::fill_stream(
            self.flow.number,
            self.streamed,
            &mut frame[SEGMENT_HEADERS..],
        );
        self.machine.write(at, frame).expect("own memory");
        self.streamed = self.streamed.wrapping_add(payload as u32);
        (SEGMENT_HEADERS, length)
    }

    /// Describes a prepared packet. The cookie is its slot.
    pub fn describe(&self, packet: &Prepared, request: &mut Request) {
        request.cookie = u64::from(packet.slot);
        request.guest = self.flow.number;
        request.header_length = packet.header as u16;
        request.fragments = 0;
        (request.vlan_tag, request.flags) = (0, 0);
        request.checksum_start = Datagrams::CHECKSUM.0;
        request.checksum_offset = packet.checksum_offset;
        (request.gso_size, request.gso_type) = packet.gso;
        let header = &mut request.header[..packet.header];
        self.machine.read(packet.at, header).expect("own memory");
        if self.sums && packet.gso == (0, 0) {
            self.compute_checksum(packet, request);
        }
        let rest = packet.at + packet.header as u64;
        describe(rest, (packet.length - packet.header) as u64, request);
    }

    /// Where a prepared packet is, whole in its own memory. `scratch` is overwritten.
    pub fn outline(&self, packet: &Prepared, scratch: &mut Request) -> Outline {
        let sums = self.sums && packet.gso == (0, 0);
        if sums {
            self.describe(packet, scratch);
            let header = &scratch.header[..packet.header];
            self.machine.write(packet.at, header).expect("own memory");
        }
        Outline {
            at: packet.at,
            length: packet.length as u32,
            cookie: packet.slot.into(),
            blank: !sums,
            gso: packet.gso,
        }
    }

    /// As a guest's stack does for an interface without: the field has the pseudo header's sum. Not
    /// inlined, so that others' packets cost what they cost without it.
    #[cold]
    #[inline(never)]
    fn compute_checksum(&self, packet: &Prepared, request: &mut Request) {
        let start = u64::from(std::mem::take(&mut request.checksum_start));
        let length = packet.length as u64 - start;
        let bytes = self.machine.at(packet.at + start, length);
        // SAFETY: its own memory, which nothing else writes now.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.expect("own"), length as usize) };
        let sum = !fold_words(sum_words(bytes));
        // Zero means none; its complement is the same number (RFC 768).
        let sum = if sum == 0 { 0xffff } else { sum };
        let field = start as usize + usize::from(std::mem::take(&mut request.checksum_offset));
        request.header[field..field + 2].copy_from_slice(&sum.to_le_bytes());
    }

    /// Withdraws the last prepared packet, which was not passed on.
    pub fn cancel(&mut self, packet: &Prepared) {
        self.release(u64::from(packet.slot));
        self.sent -= 1;
        if let Some(endpoint) = &mut self.endpoint {
            let mut frame = [0; tcp::HEADERS];
            self.machine
                .read(packet.at, &mut frame)
                .expect("own memory");
            endpoint.again(&frame);
        } else if let Shape::Segments(payload) = self.shape {
            self.streamed = self.streamed.wrapping_sub(payload as u32);
        }
    }

    /// A prepared packet was refused and will not be sent: its number is used up.
    pub fn refused(&mut self, packet: &Prepared) {
        self.release(u64::from(packet.slot));
        self.refused += 1;
    }

    /// A packet has been sent.
    pub fn complete(&mut self, cookie: u64) {
        if self.release(cookie) {
            self.completed += 1;
        } else {
            self.bad_completions += 1;
        }
    }

    fn release(&mut self, cookie: u64) -> bool {
        let Some(busy) = self.busy.get_mut(cookie as usize).filter(|busy| **busy) else {
            return false;
        };
        *busy = false;
        self.free.push(cookie as u32);
        true
    }

    /// Room for the next packet that comes in; [`TrafficSource::arrived`] says how much
    /// of it was used. Empty if there is none.
    pub fn room(&mut self) -> &mut [u8] {
        let start = (self.used + RECORD).min(self.inbox.len());
        let end = (start + LONGEST_PACKET).min(self.inbox.len());
        &mut self.inbox[start..end]
    }

    /// A packet of `length` bytes came into the room given last.
    pub fn arrived(&mut self, length: usize) {
        self.arrived_aggregate(length, 0, 0);
    }

    /// The same for `segments` TCP segments, each of which but the last has `size` bytes of
    /// payload; 0 segments are a packet of its own.
    pub fn arrived_aggregate(&mut self, length: usize, segments: u16, size: u16) {
        let kept = length.min(self.room().len());
        let record = kept as u64 | u64::from(segments) << 32 | u64::from(size) << 48;
        self.inbox[self.used..self.used + RECORD].copy_from_slice(&record.to_le_bytes());
        self.used += RECORD + kept;
    }

    /// A packet came into its own pages, in these parts, which stay until it is checked or read;
    /// `segments` and `size` as above.
    pub fn landed(&mut self, parts: &[Landed], segments: u16, size: u16) {
        let Some((last, first)) = parts.split_last() else {
            return;
        };
        let first = first.iter().map(|part| (*part, Landing::More));
        self.landed.extend(first);
        self.landed.push((*last, Landing::Last(segments, size)));
    }

    /// Puts what came into its pages into the inbox: the test's work, which has to check it.
    fn take_landed(&mut self) {
        let mut length = 0;
        for (part, landing) in std::mem::take(&mut self.landed) {
            let machine = self.machine;
            let room = &mut self.room()[length..];
            let kept = room.len().min(part.length as usize);
            machine
                .read(part.at, &mut room[..kept])
                .expect("own memory");
            length += kept;
            if let Landing::Last(segments, size) = landing {
                self.arrived_aggregate(length, segments, size);
                length = 0;
            }
        }
    }

    /// Checks what came in. This is the test's work, not the traffic source's.
    pub fn check(&mut self) {
        self.take_landed();
        for (packet, segments, _) in packets(&self.inbox[..self.used]) {
            match segments {
                0 => self.received.take(packet),
                _ => self.received.take_aggregate(packet, segments),
            }
        }
        self.used = 0;
    }

    /// Gives what came in to `take`, in place of a check.
    pub fn read(&mut self, take: impl FnMut(&[u8])) {
        self.take_landed();
        let all = packets(&self.inbox[..self.used]);
        all.map(|(packet, ..)| packet).for_each(take);
        self.used = 0;
    }

    /// Lets the endpoint account what came in, before it is checked.
    pub fn account(&mut self) {
        let Some(endpoint) = &mut self.endpoint else {
            return;
        };
        for (packet, segments, size) in packets(&self.inbox[..self.used]) {
            endpoint.take(packet, segments.max(1), size);
        }
    }

    /// Packets that wait for completion.
    pub fn outstanding(&self) -> u64 {
        (self.busy.len() - self.free.len()) as u64
    }

    /// Forgets outstanding packets: after a reset of the device.
    pub fn reset(&mut self) {
        let slots = self.busy.len() as u32;
        self.busy.fill(false);
        self.free = (0..slots).rev().collect();
    }
}

/// The inbox's packets, with their segments (0: it is none of several) and the size
/// of each but the last.
fn packets(inbox: &[u8]) -> impl Iterator<Item = (&[u8], u32, u32)> {
    let mut rest = inbox;
    std::iter::from_fn(move || {
        let (record, after) = rest.split_first_chunk::<RECORD>()?;
        let record = u64::from_le_bytes(*record);
        let (packet, after) = after.split_at(record as u32 as usize);
        rest = after;
        let segments = (record >> 32) as u32 & 0xffff;
        Some((packet, segments, (record >> 48) as u32))
    })
}

/// Writes the next acknowledgement, if one is due; gives its lengths.
fn write_acknowledgement(
    machine: &Machine,
    endpoint: &mut Endpoint,
    at: u64,
) -> Option<(usize, usize)> {
    let frame = endpoint.acknowledgement()?;
    machine.write(at, &frame).expect("own memory");
    Some((frame.len(), frame.len()))
}

fn slot_size(shape: Shape) -> u64 {
    match shape {
        Shape::Frames(_) => FRAME_SLOT,
        Shape::Segments(_) => SEGMENT_SLOT,
    }
}

/// Fragments for `length` bytes at `at`: none crosses a page.
fn describe(at: u64, length: u64, request: &mut Request) {
    let (mut from, end) = (at, at + length);
    while from < end {
        let piece = end.min((from | (PAGE - 1)) + 1) - from;
        let number = usize::from(request.fragments);
        request.fragment[number] = Fragment::new(from, piece as u32);
        request.fragments += 1;
        from += piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Sizes;

    const FLOW: Flow = Flow {
        number: 1,
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 1, 0],
    };

    fn gather(machine: &Machine, request: &Request) -> Vec<u8> {
        let mut frame = request.header[..usize::from(request.header_length)].to_vec();
        for fragment in &request.fragment[..usize::from(request.fragments)] {
            let mut piece = vec![0; fragment.length as usize];
            machine.read(fragment.address, &mut piece).expect("memory");
            frame.extend(piece);
        }
        frame
    }

    #[test]
    fn a_request_describes_the_whole_frame() {
        let machine = Machine::new(Sizes::default()).expect("memory");
        let memory = machine.sizes().guest(1);
        for size in [60, 96, 97, 1514] {
            let shape = Shape::Frames(size);
            let mut source = TrafficSource::new(&machine, FLOW, memory.clone(), shape, 1);
            let mut request = Request::default();
            let packet = source.prepare().expect("a slot");
            source.describe(&packet, &mut request);
            let frame = gather(&machine, &request);
            assert_eq!(frame, Datagrams::new(FLOW, size).make(0), "{size} bytes");
        }
    }

    #[test]
    fn no_fragment_crosses_a_page_and_64_kib_fit() {
        let mut request = Request::default();
        describe(0x10_0ff0, 65536 - 0xff0, &mut request);
        let pieces = &request.fragment[..usize::from(request.fragments)];
        assert!(
            pieces
                .iter()
                .all(|f| f.address / PAGE == (f.address + u64::from(f.length) - 1) / PAGE)
        );
        let total: u64 = pieces.iter().map(|f| u64::from(f.length)).sum();
        assert_eq!(total, 65536 - 0xff0);
    }

    #[test]
    fn a_slot_is_used_again_only_after_its_completion() {
        let machine = Machine::new(Sizes::default()).expect("memory");
        let memory = machine.sizes().guest(0);
        let memory = memory.start..memory.start + 2 * FRAME_SLOT;
        let mut source = TrafficSource::new(&machine, FLOW, memory, Shape::Frames(100), 1);
        let first = source.prepare().expect("a slot");
        source.prepare().expect("a slot");
        assert!(source.prepare().is_none());
        source.complete(u64::from(first.slot));
        source.complete(u64::from(first.slot));
        source.complete(77);
        assert_eq!((source.completed, source.bad_completions), (1, 2));
        assert_eq!(source.outstanding(), 1);
        assert_eq!(source.prepare().expect("a slot").slot, first.slot);
    }

    #[test]
    fn what_comes_in_is_checked_as_it_came() {
        let machine = Machine::new(Sizes::default()).expect("memory");
        let memory = machine.sizes().guest(0);
        let mut source = TrafficSource::new(&machine, FLOW, memory, Shape::Frames(100), 2);
        let mut sender = Datagrams::new(FLOW, 200);
        for number in 0..3 {
            let frame = sender.finished(number).to_vec();
            source.room()[..200].copy_from_slice(&frame);
            source.arrived(200);
        }
        source.room();
        source.check();
        source.check();
        let arrived = source.received.flows[1];
        assert_eq!(
            (arrived.packets, arrived.bytes, arrived.missing),
            (3, 600, 0)
        );
        assert_eq!(source.received.corrupted, 0);
    }
}
