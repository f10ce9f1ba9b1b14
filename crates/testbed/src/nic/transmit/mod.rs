//! The transmit ring (3.3, 3.4) and segmentation (3.5).
//!
//! ```text
//!           63             48 47  40 39  36 35  32 31   24 23  20 19          0
//! legacy  0 buffer address
//!         8 special | CSS   | rsv STA      | CMD    CSO  | length (15:0)
//! context 0 TUCSE   | TUCSO | TUCSS        | IPCSE (31:16)  | IPCSO | IPCSS
//!         8 MSS     | HDRLEN| rsv STA      | TUCMD  DTYP 0 | PAYLEN
//! data    0 buffer address
//!         8 special | POPTS | rsv STA      | DCMD   DTYP 1 | DTALEN
//! ```
//!
//! A frame is gathered in one buffer, four bytes from its start, so that a VLAN
//! tag is inserted by moving the two addresses:
//!
//! ```text
//!     0    4                16 18
//!     ┌────┬────────────────┬──┬──────────────── ─ ─
//!     │    │ destination,   │ty│ payload
//!     │    │ source         │pe│
//!     └────┴────────────────┴──┴──────────────── ─ ─
//! ```
//!
//! Simplified: descriptors are worked one at a time and written back one at a
//! time as RS asks (TXDCTL's PTHRESH, HTHRESH and WTHRESH batch only what a bus
//! carries); sending takes no time; IFCS has no meaning, for frames come
//! without FCS; a collision never happens.

use super::checksum::{finish, fold, sum};
use super::registers::{cause, ctrl, tctl};
use super::statistics::Cast;
use super::{Bus, FRAME_LIMIT, Nic, Register, Ring, Wire};

/// Room for a VLAN tag before the frame.
const ROOM: usize = 4;
/// HDRLEN is 8 bits wide.
const HEADER_LIMIT: usize = 255;
/// The shortest frame without FCS.
const SHORTEST: usize = 60;

/// Bits of a descriptor's command byte, in place in its third 32-bit word.
mod command {
    pub const EOP: u32 = 1 << 24;
    /// Legacy: insert a checksum. Data: segment (TSE).
    pub const IC_TSE: u32 = 1 << 26;
    pub const RS: u32 = 1 << 27;
    pub const DEXT: u32 = 1 << 29;
    pub const VLE: u32 = 1 << 30;
    pub const IDE: u32 = 1 << 31;
    /// Context: the packet is TCP; 0 is UDP.
    pub const TCP: u32 = 1 << 24;
    /// Context: the packet is IPv4; 0 is IPv6.
    pub const IP: u32 = 1 << 25;
}

/// Descriptor done, in the status byte at offset 12.
const DD: u8 = 1;

/// POPTS, in place in the fourth word.
const IXSM: u32 = 1 << 8;
const TXSM: u32 = 1 << 9;

/// What a call of [`Nic::process_transmit`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Descriptors worked.
    pub descriptors: u32,
    /// Frames given to the wire.
    pub frames: u32,
    /// Bytes of those frames.
    pub bytes: u64,
}

/// A checksum to insert: over `start..=end` (`end` 0 is the frame's end) into
/// the field at `field`.
#[derive(Clone, Copy)]
struct Insertion {
    start: usize,
    field: usize,
    end: usize,
}

/// A context descriptor as it was written (3.3.6).
#[repr(C)]
#[derive(Clone, Copy)]
struct Context {
    words: [u32; 4],
}

impl Context {
    fn ip(self) -> Insertion {
        insertion(self.words[0])
    }
    fn transport(self) -> Insertion {
        insertion(self.words[1])
    }
    fn is_ipv4(self) -> bool {
        self.words[2] & command::IP != 0
    }
    fn is_tcp(self) -> bool {
        self.words[2] & command::TCP != 0
    }
    fn payload(self) -> usize {
        (self.words[2] & 0x000f_ffff) as usize
    }
    fn header(self) -> usize {
        (self.words[3] >> 8 & 0xff) as usize
    }
    fn segment(self) -> usize {
        (self.words[3] >> 16) as usize
    }
}

fn insertion(word: u32) -> Insertion {
    Insertion {
        start: (word & 0xff) as usize,
        field: (word >> 8 & 0xff) as usize,
        end: (word >> 16) as usize,
    }
}

/// How the packet in the buffer is to be sent.
const NO_PACKET: u32 = 0;
const PLAIN: u32 = 1;
const SEGMENTED: u32 = 2;
/// Descriptors up to EOP are skipped: the packet is malformed.
const DROPPED: u32 = 3;

/// The packet being gathered, and the two contexts: one for checksums, one for
/// segmentation (3.3.6).
#[repr(C)]
#[derive(Clone)]
pub(super) struct Transmit {
    checksum: Context,
    segmentation: Context,
    /// One of the constants above.
    packet: u32,
    /// Bytes in `frame` from [`ROOM`] on.
    used: u32,
    /// IXSM and TXSM of the first data descriptor (3.3.7.2).
    options: u32,
    /// VLE (1) and the tag.
    tagged: u32,
    tag: u32,
    /// Legacy IC: 1 and CSS and CSO.
    legacy: u32,
    legacy_start: u32,
    legacy_field: u32,
    /// Payload bytes of segments that are out.
    sent: u32,
    /// Segments that are out.
    segments: u32,
    /// The header before segmentation.
    header: [u8; HEADER_LIMIT + 1],
    frame: [u8; ROOM + FRAME_LIMIT + ROOM],
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

    fn begin(&mut self, packet: u32, options: u32) {
        self.packet = packet;
        self.used = 0;
        self.options = options;
        self.tagged = 0;
        self.legacy = 0;
        self.sent = 0;
        self.segments = 0;
    }

    /// The frame in the buffer.
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.frame[ROOM..ROOM + self.used as usize]
    }

    /// Inserts checksums as `options` and `context` ask. False when an offset
    /// is outside the frame.
    fn insert(&mut self, context: Context) -> bool {
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
    fn edit_header(&mut self, context: Context, last: bool) -> bool {
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
            // The driver left the pseudo header's sum without the length.
            let seed = u64::from(be16(frame, field)) + (used - transport) as u64;
            set16(frame, field, fold(seed));
        }
        true
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn set16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sums, with what is in the field, and stores. False if it does not fit.
fn put(frame: &mut [u8], insertion: Insertion, no_zero: bool) -> bool {
    let Insertion { start, field, end } = insertion;
    let end = if end == 0 { frame.len() } else { end + 1 };
    if start >= end || end > frame.len() || field + 2 > frame.len() {
        return false;
    }
    let checksum = match finish(sum(&frame[start..end])) {
        0 if no_zero => 0xffff,
        value => value,
    };
    set16(frame, field, checksum);
    true
}

/// What one descriptor adds to the causes.
#[derive(Default)]
struct Causes {
    /// Written back with IDE.
    delayed: bool,
    /// Written back without.
    now: bool,
}

impl Nic {
    /// Works the transmit ring from TDH to TDT (3.4): gathers frames, performs
    /// what their descriptors ask, gives them to `wire`, writes back status and
    /// raises TXDW, TXQE and TXD_LOW. Does nothing while TCTL.EN is 0, without
    /// a link, or after a fault.
    pub fn process_transmit<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        bus: &mut B,
        wire: &mut W,
    ) -> Transmitted {
        let mut done = Transmitted::default();
        let enabled = self.powered != 0 && self.peek(Register::Tctl) & tctl::EN != 0;
        if !enabled || !self.link_up() || self.transmit_stopped != 0 {
            return done;
        }
        let base =
            u64::from(self.peek(Register::Tdbah)) << 32 | u64::from(self.peek(Register::Tdbal));
        let count = self.peek(Register::Tdlen) / 16;
        let tail = self.peek(Register::Tdt);
        let mut head = self.peek(Register::Tdh);
        if head == tail {
            return done;
        }
        if head >= count || tail >= count {
            self.bad_tail(Ring::Transmit);
            return done;
        }
        let before = (tail + count - head) % count;
        let mut causes = Causes::default();
        while head != tail {
            let at = base.wrapping_add(u64::from(head) * 16);
            let worked = self.descriptor(at, bus, wire, &mut done, &mut causes);
            if let Err(fault) = worked {
                self.bus_fault(Ring::Transmit, fault);
                break;
            }
            done.descriptors += 1;
            head = if head + 1 == count { 0 } else { head + 1 };
        }
        self.poke(Register::Tdh, head);
        self.transmit_causes(before, (tail + count - head) % count, causes);
        done
    }

    /// Raises what the call brought about (3.4.3, 13.4.17).
    fn transmit_causes(&mut self, before: u32, after: u32, causes: Causes) {
        let mut raise = 0;
        if causes.now {
            raise |= self.transmit_due();
        } else if causes.delayed {
            raise |= self.transmit_delay();
        }
        if after == 0 {
            raise |= cause::TXQE;
        }
        // TXDCTL.LWTHRESH, in units of 8 descriptors; 0 is off.
        let low = (self.peek(Register::Txdctl) >> 25) * 8;
        if low != 0 && before > low && after <= low {
            raise |= cause::TXD_LOW;
        }
        if raise != 0 {
            self.raise(raise);
        }
    }

    /// Works the descriptor at `at`.
    fn descriptor<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        at: u64,
        bus: &mut B,
        wire: &mut W,
        done: &mut Transmitted,
        causes: &mut Causes,
    ) -> Result<(), super::BusFault> {
        let mut raw = [0; 16];
        bus.read(at, &mut raw)?;
        let word = |index: usize| {
            let at = index * 4;
            u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
        };
        let words = [word(0), word(1), word(2), word(3)];
        let address = u64::from(words[1]) << 32 | u64::from(words[0]);
        let control = words[2];
        match (control & command::DEXT != 0, control >> 20 & 0xf) {
            (false, _) => self.legacy(address, words, bus, wire, done)?,
            (true, 0) => self.context(Context { words }),
            (true, 1) => self.data(address, words, bus, wire, done)?,
            // No such type: the packet is not sent.
            (true, _) => {
                self.drop_packet();
                self.end_of_packet(control);
            }
        }
        if control & command::RS != 0 {
            bus.write(at + 12, &[raw[12] | DD])?;
            match control & command::IDE != 0 {
                true => causes.delayed = true,
                false => causes.now = true,
            }
        }
        Ok(())
    }

    /// A context descriptor (3.3.6): TSE tells which context it sets.
    fn context(&mut self, context: Context) {
        if context.words[2] & command::IC_TSE != 0 {
            self.transmit.segmentation = context;
        } else {
            self.transmit.checksum = context;
        }
    }

    /// A legacy descriptor (3.3.3).
    fn legacy<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        address: u64,
        words: [u32; 4],
        bus: &mut B,
        wire: &mut W,
        done: &mut Transmitted,
    ) -> Result<(), super::BusFault> {
        let control = words[2];
        if self.transmit.packet == NO_PACKET {
            self.transmit.begin(PLAIN, 0);
        }
        if control & command::IC_TSE != 0 {
            self.transmit.legacy = 1;
            self.transmit.legacy_start = words[3] >> 8 & 0xff;
            self.transmit.legacy_field = control >> 16 & 0xff;
        }
        self.tag(words);
        self.gather(address, (control & 0xffff) as usize, bus, wire, done)?;
        if control & command::EOP != 0 {
            self.finish_packet(wire, done);
        }
        Ok(())
    }

    /// A data descriptor (3.3.7).
    fn data<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        address: u64,
        words: [u32; 4],
        bus: &mut B,
        wire: &mut W,
        done: &mut Transmitted,
    ) -> Result<(), super::BusFault> {
        let control = words[2];
        if self.transmit.packet == NO_PACKET {
            let options = words[3] & (IXSM | TXSM);
            if control & command::IC_TSE == 0 {
                self.transmit.begin(PLAIN, options);
            } else {
                self.transmit.begin(SEGMENTED, options);
                let context = self.transmit.segmentation;
                let length = context.header() + context.segment();
                let possible = context.header() != 0 && context.segment() != 0;
                if !possible || length > FRAME_LIMIT {
                    self.count(Register::Tsctfc);
                    self.drop_packet();
                }
            }
        }
        self.tag(words);
        self.gather(address, (control & 0x000f_ffff) as usize, bus, wire, done)?;
        if control & command::EOP != 0 {
            self.finish_packet(wire, done);
        }
        Ok(())
    }

    /// VLE: the tag is inserted if CTRL.VME is set (3.3.4). The last descriptor
    /// of a packet decides (3.3.7.1); segments go out before it is seen, so for
    /// them any descriptor that says so does.
    fn tag(&mut self, words: [u32; 4]) {
        if self.transmit.packet == PLAIN {
            self.transmit.tagged = 0;
        }
        if words[2] & command::VLE != 0 && self.peek(Register::Ctrl) & ctrl::VME != 0 {
            self.transmit.tagged = 1;
            self.transmit.tag = words[3] >> 16;
        }
    }

    /// Takes `length` bytes of the packet; a segmented one goes out whenever a
    /// segment is full.
    fn gather<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        mut address: u64,
        mut length: usize,
        bus: &mut B,
        wire: &mut W,
        done: &mut Transmitted,
    ) -> Result<(), super::BusFault> {
        while length != 0 && self.transmit.packet != DROPPED {
            let t = &mut self.transmit;
            let used = t.used as usize;
            let room = if t.packet == SEGMENTED {
                let header = t.segmentation.header();
                let left = t.segmentation.payload().saturating_sub(t.sent as usize);
                match used < header {
                    true => header - used,
                    // Up to a full segment, or to the packet's end.
                    false => header + left.min(t.segmentation.segment()) - used,
                }
            } else {
                FRAME_LIMIT - used
            };
            if room == 0 {
                // More than PAYLEN, or more than fits.
                self.drop_packet();
                break;
            }
            let take = room.min(length);
            bus.read(address, &mut t.frame[ROOM + used..ROOM + used + take])?;
            t.used += take as u32;
            address = address.wrapping_add(take as u64);
            length -= take;
            if t.packet == SEGMENTED && take == room {
                self.segment_step(wire, done);
            }
        }
        Ok(())
    }

    /// The header or a segment is complete.
    fn segment_step<W: Wire + ?Sized>(&mut self, wire: &mut W, done: &mut Transmitted) {
        let t = &mut self.transmit;
        let context = t.segmentation;
        let header = context.header();
        let payload = t.used as usize - header;
        if payload == 0 {
            t.header[..header].copy_from_slice(&t.frame[ROOM..ROOM + header]);
            return;
        }
        let sent = t.sent as usize + payload;
        let last = sent == context.payload();
        if !t.edit_header(context, last) || !t.insert(context) {
            self.count(Register::Tsctfc);
            self.drop_packet();
            return;
        }
        self.emit(wire, done);
        let t = &mut self.transmit;
        t.sent = sent as u32;
        t.segments += 1;
        t.frame[ROOM..ROOM + header].copy_from_slice(&t.header[..header]);
        t.used = header as u32;
    }

    /// EOP: the packet goes out, unless it is malformed.
    fn finish_packet<W: Wire + ?Sized>(&mut self, wire: &mut W, done: &mut Transmitted) {
        match self.transmit.packet {
            PLAIN => self.finish_plain(wire, done),
            SEGMENTED => {
                let t = &self.transmit;
                let complete = t.sent as usize == t.segmentation.payload() && t.segments != 0;
                if complete {
                    self.count(Register::Tsctc);
                } else {
                    // Fewer bytes than PAYLEN.
                    self.count(Register::Tsctfc);
                    self.drop_packet();
                }
            }
            _ => {}
        }
        self.transmit.packet = NO_PACKET;
    }

    fn finish_plain<W: Wire + ?Sized>(&mut self, wire: &mut W, done: &mut Transmitted) {
        let t = &mut self.transmit;
        let context = t.checksum;
        let mut valid = t.used as usize >= 14 && t.insert(context);
        if valid && t.legacy != 0 {
            let insertion = Insertion {
                start: t.legacy_start as usize,
                field: t.legacy_field as usize,
                end: 0,
            };
            valid = put(t.bytes(), insertion, false);
        }
        match valid {
            true => self.emit(wire, done),
            false => self.drop_packet(),
        }
    }

    /// Gives the frame in the buffer to the wire: tag inserted (9.3), padded to
    /// 64 bytes with FCS if TCTL.PSP asks (13.4.33).
    fn emit<W: Wire + ?Sized>(&mut self, wire: &mut W, done: &mut Transmitted) {
        let pad = self.peek(Register::Tctl) & tctl::PSP != 0;
        let ether_type = self.peek(Register::Vet) as u16;
        let t = &mut self.transmit;
        let mut start = ROOM;
        let mut end = ROOM + t.used as usize;
        if t.tagged != 0 {
            start = 0;
            t.frame.copy_within(ROOM..ROOM + 12, 0);
            set16(&mut t.frame, 12, ether_type);
            set16(&mut t.frame, 14, t.tag as u16);
        }
        if pad && end - start < SHORTEST {
            t.frame[end..start + SHORTEST].fill(0);
            end = start + SHORTEST;
        }
        let frame = &t.frame[start..end];
        wire.transmit(frame);
        let cast = Cast::of(frame);
        self.count_sent(cast, end - start);
        done.frames += 1;
        done.bytes += (end - start) as u64;
    }

    /// Skips the rest of the packet.
    #[cold]
    fn drop_packet(&mut self) {
        if self.transmit.packet != DROPPED {
            self.faults.malformed += 1;
            self.transmit.packet = DROPPED;
        }
    }

    fn end_of_packet(&mut self, control: u32) {
        if control & command::EOP != 0 {
            self.transmit.packet = NO_PACKET;
        }
    }
}
