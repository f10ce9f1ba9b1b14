//! What work costs: crossings as quoted, everything else as counted here, one instruction
//! after the other, when a run begins.
//!
//! ```text
//! interrupt with k packets      interrupt + k * packet     handler, poll, bridge, notify
//!    of which a aggregates of s segments: a * merged.handed + s * merged.segment for theirs
//! g guests take k packets       round + g * guest + k * taken
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rig::Rig;
use crate::hypervisor::time_limit;
use crate::measure::profile::Component;
use crate::measure::steps;
use crate::packets::packet_loop::Stop;
use crate::stages::aggregate::Merged;

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

/// What Xen 4.17 executes for a paravirtual domain's hypercall besides what that asks for, in
/// instructions: `lstar_enter` 140, `pv_hypercall` 50, `restore_all_guest` 48, looks for events 17
/// (`scripts/xen.sh count`, `table-by-function`, 29 November 2026).
pub const HYPERCALL: u64 = 255;
/// Batches before the samples of sending.
const WARM: u32 = 64;

/// Where [`QUOTED`] is from, for people.
pub const QUOTED_FROM: &str = "quoted from Dong et al., 3.1 (3,000 to 5,000 cycles a trap, \
                               10,000 a virtual interrupt), not measured in Xen";

/// An invocation of the driver may take that long while it is counted: a trap after each
/// instruction takes longer than a driver may.
const STEPPED: Duration = Duration::from_secs(120);

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
    /// In place of `packet` and `taken` for what the stage `aggregate` has merged.
    #[serde(default)]
    pub merged: MergedPrice,
}

/// Instructions for aggregates and their segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedPrice {
    /// An aggregate, up to its guest's queue, without its segments.
    pub handed: u64,
    /// A segment of it.
    pub segment: u64,
    /// An aggregate that a guest takes, without its segments.
    pub given: u64,
    /// A segment of it.
    pub taken: u64,
}

/// Segments of the least aggregate.
const FEW: u32 = 2;
/// Packets of the larger of two samples: more than the queue's and pool's batches hide.
const MANY: u32 = 9;

impl Price {
    /// Counts it on a rig that has moved packets before, and whose stage `aggregate` is off.
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
            merged: MergedPrice::default(),
        })
    }

    /// The same with the stage `aggregate`, on streams of segments. What a guest costs is in
    /// what it takes.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn count_merged(rig: &mut Rig<'_>) -> Result<Price, Stop> {
        // From a stream's begin, where no write of its sender ends.
        let mut sample = |packets, guests| {
            // The first one finds places of flows that were not used before: their pages are not in the table.
            rig.stream(true);
            sample(rig, packets, guests)?;
            rig.stream(true);
            sample(rig, packets, guests)
        };
        let one = sample(1, 1)?;
        let apart = sample(3, 3)?;
        let few = sample(FEW, 1)?;
        let many = sample(FEW + MANY, 1)?;
        let further = |less: u64, more: u64, by: u32| more.saturating_sub(less) / u64::from(by);
        let packet = further(one.interrupt, apart.interrupt, 2);
        let taken = further(one.deliver, apart.deliver, 2);
        let interrupt = one.interrupt.saturating_sub(packet);
        let round = one.deliver.saturating_sub(taken);
        let segment = further(few.interrupt, many.interrupt, MANY);
        let given = further(few.deliver, many.deliver, MANY);
        let segments = u64::from(FEW);
        let merged = MergedPrice {
            handed: few.interrupt.saturating_sub(interrupt + segments * segment),
            segment,
            given: few.deliver.saturating_sub(round + segments * given),
            taken: given,
        };
        Ok(Price {
            interrupt,
            packet,
            round,
            guest: 0,
            taken,
            merged,
        })
    }

    /// Of an interrupt that brings so many packets, of which some are merged.
    pub fn of_interrupt(&self, packets: u64, merged: Merged) -> u64 {
        self.interrupt
            + packets.saturating_sub(merged.segments) * self.packet
            + merged.aggregates * self.merged.handed
            + merged.segments * self.merged.segment
    }

    /// Of a delivery.
    pub fn of_delivery(&self, guests: u64, packets: u64, merged: Merged) -> u64 {
        self.round
            + guests * self.guest
            + packets.saturating_sub(merged.segments) * self.taken
            + merged.aggregates * self.merged.given
            + merged.segments * self.merged.taken
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

/// Instructions of an interrupt with packets, and of their delivery.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Handler and polls.
    pub interrupt: u64,
    /// The guests' part.
    pub deliver: u64,
}

/// Counts so many packets, by turns to so many guests.
///
/// # Errors
/// The driver stopped.
pub fn sample(rig: &mut Rig<'_>, packets: u32, guests: u32) -> Result<Sample, Stop> {
    for number in 0..packets {
        rig.arrive(number % guests);
    }
    rig.let_it_interrupt();
    let count = |counted: Result<(Result<(), Stop>, steps::Steps), crate::LiveError>| {
        let (done, steps) = counted.map_err(|error| Stop::Driver(error.to_string()))?;
        done.map(|()| steps.costs())
    };
    while_counted(rig, true)?;
    let interrupt = count(steps::count(|| rig.interrupt().map(|_| ())))?;
    let deliver = count(steps::count(|| rig.deliver()))?;
    while_counted(rig, false)?;
    rig.settle()?;
    Ok(Sample { interrupt, deliver })
}

/// Instructions of sending: the guest's, the hypervisor's and the driver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPrice {
    /// A batch of packets to send.
    pub batch: u64,
    /// A packet of it.
    pub packet: u64,
    /// The guest's own part of `packet`; the rest is the hypervisor's and the driver's.
    #[serde(default)]
    pub guest: u64,
    /// A packet that is found sent, in a poll, and its guest's part.
    pub completed: u64,
}

impl SentPrice {
    /// Counts it from samples of one and of so many, when ring and pools have gone round and the driver
    /// takes as many at once: its limit of bytes in the queue (Linux, `dql`) grows with what was sent.
    ///
    /// # Errors
    /// The driver stopped, or does not take them at once.
    pub fn count(rig: &mut Rig<'_>, most: u32) -> Result<SentPrice, Stop> {
        for _ in 0..WARM {
            send_and_complete(rig, most)?;
        }
        sample_sent(rig, 1)?;
        let (one, many) = (sample_sent(rig, 1)?, sample_sent(rig, most)?);
        let each = |of: &dyn Fn(&SentSample) -> u64| {
            of(&many).saturating_sub(of(&one)) / u64::from(most - 1)
        };
        let packet = each(&|sample| sample.sent.costs());
        Ok(SentPrice {
            batch: one.sent.costs().saturating_sub(packet),
            packet,
            guest: each(&|sample| sample.sent.of(Component::Guest)),
            completed: each(&|sample| sample.completed.costs()),
        })
    }
}

/// Instructions of a batch: sending, and finding its packets sent.
struct SentSample {
    sent: steps::Steps,
    completed: steps::Steps,
}

fn send_and_complete(rig: &mut Rig<'_>, packets: u32) -> Result<(), Stop> {
    rig.send(0, packets)?;
    rig.let_it_interrupt();
    rig.interrupt()?;
    rig.complete();
    rig.settle()
}

fn sample_sent(rig: &mut Rig<'_>, packets: u32) -> Result<SentSample, Stop> {
    let mut taken = 0;
    let sent = steps_of(rig, |rig| {
        taken = rig.send(0, packets)?;
        Ok(())
    })?;
    if taken != packets {
        return Err(Stop::Stuck("the driver takes no whole batch"));
    }
    rig.let_it_interrupt();
    let completed = steps_of(rig, |rig| {
        rig.interrupt()?;
        rig.complete();
        Ok(())
    })?;
    rig.settle()?;
    Ok(SentSample { sent, completed })
}

/// Instructions of work on the rig.
///
/// # Errors
/// The driver stopped.
pub(crate) fn counted<'s, T>(
    rig: &mut Rig<'s>,
    work: impl FnOnce(&mut Rig<'s>) -> Result<T, Stop>,
) -> Result<u64, Stop> {
    Ok(steps_of(rig, work)?.costs())
}

/// The same by component.
fn steps_of<'s, T>(
    rig: &mut Rig<'s>,
    work: impl FnOnce(&mut Rig<'s>) -> Result<T, Stop>,
) -> Result<steps::Steps, Stop> {
    while_counted(rig, true)?;
    let (done, steps) =
        steps::count(|| work(rig)).map_err(|error| Stop::Driver(error.to_string()))?;
    while_counted(rig, false)?;
    done.map(|_| steps)
}

/// An invocation of the driver may take long enough to be counted, or as long as always.
///
/// # Errors
/// There is no timer.
pub(crate) fn while_counted(rig: &Rig<'_>, counted: bool) -> Result<(), Stop> {
    limit_time(
        rig,
        if counted {
            STEPPED
        } else {
            time_limit::DEFAULT
        },
    )
}

fn limit_time(rig: &Rig<'_>, limit: Duration) -> Result<(), Stop> {
    let set = rig.engine.limit_time(limit);
    set.map_err(|error| Stop::Driver(error.to_string()))
}
