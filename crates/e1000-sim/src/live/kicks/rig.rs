//! What the played machine consists of: guests that are processes, the hypervisor with its driver, the card, and one time for all.

use crate::guests::crossing::{Guests, Loop};
use crate::guests::front::Order;
use crate::packets::packet_loop::{Card, Stop};

/// Enough for each of the card's delays.
pub(super) const LONG: u64 = 20_000_000;

/// The machine.
pub(super) struct Rig<'s> {
    pub guests: Guests<'s>,
    pub packets: Loop<'s>,
    /// Nanoseconds, of all runs together.
    pub now: u64,
}

impl Rig<'_> {
    /// Frames that arrived whole, and damage.
    pub fn arrived(&mut self) -> Result<[u64; 2], Stop> {
        self.guests.check(&mut self.packets)?;
        let wire = &self.packets.card.sent;
        let reports = self.guests.reports();
        let bad = reports.iter().map(|report| {
            report.corrupted + report.bad_answers + report.refused + report.unanswered
        });
        Ok([
            wire.packets(),
            wire.corrupted + wire.strangers + bad.sum::<u64>(),
        ])
    }

    /// It is so many nanoseconds later, for the card as well.
    pub fn pass(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.packets.card.tick(nanoseconds);
        self.packets.engine.set_time(self.now);
        self.guests.set_time(self.now);
    }

    /// A guest puts so many packets into its ring, and kicks if it must.
    pub fn burst(&mut self, guest: u32, count: u32) -> Result<(), Stop> {
        self.guests.prepare(&mut self.packets, guest, count)?;
        self.guests.schedule(&mut self.packets, guest, Order::Send)
    }

    /// All that was sent is found sent.
    pub fn settle(&mut self) -> Result<(), Stop> {
        while self.guests.in_flight() > 0 {
            self.pass(LONG);
            if self.packets.card.interrupt() {
                self.guests.interrupt(&mut self.packets)?;
            }
        }
        Ok(())
    }
}
