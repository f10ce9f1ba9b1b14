//! What guests receive: the hypervisor copies from dom0's buffer, or from the sender's page, straight into the page that the
//! guest has posted.

use super::{BackEnd, Dom0Kernel, place};
use crate::engines::guest::pending::PendingId;
use crate::engines::guest::ring::INTERFACES;
use crate::engines::guest::slots::{ERROR, EXTRA, Extra, MORE, Response, RxRequest, SLOTS};
use crate::grants::operations::{Copy, End};
use crate::grants::{Domain, Status};
use crate::memory::PAGE;
use crate::packets::packet_loop::Stop;
use crate::packets::rings::{HEADER, Request};

/// A packet that was put into a guest's pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// Its first and its number of operations.
    copies: (usize, usize),
    /// Its first response, its pages and its bytes.
    response: u32,
    pages: u32,
    length: u32,
    /// Payload of its segments and their number, if it is an aggregate.
    extra: Option<(u16, u16)>,
}

/// A piece of a packet: where its first byte is, and bytes.
#[derive(Clone, Copy, Debug)]
struct Source {
    end: End,
    offset: u16,
    length: u32,
}

/// Most bytes that a page takes.
const ROOM: u32 = PAGE as u32;

impl BackEnd<'_> {
    /// Gives each guest what waits for it, as far as it has pages.
    pub(super) fn receive(&mut self, kernel: &mut dyn Dom0Kernel) -> Result<(), Stop> {
        for guest in 0..INTERFACES {
            if kernel.bridge().first(guest + 1).is_some() {
                self.give(kernel, guest);
            }
        }
        self.release(kernel)
    }

    fn give(&mut self, kernel: &mut dyn Dom0Kernel, guest: usize) {
        self.copies.clear();
        self.given.clear();
        let begin = self.releases.len();
        while let Some(packet) = kernel.bridge().first(guest + 1) {
            let (number, size, length) = (packet.number, packet.size, packet.length);
            let segments = packet.pieces.len() as u16;
            let extra = (size != 0).then_some((size as u16, segments));
            if self.free_pages(guest) < slots(length, extra) {
                break;
            }
            let first = self.copies.len();
            for piece in packet.pieces {
                let machine = self.machine_address(piece.data);
                self.add_own(machine, piece.length);
            }
            self.end(guest, first, length, extra);
            kernel.bridge().advance(guest + 1);
            self.releases.push(number);
        }
        self.copy_and_respond(guest);
        // Only now: until it is copied, the driver must not have the buffer.
        let numbers = self.releases.split_off(begin);
        for number in numbers {
            self.give_back(kernel, number);
        }
    }

    /// A packet of one guest for another, which the driver does not see. It is dropped if the receiver has no page.
    pub(super) fn give_local(&mut self, id: PendingId, request: &Request, guest: usize) {
        if !self.ports[guest].generation.is_connected() {
            return;
        }
        self.counts.local += 1;
        let header = usize::from(request.header_length).min(HEADER) as u32;
        let packet = self.pending.get(id);
        let (rests, domain) = (usize::from(packet.rests), packet.domain());
        let rest = packet.rest;
        let length = header
            + rest[..rests]
                .iter()
                .map(|rest| u32::from(rest.length))
                .sum::<u32>();
        let extra = (request.gso_size != 0).then(|| {
            let segments = length.div_ceil(request.gso_size.into()) as u16;
            (request.gso_size, segments)
        });
        if self.free_pages(guest) < slots(length, extra) {
            self.counts.local_dropped += 1;
            return;
        }
        self.copies.clear();
        self.given.clear();
        let first = self.copies.len();
        let machine = request.header.as_ptr() as u64 - self.machine.ram() as u64;
        self.add_own(machine, header);
        for rest in &rest[..rests] {
            let end = End::Granted(domain, rest.reference());
            self.add(Source {
                end,
                offset: rest.offset,
                length: rest.length.into(),
            });
        }
        self.end(guest, first, length, extra);
        self.copy_and_respond(guest);
    }

    /// Pages that the guest has posted and that are not used yet.
    fn free_pages(&self, guest: usize) -> u32 {
        let posted = self.net.interfaces[guest].rx.requests();
        let free = posted.wrapping_sub(self.ports[guest].rx_taken);
        // An index that is nonsense has none.
        if free > SLOTS { 0 } else { free }
    }

    /// Bytes of dom0's own, frame by frame.
    fn add_own(&mut self, machine: u64, length: u32) {
        let (mut at, end) = (machine, machine + u64::from(length));
        while at < end {
            let next = end.min((at | (PAGE - 1)) + 1);
            let (frame, offset) = place(at);
            self.add(Source {
                end: End::Own(frame),
                offset,
                length: (next - at) as u32,
            });
            at = next;
        }
    }

    /// An operation whose target is filled in by [`BackEnd::end`].
    fn add(&mut self, source: Source) {
        self.copies.push(Copy {
            source: source.end,
            source_offset: source.offset,
            target: source.end,
            target_offset: 0,
            length: source.length as u16,
            status: Status::GeneralError,
        });
    }

    /// Gives a packet's operations their targets: the guest's pages, one after the other. Operations are cut where a page
    /// is full.
    fn end(&mut self, guest: usize, first: usize, length: u32, extra: Option<(u16, u16)>) {
        let domain = Domain::of_guest(guest as u32);
        let response = self.ports[guest].rx_made;
        let mut used = 0;
        let mut page = self.take_page(guest);
        if extra.is_some() {
            self.take_page(guest);
        }
        let mut pages = 1;
        let mut index = first;
        while index < self.copies.len() {
            if used == ROOM {
                page = self.take_page(guest);
                (used, pages) = (0, pages + 1);
            }
            let rest = u32::from(self.copies[index].length).saturating_sub(ROOM - used);
            if rest > 0 {
                let mut behind = self.copies[index];
                let kept = behind.length - rest as u16;
                behind.source_offset += kept;
                behind.length = rest as u16;
                self.copies[index].length = kept;
                self.copies.insert(index + 1, behind);
            }
            let copy = &mut self.copies[index];
            copy.target = End::Granted(domain, page.reference);
            copy.target_offset = used as u16;
            used += u32::from(copy.length);
            index += 1;
        }
        self.given.push(Given {
            copies: (first, self.copies.len() - first),
            response,
            pages,
            length,
            extra,
        });
    }

    /// The next posted page; its slot is the response's, which gets the guest's name for it already.
    fn take_page(&mut self, guest: usize) -> RxRequest {
        let ring = &self.net.interfaces[guest].rx;
        let port = &mut self.ports[guest];
        let request = ring.rx(port.rx_taken);
        port.rx_taken = port.rx_taken.wrapping_add(1);
        let response = Response {
            id: request.id,
            status: ERROR,
            offset: 0,
            flags: 0,
        };
        ring.put_response(port.rx_made, &response);
        port.rx_made = port.rx_made.wrapping_add(1);
        request
    }

    /// One hypercall, then the guest gets its responses.
    fn copy_and_respond(&mut self, guest: usize) {
        if self.given.is_empty() {
            return;
        }
        let mut copies = std::mem::take(&mut self.copies);
        self.hypercall(|back| back.grants.copy(&mut copies));
        let given = std::mem::take(&mut self.given);
        for packet in &given {
            let (first, count) = packet.copies;
            let mut of = copies[first..first + count].iter();
            let whole = of.all(|copy| copy.status == Status::Okay);
            self.respond(guest, packet, whole);
        }
        (self.copies, self.given) = (copies, given);
        let ring = &self.net.interfaces[guest].rx;
        ring.show_responses(self.ports[guest].rx_made);
    }

    /// A response for each page.
    fn respond(&mut self, guest: usize, packet: &Given, whole: bool) {
        if whole {
            self.counts.received += 1;
        } else {
            self.counts.lost += 1;
        }
        let ring = &self.net.interfaces[guest].rx;
        let mut at = packet.response;
        let mut left = packet.length;
        for page in 0..packet.pages {
            let (prepared, _) = ring.response(at);
            let part = left.min(ROOM);
            left -= part;
            let mut flags = if page + 1 < packet.pages { MORE } else { 0 };
            if page == 0 && packet.extra.is_some() {
                flags |= EXTRA;
            }
            let response = Response {
                id: prepared.id,
                status: if whole { part as i16 } else { ERROR },
                offset: 0,
                flags,
            };
            ring.put_response(at, &response);
            at = at.wrapping_add(1);
            if let (0, Some((size, kind))) = (page, packet.extra) {
                let (prepared, _) = ring.response(at);
                let id = prepared.id;
                ring.put_extra_response(at, &Extra { size, kind, id });
                at = at.wrapping_add(1);
            }
        }
    }
}

/// Slots that a packet needs.
fn slots(length: u32, extra: Option<(u16, u16)>) -> u32 {
    length.div_ceil(ROOM).max(1) + u32::from(extra.is_some())
}
