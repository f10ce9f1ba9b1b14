//! Packets that dom0 has of guests: between the guest's request and the response. A ticket is a place and the place's
//! count of uses, so a second completion is of no packet.

use crate::grants::maptrack::Handle;
use crate::grants::window::WindowPage;
use crate::grants::{Domain, Reference};
use crate::packets::rings::{FRAGMENTS, Request, TX_DONE};

use super::ring::Generation;

/// Most slots of a packet: its pieces and what it has besides.
pub const PACKET_SLOTS: usize = FRAGMENTS + 2;

/// A page that is mapped for a packet, and what of it belongs to the packet.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// The mapping.
    pub handle: Handle,
    /// Where dom0 has it.
    pub page: Option<WindowPage>,
}

/// Bytes of a guest's page.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuestBytes {
    /// The page, by the guest's entry.
    pub reference: u32,
    /// The first byte.
    pub offset: u16,
    /// Bytes.
    pub length: u16,
}

impl GuestBytes {
    /// The entry.
    pub fn reference(&self) -> Reference {
        Reference(self.reference)
    }
}

/// A packet.
#[derive(Debug)]
pub struct Pending {
    /// Its guest.
    pub guest: u32,
    /// The guest's connection that it came by.
    pub(super) generation: Generation,
    uses: u32,
    ids: [u16; PACKET_SLOTS],
    slots: u8,
    mapped: [Option<Mapped>; PACKET_SLOTS],
    maps: u8,
    /// Its bytes behind the header.
    pub rest: [GuestBytes; PACKET_SLOTS],
    /// How many of these.
    pub rests: u8,
    /// What the driver was asked and did not take.
    pub kept: Option<Box<Request>>,
}

impl Pending {
    fn new() -> Pending {
        Pending {
            guest: 0,
            generation: Generation::default(),
            uses: 0,
            ids: [0; PACKET_SLOTS],
            slots: 0,
            mapped: [None; PACKET_SLOTS],
            maps: 0,
            rest: [GuestBytes::default(); PACKET_SLOTS],
            rests: 0,
            kept: None,
        }
    }

    /// Its guest's domain.
    pub fn domain(&self) -> Domain {
        Domain::of_guest(self.guest)
    }

    /// Notes a slot by the guest's name; false if it has too many.
    pub fn add_slot(&mut self, id: u16) -> bool {
        let slot = self.ids.get_mut(usize::from(self.slots));
        let Some(slot) = slot else { return false };
        *slot = id;
        self.slots += 1;
        true
    }

    /// The guest's names of its slots.
    pub fn ids(&self) -> &[u16] {
        &self.ids[..usize::from(self.slots)]
    }

    /// Notes bytes behind the header; false if they are too many pieces for a request.
    pub fn add_rest(&mut self, bytes: GuestBytes) -> bool {
        if usize::from(self.rests) >= FRAGMENTS {
            return false;
        }
        self.rest[usize::from(self.rests)] = bytes;
        self.rests += 1;
        true
    }

    /// Notes a mapping.
    pub fn add_mapping(&mut self, mapped: Mapped) {
        self.mapped[usize::from(self.maps)] = Some(mapped);
        self.maps += 1;
    }

    /// Takes all mappings.
    pub fn take_mappings(&mut self) -> impl Iterator<Item = Mapped> + '_ {
        let count = usize::from(std::mem::take(&mut self.maps));
        self.mapped[..count].iter_mut().filter_map(Option::take)
    }
}

/// The number of a packet's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingId(pub u32);

/// All of them. As many as there is room for completions.
#[derive(Debug)]
pub struct PendingPackets {
    places: Vec<Pending>,
    free: Vec<u32>,
}

impl Default for PendingPackets {
    fn default() -> PendingPackets {
        PendingPackets {
            places: (0..TX_DONE).map(|_| Pending::new()).collect(),
            free: (0..TX_DONE as u32).rev().collect(),
        }
    }
}

impl PendingPackets {
    /// Whether there is a place.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// A place for a packet of that guest.
    pub(super) fn add(&mut self, guest: u32, generation: Generation) -> Option<PendingId> {
        let number = self.free.pop()?;
        let place = &mut self.places[number as usize];
        (place.guest, place.generation) = (guest, generation);
        (place.slots, place.maps, place.rests) = (0, 0, 0);
        place.uses = place.uses.wrapping_add(1);
        Some(PendingId(number))
    }

    /// The packet.
    pub fn get(&self, id: PendingId) -> &Pending {
        &self.places[id.0 as usize]
    }

    /// The packet.
    pub fn get_mut(&mut self, id: PendingId) -> &mut Pending {
        &mut self.places[id.0 as usize]
    }

    /// Its name for the driver.
    pub fn ticket(&self, id: PendingId) -> u64 {
        u64::from(self.get(id).uses) << 32 | u64::from(id.0)
    }

    /// The packet of a ticket, while it is on its way.
    pub fn find(&self, ticket: u64) -> Option<PendingId> {
        let place = self.places.get(ticket as u32 as usize)?;
        let current = u64::from(place.uses) == ticket >> 32 && place.uses & 1 == 1;
        current.then_some(PendingId(ticket as u32))
    }

    /// It is over.
    pub fn remove(&mut self, id: PendingId) {
        let place = self.get_mut(id);
        place.uses = place.uses.wrapping_add(1);
        place.kept = None;
        self.free.push(id.0);
    }
}
