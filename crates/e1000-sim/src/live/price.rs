//! What work costs: crossings as quoted, everything else as counted here, one instruction
//! after the other, when a run begins.
//!
//! ```text
//! interrupt with k packets      interrupt + k * packet     handler, poll, bridge, notify
//! g guests take k packets       round + g * guest + k * taken
//! ```

use serde::{Deserialize, Serialize};

use super::rig::Rig;
use crate::measure::steps;
use crate::packets::packet_loop::Stop;

/// Cycles of what no process of the testbed can show: both parts run without privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossings {
    /// The card's interrupt, up to the handler and back.
    pub interrupt: u64,
    /// An interrupt for a guest: its injection, and what its controller traps for it.
    pub virtual_interrupt: u64,
}

/// Dong et al., 3.1: 3,000 to 5,000 cycles for a trapped access, 10,000 more for each
/// virtual interrupt. Not measured in Xen: the machines at hand have it under emulation only.
pub const QUOTED: Crossings = Crossings {
    interrupt: 4_000,
    virtual_interrupt: 10_000,
};

/// Where [`QUOTED`] is from, for people.
pub const QUOTED_FROM: &str = "quoted from Dong et al., 3.1 (3,000 to 5,000 cycles a trap, \
                               10,000 a virtual interrupt), not measured in Xen";

/// Instructions of work, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// An interrupt, without its packets.
    pub interrupt: u64,
    /// A received packet, up to its guest's queue.
    pub packet: u64,
    /// A delivery to whichever guests.
    pub round: u64,
    /// A guest that takes packets.
    pub guest: u64,
    /// A packet that it takes.
    pub taken: u64,
}

/// Packets of the larger of two samples: more than the queue's and pool's batches hide.
const MANY: u32 = 9;

impl Price {
    /// Counts it on a rig that has moved packets before.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn count(rig: &mut Rig<'_>) -> Result<Price, Stop> {
        let one = sample(rig, 1, 1)?;
        let many = sample(rig, MANY, 1)?;
        let spread = sample(rig, MANY, 3)?;
        let each = |one: u64, many: u64| many.saturating_sub(one) / u64::from(MANY - 1);
        let packet = each(one.interrupt, many.interrupt);
        let taken = each(one.deliver, many.deliver);
        let guest = spread.deliver.saturating_sub(many.deliver) / 2;
        Ok(Price {
            interrupt: one.interrupt.saturating_sub(packet),
            packet,
            round: one.deliver.saturating_sub(guest + taken),
            guest,
            taken,
        })
    }

    /// Of an interrupt that brings so many packets.
    pub fn of_interrupt(&self, packets: u64) -> u64 {
        self.interrupt + packets * self.packet
    }

    /// Of a delivery.
    pub fn of_delivery(&self, guests: u64, packets: u64) -> u64 {
        self.round + guests * self.guest + packets * self.taken
    }

    /// What an interrupt of the card costs whatever it brings: C_p of the formula.
    pub fn card(&self, crossings: &Crossings) -> u64 {
        self.interrupt + crossings.interrupt
    }

    /// What an interrupt of a guest costs whatever it takes: C_v of the formula.
    pub fn wake(&self, crossings: &Crossings) -> u64 {
        self.round + self.guest + crossings.virtual_interrupt
    }
}

struct Sample {
    interrupt: u64,
    deliver: u64,
}

fn sample(rig: &mut Rig<'_>, packets: u32, guests: u32) -> Result<Sample, Stop> {
    for number in 0..packets {
        rig.arrive(number % guests);
    }
    rig.let_it_interrupt();
    let count = |counted: Result<(Result<(), Stop>, steps::Steps), crate::LiveError>| {
        let (done, steps) = counted.map_err(|error| Stop::Driver(error.to_string()))?;
        done.map(|()| steps.costs())
    };
    let interrupt = count(steps::count(|| rig.interrupt().map(|_| ())))?;
    let deliver = count(steps::count(|| rig.deliver()))?;
    rig.settle()?;
    Ok(Sample { interrupt, deliver })
}
