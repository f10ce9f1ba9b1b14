//! The guest's packets through dom0, as an unoptimised Xen guest sends them
//! (paper, figure 1): the guest's front end and dom0's back end share a ring, and
//! every kick and every interrupt is an event from one process to the other.
//!
//! ```text
//! guest (hypervisor process)                      dom0 process
//! requests ─> NetRing ─ kick ──────────────────>  back end checks each request,
//!                                                 hot_transmit
//! interrupt ─ event ───────────────────────────>  handler, poll
//! completions, packets <─ NetRing <─ event ─────  back end copies packets out
//! ```
//!
//! Mapping and unmapping of grants and the bridge in dom0's network stack are not
//! modelled, so this path looks cheaper than it is.
//!
//! `ring.rs` is what both share, `front.rs` the guest's side, `back.rs` dom0's.

mod back;
mod event;
mod front;
mod ring;

pub use back::{BackEnd, serve};
pub use event::ByEvent;
pub use front::GuestEngine;
pub use ring::{Failure, NetRing};
