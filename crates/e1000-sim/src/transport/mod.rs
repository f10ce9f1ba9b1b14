//! How the processes of the system talk: memory that they share, made before they
//! are forked, with slots in which one asks and the other answers.
//!
//! ```text
//! mailbox      all of it: the card under its lock, slots, counters, the console
//! lock         a spin lock that outlives its owner's death
//! rendezvous   one request at a time from a client process to a server process
//! command      what the supervisor asks of dom0
//! console      what dom0 prints
//! wire         the card as a process reaches it
//! ```

pub mod command;
pub mod console;
pub mod lock;
pub mod mailbox;
pub mod rendezvous;
pub mod wire;
