//! Interrupts as events: the hypervisor receives each before dom0 handles it.

use crate::engines::native::Notify;
use crate::measure::profile::{Component, cycles, enter_phase};
use crate::transport::rendezvous::{Limits, Rendezvous};

/// Sends each interrupt to the hypervisor before dom0 handles it: dom0 on a
/// hypervisor (paper, figures 5 to 8).
pub struct ByEvent<'m> {
    /// Where the hypervisor listens.
    pub event: &'m Rendezvous,
    /// How long dom0 waits.
    pub limits: Limits,
    /// Cycles of waits since they were last read.
    pub waited: u64,
}

impl Notify for ByEvent<'_> {
    fn interrupt(&mut self) {
        let start = cycles();
        enter_phase(Component::Hypervisor);
        // Without an answer the handler runs anyway: the line is asserted.
        let _ = self.event.call(&self.limits, || (), || ());
        enter_phase(Component::Dom0);
        self.waited += cycles() - start;
    }

    fn waited(&mut self) -> u64 {
        std::mem::take(&mut self.waited)
    }
}
