//! Frames from the wire: filters (3.2.2, 10.5), the receive ring (3.2) and
//! checksum offload (3.2.9).
//!
//! ```text
//! frame ─> enabled? ─> length ─> pause ─> VLAN ─> address ─> descriptors? ─> memory ─> status
//!
//! descriptor  63    48 47    40 39    32 31        16 15        0
//!           0 buffer address
//!           8 special | errors | status | checksum   | length
//! ```
//!
//! Simplified: there is no packet buffer between wire and ring, so a frame that
//! finds too few descriptors is lost at once; descriptors are written back one
//! at a time (RXDCTL's thresholds batch only what a bus carries). Bad frames do
//! not occur, so RCTL.SBP has no effect.

use super::checksum::{fcs, fold, sum};
use super::registers::{cause, ctrl, rctl, rxcsum};
use super::statistics::Cast;
use super::{Bus, BusFault, Nic, Register, Ring};

/// Frame lengths with FCS (3.2.2, 13.4.22 LPE).
const FCS: usize = 4;
const SHORTEST: usize = 64;
const LONGEST: usize = 1522;
const LONGEST_LPE: usize = 16384;

/// Descriptor status (3.2.3.1).
mod status {
    pub const DD: u8 = 1 << 0;
    pub const EOP: u8 = 1 << 1;
    pub const IXSM: u8 = 1 << 2;
    pub const VP: u8 = 1 << 3;
    pub const TCPCS: u8 = 1 << 5;
    pub const IPCS: u8 = 1 << 6;
    /// Passed an inexact filter.
    pub const PIF: u8 = 1 << 7;
}

/// Descriptor errors (3.2.3.2).
mod errors {
    pub const TCPE: u8 = 1 << 5;
    pub const IPE: u8 = 1 << 6;
}

/// Why a frame was not for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// No address filter takes the destination.
    Address,
    /// The VLAN filter table has not the tag's identifier.
    Vlan,
    /// The canonical form bit is not RCTL.CFI's.
    CanonicalForm,
    /// Shorter than 64 bytes with FCS.
    TooShort,
    /// Longer than 1522 bytes with FCS and RCTL.LPE is 0, or than 16384.
    TooLong,
    /// A pause frame; the MAC keeps it.
    Pause,
}

/// What became of a frame from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is in memory, in so many descriptors.
    Stored {
        /// How many descriptors were used.
        descriptors: u32,
    },
    /// A filter dropped it.
    Filtered(Filter),
    /// Dropped: not enough descriptors (receiver overrun).
    NoDescriptors,
    /// The receiver is off (no power, or RCTL.EN is 0).
    Disabled,
    /// There is no link.
    LinkDown,
    /// A fault has stopped the ring, now or before.
    Stopped,
}

/// How an address filter took a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    Exact,
    /// By hash or promiscuously: software has to look.
    Inexact,
}

/// What checksum offload says of a frame.
#[derive(Clone, Copy)]
struct Offload {
    status: u8,
    errors: u8,
}

impl Nic {
    /// Takes a frame from the wire, without FCS, and stores it if the filters
    /// and the ring let it. Raises RXT0 (after RDTR and RADV), RXDMT0, RXO,
    /// SRPD.
    pub fn receive<B: Bus + ?Sized>(&mut self, frame: &[u8], bus: &mut B) -> Received {
        let control = self.peek(Register::Rctl);
        if self.powered == 0 || control & rctl::EN == 0 {
            return Received::Disabled;
        }
        if !self.link_up() {
            return Received::LinkDown;
        }
        self.count_seen(frame);
        let exactness = match self.filter(frame, control) {
            Ok(exactness) => exactness,
            Err(filter) => return Received::Filtered(filter),
        };
        if self.receive_stopped != 0 {
            self.count(Register::Mpc);
            return Received::Stopped;
        }
        self.store(frame, exactness, bus)
    }

    /// Whether the frame passes, and how.
    fn filter(&mut self, frame: &[u8], control: u32) -> Result<Match, Filter> {
        let length = frame.len() + FCS;
        if length < SHORTEST {
            self.count(Register::Ruc);
            return Err(Filter::TooShort);
        }
        let long = control & rctl::LPE != 0;
        if length > if long { LONGEST_LPE } else { LONGEST } {
            self.count(Register::Roc);
            return Err(Filter::TooLong);
        }
        self.pause(frame, control)?;
        if let Some(tag) = self.vlan_tag(frame) {
            self.vlan_filter(tag, control)?;
        }
        self.address_filter(frame, control).ok_or(Filter::Address)
    }

    /// Pause frames (IEEE 802.3 31B; FCAL, FCAH and FCT): counted, and kept by
    /// the MAC. Transmission here takes no time, so none is held up.
    fn pause(&mut self, frame: &[u8], control: u32) -> Result<(), Filter> {
        let address = station(frame);
        let low = u64::from(self.peek(Register::Fcal));
        if address != u64::from(self.peek(Register::Fcah)) << 32 | low
            || u32::from(be16(frame, 12)) != self.peek(Register::Fct)
            || be16(frame, 14) != 1
        {
            return Ok(());
        }
        if self.peek(Register::Ctrl) & ctrl::RFCE == 0 {
            self.count(Register::Fcruc);
        } else if be16(frame, 16) == 0 {
            self.count(Register::Xonrxc);
        } else {
            self.count(Register::Xoffrxc);
        }
        let keep = self.peek(Register::Ctrl) & ctrl::RFCE != 0 || control & rctl::DPF != 0;
        match keep && control & rctl::PMCF == 0 {
            true => Err(Filter::Pause),
            false => Ok(()),
        }
    }

    /// The tag of a frame whose type is VET (9.1).
    fn vlan_tag(&self, frame: &[u8]) -> Option<u16> {
        (u32::from(be16(frame, 12)) == self.peek(Register::Vet)).then(|| be16(frame, 14))
    }

    /// RCTL.VFE, CFIEN and VFTA (9.4).
    fn vlan_filter(&self, tag: u16, control: u32) -> Result<(), Filter> {
        if control & rctl::VFE == 0 {
            return Ok(());
        }
        let identifier = usize::from(tag & 0xfff);
        if self.vlan[identifier / 32] >> (identifier % 32) & 1 == 0 {
            return Err(Filter::Vlan);
        }
        let form = tag & 0x1000 != 0;
        if control & rctl::CFIEN != 0 && form != (control & rctl::CFI != 0) {
            return Err(Filter::CanonicalForm);
        }
        Ok(())
    }

    /// Exact, hashed, broadcast and promiscuous address filters (3.2.2, 13.5.1
    /// to 13.5.3).
    fn address_filter(&self, frame: &[u8], control: u32) -> Option<Match> {
        let address = station(frame);
        for pair in self.receive_address.chunks_exact(2) {
            let (low, high) = (pair[0], pair[1]);
            let valid = high >> 31 != 0;
            // Address select 0: the destination address.
            let destination = high >> 16 & 3 == 0;
            if valid && destination && address == u64::from(high & 0xffff) << 32 | u64::from(low) {
                return Some(Match::Exact);
            }
        }
        let passes = match Cast::of(frame) {
            Cast::Broadcast if control & rctl::BAM != 0 => return Some(Match::Exact),
            Cast::Unicast => control & rctl::UPE != 0,
            Cast::Broadcast | Cast::Multicast => {
                control & rctl::MPE != 0 || self.multicast_hash(address, control)
            }
        };
        passes.then_some(Match::Inexact)
    }

    /// MTA: twelve bits of the address, RCTL.MO tells which (13.5.1).
    fn multicast_hash(&self, address: u64, control: u32) -> bool {
        let shift = match control >> rctl::MO_SHIFT & 3 {
            0 => 36,
            1 => 35,
            2 => 34,
            _ => 32,
        };
        let hash = (address >> shift & 0xfff) as usize;
        self.multicast[hash / 32] >> (hash % 32) & 1 != 0
    }

    /// How many bytes a receive buffer has: RCTL.BSIZE and BSEX (13.4.22).
    fn buffer_size(&self) -> usize {
        let control = self.peek(Register::Rctl);
        let size = 2048 >> (control >> rctl::BSIZE_SHIFT & 3);
        match control & rctl::BSEX != 0 {
            true => size * 16,
            false => size,
        }
    }

    /// Puts a frame that passed into the ring.
    fn store<B: Bus + ?Sized>(&mut self, frame: &[u8], exactness: Match, bus: &mut B) -> Received {
        let count = self.peek(Register::Rdlen) / 16;
        let head = self.peek(Register::Rdh);
        let tail = self.peek(Register::Rdt);
        if head == tail || count == 0 {
            return self.overrun();
        }
        if head >= count || tail >= count {
            self.bad_tail(Ring::Receive);
            return Received::Stopped;
        }
        let free = (tail + count - head) % count;
        let tag = match self.peek(Register::Ctrl) & ctrl::VME != 0 {
            true => self.vlan_tag(frame),
            false => None,
        };
        // Stripped, the tag is not stored: the two addresses, then the rest.
        let (first, rest) = match tag {
            Some(_) => (&frame[..12], &frame[16..]),
            None => (frame, &[][..]),
        };
        let keep_fcs = self.peek(Register::Rctl) & rctl::SECRC == 0;
        let check = match keep_fcs {
            true if self.fcs_skipped == 0 => fcs(frame),
            _ => [0; FCS],
        };
        let check: &[u8] = if keep_fcs { &check } else { &[] };
        let length = first.len() + rest.len() + check.len();
        let size = self.buffer_size();
        let needed = length.div_ceil(size) as u32;
        if needed > free {
            return self.overrun();
        }
        let offload = self.offload(frame);
        let mut descriptor = Last {
            checksum: self.packet_checksum(first, rest),
            status: offload.status,
            errors: offload.errors,
            special: tag.unwrap_or(0),
        };
        if tag.is_some() {
            descriptor.status |= status::VP;
        }
        if exactness == Match::Inexact {
            descriptor.status |= status::PIF;
        }
        match self.scatter([first, rest, check], size, count, descriptor, bus) {
            Ok(()) => {}
            Err(fault) => {
                self.bus_fault(Ring::Receive, fault);
                self.count(Register::Mpc);
                return Received::Stopped;
            }
        }
        self.count_received(frame);
        self.receive_causes(frame.len() + FCS, count, free, free - needed);
        Received::Stored {
            descriptors: needed,
        }
    }

    /// Receiver overrun (13.4.17 RXO, 13.7 MPC and RNBC).
    fn overrun(&mut self) -> Received {
        self.count(Register::Mpc);
        self.count(Register::Rnbc);
        self.raise(cause::RXO);
        Received::NoDescriptors
    }

    /// Writes the pieces into buffers of `size` bytes and their descriptors
    /// back, and moves RDH.
    fn scatter<B: Bus + ?Sized>(
        &mut self,
        pieces: [&[u8]; 3],
        size: usize,
        count: u32,
        last: Last,
        bus: &mut B,
    ) -> Result<(), BusFault> {
        let base =
            u64::from(self.peek(Register::Rdbah)) << 32 | u64::from(self.peek(Register::Rdbal));
        let mut left: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut pieces = pieces.into_iter();
        let mut piece: &[u8] = &[];
        let mut head = self.peek(Register::Rdh);
        while left != 0 {
            let at = base.wrapping_add(u64::from(head) * 16);
            let mut address = [0; 8];
            bus.read(at, &mut address)?;
            let mut address = u64::from_le_bytes(address);
            let length = left.min(size);
            let mut room = length;
            while room != 0 {
                if piece.is_empty() {
                    piece = pieces.next().unwrap_or_default();
                    continue;
                }
                let (now, later) = piece.split_at(room.min(piece.len()));
                bus.write(address, now)?;
                address = address.wrapping_add(now.len() as u64);
                room -= now.len();
                piece = later;
            }
            left -= length;
            bus.write(at + 8, &last.write_back(length, left == 0))?;
            head = if head + 1 == count { 0 } else { head + 1 };
            self.poke(Register::Rdh, head);
        }
        Ok(())
    }

    /// The causes that a stored frame raises (3.2.7, 13.4.17).
    fn receive_causes(&mut self, length: usize, count: u32, before: u32, after: u32) {
        let mut raise = self.receive_delay();
        // RDMTS: a half, a quarter, an eighth of the ring is left.
        let fraction = self.peek(Register::Rctl) >> rctl::RDMTS_SHIFT & 3;
        let threshold = count >> (fraction + 1);
        if before > threshold && after <= threshold {
            raise |= cause::RXDMT0;
        }
        let small = self.peek(Register::Rsrpd) as usize;
        if small != 0 && length <= small {
            raise |= cause::SRPD;
        }
        if raise != 0 {
            self.raise(raise);
        }
    }

    /// The packet checksum (3.2.3, RXCSUM.PCSS): the complemented sum of what
    /// is stored from byte PCSS on, without FCS.
    fn packet_checksum(&self, first: &[u8], rest: &[u8]) -> u16 {
        let start = (self.peek(Register::Rxcsum) & 0xff) as usize;
        let tail = match start.checked_sub(first.len()) {
            Some(past) => sum(rest.get(past..).unwrap_or_default()),
            None => {
                let head = &first[start..];
                let after = sum(rest);
                // Behind an odd piece, bytes change places: RFC 1071, 2 (B).
                let after = match head.len() % 2 {
                    0 => after,
                    _ => u64::from(fold(after).swap_bytes()),
                };
                sum(head) + after
            }
        };
        !fold(tail)
    }

    /// Checks the checksums that RXCSUM asks for (3.2.9). Reported: IPv4 header;
    /// TCP, and UDP with a checksum, unfragmented, over IPv4 or IPv6 without
    /// extension headers. Where nothing is checked, IXSM says so.
    fn offload(&self, frame: &[u8]) -> Offload {
        let enabled = self.peek(Register::Rxcsum);
        let ignore = Offload {
            status: status::IXSM,
            errors: 0,
        };
        if enabled & (rxcsum::IPOFL | rxcsum::TUOFL) == 0 {
            return ignore;
        }
        let start = if self.vlan_tag(frame).is_some() {
            18
        } else {
            14
        };
        let packet = &frame[start..];
        match be16(frame, start - 2) {
            0x0800 => ipv4(packet, enabled),
            0x86dd if enabled & rxcsum::IPV6OFL != 0 => ipv6(packet, enabled),
            _ => None,
        }
        .unwrap_or(ignore)
    }
}

/// An IPv4 packet; `None` if it is not one.
fn ipv4(packet: &[u8], enabled: u32) -> Option<Offload> {
    let header = usize::from(packet[0] & 0xf) * 4;
    if packet[0] >> 4 != 4 || header < 20 || packet.len() < header {
        return None;
    }
    let total = usize::from(be16(packet, 2));
    if total < header || total > packet.len() {
        return None;
    }
    let mut offload = Offload {
        status: 0,
        errors: 0,
    };
    if enabled & rxcsum::IPOFL != 0 {
        offload.status |= status::IPCS;
        if fold(sum(&packet[..header])) != 0xffff {
            offload.errors |= errors::IPE;
        }
    }
    // More fragments, or an offset: the checksum is not in this packet alone.
    let fragment = be16(packet, 6) & 0x3fff != 0;
    if enabled & rxcsum::TUOFL != 0 && !fragment {
        transport(
            packet[9],
            sum(&packet[12..20]),
            &packet[header..total],
            &mut offload,
        );
    }
    Some(offload)
}

/// An IPv6 packet; `None` if it is not one.
fn ipv6(packet: &[u8], enabled: u32) -> Option<Offload> {
    if packet.len() < 40 || packet[0] >> 4 != 6 {
        return None;
    }
    let end = 40 + usize::from(be16(packet, 4));
    if end > packet.len() {
        return None;
    }
    let mut offload = Offload {
        status: 0,
        errors: 0,
    };
    if enabled & rxcsum::TUOFL != 0 {
        transport(
            packet[6],
            sum(&packet[8..40]),
            &packet[40..end],
            &mut offload,
        );
    }
    Some(offload)
}

/// TCP and UDP: the sum with the pseudo header is all ones.
fn transport(protocol: u8, addresses: u64, segment: &[u8], offload: &mut Offload) {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let present = match protocol {
        TCP => segment.len() >= 20,
        // A UDP checksum of 0 means there is none (RFC 768).
        UDP => segment.len() >= 8 && be16(segment, 6) != 0,
        _ => false,
    };
    if !present {
        return;
    }
    offload.status |= status::TCPCS;
    let pseudo = addresses + u64::from(protocol) + segment.len() as u64;
    if fold(pseudo + sum(segment)) != 0xffff {
        offload.errors |= errors::TCPE;
    }
}

/// What the last descriptor of a frame reports.
#[derive(Clone, Copy)]
struct Last {
    checksum: u16,
    status: u8,
    errors: u8,
    special: u16,
}

impl Last {
    /// The upper half of a descriptor; only the last one of a frame reports
    /// more than DD and VP (3.2.3).
    fn write_back(&self, length: usize, last: bool) -> [u8; 8] {
        let [l0, l1] = (length as u16).to_le_bytes();
        if !last {
            return [l0, l1, 0, 0, status::DD | self.status & status::VP, 0, 0, 0];
        }
        let [c0, c1] = self.checksum.to_le_bytes();
        let [s0, s1] = self.special.to_le_bytes();
        let status = self.status | status::DD | status::EOP;
        [l0, l1, c0, c1, status, self.errors, s0, s1]
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The destination address as RAL and RAH hold it: first byte lowest.
fn station(frame: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&frame[..6]);
    u64::from_le_bytes(bytes)
}
