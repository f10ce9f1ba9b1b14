//! Communication of the system's processes: shared memory, made before they are forked,
//! with slots for requests and answers.
//!
//! ```text
//! mailbox      all of it: the card under its lock, slots, counters, the console
//! lock         a spin lock that outlives its owner's death
//! rendezvous   one request at a time from a client process to a server process
//! command      the supervisor's commands to dom0
//! console      what dom0 prints
//! wire         a process's access to the card
//! ```

pub mod command;
pub(crate) mod console;
pub(crate) mod lock;
pub mod mailbox;
pub mod rendezvous;
pub mod wire;
