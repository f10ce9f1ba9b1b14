//! The live system: dom0 as a process that boots the stock `e1000.ko`, and the
//! rewritten driver beside it in a hypervisor (paper, figure 2; `ARCHITECTURE.md`
//! draws it).
//!
//! ```text
//! memory, image   the machine, dom0's objects laid out and linked ─┐ before the
//! payload         the rewritten driver and hot routines, linked   ─┘ fork: data
//! mailbox         what processes share: lock + NIC, slots, console
//! dom0, inside    the dom0 process: thread 0 obeys, one thread a CPU serves upcalls
//! enter, trap     kernel code; its faults; registers and ports of the NIC
//! instance        the hypervisor instance: stubs, upcalls, reports
//! pump, round     the packet loop, the same for every path
//! *_engine, domu  where the driver runs: dom0, hypervisor, dom0 for a guest
//! system, paths   all of it put together
//! profile, steps  whose the cycles and the instructions are
//! replay          what the driver's own part costs
//! ```
//!
//! Order in the supervisor: [`memory::Machine::new`], [`image::Plan::new`],
//! [`mailbox::Mailbox::new`], then [`dom0::Dom0::start`] and whatever else is
//! forked, all before it has threads.

mod bugs;
pub mod card;
pub mod command;
pub mod console;
pub mod dom0;
pub mod domu;
pub mod endpoint;
pub mod enter;
pub mod error;
pub mod experiment;
pub mod files;
pub mod hidden;
pub mod host;
pub mod image;
pub mod inject;
mod inside;
pub mod instance;
pub mod interface;
pub mod job;
pub mod lock;
pub mod mailbox;
pub mod memory;
mod names;
pub mod native_engine;
pub mod oops;
pub mod outgoing;
mod patch;
pub mod paths;
pub mod payload;
pub mod profile;
pub mod pump;
pub mod rendezvous;
pub mod replay;
pub mod rings;
pub mod round;
mod standstill;
pub mod steps;
mod symbols;
pub mod system;
pub mod time_limit;
mod timer;
pub mod traffic;
pub mod trap;
pub mod twin_engine;
pub mod upcall;
pub mod view;
pub mod wire;
pub mod work;

pub use error::LiveError;
