//! Packets that can be checked on arrival: whole, in order and of a known flow.
//!
//! A datagram, from the Ethernet header on:
//!
//! ```text
//!  0  destination, source, 0x0800
//! 14  IPv4 header, 20 bytes, protocol 17       34  UDP header
//! 42  magic u32 | flow u32 | number u64 | CRC-32 of all that follows u32 | filler
//! ```
//!
//! A segment of a stream (TSO) has a TCP header at 34 and the stream's bytes from
//! 54 on, or from 66 on if it has a time stamp (`tcp.rs`); what a stream holds at an offset depends on the flow and the offset only,
//! so a segment can be checked by itself.
//!
//! All numbers in headers are big-endian (RFC 791, 768, 9293), our own are
//! little-endian.

mod check;
mod checksum;
mod make;
mod sink;
pub mod source;
pub mod tcp;
#[cfg(test)]
mod tests;

pub use check::{Content, Corruption, check, check_aggregate};
pub use make::{Datagrams, fill_stream, segment_headers};
pub use sink::{Arrived, Sink};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Bytes before the payload of a datagram.
pub const DATAGRAM_HEADERS: usize = 42;
/// Bytes before the payload of a segment.
pub const SEGMENT_HEADERS: usize = 54;

/// Bytes of our own header in a datagram.
const OWN_HEADER: usize = 20;

/// The shortest datagram, which is Ethernet's shortest frame without FCS too
/// (62 bytes carry the whole own header; shorter frames are cut to 60).
pub const SHORTEST: usize = 60;
/// The longest frame without FCS and VLAN tag.
pub const LONGEST: usize = 1514;

const MAGIC: u32 = u32::from_le_bytes(*b"twin");
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Sender and receiver, as packets name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its number: the guest's.
    pub number: u32,
    /// Address of the sender.
    pub source: Mac,
    /// Address of the receiver.
    pub destination: Mac,
}

/// A flow's stream at an offset: neighbours differ, and no short piece repeats soon
/// (Knuth's multiplier).
fn filler(flow: u32, offset: u32) -> u8 {
    (offset
        .wrapping_add(flow.wrapping_mul(0x9e37))
        .wrapping_mul(0x9e37_79b1)
        >> 24) as u8
}

/// CRC-32 of the flow, the number and what follows the own header.
fn payload_crc(header: &[u8; OWN_HEADER], rest: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[4..16]);
    crc.update(rest);
    crc.finalize()
}
