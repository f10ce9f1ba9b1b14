//! The checksums that the device reports for a frame (3.2.3, 3.2.9).

use super::{errors, status};
use crate::nic::checksum::{fold, sum};
use crate::nic::network::be16;
use crate::nic::registers::rxcsum;
use crate::nic::{Nic, Register};

/// The result of checksum offload for a frame.
#[derive(Clone, Copy)]
pub(super) struct Offload {
    pub(super) status: u8,
    pub(super) errors: u8,
}

impl Nic {
    /// The packet checksum (3.2.3, RXCSUM.PCSS): the complemented sum of the stored
    /// bytes from PCSS on, without FCS.
    pub(super) fn packet_checksum(&self, first: &[u8], rest: &[u8]) -> u16 {
        let start = (self.peek(Register::Rxcsum) & 0xff) as usize;
        let tail = match start.checked_sub(first.len()) {
            Some(past) => sum(rest.get(past..).unwrap_or_default()),
            None => {
                let head = &first[start..];
                let after = sum(rest);
                // After a piece of odd length, bytes change places: RFC 1071, 2 (B).
                let after = match head.len() % 2 {
                    0 => after,
                    _ => u64::from(fold(after).swap_bytes()),
                };
                sum(head) + after
            }
        };
        !fold(tail)
    }

    /// Checks the checksums that RXCSUM enables (3.2.9). Reported: IPv4 header;
    /// TCP, and UDP with a checksum, unfragmented, over IPv4 or IPv6 without
    /// extension headers. IXSM is set where nothing is checked.
    pub(super) fn offload(&self, frame: &[u8]) -> Offload {
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
