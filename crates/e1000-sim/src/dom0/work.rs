//! Rust functions that run in the dom0 process, as CPU 0: traffic generators and
//! measurements that call kernel code many times without a command for each.

use super::enter::{self, EnterError};
use crate::image::KernelPlan;
use crate::memory::Machine;
use crate::memory::view::View;
use crate::transport::mailbox::Mailbox;
use crate::transport::wire::NicPort;

/// A function of the host's that a command runs in dom0. It may call kernel
/// code through [`Local::call`].
pub type Work = fn(&Local<'_>, [u64; 5]) -> Result<u64, EnterError>;

/// The dom0 process from inside.
#[derive(Clone, Copy)]
pub struct Local<'p> {
    /// Objects and addresses.
    pub plan: &'p KernelPlan<'p>,
    /// The machine's memory and registers.
    pub machine: &'p Machine,
    /// What is shared.
    pub mailbox: &'p Mailbox,
    /// The card, as the processor reaches it.
    pub nic: &'p NicPort<'p>,
}

impl<'p> Local<'p> {
    /// Calls dom0 code at an address that the plan gave.
    ///
    /// # Safety
    /// The address is that of a dom0 function, and the arguments are what it
    /// expects.
    pub unsafe fn call(&self, function: u64, arguments: [u64; 6]) -> Result<u64, EnterError> {
        // SAFETY: only dom0 has a `Local`, so its memory is mapped and faults
        // are caught; the rest is the caller's promise.
        unsafe { enter::enter(function, arguments) }
    }

    /// dom0's memory.
    pub fn view(&self) -> View<'p> {
        self.plan.view(self.machine)
    }
}
