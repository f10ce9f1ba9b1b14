//! The transmit ring (3.3, 3.4): its descriptors, and their effects.
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
//! The bytes that descriptors point to are gathered in one buffer ([`packet`]); full
//! frames and segments go from it to the wire ([`send`]), with checksums at the places
//! given by the last [`context`] descriptor.
//!
//! Simplified: descriptors are processed one at a time and written back one at a
//! time where RS is set (TXDCTL's PTHRESH, HTHRESH and WTHRESH only batch transfers on
//! the bus); sending takes no time; IFCS has no meaning, because frames come
//! without FCS; a collision never happens.

mod context;
mod packet;
mod send;

use super::registers::{cause, ctrl, tctl};
use super::{Bus, BusFault, FRAME_LIMIT, Nic, Register, Ring, Wire};
use context::Context;
use packet::{NO_PACKET, PLAIN, SEGMENTED};

pub(super) use packet::Transmit;

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

/// The result of a call of [`Nic::process_transmit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Descriptors worked.
    pub descriptors: u32,
    /// Frames given to the wire.
    pub frames: u32,
    /// Bytes of those frames.
    pub bytes: u64,
}

/// The contribution of one descriptor to the causes.
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
        self.process_transmit_up_to(u64::MAX, bus, wire)
    }

    /// The same, but begins no packet when as many bytes are sent: for a card that serves
    /// several rings by turns.
    pub fn process_transmit_up_to<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        bytes: u64,
        bus: &mut B,
        wire: &mut W,
    ) -> Transmitted {
        let mut done = Transmitted::default();
        let enabled = self.powered != 0 && self.peek(Register::Tctl) & tctl::EN != 0;
        if !enabled || !self.link_up() || self.transmit_stopped != 0 {
            return done;
        }
        let base = self.peek_pair(Register::Tdbal, Register::Tdbah);
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
        while head != tail && (done.bytes < bytes || self.transmit.packet != NO_PACKET) {
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

    /// Raises the causes of the call (3.4.3, 13.4.17).
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
    ) -> Result<(), BusFault> {
        let mut raw = [0; 16];
        bus.read(at, &mut raw)?;
        let word = |index: usize| {
            let at = index * 4;
            u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
        };
        let words = [word(0), word(1), word(2), word(3)];
        let control = words[2];
        match (control & command::DEXT != 0, control >> 20 & 0xf) {
            (false, _) => {
                self.legacy(words);
                self.append(words, control & 0xffff, bus, wire, done)?;
            }
            (true, 0) => self.context(Context { words }),
            (true, 1) => {
                self.data(words);
                self.append(words, control & 0x000f_ffff, bus, wire, done)?;
            }
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

    /// A legacy descriptor's options for its packet (3.3.3).
    fn legacy(&mut self, words: [u32; 4]) {
        let control = words[2];
        if self.transmit.packet == NO_PACKET {
            self.transmit.begin(PLAIN, 0);
        }
        if control & command::IC_TSE != 0 {
            self.transmit.legacy = 1;
            self.transmit.legacy_start = words[3] >> 8 & 0xff;
            self.transmit.legacy_field = control >> 16 & 0xff;
        }
    }

    /// A data descriptor's options for its packet, if it is the first (3.3.7).
    fn data(&mut self, words: [u32; 4]) {
        if self.transmit.packet != NO_PACKET {
            return;
        }
        let options = words[3] & (IXSM | TXSM);
        if words[2] & command::IC_TSE == 0 {
            self.transmit.begin(PLAIN, options);
            return;
        }
        self.transmit.begin(SEGMENTED, options);
        let context = self.transmit.segmentation;
        let length = context.header() + context.segment();
        let possible = context.header() != 0 && context.segment() != 0;
        if !possible || length > FRAME_LIMIT {
            self.count(Register::Tsctfc);
            self.drop_packet();
        }
    }

    /// Adds the `length` bytes that a legacy or data descriptor points to; EOP
    /// completes the packet.
    fn append<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        words: [u32; 4],
        length: u32,
        bus: &mut B,
        wire: &mut W,
        done: &mut Transmitted,
    ) -> Result<(), BusFault> {
        let address = u64::from(words[1]) << 32 | u64::from(words[0]);
        self.tag(words);
        self.gather(address, length as usize, bus, wire, done)?;
        if words[2] & command::EOP != 0 {
            self.finish_packet(wire, done);
        }
        Ok(())
    }

    /// VLE: the tag is inserted if CTRL.VME is set (3.3.4). The last descriptor
    /// of a packet decides (3.3.7.1). Segments are sent before it is reached, so for
    /// them any descriptor with VLE counts.
    fn tag(&mut self, words: [u32; 4]) {
        if self.transmit.packet == PLAIN {
            self.transmit.tagged = 0;
        }
        if words[2] & command::VLE != 0 && self.peek(Register::Ctrl) & ctrl::VME != 0 {
            self.transmit.tagged = 1;
            self.transmit.tag = words[3] >> 16;
        }
    }

    fn end_of_packet(&mut self, control: u32) {
        if control & command::EOP != 0 {
            self.transmit.packet = NO_PACKET;
        }
    }
}
