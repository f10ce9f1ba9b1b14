//! Context descriptors (3.3.6): the places of checksums, and how a packet is split.

use super::command;
use crate::nic::checksum::{finish, sum};
use crate::nic::network::set16;

/// A checksum to insert: over `start..=end` (`end` 0 is the frame's end) into
/// the field at `field`.
#[derive(Clone, Copy)]
pub(super) struct Insertion {
    pub(super) start: usize,
    pub(super) field: usize,
    pub(super) end: usize,
}

/// A context descriptor as it was written (3.3.6).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) words: [u32; 4],
}

impl Context {
    pub(super) fn ip(self) -> Insertion {
        insertion(self.words[0])
    }
    pub(super) fn transport(self) -> Insertion {
        insertion(self.words[1])
    }
    pub(super) fn is_ipv4(self) -> bool {
        self.words[2] & command::IP != 0
    }
    pub(super) fn is_tcp(self) -> bool {
        self.words[2] & command::TCP != 0
    }
    pub(super) fn payload(self) -> usize {
        (self.words[2] & 0x000f_ffff) as usize
    }
    pub(super) fn header(self) -> usize {
        (self.words[3] >> 8 & 0xff) as usize
    }
    pub(super) fn segment(self) -> usize {
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

/// Sums, including the field's present value, and stores. False if it does not fit.
pub(super) fn put(frame: &mut [u8], insertion: Insertion, no_zero: bool) -> bool {
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
