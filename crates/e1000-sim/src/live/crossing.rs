//! What it costs that guests are processes of their own: packets of guests that the hypervisor calls, and of guests
//! that it enters, by turns in one process.
//!
//! ```text
//! call     guests are functions in the hypervisor's process; one call of the driver serves all of them
//! process  each guest kicks for itself, and is told for itself (crate::guests)
//! each     each packet by itself: a kick, an interrupt of the card, a notification
//! batch    32 packets of all guests together have one interrupt; a guest kicks once for its own
//! notify   and a guest is told late: of what it sent when half a ring was answered, of what came in by the stage
//!          `notify` after 1,000 us
//! ```
//!
//! Kicks and notifications are counted where they happen, and are the same in each run. Instructions are those of hypervisor, driver
//! and guests, counted one by one in each process; a switch between processes is none. Cycles have it.

use process_lab::packet_path::NotifyLimits;
use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::entered::{GUESTS, WAIT, with_guests};
use super::price::{HYPERCALL, QUOTED};
use super::receive::wire_time;
use crate::dom0::job::{Look, observe};
use crate::engines::staged::Staged;
use crate::experiment::Spread;
use crate::guests::back::CrossingCounts;
use crate::guests::crossing::{Guests, Kicks};
use crate::guests::front::Order;
use crate::hypervisor::time_limit;
use crate::image::files::Files;
use crate::packets::packet_loop::Stop;
use crate::packets::round::{BATCH, PacketDirection, Round, Runner, incoming};
use crate::stages::notify::AT_ONCE;
use crate::system::SystemError;
use crate::traffic::{Datagrams, LONGEST};

/// Packets of a sample of cycles: some periods of the stage `notify`.
const SAMPLE: u64 = 256;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds of each way, by turns.
    pub turns: usize,
    /// Packets of a round.
    pub packets: u64,
    /// Packets of the round whose crossings are counted: whole periods of the stage `notify`, which are 128 packets.
    pub counted: u64,
    /// Packets whose instructions are counted one by one; 0: none are.
    pub stepped: u64,
}

/// As the row has it.
pub const ROW: Effort = Effort {
    turns: 5,
    packets: 2048,
    counted: 6144,
    stepped: 64,
};

/// Crossings only.
pub const COUNTS: Effort = Effort {
    turns: 1,
    packets: 256,
    counted: 768,
    stepped: 0,
};

/// As in Dong et al., 5.2: a thousand virtual interrupts a second.
const LATE: NotifyLimits = NotifyLimits {
    delay: 1_000_000,
    count: 0,
    most: 192,
};

twin_abi::listed! {
    /// How packets get between guests and the hypervisor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Way {
        /// Guests are called, each packet by itself.
        CallEach => "call-each",
        /// Guests are entered, each packet by itself.
        ProcessEach => "process-each",
        /// Guests are called, 32 packets together: the other rows' way.
        CallBatch => "call-batch",
        /// Guests are entered, 32 packets together.
        ProcessBatch => "process-batch",
        /// The same, and they are told late.
        ProcessNotify => "process-notify",
    }
}

impl Way {
    /// What it is compared with.
    pub fn base(self) -> Way {
        match self {
            Way::CallEach | Way::ProcessEach => Way::CallEach,
            Way::CallBatch | Way::ProcessBatch | Way::ProcessNotify => Way::CallBatch,
        }
    }

    fn batch(self) -> u32 {
        match self {
            Way::CallEach | Way::ProcessEach => 1,
            Way::CallBatch | Way::ProcessBatch | Way::ProcessNotify => BATCH,
        }
    }

    fn is_process(self) -> bool {
        self != self.base()
    }
}

/// What a packet costs in one way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WayCost {
    /// Which.
    pub way: Way,
    /// Kicks a packet.
    pub kicks: f64,
    /// Notifications a packet.
    pub notifications: f64,
    /// Times a packet that a guest got the processor to send.
    pub scheduled: f64,
    /// Instructions of a packet, of all processes; the crossings themselves are none.
    pub instructions: f64,
    /// Cycles of a packet, switches between processes included: median of the turns.
    pub cycles: f64,
    /// Cycles divided by those of [`Way::base`]: tenth, half, nine tenths of the turns.
    pub measured: [f64; 3],
}

impl WayCost {
    /// Instructions, one a cycle, a kick as a hypercall counted in Xen, a notification as a virtual interrupt is quoted.
    pub fn priced(&self) -> f64 {
        let crossings =
            self.kicks * HYPERCALL as f64 + self.notifications * QUOTED.virtual_interrupt as f64;
        self.instructions + crossings
    }
}

/// One direction, with so many guests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByCrossing {
    /// Which way packets go.
    #[serde(rename = "sent")]
    pub direction: PacketDirection,
    /// Guests that send or receive, by turns.
    pub guests: u32,
    /// Each way.
    pub costs: Vec<WayCost>,
    /// Frames that were lost or changed.
    pub damage: u64,
}

impl ByCrossing {
    fn cost(&self, way: Way) -> Option<&WayCost> {
        self.costs.iter().find(|cost| cost.way == way)
    }

    /// Which part of the kicks is gone with batches, or of the notifications with `notify`, if packets are received.
    pub fn gone(&self) -> f64 {
        let each = self.cost(Way::ProcessEach);
        let late = self.cost(Way::ProcessNotify);
        let of = |cost: Option<&WayCost>| {
            cost.map_or(0.0, |cost| match self.direction {
                PacketDirection::Send => cost.kicks,
                PacketDirection::Receive => cost.notifications,
            })
        };
        1.0 - of(late) / of(each)
    }
}

/// Measures both directions.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(
    files: &Files,
    variant: Variant,
    effort: Effort,
) -> Result<Vec<ByCrossing>, SystemError> {
    with_guests(files, variant, "", |guests, runner| {
        let mut bench = Bench {
            guests,
            runner,
            senders: (0..GUESTS)
                .map(|guest| Datagrams::new(incoming(guest), LONGEST))
                .collect(),
            numbers: vec![0; GUESTS as usize],
            now: 0,
            effort,
        };
        let directions = [PacketDirection::Send, PacketDirection::Receive];
        let cases = directions.map(|direction| [(direction, 1), (direction, GUESTS)]);
        let cases = cases.concat().into_iter();
        cases
            .map(|(direction, guests)| bench.case(direction, guests))
            .collect()
    })
}

struct Bench<'s> {
    guests: Guests<'s>,
    runner: Runner<'s, Staged<'s>>,
    /// To guests, by all ways.
    senders: Vec<Datagrams>,
    numbers: Vec<u64>,
    /// Nanoseconds, which frames take on the cable.
    now: u64,
    effort: Effort,
}

/// Of a round.
struct Seen {
    /// Cycles a packet: median of batches.
    cycles: f64,
    counts: CrossingCounts,
}

impl Bench<'_> {
    fn case(&mut self, direction: PacketDirection, guests: u32) -> Result<ByCrossing, SystemError> {
        let Effort {
            turns,
            packets,
            counted,
            stepped,
        } = self.effort;
        let before = self.arrived()?;
        let mut asked = 0;
        let mut cycles: Vec<Vec<f64>> = vec![Vec::new(); Way::ALL.len()];
        // The first one warms rings, pools and Linux' limit of the queue up.
        for turn in 0..=turns {
            for (way, cycles) in Way::ALL.iter().zip(&mut cycles) {
                let seen = self.round(*way, direction, guests, packets)?;
                asked += packets;
                if turn > 0 {
                    cycles.push(seen.cycles);
                }
            }
        }
        let mut costs = Vec::new();
        for (at, way) in Way::ALL.iter().enumerate() {
            let seen = self.round(*way, direction, guests, counted)?;
            let instructions = match stepped {
                0 => 0.0,
                stepped => self.instructions(*way, direction, guests, stepped)?,
            };
            asked += counted + 2 * stepped;
            let base = Way::ALL.iter().position(|other| *other == way.base());
            let base = &cycles[base.unwrap_or(at)];
            let ratios = cycles[at].iter().zip(base).map(|(own, base)| own / base);
            let ratio = Spread::of_values(ratios);
            let each = |count: u64| count as f64 / counted as f64;
            costs.push(WayCost {
                way: *way,
                kicks: each(seen.counts.kicks),
                notifications: each(seen.counts.notifications),
                scheduled: each(seen.counts.scheduled),
                instructions,
                cycles: Spread::of_values(cycles[at].iter().copied()).median,
                measured: [ratio.low, ratio.median, ratio.high],
            });
        }
        let after = self.arrived()?;
        let arrived = match direction {
            PacketDirection::Send => after.sent - before.sent,
            PacketDirection::Receive => after.received - before.received,
        };
        Ok(ByCrossing {
            direction,
            guests,
            costs,
            damage: asked.abs_diff(arrived) + after.damaged - before.damaged,
        })
    }

    /// Instructions a packet, of this process and the guests', when that way is warm.
    fn instructions(
        &mut self,
        way: Way,
        direction: PacketDirection,
        guests: u32,
        packets: u64,
    ) -> Result<f64, SystemError> {
        self.round(way, direction, guests, packets)?;
        self.limit_time(WAIT.time)?;
        self.guests
            .count_steps(&mut self.runner.packet_loop, true)?;
        let before = self.guests_instructions()?;
        let (_, steps) = observe(Look::Steps, || {
            self.packets(way, direction, guests, packets)?;
            self.end(way, direction)?;
            Ok(Round::default())
        })?;
        let own = self.guests_instructions()? - before;
        self.guests
            .count_steps(&mut self.runner.packet_loop, false)?;
        self.limit_time(time_limit::DEFAULT)?;
        Ok((steps.costs() + own) as f64 / packets as f64)
    }

    fn limit_time(&mut self, limit: std::time::Duration) -> Result<(), SystemError> {
        Ok(self.runner.packet_loop.engine.limit_time(limit)?)
    }

    fn guests_instructions(&mut self) -> Result<u64, SystemError> {
        self.guests.check(&mut self.runner.packet_loop)?;
        let reports = self.guests.reports();
        Ok(reports.iter().map(|report| report.instructions).sum())
    }

    /// A round, to its end.
    fn round(
        &mut self,
        way: Way,
        direction: PacketDirection,
        guests: u32,
        packets: u64,
    ) -> Result<Seen, SystemError> {
        let late = way == Way::ProcessNotify;
        let limits = match late && direction == PacketDirection::Receive {
            true => LATE,
            false => AT_ONCE,
        };
        self.runner.packet_loop.engine.set_limits(limits);
        self.guests.tell_each(&mut self.runner.packet_loop, !late)?;
        let before = self.guests.counts();
        let cycles = self.packets(way, direction, guests, packets)?;
        self.end(way, direction)?;
        Ok(Seen {
            cycles,
            counts: self.guests.counts().since(before),
        })
    }

    /// Packets, in batches; the median of what a packet cost in a sample.
    fn packets(
        &mut self,
        way: Way,
        direction: PacketDirection,
        guests: u32,
        packets: u64,
    ) -> Result<f64, Stop> {
        let mut costs = Vec::new();
        let mut done = 0;
        while done < packets {
            let start = self.runner.packet_loop.meter.costs();
            let sample = SAMPLE.min(packets - done);
            for first in (0..sample).step_by(way.batch() as usize) {
                self.batch(way, direction, guests, first as u32)?;
                // Room for what comes next.
                let makes_room = direction == PacketDirection::Receive && way.is_process();
                if makes_room && first.is_multiple_of(BATCH.into()) {
                    self.guests.check(&mut self.runner.packet_loop)?;
                }
            }
            let cost = self.runner.packet_loop.meter.costs() - start;
            costs.push(cost as f64 / sample as f64);
            done += sample;
        }
        Ok(Spread::of_values(costs.into_iter()).median)
    }

    /// As many packets as have one interrupt, by turns of guests, from guest `first` on.
    fn batch(
        &mut self,
        way: Way,
        direction: PacketDirection,
        guests: u32,
        first: u32,
    ) -> Result<(), Stop> {
        let count = way.batch();
        let whose = first % guests;
        let frames: Vec<Vec<u8>> = match direction {
            PacketDirection::Send => Vec::new(),
            PacketDirection::Receive => (0..count)
                .map(|n| self.frame((whose + n) % guests))
                .collect(),
        };
        let arriving = frames.iter().map(Vec::as_slice);
        let Runner {
            packet_loop,
            sources,
            ..
        } = &mut self.runner;
        match (direction, way) {
            (PacketDirection::Send, Way::CallEach) => {
                let own = whose as usize;
                packet_loop.send(&mut sources[own..=own], count)?;
            }
            (PacketDirection::Send, Way::CallBatch) => {
                packet_loop.send(&mut sources[..guests as usize], count)?;
            }
            (PacketDirection::Send, Way::ProcessEach) => {
                self.guests.prepare(packet_loop, whose, count)?;
                self.guests.schedule(packet_loop, whose, Order::SendEach)?;
                self.guests.serve(packet_loop)?;
            }
            (PacketDirection::Send, Way::ProcessBatch | Way::ProcessNotify) => {
                self.guests.send(packet_loop, guests, count, Kicks::Batch)?;
            }
            (PacketDirection::Receive, Way::CallEach | Way::CallBatch) => {
                packet_loop.receive(&mut sources[..guests as usize], arriving)?;
            }
            (
                PacketDirection::Receive,
                Way::ProcessEach | Way::ProcessBatch | Way::ProcessNotify,
            ) => {
                self.guests.receive(packet_loop, arriving)?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, guest: u32) -> Vec<u8> {
        self.now += wire_time(LONGEST);
        self.runner.packet_loop.engine.set_time(self.now);
        let number = &mut self.numbers[guest as usize];
        *number += 1;
        self.senders[guest as usize].finished(*number - 1).to_vec()
    }

    /// Nothing waits any more: the time of whoever is to be told comes.
    fn end(&mut self, way: Way, direction: PacketDirection) -> Result<(), Stop> {
        if way != Way::ProcessNotify || direction == PacketDirection::Send {
            return Ok(());
        }
        self.now += LATE.delay;
        self.runner.packet_loop.engine.set_time(self.now);
        self.guests.deliver(&mut self.runner.packet_loop)
    }

    /// Packets so far that have arrived whole, in both directions, of all ways.
    fn arrived(&mut self) -> Result<Arrived, SystemError> {
        self.guests.check(&mut self.runner.packet_loop)?;
        let reports = self.guests.reports();
        let wire = &self.runner.packet_loop.card.sent;
        let called = self.runner.sources.iter().map(|source| &source.received);
        Ok(Arrived {
            sent: wire.packets(),
            received: called.clone().map(|sink| sink.packets()).sum::<u64>()
                + reports.iter().map(|report| report.received).sum::<u64>(),
            damaged: wire.corrupted
                + wire.strangers
                + called
                    .map(|sink| sink.corrupted + sink.strangers)
                    .sum::<u64>()
                + reports
                    .iter()
                    .map(|report| report.corrupted + report.bad_answers + report.refused)
                    .sum::<u64>(),
        })
    }
}

struct Arrived {
    sent: u64,
    received: u64,
    damaged: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_and_a_notification_have_their_price() {
        let cost = WayCost {
            way: Way::ProcessEach,
            kicks: 1.0,
            notifications: 0.5,
            scheduled: 1.0,
            instructions: 100.0,
            cycles: 0.0,
            measured: [0.0; 3],
        };
        assert_eq!(cost.priced(), 100.0 + 255.0 + 5_000.0);
    }
}
