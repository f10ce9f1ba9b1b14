//! The rows of the emulated card: each way of ringing doorbells beside the one in which every
//! access traps, by both lists of costs.
//!
//! A sender sends as fast as its driver takes packets. A receiver gets frames at the highest rate
//! of a fixed scale at which nothing is lost, the thesis' critical rate (3.1.2): beyond it the guest
//! has less and less time for its application.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::costs::{self, Costs, QUOTED};
use super::order::{
    AtEnd, BURST, MaskDoorbell, NoRoom, Order, Outcome, Price, Processors, Recheck, Scheme, Task,
    Traffic,
};
use crate::experiment::apart::apart;
use crate::image::files::Files;
use crate::packets::packet_loop::Stop;
use crate::packets::round::PacketDirection;
use crate::system::{Blueprint, System, SystemError};
use crate::transport::command::Command;
use crate::transport::mailbox::InterruptOwner;
use crate::transport::rendezvous::Limits;

/// Packets of a run: many more than what may wait somewhere at its end.
const PACKETS: u64 = 20_000;
/// Interrupts a second of the throttled card (3.2).
pub const THROTTLE: u32 = 4000;
/// Rates are tried from this one on, each a hundredth more than the one before.
const SLOWEST_KPPS: f64 = 10.0;
const STEP: f64 = 1.01;
const RATES: u32 = 640;

/// Receive descriptors: the driver's own number, which the thesis has, and twice that.
pub const RINGS: [u32; 2] = [256, 512];

/// The driver's parameters for a throttle and a receive ring: all other delays are off, as in the
/// thesis.
pub fn driver_args(throttle: u32, descriptors: u32) -> String {
    format!(
        "InterruptThrottleRate={throttle} RxDescriptors={descriptors} TxIntDelay=0 TxAbsIntDelay=0 \
         RxIntDelay=0 RxAbsIntDelay=0"
    )
}

/// A guest with the emulated card.
pub struct Bench<'b, 's> {
    system: &'b mut System<'s>,
    /// What its driver executes.
    pub price: Price,
}

impl<'b, 's> Bench<'b, 's> {
    /// Counts the driver's price. The guest's registers are the emulated card's while it runs.
    ///
    /// # Errors
    /// [`SystemError`], as for all of the following.
    pub fn new(system: &'b mut System<'s>) -> Result<Bench<'b, 's>, SystemError> {
        let mut bench = Bench {
            system,
            price: Price::default(),
        };
        let order = bench.order(Scheme::Trapped, Traffic::Send, QUOTED);
        bench.price = bench.perform(Task::Count, order)?.price;
        Ok(bench)
    }

    /// A run of the rows.
    pub fn order(&self, scheme: Scheme, traffic: Traffic, costs: Costs) -> Order {
        Order {
            scheme,
            traffic,
            packets: PACKETS,
            costs,
            price: self.price,
            burst: Some(BURST),
            processors: Processors::Two,
            no_room: NoRoom::Waits,
            recheck: Recheck::Yes,
            masks: MaskDoorbell::Rung,
            strike: None,
            at_end: AtEnd::Lives,
            retune: None,
            rarely: None,
            net_device: self.system.info.net_device,
            rx_ring: self.system.info.rx_ring,
        }
    }

    /// Runs it.
    pub fn run(&mut self, order: Order) -> Result<Outcome, SystemError> {
        self.perform(Task::Run, order)
    }

    fn perform(&mut self, task: Task, order: Order) -> Result<Outcome, SystemError> {
        let mailbox = self.system.mailbox();
        mailbox.emulated.ask(task, order);
        mailbox.set_interrupt_owner(InterruptOwner::Hypervisor);
        let answer = self
            .system
            .dom0
            .command("an emulated card", Command::Emulate);
        mailbox.set_interrupt_owner(InterruptOwner::Dom0);
        answer?;
        let outcome = mailbox.emulated.take();
        Ok(outcome.map_err(Stop::Driver)?)
    }

    /// The run at the highest rate at which nothing is lost.
    fn critical(&mut self, scheme: Scheme, costs: Costs) -> Result<Outcome, SystemError> {
        let (mut low, mut high) = (0, RATES);
        let mut best = Outcome::default();
        while low < high {
            let middle = low.midpoint(high);
            let order = self.order(scheme, Traffic::Receive(interval(middle)), costs);
            let outcome = self.run(order)?;
            if outcome.damage() == 0 && outcome.packets == order.packets {
                low = middle + 1;
                best = outcome;
            } else {
                high = middle;
            }
        }
        Ok(best)
    }
}

/// Nanoseconds from one frame to the next, at that rate of the scale.
fn interval(rate: u32) -> u64 {
    (1e6 / (SLOWEST_KPPS * STEP.powi(rate as i32))) as u64
}

// ---- Rows -----------------------------------------------------------------------

/// Where costs are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prices {
    /// [`QUOTED`].
    Quoted,
    /// [`costs::sent`], [`costs::received`].
    Thesis,
}

/// What is done about traps and interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Nothing: each access traps, the card has no throttle.
    Base,
    /// 4,000 interrupts a second.
    Moderation,
    /// And doorbells by the thesis' rule.
    Batching,
    /// And the status block in place of that.
    StatusBlock,
}

impl Measure {
    fn scheme(self) -> Scheme {
        match self {
            Measure::Base | Measure::Moderation => Scheme::Trapped,
            Measure::Batching => Scheme::Batched,
            Measure::StatusBlock => Scheme::StatusBlock,
        }
    }

    /// Those of a process with that throttle.
    fn of_throttle(throttle: u32) -> &'static [Measure] {
        match throttle {
            0 => &[Measure::Base],
            _ => &[Measure::Moderation, Measure::Batching, Measure::StatusBlock],
        }
    }
}

/// A run of the rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    /// What was done.
    pub measure: Measure,
    /// Which way packets go.
    #[serde(rename = "sent")]
    pub direction: PacketDirection,
    /// Receive descriptors of the driver (`RxDescriptors`).
    pub descriptors: u32,
    /// Whose costs.
    pub prices: Prices,
    /// The costs.
    pub costs: Costs,
    /// What it came to.
    pub outcome: Outcome,
}

/// More frames than the machine can work, with or without a limit of bursts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Overload {
    /// Thousand frames a second that arrive.
    pub offered: f64,
    /// Frames after which the device side lets the guest run.
    pub burst: Option<u32>,
    /// Thousand a second that the application got while frames arrived.
    pub kpps: f64,
    /// What it came to.
    pub outcome: Outcome,
}

/// All that was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Emulated {
    /// The driver's price, in each process.
    pub prices: Vec<Price>,
    /// Runs.
    pub points: Vec<Point>,
    /// Runs of frames that arrive too fast.
    pub overload: Vec<Overload>,
}

/// Measures all, in four processes: the driver reads throttle and ring when it is loaded.
///
/// # Errors
/// [`SystemError`] of one of them.
pub fn measure(files: &Files, variant: Variant) -> Result<Emulated, SystemError> {
    let mut all = Emulated::default();
    for descriptors in RINGS {
        for throttle in [0, THROTTLE] {
            let seen = apart(|| with_driver(files, variant, throttle, descriptors))?;
            all.prices.extend(seen.prices);
            all.points.extend(seen.points);
            all.overload.extend(seen.overload);
        }
    }
    Ok(all)
}

fn with_driver(
    files: &Files,
    variant: Variant,
    throttle: u32,
    descriptors: u32,
) -> Result<Emulated, SystemError> {
    let blueprint = Blueprint::new(files, variant, &HashSet::new())?
        .with_driver_args(&driver_args(throttle, descriptors));
    blueprint.booted(Limits::of_seconds(120), |mut system| {
        let mut bench = Bench::new(&mut system)?;
        let mut seen = Emulated {
            prices: vec![bench.price],
            ..Emulated::default()
        };
        let usual = descriptors == RINGS[0];
        for &measure in Measure::of_throttle(throttle) {
            for prices in [Prices::Quoted, Prices::Thesis] {
                let points = bench.both_ways(measure, prices, descriptors)?;
                // What is sent does not use the receive ring.
                let points = points
                    .into_iter()
                    .filter(|point| usual || point.direction == PacketDirection::Receive);
                seen.points.extend(points);
            }
        }
        if throttle != 0 && usual {
            seen.overload = bench.overload()?;
        }
        Ok(seen)
    })
}

/// Frames that arrive when there are too many: 12 ms of the fastest.
const OVERLOAD: u64 = 40_000;

impl Bench<'_, '_> {
    /// The costs for a direction.
    pub fn costs(&self, prices: Prices, direction: PacketDirection) -> Costs {
        match (prices, direction) {
            (Prices::Quoted, _) => QUOTED,
            (Prices::Thesis, PacketDirection::Send) => costs::sent(self.price.of_sent()),
            (Prices::Thesis, PacketDirection::Receive) => costs::received(self.price.received),
        }
    }

    fn both_ways(
        &mut self,
        measure: Measure,
        prices: Prices,
        descriptors: u32,
    ) -> Result<Vec<Point>, SystemError> {
        let point = |direction, costs, outcome| Point {
            measure,
            direction,
            descriptors,
            prices,
            costs,
            outcome,
        };
        let costs = self.costs(prices, PacketDirection::Send);
        let sent = self.run(self.order(measure.scheme(), Traffic::Send, costs))?;
        let mut points = vec![point(PacketDirection::Send, costs, sent)];
        // Batching is of the transmit tail.
        if measure != Measure::Batching {
            let costs = self.costs(prices, PacketDirection::Receive);
            let received = self.critical(measure.scheme(), costs)?;
            points.push(point(PacketDirection::Receive, costs, received));
        }
        Ok(points)
    }

    /// One processor, a card that drops what it has no descriptor for, the thesis' application:
    /// from less than the guest can take to more than the device side can.
    fn overload(&mut self) -> Result<Vec<Overload>, SystemError> {
        let mut all = Vec::new();
        for burst in [Some(BURST), None] {
            for interval in [4_000, 2_000, 1_000, 500, 400, 350, 300] {
                all.push(self.overloaded(interval, burst)?);
            }
        }
        Ok(all)
    }

    /// One of them: a frame each so many nanoseconds.
    pub fn overloaded(
        &mut self,
        interval: u64,
        burst: Option<u32>,
    ) -> Result<Overload, SystemError> {
        let costs = self.costs(Prices::Thesis, PacketDirection::Receive);
        let order = Order {
            packets: OVERLOAD,
            burst,
            processors: Processors::One,
            no_room: NoRoom::Dropped,
            ..self.order(Scheme::StatusBlock, Traffic::Receive(interval), costs)
        };
        let outcome = self.run(order)?;
        let arriving = OVERLOAD * interval;
        Ok(Overload {
            offered: 1e6 / interval as f64,
            burst,
            kpps: outcome.in_time as f64 / arriving as f64 * 1e6,
            outcome,
        })
    }
}
