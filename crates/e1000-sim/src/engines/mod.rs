//! The places where a driver runs: in dom0 for dom0's own packets ([`native`]), in
//! dom0 for guests' packets ([`guest`]), or in the hypervisor ([`twin`]).

pub(crate) mod guest;
pub(crate) mod native;
pub mod twin;
