//! Faults in a driver's data, while the hypervisor instance serves packets.
//!
//! ```text
//! anatomy   the driver's structures, found in its memory
//! fault     kinds of faults, wild values, one fault struck: what, where, before
//! strike    a kind and a seed ─> words changed in dom0's memory
//! stack     the driver's own stack, struck from inside an import
//! unwind    where the return addresses on it are
//! faulty    an engine for the packet loop that strikes at a chosen moment
//! service   packets of some guests, sent, received, checked
//! translations  the hypervisor's table leads where it should
//! guards    the hypervisor's own memory and the guests': unchanged
//! recovery  dom0 resets the driver, or is born again; the instance is renewed
//! tally     outcomes of faults, by kind
//! campaign  all of it, in a process that a supervisor watches
//! ```
//!
//! What must hold after any fault: the hypervisor process lives; its memory, and that
//! of guests without a packet being sent or received, is unchanged; every call ends;
//! and after dom0's reset packets go both ways again.
//!
//! A seed and a number determine a fault's kind, moment, place and value, except
//! addresses on the hypervisor's own heap (the system chooses them) and, for
//! faults that another thread strikes, the instruction. Not claimed: that a driver calls
//! no permitted function with wrong arguments, or that the packets that it is processing
//! are right.

pub(crate) mod anatomy;
pub mod campaign;
pub mod fault;
pub(crate) mod faulty;
pub(crate) mod guards;
mod line;
pub mod recovery;
pub mod service;
pub(crate) mod stack;
pub(crate) mod strike;
pub mod tally;
pub(crate) mod translations;
pub(crate) mod unwind;
