//! The guest's packets through dom0, as an unoptimised Xen guest sends them (paper, figure 1): a front end in the
//! guest, a back end in dom0, which has neither the guest's memory nor a list of who owns what.
//!
//! ```text
//! guest (hypervisor process)                      dom0 process
//! grants its pages
//! requests ─> interface's ring ─ kick ──────────> back end ── copy, map ──> hypervisor
//!                                                 bridge, hot_transmit ──> driver, card
//! interrupt ─ event ────────────────────────────> handler, poll, bridge's queue
//!             <─ responses <─ event ───────────── back end ── copy, unmap ──> hypervisor
//! ends its grants
//! ```
//!
//! Every kick and every interrupt is an event from one process to the other. A hypercall is a function that runs in dom0's
//! process on the hypervisor's data: it is counted, and its crossing is not executed. What a stock dom0 has besides
//! is at the head of `kernel/bridge.c`: netfilter, queueing disciplines, VLANs.
//!
//! `ring.rs` and `slots.rs` are what both share, `front.rs` the guest's side, `engine.rs` all of them, `back/` dom0's,
//! with `pending.rs`, its packets, and `bridge.rs`, its view of the bridge.

mod back;
mod bridge;
mod engine;
mod event;
mod front;
mod pending;
mod ring;
mod slots;

pub use back::{BackEnd, Dom0Kernel};
pub use bridge::{BridgeCounts, BridgeView};
pub use engine::{GuestEngine, sources};
pub use event::ByEvent;
pub use front::FrontCounts;
pub use ring::{BackCounts, Channel, Failure, NetRing};
