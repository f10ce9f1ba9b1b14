//! Counts of arriving packets.

use super::check::{Content, Corruption, check, check_aggregate};

/// Counts arriving packets of several flows.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    /// By flow.
    pub flows: Vec<Arrived>,
    /// Frames that were changed.
    pub corrupted: u64,
    /// What was wrong with the first.
    pub first: Option<Corruption>,
    /// Correct frames of flows that are not expected here.
    pub strangers: u64,
}

/// Counts of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Packets that came, each once.
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
    /// Acknowledgements of the stream in the other direction.
    pub acknowledgements: u64,
    /// The offset that the last one had.
    pub acknowledged: u32,
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
            Ok(Content::Acknowledgement { flow, offset }) => {
                if let Some(arrived) = self.flow(flow, frame.len()) {
                    arrived.acknowledgements += 1;
                    arrived.acknowledged = offset;
                }
            }
            Err(corruption) => self.corrupt(corruption),
        }
    }

    /// Takes segments that came as one packet: as many packets of their stream.
    pub fn take_aggregate(&mut self, packet: &[u8], segments: u32) {
        match check_aggregate(packet) {
            Ok(Content::Segment {
                flow,
                offset,
                length,
            }) => {
                self.segment(flow, offset, length, packet.len());
                if let Some(arrived) = self.flows.get_mut(flow as usize) {
                    arrived.packets += u64::from(segments) - 1;
                }
            }
            Ok(_) => self.corrupt(Corruption::Kind),
            Err(corruption) => self.corrupt(corruption),
        }
    }

    fn corrupt(&mut self, corruption: Corruption) {
        self.corrupted += 1;
        self.first.get_or_insert(corruption);
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
