//! Statistics (13.7): saturating counters that are cleared by a read; octet counters
//! are pairs that a read of the high half clears.

use super::{FCS, Nic, Register};

/// The counters that one direction's frames go to, by length with FCS.
struct Sizes([Register; 6]);

impl Sizes {
    #[inline]
    fn of(&self, length: usize) -> Register {
        let [up64, up127, up255, up511, up1023, more] = self.0;
        match length {
            ..=64 => up64,
            65..=127 => up127,
            128..=255 => up255,
            256..=511 => up511,
            512..=1023 => up1023,
            _ => more,
        }
    }
}

const RECEIVED: Sizes = Sizes([
    Register::Prc64,
    Register::Prc127,
    Register::Prc255,
    Register::Prc511,
    Register::Prc1023,
    Register::Prc1522,
]);

const SENT: Sizes = Sizes([
    Register::Ptc64,
    Register::Ptc127,
    Register::Ptc255,
    Register::Ptc511,
    Register::Ptc1023,
    Register::Ptc1522,
]);

/// How a destination address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cast {
    Unicast,
    Multicast,
    Broadcast,
}

impl Cast {
    /// By the first bytes of a frame.
    #[inline]
    pub fn of(frame: &[u8]) -> Cast {
        match frame {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => Cast::Broadcast,
            [first, ..] if first & 1 != 0 => Cast::Multicast,
            _ => Cast::Unicast,
        }
    }
}

impl Nic {
    /// Adds one; sticks at the maximum.
    #[inline]
    pub(super) fn count(&mut self, register: Register) {
        let value = self.peek(register).saturating_add(1);
        self.poke(register, value);
    }

    /// Adds to a 64-bit statistic; sticks at the maximum.
    #[inline]
    fn count_octets(&mut self, low: Register, high: Register, octets: usize) {
        let pair = self.peek_pair(low, high).saturating_add(octets as u64);
        self.poke(low, pair as u32);
        self.poke(high, (pair >> 32) as u32);
    }

    /// Reads the high half of a pair and clears both.
    pub(super) fn read_high_counter(&mut self, high: Register) -> u32 {
        let value = self.peek(high);
        self.poke(high, 0);
        if let Some(low) = Register::at(high.offset() - 4) {
            self.poke(low, 0);
        }
        value
    }

    /// A frame came off the wire; it may be dropped later.
    #[inline]
    pub(super) fn count_seen(&mut self, frame: &[u8]) {
        self.count(Register::Tpr);
        self.count_octets(Register::Torl, Register::Torh, frame.len() + FCS);
    }

    /// A frame passed the filters and is in memory.
    #[inline]
    pub(super) fn count_received(&mut self, frame: &[u8]) {
        let length = frame.len() + FCS;
        self.count(Register::Gprc);
        self.count_octets(Register::Gorcl, Register::Gorch, length);
        self.count(RECEIVED.of(length));
        match Cast::of(frame) {
            Cast::Unicast => {}
            Cast::Multicast => self.count(Register::Mprc),
            Cast::Broadcast => self.count(Register::Bprc),
        }
    }

    /// A frame went out.
    #[inline]
    pub(super) fn count_sent(&mut self, cast: Cast, length: usize) {
        let length = length + FCS;
        self.count(Register::Gptc);
        self.count(Register::Tpt);
        self.count_octets(Register::Gotcl, Register::Gotch, length);
        self.count_octets(Register::Totl, Register::Toth, length);
        self.count(SENT.of(length));
        match cast {
            Cast::Unicast => {}
            Cast::Multicast => self.count(Register::Mptc),
            Cast::Broadcast => self.count(Register::Bptc),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stick_at_their_maximum() {
        let mut nic = Box::new(Nic::off());
        nic.poke(Register::Mpc, u32::MAX - 1);
        nic.count(Register::Mpc);
        nic.count(Register::Mpc);
        assert_eq!(nic.peek(Register::Mpc), u32::MAX);
    }

    #[test]
    fn octets_carry_into_the_high_half() {
        let mut nic = Box::new(Nic::off());
        nic.poke(Register::Gotcl, u32::MAX);
        nic.count_sent(Cast::Unicast, 60);
        let pair = (nic.peek(Register::Gotcl), nic.peek(Register::Gotch));
        assert_eq!(pair, (63, 1));
        assert_eq!(nic.read_high_counter(Register::Gotch), 1);
        let pair = (nic.peek(Register::Gotcl), nic.peek(Register::Gotch));
        assert_eq!(pair, (0, 0));
        // Both halves of each pair are neighbours.
        for &high in Register::ALL {
            if high.access() == crate::nic::registers::RegisterAccess::CounterHigh {
                let low = Register::at(high.offset() - 4).map(Register::access);
                assert_eq!(low, Some(crate::nic::registers::RegisterAccess::CounterLow));
            }
        }
    }
}
