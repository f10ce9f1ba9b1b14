//! The hypervisor instance: the rewritten driver and hot routines, loaded.
//!
//! ```text
//! payload      rewritten, verified and linked: data, made before the fork
//! instance     loaded: stubs, callbacks of the runtime, reports of aborts
//! locks        what an aborted invocation held
//! upcall       a call into dom0, seen from here
//! stack_mask   the driver's stack as dom0 may see it during an upcall
//! time_limit   ends an invocation that runs too long
//! unconfined   instead of the instance's code: dom0's own, as it is, to compare with
//! ```

pub mod instance;
mod locks;
pub(crate) mod payload;
pub(crate) mod stack_mask;
pub mod time_limit;
pub mod unconfined;
pub mod upcall;
