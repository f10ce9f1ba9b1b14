//! Faults that stop a ring: an address that the bus refuses, a tail past the end.

use super::Nic;

/// A DMA address that the bus refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusFault {
    /// The first byte of the refused access.
    pub address: u64,
    /// How many bytes were asked for.
    pub length: u64,
}

/// One of the two rings; the runtime numbers them alike (`enum twin_dma_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// The transmit ring.
    Transmit = 0,
    /// The receive ring.
    Receive = 1,
}

/// Why and how often rings stopped. A stopped ring stays so until a device
/// reset; these records stay until power is cycled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// DMA addresses refused, both rings.
    pub bus: u64,
    /// Tails at or past the ring's end.
    pub bad_tails: u64,
    /// The last refused DMA address of transmit.
    pub transmit: BusFault,
    /// The last refused DMA address of receive.
    pub receive: BusFault,
    /// Packets whose descriptors contradict themselves or the limits; dropped.
    pub malformed: u64,
}

impl Nic {
    /// Faults since power-on.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Whether a fault has stopped the ring.
    pub fn stopped(&self, ring: Ring) -> bool {
        match ring {
            Ring::Transmit => self.transmit_stopped != 0,
            Ring::Receive => self.receive_stopped != 0,
        }
    }

    /// Records a refused DMA address and stops the ring; configuration space
    /// reports the received master abort.
    #[cold]
    pub(super) fn bus_fault(&mut self, ring: Ring, fault: BusFault) {
        self.faults.bus += 1;
        match ring {
            Ring::Transmit => {
                self.faults.transmit = fault;
                self.transmit_stopped = 1;
            }
            Ring::Receive => {
                self.faults.receive = fault;
                self.receive_stopped = 1;
            }
        }
        self.pci_master_abort();
    }

    /// Records a tail past the ring's end and stops the ring.
    #[cold]
    pub(super) fn bad_tail(&mut self, ring: Ring) {
        self.faults.bad_tails += 1;
        match ring {
            Ring::Transmit => self.transmit_stopped = 1,
            Ring::Receive => self.receive_stopped = 1,
        }
    }
}
