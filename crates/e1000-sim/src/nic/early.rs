//! The interrupt acknowledged before the driver's handler runs (DBNet, 5.2): what a hypervisor
//! knows of this card to do so.
//!
//! ```text
//! line ─> ICR read: all causes cleared (13.4.17), IMC: all masked (13.4.21) ─> line falls
//!            └─ causes, saved ─> shown in place of ICR ─> the driver's handler, later
//! ```
//!
//! The driver's handler masks, too, and its poll unmasks when it ends: so the mask is as it would
//! be if the handler had run at once.

use std::sync::atomic::AtomicU32;

use super::registers::cause;
use super::{Nic, Register};

/// Causes for which the driver looks at its rings, and at nothing else (13.4.17).
pub const OF_RINGS: u32 = cause::TXDW | cause::TXQE | cause::RXDMT0 | cause::RXO | cause::RXT0;

/// What happens to the card's mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardMask {
    /// All causes are masked: the line stays low until the driver unmasks.
    All,
    /// It stays: the driver has masked, or the hypervisor before.
    Same,
}

impl Nic {
    /// Reads ICR, which acknowledges all causes, beside the driver's open view; gives the causes.
    pub fn acknowledge_early(&mut self, bar: &[AtomicU32], mask: CardMask) -> u32 {
        self.beside(bar, |card| {
            let causes = card.mmio_read(Register::Icr.offset());
            match mask {
                CardMask::All => card.mmio_write(Register::Imc.offset(), u32::MAX),
                CardMask::Same => {}
            }
            causes & cause::ALL
        })
    }
}
