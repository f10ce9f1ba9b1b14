//! The stage `ack` in the hypervisor instance's engine.
//!
//! ```text
//! line ─> acknowledged and masked, causes saved ─ dom0's flag? ─ shown ─> handler ─> polls
//!                                     ^                no │
//!                                     └─────── they wait ─┘
//! ```
//!
//! Before each poll the card's causes are read once more: of what they say the poll finds all in the
//! rings, because the card writes a descriptor before it sets a cause. So no interrupt follows for
//! which there would be nothing to do. What a poll does not look at is saved for the handler, and
//! so is everything if the driver was not polled here: then another processor has its poll, or
//! dom0 has stopped it.

use super::staged::Staged;
use super::twin::PATIENCE;
use crate::nic::{CardMask, OF_RINGS};
use crate::packets::packet_loop::{Card, Stop};

impl Staged<'_> {
    /// The line, asserted or not: acknowledged at once, whoever may run.
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn acknowledge(&mut self, card: &mut dyn Card) -> Result<(), Stop> {
        if card.interrupt() {
            let causes = card.acknowledge(CardMask::All)?;
            self.ack.acknowledged(causes);
        }
        Ok(())
    }

    /// The handler alone, as natively in the interrupt; false if dom0 has put it off.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn handle(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        self.twin.handle(card, |_| Ok(()))
    }

    /// The polls alone.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn poll(&mut self, card: &mut dyn Card) -> Result<(), Stop> {
        for _ in 0..PATIENCE {
            if !self.twin.poll_once(card)? {
                return Ok(());
            }
        }
        Err(Stop::Stuck("the poll does not end"))
    }

    /// In place of the engine's interrupt: false if the causes wait for dom0's flag.
    pub(super) fn interrupt_early(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        self.acknowledge(card)?;
        if !self.ack.waits() {
            return Ok(true);
        }
        let ack = &mut self.ack;
        let handled = self.twin.handle(card, |card| {
            // Those that came while they waited had no line: all is masked.
            let causes = ack.hand(card.acknowledge(CardMask::Same)?);
            card.show_causes(causes);
            Ok(())
        })?;
        match handled {
            true => self.poll_early(card)?,
            false => self.ack.put_off(),
        }
        Ok(handled)
    }

    fn poll_early(&mut self, card: &mut dyn Card) -> Result<(), Stop> {
        for _ in 0..PATIENCE {
            let causes = card.acknowledge(CardMask::Same)?;
            // dom0's memory has the count: if it is wrong, a driver is not told what its own poll
            // has missed.
            let before = self.twin.polled();
            let more = self.twin.poll_once(card)?;
            let polled = self.twin.polled() != before;
            self.ack.polled(causes, if polled { OF_RINGS } else { 0 });
            if !more {
                return Ok(());
            }
        }
        Err(Stop::Stuck("the poll does not end"))
    }
}
