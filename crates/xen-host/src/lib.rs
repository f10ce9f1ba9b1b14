//! The system that `twin xen` works on: what it is, whether a driver can run in its Xen, and
//! the steps by which one is put there and taken away.
//!
//! ```text
//! System ──facts──> Facts ──checks──> Vec<Check>       look: nothing is changed
//!    │                 └──status──> Status
//!    └──attach, detach, restart──> done, or undone      act: under one lock
//! ```
//!
//! A [`System`] is a root directory: `/`, or a tree that a test has made up, with programs in it
//! that stand for dom0's. All that is read, written and run is below it. This crate knows
//! nothing of rewriting: [`attach()`] is given a function that makes the payload, once dom0's
//! modules have their addresses.

mod attach;
mod checks;
mod code;
mod detach;
mod driver;
mod facts;
mod kit;
mod livepatch;
mod log;
mod refusal;
mod status;
mod system;
mod tools;
mod undo;

pub use attach::{CardCheck, Failed, Why, attach};
pub use checks::{Check, Verdict, checks, on_xen, works};
pub use code::XenCode;
pub use detach::{Left, detach, restart};
pub use driver::{DRIVER, HOT, loaded_from};
pub use facts::{Facts, Interface};
pub use kit::Kit;
pub use refusal::Refusal;
pub use status::{Abort, Instance, Stages, State, Status, Vif};
pub use system::{Exclusive, System};
