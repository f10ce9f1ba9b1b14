//! stub
use super::{Bus, Nic};

/// Why a frame was not for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// No address filter takes the destination.
    Address,
    /// The VLAN filter table has not the tag's identifier.
    Vlan,
    /// The canonical form bit is not RCTL.CFI's.
    CanonicalForm,
    /// Shorter than 64 bytes with FCS.
    TooShort,
    /// Longer than 1522 bytes with FCS and RCTL.LPE is 0, or than 16384.
    TooLong,
    /// A pause frame; the MAC keeps it.
    Pause,
}

/// What became of a frame from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is in memory, in so many descriptors.
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
    /// Takes a frame from the wire, without FCS.
    pub fn receive<B: Bus + ?Sized>(&mut self, _frame: &[u8], _bus: &mut B) -> Received {
        Received::Disabled
    }
}
