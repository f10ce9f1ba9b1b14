//! Sends gathered bytes as frames: whole packets when they are complete, packets to be
//! segmented (3.5) whenever a segment is full.

use super::Transmitted;
use super::context::{Insertion, put};
use super::packet::{DROPPED, NO_PACKET, PLAIN, ROOM, SEGMENTED};
use crate::nic::network::set16;
use crate::nic::registers::tctl;
use crate::nic::statistics::Cast;
use crate::nic::{Bus, BusFault, FRAME_LIMIT, Nic, Register, Wire};

/// The shortest frame without FCS.
const SHORTEST: usize = 60;

impl Nic {
    /// Takes `length` bytes of the packet; of a segmented one, each full segment is
    /// sent.
    pub(super) fn gather<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        mut address: u64,
        mut length: usize,
        bus: &mut B,
        wire: &mut W,
        done: &mut Transmitted,
    ) -> Result<(), BusFault> {
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
    pub(super) fn finish_packet<W: Wire + ?Sized>(&mut self, wire: &mut W, done: &mut Transmitted) {
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
    pub(super) fn drop_packet(&mut self) {
        if self.transmit.packet != DROPPED {
            self.faults.malformed += 1;
            self.transmit.packet = DROPPED;
        }
    }
}
