//! Frames from the wire: [`filter`] (3.2.2, 10.5), the receive [`ring`] (3.2) and
//! checksum [`offload`] (3.2.9).
//!
//! ```text
//! frame ─> enabled? ─> length ─> pause ─> VLAN ─> address ─> descriptors? ─> memory ─> status
//!
//! descriptor  63    48 47    40 39    32 31        16 15        0
//!           0 buffer address
//!           8 special | errors | status | checksum   | length
//! ```
//!
//! Simplified: there is no packet buffer between wire and ring, so a frame that
//! finds too few descriptors is lost at once; descriptors are written back one
//! at a time (RXDCTL's thresholds batch only what a bus carries). Bad frames do
//! not occur, so RCTL.SBP has no effect.

mod filter;
mod offload;
mod ring;

use super::registers::rctl;
use super::{Bus, FCS, Nic, Register};

pub use filter::Filter;

/// Descriptor status (3.2.3.1).
mod status {
    pub const DD: u8 = 1 << 0;
    pub const EOP: u8 = 1 << 1;
    pub const IXSM: u8 = 1 << 2;
    pub const VP: u8 = 1 << 3;
    pub const TCPCS: u8 = 1 << 5;
    pub const IPCS: u8 = 1 << 6;
    /// Passed an inexact filter.
    pub const PIF: u8 = 1 << 7;
}

/// Descriptor errors (3.2.3.2).
mod errors {
    pub const TCPE: u8 = 1 << 5;
    pub const IPE: u8 = 1 << 6;
}

/// The result for a frame from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is in memory.
    Stored {
        /// How many descriptors were used.
        descriptors: u32,
    },
    /// A filter dropped it.
    Filtered(Filter),
    /// Dropped: not enough descriptors (receiver overrun).
    NoDescriptors,
    /// The receiver is off (no power, or RCTL.EN is 0).
    Disabled,
    /// There is no link.
    LinkDown,
    /// A fault has stopped the ring, now or before.
    Stopped,
}

impl Nic {
    /// Takes a frame from the wire, without FCS, and stores it if the filters
    /// and the ring let it. Raises RXT0 (after RDTR and RADV), RXDMT0, RXO,
    /// SRPD.
    pub fn receive<B: Bus + ?Sized>(&mut self, frame: &[u8], bus: &mut B) -> Received {
        let control = self.peek(Register::Rctl);
        if self.powered == 0 || control & rctl::EN == 0 {
            return Received::Disabled;
        }
        if !self.link_up() {
            return Received::LinkDown;
        }
        self.count_seen(frame);
        let exactness = match self.filter(frame, control) {
            Ok(exactness) => exactness,
            Err(filter) => return Received::Filtered(filter),
        };
        if self.receive_stopped != 0 {
            self.count(Register::Mpc);
            return Received::Stopped;
        }
        self.store(frame, exactness, bus)
    }
}
