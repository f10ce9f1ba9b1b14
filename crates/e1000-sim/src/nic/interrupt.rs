//! Interrupt causes, mask, delays and throttling (3.2.7, 3.4.3, 13.4.17 to
//! 13.4.21).
//!
//! ```text
//! receive  ─ RDTR, RADV ─┐
//! transmit ─ TIDV, TADV ─┼─> ICR ── IMS ── ITR ──> line
//! link, MDIC, ICS ───────┘
//! ```
//!
//! Time is virtual: [`Nic::tick`] advances it.

use super::registers::cause;
use super::{Nic, Register};

/// RDTR, RADV, TIDV and TADV count in this many nanoseconds.
const DELAY_UNIT: u64 = 1024;

/// ITR counts in this many nanoseconds.
const THROTTLE_UNIT: u64 = 256;

/// A virtual clock and the deadlines on it; a deadline of 0 is disarmed.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Timers {
    now: u64,
    receive_packet: u64,
    receive_absolute: u64,
    transmit_packet: u64,
    transmit_absolute: u64,
    /// The line may not rise before this.
    throttled_until: u64,
    /// How often it has risen.
    rises: u64,
}

impl Timers {
    pub const fn off() -> Timers {
        Timers {
            now: 0,
            receive_packet: 0,
            receive_absolute: 0,
            transmit_packet: 0,
            transmit_absolute: 0,
            throttled_until: 0,
            rises: 0,
        }
    }

    /// A reset stops every timer, not the clock.
    pub fn disarm(&mut self) {
        *self = Timers {
            now: self.now,
            rises: self.rises,
            ..Timers::off()
        };
    }
}

/// Whether a deadline is armed and has come.
fn due(deadline: u64, now: u64) -> bool {
    deadline != 0 && deadline <= now
}

impl Nic {
    /// Lets `nanoseconds` pass: delayed interrupts may become due.
    pub fn tick(&mut self, nanoseconds: u64) {
        self.timers.now = self.timers.now.saturating_add(nanoseconds);
        let now = self.timers.now;
        let mut causes = 0;
        if due(self.timers.receive_packet, now) || due(self.timers.receive_absolute, now) {
            causes |= self.receive_due();
        }
        if due(self.timers.transmit_packet, now) || due(self.timers.transmit_absolute, now) {
            causes |= self.transmit_due();
        }
        self.raise(causes);
    }

    /// The present virtual time in nanoseconds since power-on.
    pub fn now(&self) -> u64 {
        self.timers.now
    }

    /// How long until [`Nic::tick`] would change something, in nanoseconds.
    pub fn next_event(&self) -> Option<u64> {
        let t = &self.timers;
        let waiting = self.line == 0 && self.pending() != 0;
        [
            t.receive_packet,
            t.receive_absolute,
            t.transmit_packet,
            t.transmit_absolute,
            if waiting { t.throttled_until } else { 0 },
        ]
        .into_iter()
        .filter(|&deadline| deadline != 0)
        .min()
        .map(|deadline| deadline.saturating_sub(t.now))
    }

    /// Whether the device asserts its interrupt line.
    pub fn interrupt_line(&self) -> bool {
        self.line != 0
    }

    /// How often the device has asserted it since power-on.
    pub fn interrupts(&self) -> u64 {
        self.timers.rises
    }

    /// Causes that are set and unmasked.
    pub(super) fn pending(&self) -> u32 {
        self.peek(Register::Icr) & self.peek(Register::Ims)
    }

    /// Sets causes (and, from ICS, exactly as the driver asked; 13.4.19).
    pub(super) fn raise(&mut self, causes: u32) {
        self.window.raised(causes);
        let icr = self.peek(Register::Icr) | causes & cause::ALL;
        self.poke(Register::Icr, icr);
        self.update_line();
    }

    /// The line follows the pending causes; a rise waits for the throttle and
    /// starts it again (13.4.18).
    fn update_line(&mut self) {
        if self.pending() == 0 {
            self.line = 0;
        } else if self.line == 0 && self.timers.now >= self.timers.throttled_until {
            self.line = 1;
            self.timers.rises += 1;
            let interval = u64::from(self.peek(Register::Itr)) * THROTTLE_UNIT;
            self.timers.throttled_until = self.timers.now.saturating_add(interval);
        }
    }

    /// ICR as a read gives it, without clearing.
    pub(super) fn present_icr(&self) -> u32 {
        let asserted = if self.pending() != 0 {
            cause::INT_ASSERTED
        } else {
            0
        };
        self.peek(Register::Icr) | asserted
    }

    /// Reading ICR acknowledges everything (13.4.17).
    pub(super) fn read_icr(&mut self) -> u32 {
        let value = self.present_icr();
        self.acknowledge(value);
        value
    }

    /// Clears causes.
    pub(super) fn acknowledge(&mut self, causes: u32) {
        let left = self.peek(Register::Icr) & !causes;
        self.poke(Register::Icr, left);
        self.update_line();
    }

    /// IMS (13.4.20).
    pub(super) fn unmask(&mut self, causes: u32) {
        let mask = self.peek(Register::Ims) | causes & cause::ALL;
        self.poke(Register::Ims, mask);
        self.update_line();
    }

    /// IMC (13.4.21).
    pub(super) fn mask(&mut self, causes: u32) {
        let mask = self.peek(Register::Ims) & !causes;
        self.poke(Register::Ims, mask);
        self.update_line();
    }

    /// ITR (13.4.18): a new interval applies from the next interrupt on; 0 ends the
    /// throttling at once.
    pub(super) fn write_itr(&mut self, value: u32) {
        self.poke(Register::Itr, value);
        if value == 0 {
            self.timers.throttled_until = 0;
            self.update_line();
        }
    }

    /// RDTR (13.4.30): bit 31, flush partial descriptor block, ends the delay.
    pub(super) fn write_rdtr(&mut self, value: u32) {
        const FPD: u32 = 1 << 31;
        self.poke(Register::Rdtr, value & Register::Rdtr.mask());
        if value & FPD != 0 && self.timers.receive_packet != 0 {
            let causes = self.receive_due();
            self.raise(causes);
        }
    }

    /// A frame is in memory: RXT0 now, or after RDTR without another frame, or
    /// RADV after the first (3.2.7.1). Gives the causes to raise now.
    #[inline]
    pub(super) fn receive_delay(&mut self) -> u32 {
        let delay = u64::from(self.peek(Register::Rdtr));
        if delay == 0 {
            return cause::RXT0;
        }
        let now = self.timers.now;
        self.timers.receive_packet = now.saturating_add(delay * DELAY_UNIT);
        let absolute = u64::from(self.peek(Register::Radv));
        if absolute != 0 && self.timers.receive_absolute == 0 {
            self.timers.receive_absolute = now.saturating_add(absolute * DELAY_UNIT);
        }
        0
    }

    /// The receive delay is over.
    pub(super) fn receive_due(&mut self) -> u32 {
        self.timers.receive_packet = 0;
        self.timers.receive_absolute = 0;
        cause::RXT0
    }

    /// A descriptor with IDE was written back: TXDW after TIDV without another,
    /// or TADV after the first (3.4.3). TIDV 0 delays nothing. Gives the causes
    /// to raise now.
    pub(super) fn transmit_delay(&mut self) -> u32 {
        let delay = u64::from(self.peek(Register::Tidv));
        if delay == 0 {
            return self.transmit_due();
        }
        let now = self.timers.now;
        self.timers.transmit_packet = now.saturating_add(delay * DELAY_UNIT);
        let absolute = u64::from(self.peek(Register::Tadv));
        if absolute != 0 && self.timers.transmit_absolute == 0 {
            self.timers.transmit_absolute = now.saturating_add(absolute * DELAY_UNIT);
        }
        0
    }

    /// The transmit delay is over, or a descriptor without IDE ended it.
    pub(super) fn transmit_due(&mut self) -> u32 {
        self.timers.transmit_packet = 0;
        self.timers.transmit_absolute = 0;
        cause::TXDW
    }
}
