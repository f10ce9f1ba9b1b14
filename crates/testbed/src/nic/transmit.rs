//! stub
use super::{Bus, Nic, Wire};

/// What a call of [`Nic::process_transmit`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Descriptors worked.
    pub descriptors: u32,
    /// Frames given to the wire.
    pub frames: u32,
    /// Bytes of those frames.
    pub bytes: u64,
}

#[repr(C)]
#[derive(Clone)]
pub(super) struct Transmit {
    used: u32,
}

impl Transmit {
    pub const fn off() -> Transmit {
        Transmit { used: 0 }
    }
    pub fn reset(&mut self) {
        self.used = 0;
    }
}

impl Nic {
    /// Works the transmit ring from TDH to TDT.
    pub fn process_transmit<B: Bus + ?Sized, W: Wire + ?Sized>(
        &mut self,
        _bus: &mut B,
        _wire: &mut W,
    ) -> Transmitted {
        Transmitted::default()
    }
}
