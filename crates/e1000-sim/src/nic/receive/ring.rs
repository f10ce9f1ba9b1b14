//! The receive ring: a frame that passed the filters is scattered over buffers, and
//! their descriptors are written back.

use super::filter::Match;
use super::{FCS, Received, status};
use crate::nic::checksum::fcs;
use crate::nic::registers::{cause, ctrl, rctl};
use crate::nic::{Bus, BusFault, Nic, Register, Ring};

impl Nic {
    /// How many bytes a receive buffer has: RCTL.BSIZE and BSEX (13.4.22).
    pub(crate) fn buffer_size(&self) -> usize {
        let control = self.peek(Register::Rctl);
        let size = 2048 >> (control >> rctl::BSIZE_SHIFT & 3);
        match control & rctl::BSEX != 0 {
            true => size * 16,
            false => size,
        }
    }

    /// Puts a frame that passed the filters into the ring.
    pub(super) fn store<B: Bus + ?Sized>(
        &mut self,
        frame: &[u8],
        exactness: Match,
        bus: &mut B,
    ) -> Received {
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
        let base = self.peek_pair(Register::Rdbal, Register::Rdbah);
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
}

/// The report in the last descriptor of a frame.
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
