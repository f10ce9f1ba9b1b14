//! The places where a driver runs: in dom0 for dom0's own packets ([`native`]), in
//! dom0 for guests' packets ([`guest`]), or in the hypervisor ([`twin`]), there with stages
//! of the packet path around it ([`staged`]).

pub(crate) mod apart;
pub(crate) mod early;
pub(crate) mod gather;
pub mod guest;
pub(crate) mod native;
pub mod staged;
pub mod twin;

/// The hypervisor's own services, which hot routines import. The first one depends on the
/// engine: [`twin::HOST_RECEIVE`] or [`staged::HOST_RECEIVE`]; the second is
/// `host_gather` of [`gather`].
pub const SERVICES: [&str; 2] = ["host_receive", "host_gather"];
