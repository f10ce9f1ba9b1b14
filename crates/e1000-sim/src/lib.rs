//! The system that packets go through: dom0 as a process that boots the stock
//! `e1000.ko` on a kernel shim (`kernel/`), a model of the card, and the rewritten
//! driver in a hypervisor process (paper, figure 2).
//!
//! ```text
//! memory       the machine's memory, its layout, dom0's view of it   ─┐ before the
//! image        dom0's objects laid out and linked                     │ fork: data
//! transport    what processes share: lock and card, slots, console   ─┘
//! dom0         the dom0 process: kernel code, its faults, upcalls
//! hypervisor   the rewritten driver: linked, loaded, upcalls, reports
//! nic          the card's model, register by register
//! traffic      packets made and checked; sources that send and receive
//! packets      the packet loop, the same for every path
//! stages       of the packet path, each can be off
//! contexts     a card with a context for each guest, and what it costs
//! live         packets that arrive at their times, and the rows that need that
//! processors   several of them, with guests' queues between them
//! guests       guests that are processes of their own, and crossings to and from them
//! grants       pages that guests let dom0 use, and the hypervisor's check of that
//! engines      where the driver runs: dom0, dom0 for a guest, hypervisor
//! system       all of it put together; paths runs the four side by side
//! measure      cycles and instructions by component
//! replay       what the driver's own part costs
//! experiment   a measurement from set-up to numbers
//! inject       faults in the driver's data, and what they reach
//! ```
//!
//! Order in the supervisor: [`memory::Machine::new`], [`image::KernelPlan::new`],
//! [`transport::mailbox::Mailbox::new`], then [`dom0::Dom0::start`] and all other
//! forks, before it has threads.

pub mod contexts;
pub mod dom0;
pub mod engines;
pub mod error;
pub mod experiment;
pub mod grants;
pub mod guests;
pub mod hypervisor;
pub mod image;
pub mod inject;
pub mod live;
pub mod measure;
pub mod memory;
pub mod nic;
pub mod packets;
pub mod paths;
pub mod processors;
pub mod replay;
pub mod stages;
pub mod system;
mod timer;
pub mod traffic;
pub mod transport;

pub use error::LiveError;
