//! Faults in a driver's data, while the hypervisor instance serves packets.
//!
//! ```text
//! anatomy   where the driver has what, found in its memory
//! fault     kinds of faults, wild values, one fault struck: what, where, before
//! strike    a kind and a seed ─> words changed in dom0's memory
//! stack     the driver's own stack, struck from inside an import
//! faulty    the packet loop's engine, which strikes at its moment
//! service   packets of some guests, sent, received, checked
//! translations  the hypervisor's table leads where it should
//! guards    the hypervisor's own memory and the guests': unchanged
//! recovery  dom0 resets the driver, or is born again; the instance is renewed
//! tally     what became of faults, by kind
//! campaign  all of it, in a process that a supervisor watches
//! ```
//!
//! What must hold, whatever the fault: the hypervisor process lives, its memory
//! and that of guests who have no packet on the way is as before, no call takes
//! for ever, and after dom0's reset packets go both ways again.
//!
//! A seed and a number determine a fault's kind, moment, place and value, but for
//! addresses on the hypervisor's own heap (the system chooses them) and, for
//! faults that another thread strikes, the instruction. Not claimed: that a
//! driver cannot return to code of the hypervisor's (see
//! [`stack`]), that it calls no permitted function with wrong arguments, or that
//! the packets which it has in its hands are right.

pub mod anatomy;
pub mod campaign;
pub mod fault;
pub mod faulty;
pub mod guards;
pub mod recovery;
pub mod service;
pub mod stack;
pub mod strike;
pub mod tally;
pub mod translations;
