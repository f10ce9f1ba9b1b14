//! The places where a driver runs: in dom0 for dom0's own packets ([`native`]), in
//! dom0 for guests' packets ([`guest`]), or in the hypervisor ([`twin`]), there with stages
//! of the packet path around it ([`staged`]).

pub(crate) mod guest;
pub(crate) mod native;
pub mod staged;
pub mod twin;
