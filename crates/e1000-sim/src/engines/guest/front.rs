//! A guest's side of its interface: it grants pages, names them in requests, and ends the grants when dom0 has
//! responded. dom0 is told by whoever has the turn.

use std::collections::VecDeque;

use super::ring::{Channel, Interface, NetRing};
use super::slots::{
    BLANK, ERROR, EXTRA, Extra, IS_EXTRA, MORE, OKAY, Response, RxRequest, SLOTS, TxRequest,
};
use crate::grants::table::Granter;
use crate::grants::{Access, DOM0, Reference};
use crate::memory::{Machine, PAGE};
use crate::packets::rings::{Done, FRAGMENTS, HEADER, Sent};
use crate::packets::round::guest_mac;
use crate::traffic::Mac;
use crate::traffic::source::{Landed, Outline, TrafficSource};

/// Pages that a guest has posted for packets that come in: the least that Linux' front end posts.
pub const PAGES: u64 = 64;
/// Most pieces of a packet that came in: 64 KiB, and one that is not aligned.
const PARTS: usize = 18;

/// The packet that a request ends.
#[derive(Clone, Copy, Debug)]
struct Packet {
    cookie: u64,
    /// Its batch, and its index there.
    batch: u64,
    index: usize,
}

/// A slot that dom0 has.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    out: bool,
    reference: Option<Reference>,
    /// The slot is its packet's last.
    packet: Option<Packet>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub done: Done,
    pub batch: u64,
    pub index: usize,
    pub result: Sent,
}

/// Counts of a guest's front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontCounts {
    /// Responses that named no slot that dom0 had.
    pub bad_responses: u64,
    /// Grants that were in use when dom0 had responded. Their pages are not used again.
    pub kept: u64,
    /// Packets that came in for others: the bridge knew no better.
    pub others: u64,
    /// Pieces that dom0 could not deliver.
    pub errors: u64,
}

/// A guest's front end.
#[derive(Debug)]
pub(super) struct FrontEnd<'m> {
    interface: &'m Interface,
    machine: &'m Machine,
    guest: u32,
    mac: Mac,
    granter: Granter<'m>,
    ids: Vec<u16>,
    sending: Vec<Sending>,
    produce: u32,
    seen: u32,
    /// First of its pages for what comes in.
    pages: u64,
    posted: Vec<Option<Reference>>,
    rx_produce: u32,
    rx_seen: u32,
    pub ended: VecDeque<Ended>,
    pub counts: FrontCounts,
}

/// A page's part of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    frame: u64,
    offset: u16,
    length: u32,
}

impl<'m> FrontEnd<'m> {
    /// Connects a guest. Its last [`PAGES`] pages are for what comes in.
    pub fn new(net: &'m NetRing, machine: &'m Machine, guest: u32) -> FrontEnd<'m> {
        let mac = guest_mac(guest);
        let interface = net.connect(guest as usize, mac);
        let mut front = FrontEnd {
            interface,
            machine,
            guest,
            mac,
            granter: Granter::new(&net.tables[guest as usize]),
            ids: (0..SLOTS as u16).rev().collect(),
            sending: vec![Sending::default(); SLOTS as usize],
            produce: 0,
            seen: 0,
            pages: machine.sizes().guest(guest).end - PAGES * PAGE,
            posted: vec![None; PAGES as usize],
            rx_produce: 0,
            rx_seen: 0,
            ended: VecDeque::with_capacity(SLOTS as usize),
            counts: FrontCounts::default(),
        };
        for id in 0..PAGES as u16 {
            front.post(id);
        }
        front.interface.rx.show_requests(front.rx_produce);
        front
    }

    /// Whose it is.
    pub fn guest(&self) -> u32 {
        self.guest
    }

    /// Grants a page and posts it.
    fn post(&mut self, id: u16) {
        let frame = self.pages / PAGE + u64::from(id);
        let Some(reference) = self.granter.grant(DOM0, frame, Access::Write) else {
            return;
        };
        self.posted[usize::from(id)] = Some(reference);
        let request = RxRequest { reference, id };
        self.interface.rx.put_rx(self.rx_produce, &request);
        self.rx_produce = self.rx_produce.wrapping_add(1);
    }

    /// Puts a packet into the ring; false if there is no room. dom0 sees it after
    /// [`FrontEnd::show`].
    pub fn put(&mut self, channel: Channel, packet: &Outline, batch: u64, index: usize) -> bool {
        let in_ring = match channel {
            Channel::InRing => (packet.length as usize).min(HEADER),
            Channel::Copied | Channel::Mapped => 0,
        };
        let mut parts = [Part::default(); FRAGMENTS + 1];
        let pieces = split(
            packet.at + in_ring as u64,
            packet.length - in_ring as u32,
            &mut parts,
        );
        let Some(pieces) = pieces else { return false };
        let extra = packet.gso.1 != 0;
        let slots = pieces.max(1) + usize::from(extra);
        let mut references = [None; FRAGMENTS + 1];
        if self.ids.len() < slots || !self.grant(&parts[..pieces], &mut references) {
            return false;
        }
        if in_ring > 0 {
            let to = self.interface.header(self.produce);
            let from = self.machine.at(packet.at, in_ring as u64);
            // SAFETY: `at` checked the source; a header area has that many bytes, and nobody reads it
            // before it is shown.
            unsafe { std::ptr::copy_nonoverlapping(from.expect("own memory"), to, in_ring) };
        }
        let last = Packet {
            cookie: packet.cookie,
            batch,
            index,
        };
        for piece in 0..pieces.max(1) {
            let ends = piece + 1 >= pieces;
            let mut flags = if ends { 0 } else { MORE };
            if piece == 0 {
                flags |= if packet.blank { BLANK } else { 0 };
                flags |= if extra { EXTRA } else { 0 };
            }
            let id = self.take_id(references[piece], ends.then_some(last));
            let request = TxRequest {
                reference: references[piece].unwrap_or(Reference(0)),
                offset: parts[piece].offset,
                size: if piece == 0 {
                    packet.length as u16
                } else {
                    parts[piece].length as u16
                },
                id,
                flags,
                header: if piece == 0 { in_ring as u16 } else { 0 },
            };
            self.interface.tx.put_tx(self.produce, &request);
            self.produce = self.produce.wrapping_add(1);
            if piece == 0 && extra {
                self.put_extra(packet);
            }
        }
        true
    }

    fn put_extra(&mut self, packet: &Outline) {
        let id = self.take_id(None, None);
        let (size, kind) = packet.gso;
        self.interface
            .tx
            .put_extra(self.produce, &Extra { size, kind, id });
        self.produce = self.produce.wrapping_add(1);
    }

    /// Grants dom0 all parts to read, or none.
    fn grant(&mut self, parts: &[Part], references: &mut [Option<Reference>]) -> bool {
        for (index, part) in parts.iter().enumerate() {
            references[index] = self.granter.grant(DOM0, part.frame, Access::Read);
            if references[index].is_none() {
                for reference in references[..index].iter_mut().filter_map(Option::take) {
                    self.end(reference);
                }
                return false;
            }
        }
        true
    }

    fn take_id(&mut self, reference: Option<Reference>, packet: Option<Packet>) -> u16 {
        let id = self.ids.pop().expect("there are enough");
        self.sending[usize::from(id)] = Sending {
            out: true,
            reference,
            packet,
        };
        id
    }

    /// Ends a grant. One that is in use is kept, so that its page is dom0's as long as that has it.
    fn end(&mut self, reference: Reference) -> bool {
        let ended = self.granter.end(reference).is_ok();
        if !ended {
            self.granter.give_up(reference);
            self.counts.kept += 1;
        }
        ended
    }

    /// Shows dom0 what was put.
    pub fn show(&self) {
        self.interface.tx.show_requests(self.produce);
    }

    /// Takes dom0's responses to what was sent.
    pub fn reap(&mut self) {
        let responses = self.interface.tx.responses();
        if responses.wrapping_sub(self.seen) > SLOTS {
            self.counts.bad_responses += 1;
            self.seen = responses;
        }
        while self.seen != responses {
            let (response, _) = self.interface.tx.response(self.seen);
            self.seen = self.seen.wrapping_add(1);
            self.sent(&response);
        }
    }

    fn sent(&mut self, response: &Response) {
        let sending = self.sending.get_mut(usize::from(response.id));
        let Some(sending) = sending.filter(|sending| sending.out) else {
            self.counts.bad_responses += 1;
            return;
        };
        let Sending {
            reference, packet, ..
        } = std::mem::take(sending);
        if let Some(reference) = reference {
            self.end(reference);
        }
        self.ids.push(response.id);
        if let Some(packet) = packet {
            self.ended.push_back(Ended {
                done: Done::new(self.guest, packet.cookie),
                batch: packet.batch,
                index: packet.index,
                result: match response.status {
                    OKAY => Sent::Sent,
                    ERROR => Sent::Foreign,
                    _ => Sent::Invalid,
                },
            });
        }
    }

    /// Gives what came in to its source, and posts the pages again.
    pub fn deliver(&mut self, source: &mut TrafficSource<'_>) {
        let responses = self.interface.rx.responses();
        if responses.wrapping_sub(self.rx_seen) > SLOTS {
            self.counts.bad_responses += 1;
            self.rx_seen = responses;
        }
        let before = self.rx_produce;
        while self.rx_seen != responses {
            self.arrived(responses, source);
        }
        if self.rx_produce != before {
            self.interface.rx.show_requests(self.rx_produce);
        }
    }

    /// One packet, of as many responses as it has.
    fn arrived(&mut self, responses: u32, source: &mut TrafficSource<'_>) {
        let mut parts = [Landed { at: 0, length: 0 }; PARTS];
        let mut count = 0;
        let (mut segments, mut size) = (0, 0);
        let (mut whole, mut more) = (true, false);
        loop {
            let (response, extra) = self.interface.rx.response(self.rx_seen);
            self.rx_seen = self.rx_seen.wrapping_add(1);
            let page = self.take_page(response.id);
            whole &= page.is_some();
            if response.flags & IS_EXTRA != 0 {
                (size, segments) = (extra.size, extra.kind);
            } else if let (Some(page), Some(part)) = (page, parts.get_mut(count)) {
                let end = i64::from(response.offset) + i64::from(response.status);
                if response.status > 0 && end <= PAGE as i64 {
                    *part = Landed {
                        at: page + u64::from(response.offset),
                        length: response.status as u32,
                    };
                    count += 1;
                } else {
                    self.counts.errors += 1;
                    whole = false;
                }
            } else {
                whole = false;
            }
            // What a packet has besides is behind its first piece.
            let extra_next = response.flags & EXTRA != 0;
            if response.flags & IS_EXTRA == 0 {
                more = response.flags & MORE != 0;
            }
            if !(more || extra_next) || self.rx_seen == responses {
                break;
            }
        }
        if whole && count > 0 && self.is_mine(parts[0]) {
            source.landed(&parts[..count], segments, size);
        }
    }

    /// The page that dom0 gives back, posted again; its bytes stay until dom0's next turn.
    fn take_page(&mut self, id: u16) -> Option<u64> {
        let posted = self.posted.get_mut(usize::from(id));
        let Some(reference) = posted.and_then(Option::take) else {
            self.counts.bad_responses += 1;
            return None;
        };
        if !self.end(reference) {
            return None;
        }
        self.post(id);
        Some(self.pages + u64::from(id) * PAGE)
    }

    fn is_mine(&mut self, first: Landed) -> bool {
        let mut to = Mac::default();
        self.machine.read(first.at, &mut to).expect("own memory");
        let mine = to == self.mac;
        self.counts.others += u64::from(!mine);
        mine
    }
}

/// The parts of a packet, one for each page; `None` if they are too many.
fn split(at: u64, length: u32, parts: &mut [Part]) -> Option<usize> {
    let (mut from, end) = (at, at + u64::from(length));
    let mut count = 0;
    while from < end {
        let next = end.min((from | (PAGE - 1)) + 1);
        *parts.get_mut(count)? = Part {
            frame: from / PAGE,
            offset: (from % PAGE) as u16,
            length: (next - from) as u32,
        };
        count += 1;
        from = next;
    }
    Some(count)
}
