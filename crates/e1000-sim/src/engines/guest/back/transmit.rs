//! What guests send: requests become the hot routines' requests, which are filled in place.
//!
//! ```text
//! take     a guest's requests ─> packets, operations        for each guest
//!          one hypercall copies headers, one maps           for each guest
//! fill     what failed is refused, the others are complete
//! route    the bridge says who gets it
//! send     hot_transmit; what the driver does not take waits
//! ```

use super::{BackEnd, Dom0Kernel, names_page, place};
use crate::engines::guest::bridge::CARD;
use crate::engines::guest::pending::{GuestBytes, Mapped, PACKET_SLOTS, PendingId};
use crate::engines::guest::ring::{Channel, INTERFACES};
use crate::engines::guest::slots::{BLANK, DROPPED, ERROR, EXTRA, MORE, SLOTS, TxRequest};
use crate::grants::operations::{Copy, End, Map};
use crate::grants::{Access, Status};
use crate::packets::packet_loop::Stop;
use crate::packets::rings::{Fragment, HEADER, REQUESTS, Request, Rings, Sent};

/// Ethernet's header, and the shortest of IPv4's.
const ETHERNET: usize = 14;
/// IPv4 in an Ethernet header.
const IPV4: [u8; 2] = [0x08, 0x00];
/// Where TCP's and UDP's checksums are, by IPv4's protocol.
const CHECKSUMS: [(u8, u16); 2] = [(6, 16), (17, 6)];

/// A mapping that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    id: PendingId,
    at: usize,
    bytes: GuestBytes,
}

/// A packet's slots, read once.
struct Slots {
    pieces: [TxRequest; PACKET_SLOTS],
    count: usize,
    gso: (u16, u16),
    total: u16,
    header: u16,
    /// The ring's index of its first slot.
    first: u32,
    valid: bool,
}

impl BackEnd<'_> {
    /// Sends what waits, and what guests have put into their rings.
    pub(super) fn transmit(&mut self, kernel: &mut dyn Dom0Kernel) -> Result<(), Stop> {
        self.batch.clear();
        self.place_waiting(kernel.rings());
        let waited = self.batch.len();
        if self.waiting.is_empty() {
            for guest in 0..INTERFACES {
                if self.ports[guest].generation.is_connected() {
                    self.take(guest, kernel.rings());
                }
            }
        }
        if self.batch.len() > waited {
            self.route(kernel, waited)?;
        }
        self.send(kernel)?;
        self.finish_all();
        Ok(())
    }

    /// Puts what the driver has not taken into the hot routines' ring again.
    fn place_waiting(&mut self, rings: &mut Rings) {
        while self.batch.len() < REQUESTS {
            let Some(id) = self.waiting.pop_front() else {
                break;
            };
            if let Some(request) = &self.pending.get(id).kept {
                rings.put(self.batch.len(), request);
                self.batch.push(id);
            }
        }
    }

    /// Takes a guest's requests, as long as there is room.
    fn take(&mut self, guest: usize, rings: &mut Rings) {
        let requests = self.net.interfaces[guest].tx.requests();
        let port = &mut self.ports[guest];
        if requests.wrapping_sub(port.tx_taken) > SLOTS {
            // The guest's index is nonsense: what it says is not taken.
            self.counts.malformed += 1;
            port.tx_taken = requests;
            return;
        }
        let begin = self.batch.len();
        self.copies.clear();
        self.maps.clear();
        self.map_of.clear();
        self.copy_of.clear();
        while self.ports[guest].tx_taken != requests
            && self.batch.len() < REQUESTS
            && self.pages.len() >= PACKET_SLOTS
            && self.pending.has_room()
        {
            self.take_packet(guest, requests, rings);
        }
        if self.batch.len() == begin && self.maps.is_empty() {
            return;
        }
        self.ask_hypervisor();
        self.fill(begin, rings);
    }

    /// The slots of one packet.
    fn read_slots(&mut self, guest: usize, requests: u32, id: PendingId) -> Slots {
        let ring = &self.net.interfaces[guest].tx;
        let port = &mut self.ports[guest];
        let mut slots = Slots {
            pieces: [TxRequest {
                reference: crate::grants::Reference(0),
                offset: 0,
                size: 0,
                id: 0,
                flags: 0,
                header: 0,
            }; PACKET_SLOTS],
            count: 0,
            gso: (0, 0),
            total: 0,
            header: 0,
            first: port.tx_taken,
            valid: true,
        };
        let packet = self.pending.get_mut(id);
        loop {
            let piece = ring.tx(port.tx_taken);
            port.tx_taken = port.tx_taken.wrapping_add(1);
            slots.valid &= packet.add_slot(piece.id);
            match slots.pieces.get_mut(slots.count) {
                Some(place) => *place = piece,
                None => slots.valid = false,
            }
            if slots.count == 0 {
                (slots.total, slots.header) = (piece.size, piece.header);
                if piece.flags & EXTRA != 0 && port.tx_taken != requests {
                    let extra = ring.extra(port.tx_taken);
                    port.tx_taken = port.tx_taken.wrapping_add(1);
                    slots.valid &= packet.add_slot(extra.id);
                    slots.gso = (extra.size, extra.kind);
                }
            }
            slots.count = (slots.count + 1).min(PACKET_SLOTS);
            if piece.flags & MORE == 0 {
                break;
            }
            if port.tx_taken == requests {
                // It ends in the middle of a packet.
                slots.valid = false;
                break;
            }
        }
        slots
    }

    /// One packet: its place in the ring, and the operations that it needs.
    fn take_packet(&mut self, guest: usize, requests: u32, rings: &mut Rings) {
        let generation = self.ports[guest].generation;
        let Some(id) = self.pending.add(guest as u32, generation) else {
            return;
        };
        let mut slots = self.read_slots(guest, requests, id);
        let at = self.batch.len();
        // SAFETY: a place of the ring, in dom0's memory, which only dom0's own threads use.
        let request = unsafe { &mut *rings.place(at) };
        if !self.describe(id, guest, &mut slots, request) {
            // What was asked for it is not asked.
            self.copies
                .truncate(self.copy_of.partition_point(|of| *of != id));
            self.copy_of.truncate(self.copies.len());
            let first = self.map_of.partition_point(|piece| piece.id != id);
            for map in self.maps.drain(first..) {
                self.pages.extend(map.page.map(|page| page.0));
            }
            self.map_of.truncate(first);
            self.counts.malformed += 1;
            self.over(id, DROPPED);
            return;
        }
        self.batch.push(id);
    }

    /// Fills a request but for what comes from the guest's pages; false if it is malformed.
    fn describe(
        &mut self,
        id: PendingId,
        guest: usize,
        slots: &mut Slots,
        request: &mut Request,
    ) -> bool {
        let total = usize::from(slots.total);
        let others = slots.pieces[1..slots.count.max(1)].iter();
        let others: usize = others.map(|piece| usize::from(piece.size)).sum();
        let in_ring = usize::from(slots.header);
        if !slots.valid || total < ETHERNET || in_ring > HEADER || others + in_ring > total {
            return false;
        }
        slots.pieces[0].size = (total - others - in_ring) as u16;
        let header = match in_ring {
            0 => total.min(HEADER),
            bytes => bytes,
        };
        request.cookie = self.pending.ticket(id);
        request.guest = guest as u32;
        request.header_length = header as u16;
        request.fragments = 0;
        (request.gso_size, request.gso_type) = slots.gso;
        (request.vlan_tag, request.flags) = (0, 0);
        // Until the header is there: whether a checksum is missing.
        request.checksum_start = slots.pieces[0].flags & BLANK;
        request.checksum_offset = 0;
        if in_ring > 0 {
            let from = self.net.interfaces[guest].header(slots.first);
            // SAFETY: a header area has that many bytes; the guest may write them, they are copied once.
            unsafe { std::ptr::copy_nonoverlapping(from, request.header.as_mut_ptr(), in_ring) };
        }
        let target = self.header_place(request);
        let mut got = in_ring;
        for piece in &slots.pieces[..slots.count] {
            let Ok(()) = self.piece(id, piece, &mut got, header, target) else {
                return false;
            };
        }
        got >= header
    }

    fn header_place(&self, request: &Request) -> (u64, u16) {
        let machine = request.header.as_ptr() as u64 - self.machine.ram() as u64;
        place(machine)
    }

    /// A piece: the part of it that is the packet's header is copied, the rest is mapped.
    fn piece(
        &mut self,
        id: PendingId,
        piece: &TxRequest,
        got: &mut usize,
        header: usize,
        (frame, offset): (u64, u16),
    ) -> Result<(), ()> {
        if piece.size == 0 {
            return Ok(());
        }
        if !names_page(piece.reference) || u32::from(piece.offset) + u32::from(piece.size) > 4096 {
            return Err(());
        }
        let copied = (header - (*got).min(header)).min(piece.size.into()) as u16;
        let domain = self.pending.get(id).domain();
        if copied > 0 && self.channel != Channel::Mapped {
            self.copies.push(Copy {
                source: End::Granted(domain, piece.reference),
                source_offset: piece.offset,
                target: End::Own(frame),
                target_offset: offset + *got as u16,
                length: copied,
                status: Status::GeneralError,
            });
            self.copy_of.push(id);
        }
        let rest = GuestBytes {
            reference: piece.reference.0,
            offset: piece.offset + copied,
            length: piece.size - copied,
        };
        if rest.length > 0 && !self.pending.get_mut(id).add_rest(rest) {
            return Err(());
        }
        if rest.length > 0 || self.channel == Channel::Mapped {
            let page = match self.channel {
                Channel::InRing => None,
                Channel::Copied | Channel::Mapped => Some(self.window_page().ok_or(())?),
            };
            self.maps
                .push(Map::new(domain, piece.reference, Access::Read, page));
            self.map_of.push(Piece {
                id,
                at: *got,
                bytes: GuestBytes {
                    length: copied,
                    offset: piece.offset,
                    ..rest
                },
            });
        }
        *got += usize::from(piece.size);
        Ok(())
    }

    /// One hypercall for the copies, one for the mappings.
    fn ask_hypervisor(&mut self) {
        if !self.copies.is_empty() {
            let mut copies = std::mem::take(&mut self.copies);
            self.hypercall(|back| back.grants.copy(&mut copies));
            self.copies = copies;
        }
        if !self.maps.is_empty() {
            let mut maps = std::mem::take(&mut self.maps);
            self.hypercall(|back| back.grants.map(&mut maps));
            self.maps = maps;
        }
    }
}

impl BackEnd<'_> {
    /// Completes the requests from `begin` on with what the hypervisor has given. Packets that it refused anything of
    /// are taken out.
    fn fill(&mut self, begin: usize, rings: &mut Rings) {
        let mut failed: Vec<PendingId> = Vec::new();
        for (copy, id) in self.copies.iter().zip(&self.copy_of) {
            if copy.status != Status::Okay {
                failed.push(*id);
            }
        }
        let (mut index, mut mapped) = (begin, 0);
        while mapped < self.maps.len() {
            let (map, piece) = (self.maps[mapped], self.map_of[mapped]);
            mapped += 1;
            if map.status != Status::Okay {
                self.pages.extend(map.page.map(|page| page.0));
                failed.push(piece.id);
                continue;
            }
            // Mappings are in the order of packets.
            while self.batch[index] != piece.id {
                index += 1;
            }
            // SAFETY: a place of the ring, in dom0's memory, which only dom0's own threads use.
            let request = unsafe { &mut *rings.place(index) };
            self.mapped(&map, &piece, request);
        }
        for index in begin..self.batch.len() {
            // SAFETY: as above.
            let request = unsafe { &mut *rings.place(index) };
            if request.checksum_start != 0 {
                (request.checksum_start, request.checksum_offset) = checksum(request);
            }
        }
        if !failed.is_empty() {
            self.take_out(begin, rings, |back, _, id| {
                let refused = failed.contains(&id);
                if refused {
                    back.counts.refused += 1;
                    back.over(id, ERROR);
                }
                !refused
            });
        }
    }

    /// A page is mapped: the header, if it is read there, and the fragment.
    fn mapped(&mut self, map: &Map, piece: &Piece, request: &mut Request) {
        let packet = self.pending.get_mut(piece.id);
        packet.add_mapping(Mapped {
            handle: map.handle,
            page: map.page,
        });
        let copied = usize::from(piece.bytes.length);
        if self.channel == Channel::Mapped && copied > 0 {
            let page = map.page.and_then(|page| self.grants.window().address(page));
            let from = page.and_then(|page| {
                let at = page + u64::from(piece.bytes.offset);
                self.machine.at(at, copied as u64)
            });
            if let Some(from) = from {
                let to = request.header[piece.at..piece.at + copied].as_mut_ptr();
                // SAFETY: `at` checked the source; the guest may write it, it is copied once.
                unsafe { std::ptr::copy_nonoverlapping(from, to, copied) };
            }
        }
        let fragment = usize::from(request.fragments);
        let rest = self.pending.get(piece.id).rest.get(fragment);
        let Some(rest) = rest.filter(|rest| rest.reference == piece.bytes.reference) else {
            return;
        };
        if rest.offset == piece.bytes.offset + piece.bytes.length {
            let address = map.bus + u64::from(rest.offset);
            request.fragment[fragment] = Fragment::new(address, rest.length.into());
            request.fragments += 1;
        }
    }

    /// Keeps those packets from `begin` on that `keep` wants, in order.
    fn take_out(
        &mut self,
        begin: usize,
        rings: &mut Rings,
        mut keep: impl FnMut(&mut Self, usize, PendingId) -> bool,
    ) {
        let mut to = begin;
        for from in begin..self.batch.len() {
            let id = self.batch[from];
            if !keep(self, from, id) {
                continue;
            }
            if to != from {
                // SAFETY: places of the ring, in dom0's memory, not the same.
                unsafe { (*rings.place(to)).copy_from(&*rings.place(from)) };
                self.batch[to] = id;
            }
            to += 1;
        }
        self.batch.truncate(to);
    }

    /// Asks the bridge; what is for guests goes there, and to the card what is for it.
    fn route(&mut self, kernel: &mut dyn Dom0Kernel, first: usize) -> Result<(), Stop> {
        let count = self.batch.len() - first;
        if kernel.route(first as u32, count as u32)? == 0 {
            return Ok(());
        }
        let verdicts: Vec<u32> = (first..self.batch.len())
            .map(|index| kernel.bridge().verdict(index))
            .collect();
        for (index, verdict) in (first..).zip(&verdicts) {
            // SAFETY: a place of the ring, in dom0's memory, which only dom0's own threads use.
            let request = unsafe { &*kernel.rings().place(index) };
            let id = self.batch[index];
            for guest in 0..INTERFACES {
                if verdict & 2 << guest != 0 {
                    self.give_local(id, request, guest);
                }
            }
        }
        self.take_out(first, kernel.rings(), |back, index, id| {
            let to_card = verdicts[index - first] & CARD != 0;
            if !to_card {
                back.over(id, crate::engines::guest::slots::OKAY);
            }
            to_card
        });
        Ok(())
    }

    /// Gives the driver the batch. What it does not take waits.
    fn send(&mut self, kernel: &mut dyn Dom0Kernel) -> Result<(), Stop> {
        let count = self.batch.len() as u32;
        if count == 0 {
            return Ok(());
        }
        let claimed = kernel.transmit(count)?;
        if claimed == count {
            return Ok(());
        }
        // What waits is older than what still has to be placed.
        let mut busy = Vec::new();
        for index in 0..self.batch.len() {
            let id = self.batch[index];
            match kernel.rings().result(index) {
                Sent::Sent => {}
                Sent::Busy | Sent::NoBuffer => {
                    self.counts.waited += 1;
                    // SAFETY: a place of the ring, in dom0's memory, which only dom0's own threads use.
                    let request = unsafe { &*kernel.rings().place(index) };
                    self.pending.get_mut(id).kept = Some(Box::new(*request));
                    busy.push(id);
                }
                Sent::Invalid | Sent::Down | Sent::Foreign | Sent::Spoofed => {
                    self.counts.malformed += 1;
                    self.over(id, DROPPED);
                }
            }
        }
        for id in busy.into_iter().rev() {
            self.waiting.push_front(id);
        }
        Ok(())
    }
}

/// Where a checksum is missing, from the headers (as Linux' `skb_checksum_setup`); none where it cannot be.
fn checksum(request: &Request) -> (u16, u16) {
    let header = &request.header[..usize::from(request.header_length).min(HEADER)];
    let Some(ip) = header.get(ETHERNET..ETHERNET + 20) else {
        return (0, 0);
    };
    if header[12..ETHERNET] != IPV4 {
        return (0, 0);
    }
    let place = CHECKSUMS.iter().find(|(protocol, _)| *protocol == ip[9]);
    let start = ETHERNET as u16 + u16::from(ip[0] & 15) * 4;
    place.map_or((0, 0), |(_, offset)| (start, *offset))
}
