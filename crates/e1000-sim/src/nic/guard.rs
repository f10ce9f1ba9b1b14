//! Rings that the hypervisor has taken: the device fetches descriptors from copies, and a
//! driver, dom0's included, goes on to see the registers of its own rings.
//!
//! | register | for the device | for drivers |
//! |---|---|---|
//! | TDBAL, TDBAH, RDBAL, RDBAH | the copies' | the driver's; a write is refused |
//! | TDT, RDT | checked tails | the driver's last value |
//! | TDLEN, RDLEN, TDH, RDH | one value | a write is refused |
//! | RCTL | one value | a write is refused that changes the size of buffers |
//! | CTRL | one value | a reset is refused |
//!
//! A refused write changes nothing and is counted. This is what a hypervisor does that lets
//! dom0's accesses to the card trap: who resets the card or moves its rings takes it back
//! first.

use super::registers::{ctrl, rctl};
use super::{Nic, Register, Ring};

/// The driver's values, and the tails that were checked.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Guarded {
    on: u32,
    base: [u64; 2],
    tail: [u32; 2],
    checked: [u32; 2],
    refused: u64,
}

impl Guarded {
    pub const fn off() -> Guarded {
        Guarded {
            on: 0,
            base: [0; 2],
            tail: [0; 2],
            checked: [0; 2],
            refused: 0,
        }
    }
}

/// What the registers say of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// Bus address of the descriptors.
    pub base: u64,
    /// How many there are.
    pub count: u32,
    /// The next that the device works.
    pub head: u32,
    /// The first that it may not.
    pub tail: u32,
}

const BASES: [[Register; 2]; 2] = [
    [Register::Tdbal, Register::Tdbah],
    [Register::Rdbal, Register::Rdbah],
];
const TAILS: [Register; 2] = [Register::Tdt, Register::Rdt];
/// RCTL's bits for the size of buffers (13.4.22).
const SIZE: u32 = 3 << rctl::BSIZE_SHIFT | rctl::BSEX;

impl Nic {
    /// From now on the device fetches descriptors at `copies`, transmit and receive, and
    /// uses tails that [`Nic::pass_tails`] was given.
    pub fn guard(&mut self, copies: [u64; 2]) {
        let place = |ring| self.driver_ring(ring);
        let (transmit, receive) = (place(Ring::Transmit), place(Ring::Receive));
        let tails = [transmit.tail, receive.tail];
        self.guarded = Guarded {
            on: 1,
            base: [transmit.base, receive.base],
            tail: tails,
            checked: tails,
            refused: self.guarded.refused,
        };
        self.set_bases(copies);
    }

    /// The device uses the driver's rings again. Does nothing if it does.
    pub fn unguard(&mut self) {
        if self.is_guarded() {
            self.guarded.on = 0;
            self.set_bases(self.guarded.base);
        }
    }

    /// Whether the rings' registers are the hypervisor's.
    #[inline(always)]
    pub fn is_guarded(&self) -> bool {
        self.guarded.on != 0
    }

    /// Writes to registers of taken rings that were refused, since power-on.
    pub fn refused_writes(&self) -> u64 {
        self.guarded.refused
    }

    /// The tails that the device is to use after the next [`Nic::absorb`].
    pub fn pass_tails(&mut self, tails: [u32; 2]) {
        self.guarded.checked = tails;
    }

    /// The driver's ring, by the registers as the driver sees them.
    pub fn driver_ring(&self, ring: Ring) -> RingPlace {
        let (length, head) = match ring {
            Ring::Transmit => (Register::Tdlen, Register::Tdh),
            Ring::Receive => (Register::Rdlen, Register::Rdh),
        };
        let [low, high] = BASES[ring as usize];
        RingPlace {
            base: u64::from(self.shown(high)) << 32 | u64::from(self.shown(low)),
            count: self.peek(length) / 16,
            head: self.peek(head),
            tail: self.shown(TAILS[ring as usize]),
        }
    }

    fn set_bases(&mut self, bases: [u64; 2]) {
        for ([low, high], base) in BASES.into_iter().zip(bases) {
            self.poke(low, base as u32);
            self.poke(high, (base >> 32) as u32);
        }
    }

    /// A register's value as drivers see it.
    pub(super) fn shown(&self, register: Register) -> u32 {
        let g = &self.guarded;
        match register {
            _ if g.on == 0 => self.peek(register),
            Register::Tdbal => g.base[0] as u32,
            Register::Tdbah => (g.base[0] >> 32) as u32,
            Register::Rdbal => g.base[1] as u32,
            Register::Rdbah => (g.base[1] >> 32) as u32,
            Register::Tdt => g.tail[0],
            Register::Rdt => g.tail[1],
            other => self.peek(other),
        }
    }

    /// A driver's write; whether that was all of it, because the device's own value is
    /// the hypervisor's.
    pub(super) fn guarded_write(&mut self, register: Register, value: u32) -> bool {
        if !self.is_guarded() {
            return false;
        }
        let refused = match register {
            Register::Tdt | Register::Rdt => {
                self.guarded.tail[usize::from(register == Register::Rdt)] = value;
                return true;
            }
            Register::Tdbal | Register::Tdbah | Register::Tdlen | Register::Tdh => true,
            Register::Rdbal | Register::Rdbah | Register::Rdlen | Register::Rdh => true,
            Register::Rctl => (value ^ self.peek(Register::Rctl)) & SIZE != 0,
            Register::Ctrl | Register::CtrlDup => value & ctrl::RST != 0,
            _ => false,
        };
        self.guarded.refused += u64::from(refused);
        refused
    }

    /// The driver's tails, to be kept in the open view.
    pub(super) fn driver_tails(&self) -> [u32; 2] {
        self.guarded.tail
    }

    pub(super) fn set_driver_tails(&mut self, tails: [u32; 2]) {
        self.guarded.tail = tails;
    }

    /// Takes a tail that was checked; true if it moved.
    pub(super) fn follow_checked(&mut self, ring: Ring) -> bool {
        let (register, value) = (TAILS[ring as usize], self.guarded.checked[ring as usize]);
        let moved = value != self.peek(register);
        self.poke(register, value);
        moved
    }
}
