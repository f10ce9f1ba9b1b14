//! The live system: dom0 as a process that boots the stock `e1000.ko`.
//!
//! ```text
//! memory   the machine's memory, where dom0 has what         ─┐ before the fork:
//! image    e1000.ko, hot.o and kernel.o laid out and linked  ─┘ plans are data
//! mailbox  what processes share: lock + NIC, command slot, upcall slots, console
//! dom0     the dom0 process: thread 0 obeys commands, one thread a CPU serves upcalls
//! enter    kernel code on a kernel stack; a fault in it is an oops, not a death
//! wire     the NIC as a process reaches it: lock, DMA check, frames sent
//! trap     registers and ports of the NIC, performed when their access faults
//! work     host functions that run inside dom0; view: dom0's memory anywhere
//! upcall   the hypervisor's side of a call into dom0
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
mod inside;
pub mod instance;
pub mod interface;
pub mod job;
pub mod lock;
pub mod mailbox;
pub mod memory;
pub mod native_engine;
pub mod paths;
pub mod payload;
pub mod process;
pub mod profile;
pub mod pump;
pub mod rendezvous;
pub mod rings;
pub mod round;
pub mod steps;
mod symbols;
pub mod system;
pub mod traffic;
pub mod trap;
pub mod twin_engine;
pub mod upcall;
pub mod view;
pub mod wire;
pub mod work;

pub use error::LiveError;
