//! Several processors, each with a card and an instance of the driver, that share guests'
//! queues (Dong et al., 4.3: virtual receive side scaling).
//!
//! ```text
//! hash        the flow of a frame
//! queues      queues with a lock each, and which processor has which
//! work        what the work costs, counted
//! model       machines, traffic, outcomes ─┐
//! card        a simulated card             ├ N processors, by counted instructions
//! simulation  processors and locks         │
//! receiving   what cards bring for guests  │
//! sending     what guests send             ┘
//! simulated   the row of it
//! exchange    queues in memory that processes share ─┐ as many as the machine has,
//! handing     what guests send, by cards' queues      │ truly at once
//! sender      a processor's part in it                │
//! real        a process for each processor           ┘
//! measured    the row of it
//! ```

mod card;
pub mod exchange;
pub mod handing;
pub mod hash;
pub mod measured;
pub mod model;
pub mod queues;
pub mod real;
pub mod receiving;
pub mod sender;
pub mod sending;
pub mod simulated;
mod simulation;
pub mod work;

use crate::packets::round::{PEER, guest_mac};
use crate::traffic::Flow;

/// A flow from the cable to a guest.
pub fn flow(number: u32, guest: u32) -> Flow {
    Flow {
        number,
        source: PEER,
        destination: guest_mac(guest),
    }
}
