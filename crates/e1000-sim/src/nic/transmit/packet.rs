//! The packet that is being gathered, and the changes to it before it is sent.
//!
//! It lies in one buffer, four bytes from its start, so that a VLAN tag is
//! inserted by moving the two addresses:
//!
//! ```text
//!     0    4                16 18
//!     ┌────┬────────────────┬──┬──────────────── ─ ─
//!     │    │ destination,   │ty│ payload
//!     │    │ source         │pe│
//!     └────┴────────────────┴──┴──────────────── ─ ─
//! ```

use super::context::{Context, put};
use super::{IXSM, TXSM};
use crate::nic::FRAME_LIMIT;
use crate::nic::checksum::fold;
use crate::nic::network::{be16, set16};

/// Room for a VLAN tag before the frame.
pub(super) const ROOM: usize = 4;
/// HDRLEN is 8 bits wide.
const HEADER_LIMIT: usize = 255;

/// How the packet in the buffer is to be sent.
pub(super) const NO_PACKET: u32 = 0;
pub(super) const PLAIN: u32 = 1;
pub(super) const SEGMENTED: u32 = 2;
/// Descriptors up to EOP are skipped: the packet is malformed.
pub(super) const DROPPED: u32 = 3;

/// The packet being gathered, and the two contexts: one for checksums, one for
/// segmentation (3.3.6).
#[repr(C)]
#[derive(Clone)]
pub(in crate::nic) struct Transmit {
    pub(super) checksum: Context,
    pub(super) segmentation: Context,
    /// One of the constants above.
    pub(super) packet: u32,
    /// Bytes in `frame` from [`ROOM`] on.
    pub(super) used: u32,
    /// IXSM and TXSM of the first data descriptor (3.3.7.2).
    pub(super) options: u32,
    /// VLE (1) and the tag.
    pub(super) tagged: u32,
    pub(super) tag: u32,
    /// Legacy IC: 1 and CSS and CSO.
    pub(super) legacy: u32,
    pub(super) legacy_start: u32,
    pub(super) legacy_field: u32,
    /// Payload bytes of segments that are out.
    pub(super) sent: u32,
    /// Segments that are out.
    pub(super) segments: u32,
    /// The header before segmentation.
    pub(super) header: [u8; HEADER_LIMIT + 1],
    pub(super) frame: [u8; ROOM + FRAME_LIMIT + ROOM],
}

impl Transmit {
    pub const fn off() -> Transmit {
        Transmit {
            checksum: Context { words: [0; 4] },
            segmentation: Context { words: [0; 4] },
            packet: NO_PACKET,
            used: 0,
            options: 0,
            tagged: 0,
            tag: 0,
            legacy: 0,
            legacy_start: 0,
            legacy_field: 0,
            sent: 0,
            segments: 0,
            header: [0; HEADER_LIMIT + 1],
            frame: [0; ROOM + FRAME_LIMIT + ROOM],
        }
    }

    /// Forgets the packet and the contexts; the buffers need no clearing.
    pub fn reset(&mut self) {
        self.checksum = Context { words: [0; 4] };
        self.segmentation = Context { words: [0; 4] };
        self.begin(NO_PACKET, 0);
    }

    pub(super) fn begin(&mut self, packet: u32, options: u32) {
        self.packet = packet;
        self.used = 0;
        self.options = options;
        self.tagged = 0;
        self.legacy = 0;
        self.sent = 0;
        self.segments = 0;
    }

    /// The frame in the buffer.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.frame[ROOM..ROOM + self.used as usize]
    }

    /// Inserts checksums as `options` and `context` require. False when an offset
    /// is outside the frame.
    pub(super) fn insert(&mut self, context: Context) -> bool {
        let options = self.options;
        let frame = self.bytes();
        let mut valid = true;
        if options & IXSM != 0 {
            valid &= put(frame, context.ip(), false);
        }
        if options & TXSM != 0 {
            // A UDP checksum of 0 means there is none (RFC 768).
            valid &= put(frame, context.transport(), !context.is_tcp());
        }
        valid
    }

    /// Makes the buffer's header that of the segment in it (3.5.9), `last` or
    /// not. False when an offset is outside the header.
    pub(super) fn edit_header(&mut self, context: Context, last: bool) -> bool {
        let (ip, transport) = (context.ip().start, context.transport().start);
        let header = context.header();
        let ip_end = ip + if context.is_ipv4() { 20 } else { 40 };
        let transport_end = transport + if context.is_tcp() { 20 } else { 8 };
        let field = context.transport().field;
        if ip_end > header || transport_end > header || field + 2 > header {
            return false;
        }
        let (sent, segments, used) = (self.sent, self.segments, self.used as usize);
        let frame = &mut self.frame[ROOM..ROOM + used];
        if context.is_ipv4() {
            let identification = be16(frame, ip + 4).wrapping_add(segments as u16);
            set16(frame, ip + 2, (used - ip) as u16);
            set16(frame, ip + 4, identification);
        } else {
            set16(frame, ip + 4, (used - ip - 40) as u16);
        }
        if context.is_tcp() {
            let at = transport + 4;
            let sequence = u32::from(be16(frame, at)) << 16 | u32::from(be16(frame, at + 2));
            frame[at..at + 4].copy_from_slice(&sequence.wrapping_add(sent).to_be_bytes());
            if !last {
                // FIN and PSH belong to the last segment.
                frame[transport + 13] &= !0x09;
            }
        } else {
            set16(frame, transport + 4, (used - transport) as u16);
        }
        if self.options & TXSM != 0 {
            // The driver's value in the field is the pseudo header's sum without the
            // length.
            let seed = u64::from(be16(frame, field)) + (used - transport) as u64;
            set16(frame, field, fold(seed));
        }
        true
    }
}
