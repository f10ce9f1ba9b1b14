//! The testbed: dom0 and the hypervisor as processes on one machine.

pub mod live;
pub mod nic;
