//! Parses and checks a packet.

use std::fmt;

use super::checksum::{fold, pseudo, sum};
use super::{ETHERTYPE_IPV4, MAGIC, OWN_HEADER, PROTOCOL_TCP, PROTOCOL_UDP, filler, payload_crc};

/// The contents of a correct packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Datagram `number` of a flow.
    Datagram {
        /// The flow's number.
        flow: u32,
        /// Counted from 0.
        number: u64,
    },
    /// A piece of a flow's stream.
    Segment {
        /// The flow's number.
        flow: u32,
        /// Offset in the stream, modulo 2^32.
        offset: u32,
        /// Bytes of it.
        length: u32,
    },
    /// A segment without payload, of the flow's other direction.
    Acknowledgement {
        /// The flow's number.
        flow: u32,
        /// All before this offset has arrived.
        offset: u32,
    },
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// Shorter than its headers.
    Short,
    /// Not IPv4 with TCP or UDP.
    Kind,
    /// Lengths disagree.
    Length,
    /// The IPv4 header's checksum is wrong.
    HeaderChecksum,
    /// The UDP or TCP checksum is wrong.
    PayloadChecksum,
    /// Not our packet.
    Magic,
    /// The payload is not what was sent.
    Payload,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Corruption::Short => "shorter than its headers",
            Corruption::Kind => "neither UDP nor TCP over IPv4",
            Corruption::Length => "lengths disagree",
            Corruption::HeaderChecksum => "wrong IPv4 checksum",
            Corruption::PayloadChecksum => "wrong UDP or TCP checksum",
            Corruption::Magic => "not a packet of this test",
            Corruption::Payload => "another payload than was sent",
        })
    }
}

/// The contents of a frame (without FCS).
///
/// # Errors
/// What is wrong with it.
pub fn check(frame: &[u8]) -> Result<Content, Corruption> {
    let (protocol, packet, body) = checked(frame)?;
    if fold(sum(body, pseudo(packet, protocol, body.len()))) != 0xffff {
        return Err(Corruption::PayloadChecksum);
    }
    match protocol {
        PROTOCOL_UDP => check_datagram(body),
        PROTOCOL_TCP => check_segment(body),
        _ => Err(Corruption::Kind),
    }
}

/// The contents of several segments that were received as one packet: the card has checked
/// each one's checksum, and in the field is the sum of the pseudo header for all.
///
/// # Errors
/// What is wrong with it.
pub fn check_aggregate(packet: &[u8]) -> Result<Content, Corruption> {
    let (protocol, ip, body) = checked(packet)?;
    if protocol != PROTOCOL_TCP || body.len() < 20 {
        return Err(Corruption::Kind);
    }
    if u16::from_be_bytes([body[16], body[17]]) != fold(pseudo(ip, protocol, body.len())) {
        return Err(Corruption::PayloadChecksum);
    }
    check_segment(body)
}

/// Protocol, IPv4 packet and its body, of a frame whose IPv4 header is right.
fn checked(frame: &[u8]) -> Result<(u8, &[u8], &[u8]), Corruption> {
    let packet = frame.get(14..).ok_or(Corruption::Short)?;
    if frame[12..14] != ETHERTYPE_IPV4 || packet.len() < 20 || packet[0] != 0x45 {
        return Err(Corruption::Kind);
    }
    if fold(sum(&packet[..20], 0)) != 0xffff {
        return Err(Corruption::HeaderChecksum);
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let body = packet.get(20..total).ok_or(Corruption::Length)?;
    Ok((packet[9], packet, body))
}

fn check_datagram(udp: &[u8]) -> Result<Content, Corruption> {
    let word = |at: usize| u32::from_le_bytes(udp[at..at + 4].try_into().expect("four bytes"));
    if udp.len() < 8 + 16 {
        return Err(Corruption::Short);
    }
    if usize::from(u16::from_be_bytes([udp[4], udp[5]])) != udp.len() {
        return Err(Corruption::Length);
    }
    if word(8) != MAGIC {
        return Err(Corruption::Magic);
    }
    let mut header = [0; OWN_HEADER];
    let room = (udp.len() - 8).min(OWN_HEADER);
    header[..room].copy_from_slice(&udp[8..8 + room]);
    let crc = payload_crc(&header, udp.get(8 + OWN_HEADER..).unwrap_or_default()).to_le_bytes();
    if header[16..room] != crc[..room - 16] {
        return Err(Corruption::Payload);
    }
    Ok(Content::Datagram {
        flow: word(12),
        number: u64::from(word(16)) | u64::from(word(20)) << 32,
    })
}

fn check_segment(tcp: &[u8]) -> Result<Content, Corruption> {
    let header = match tcp.get(12).map(|byte| byte >> 4) {
        Some(5) => 20,
        Some(8) => 32,
        _ => return Err(Corruption::Short),
    };
    let word = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().expect("four bytes"));
    let payload = tcp.get(header..).ok_or(Corruption::Short)?;
    if payload.is_empty() {
        let flow = u32::from(u16::from_be_bytes([tcp[0], tcp[1]]));
        let offset = word(8);
        return Ok(Content::Acknowledgement { flow, offset });
    }
    let flow = u32::from(u16::from_be_bytes([tcp[2], tcp[3]]));
    let offset = word(4);
    let whole = payload.iter().enumerate();
    for (i, byte) in whole {
        if *byte != filler(flow, offset.wrapping_add(i as u32)) {
            return Err(Corruption::Payload);
        }
    }
    Ok(Content::Segment {
        flow,
        offset,
        length: payload.len() as u32,
    })
}
