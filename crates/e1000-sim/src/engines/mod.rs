//! Where the driver runs that moves a path's packets: in dom0 for dom0's own
//! ([`native`]), in dom0 for guests ([`guest`]), or in the hypervisor ([`twin`]).

pub mod guest;
pub mod native;
pub mod twin;
