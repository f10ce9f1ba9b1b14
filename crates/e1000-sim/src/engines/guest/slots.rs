//! The rings of an interface between a guest and dom0, after Xen's (`xen/include/public/io/netif.h`): requests and
//! responses share the slots, a packet of several pieces has several of them.
//!
//! ```text
//!            request                           response
//! transmit   reference                         id, status
//!            offset, bytes
//!            id, flags
//!            bytes in the ring's header area
//! receive    reference                         id, status: bytes, or negative
//!            id                                offset, flags
//! extra      segment's payload, kind or number of segments
//! ```
//!
//! The first piece of a packet says how long the whole is. Its extra slot, if it has one, is the next. Each side reads a slot
//! once and trusts nothing in it.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::grants::Reference;

/// Slots of a ring.
pub const SLOTS: u32 = 256;

/// The transport's checksum is missing (`XEN_NETTXF_csum_blank`).
pub const BLANK: u16 = 1;
/// The packet goes on in the next slot (`XEN_NETTXF_more_data`).
pub const MORE: u16 = 4;
/// The next slot is an [`Extra`] (`XEN_NETTXF_extra_info`).
pub const EXTRA: u16 = 8;
/// This is one.
pub const IS_EXTRA: u16 = 0x100;

/// `XEN_NETIF_RSP_OKAY`.
pub const OKAY: i16 = 0;
/// `XEN_NETIF_RSP_ERROR`: a page is not the guest's to send, or could not be written.
pub const ERROR: i16 = -1;
/// `XEN_NETIF_RSP_DROPPED`: the packet is malformed, or the interface is down.
pub const DROPPED: i16 = -2;

/// A slot: requests and responses.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Slot([AtomicU32; 4]);

impl Slot {
    fn put(&self, words: [u32; 4]) {
        for (to, word) in self.0.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    fn take(&self) -> [u32; 4] {
        std::array::from_fn(|i| self.0[i].load(Ordering::Relaxed))
    }
}

fn pair(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// A piece of a packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxRequest {
    /// The page; 0: there is none, all is in the header area.
    pub reference: Reference,
    /// Its first byte in the page.
    pub offset: u16,
    /// Bytes of the piece, of the first: of the packet.
    pub size: u16,
    /// The guest's name for the slot.
    pub id: u16,
    /// [`BLANK`], [`MORE`], [`EXTRA`].
    pub flags: u16,
    /// Bytes of the packet that are in the ring's header area, at this slot.
    pub header: u16,
}

/// What a packet has besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Payload of a segment.
    pub size: u16,
    /// Sent: the kind of segments; received: how many.
    pub kind: u16,
    /// The guest's name for the slot.
    pub id: u16,
}

/// Sent, or not; received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The guest's name for the slot.
    pub id: u16,
    /// [`OKAY`], or bytes of a piece received, or negative.
    pub status: i16,
    /// A piece's first byte in its page.
    pub offset: u16,
    /// [`MORE`], [`EXTRA`], [`IS_EXTRA`].
    pub flags: u16,
}

/// A page for a packet that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxRequest {
    /// The page.
    pub reference: Reference,
    /// The guest's name for it.
    pub id: u16,
}

/// A ring. All zeroes is an empty one.
#[repr(C)]
#[derive(Debug)]
pub struct SlotRing {
    /// Requests made, running freely.
    requests: AtomicU32,
    /// Responses made.
    responses: AtomicU32,
    slots: [Slot; SLOTS as usize],
}

impl SlotRing {
    fn slot(&self, index: u32) -> &Slot {
        &self.slots[(index % SLOTS) as usize]
    }

    /// All words, which both sides can write.
    pub fn words(&self) -> impl Iterator<Item = &AtomicU32> {
        let slots = self.slots.iter().flat_map(|slot| slot.0.iter());
        [&self.requests, &self.responses].into_iter().chain(slots)
    }

    /// Empties it: nobody uses it.
    pub fn reset(&self) {
        self.requests.store(0, Ordering::Relaxed);
        self.responses.store(0, Ordering::Release);
    }

    /// Requests so far.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::Acquire)
    }

    /// Shows all requests below `produce`.
    pub fn show_requests(&self, produce: u32) {
        self.requests.store(produce, Ordering::Release);
    }

    /// Responses so far.
    pub fn responses(&self) -> u32 {
        self.responses.load(Ordering::Acquire)
    }

    /// Shows all responses below `produce`.
    pub fn show_responses(&self, produce: u32) {
        self.responses.store(produce, Ordering::Release);
    }

    /// Writes a piece to send.
    pub fn put_tx(&self, index: u32, request: &TxRequest) {
        self.slot(index).put([
            request.reference.0,
            pair(request.offset, request.size),
            pair(request.id, request.flags),
            request.header.into(),
        ]);
    }

    /// Reads one.
    pub fn tx(&self, index: u32) -> TxRequest {
        let [reference, bytes, name, header] = self.slot(index).take();
        TxRequest {
            reference: Reference(reference),
            offset: bytes as u16,
            size: (bytes >> 16) as u16,
            id: name as u16,
            flags: (name >> 16) as u16,
            header: header as u16,
        }
    }

    /// Writes what a packet has besides.
    pub fn put_extra(&self, index: u32, extra: &Extra) {
        let words = [pair(extra.size, extra.kind), 0, pair(extra.id, IS_EXTRA), 0];
        self.slot(index).put(words);
    }

    /// Reads it.
    pub fn extra(&self, index: u32) -> Extra {
        let [sizes, _, name, _] = self.slot(index).take();
        Extra {
            size: sizes as u16,
            kind: (sizes >> 16) as u16,
            id: name as u16,
        }
    }

    /// Writes a page for what comes in.
    pub fn put_rx(&self, index: u32, request: &RxRequest) {
        let words = [request.reference.0, request.id.into(), 0, 0];
        self.slot(index).put(words);
    }

    /// Reads it.
    pub fn rx(&self, index: u32) -> RxRequest {
        let [reference, id, ..] = self.slot(index).take();
        RxRequest {
            reference: Reference(reference),
            id: id as u16,
        }
    }

    /// Writes a response.
    pub fn put_response(&self, index: u32, response: &Response) {
        self.slot(index).put([
            pair(response.id, response.status as u16),
            pair(response.offset, response.flags),
            0,
            0,
        ]);
    }

    /// Writes a response that is an [`Extra`].
    pub fn put_extra_response(&self, index: u32, extra: &Extra) {
        self.slot(index).put([
            pair(extra.id, 0),
            pair(0, IS_EXTRA),
            pair(extra.size, extra.kind),
            0,
        ]);
    }

    /// Reads a response, and what it is if it is an [`Extra`].
    pub fn response(&self, index: u32) -> (Response, Extra) {
        let [name, bytes, sizes, _] = self.slot(index).take();
        let response = Response {
            id: name as u16,
            status: (name >> 16) as i16,
            offset: bytes as u16,
            flags: (bytes >> 16) as u16,
        };
        let extra = Extra {
            size: sizes as u16,
            kind: (sizes >> 16) as u16,
            id: name as u16,
        };
        (response, extra)
    }
}
