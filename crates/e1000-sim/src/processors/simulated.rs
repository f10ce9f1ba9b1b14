//! The row `vrss`: how throughput grows with processors, by the simulation.
//!
//! Ten cards of a gigabit as in Dong's section 5.4, 1 to 8 processors, with one lock for all
//! guests and with one for each queue. Frames of 60 bytes keep all processors busy. Those of
//! 1,514 bytes are Dong's, and there the cables are the limit: the path is so much shorter
//! that one processor takes most of what ten cards bring.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::model::{BackEnd, Frames, Locks, Machine, Outcome, Traffic};
use super::work::WorkPrice;
use super::{receiving, sending};
use crate::experiment::apart::apart;
use crate::image::files::Files;
use crate::live::price::{Price, QUOTED, SentPrice};
use crate::live::rows::{prepare, with_rig};
use crate::packets::round::{PacketDirection, incoming, outgoing};
use crate::system::{Blueprint, SystemError};
use crate::traffic::{Datagrams, LONGEST, SHORTEST};
use crate::transport::rendezvous::Limits;

/// Dong et al., 5.1.
const CARDS: u32 = 10;
/// Of each card.
const FLOWS: u32 = 20;
/// Nanoseconds: 400 interrupts of a card.
const TIME: u64 = 100_000_000;
/// Packets that may wait for all guests of the runtime's switch.
const PLACES: usize = 4096;
/// Cycles for a lock that another processor had last, and what it protects: two lines of cache.
/// Assumed, neither counted nor quoted.
pub const TRANSFER: u64 = 300;
/// Cycles of a switch between threads: Li, Ding and Shen, "Quantifying the cost of context switch"
/// (ExpCS 2007), 3.8 us on a Xeon of 2 GHz, without what it does to caches. Quoted, not measured here.
pub const SWITCH: u64 = 7_600;
/// Packets of a sample of sending.
const SAMPLE: u32 = 17;
/// Processors, by line.
pub const PROCESSORS: [u32; 4] = [1, 2, 4, 8];

twin_abi::listed! {
    /// What is simulated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Case {
        /// A card and a guest for each other, as Dong has it.
        OwnCard => "a card a guest",
        /// Each card has frames for all guests, so that processors meet at queues.
        EveryCard => "each card for all guests",
        /// All cards have frames for one guest, which has one queue.
        HotQueue => "one queue for all",
        /// One flow, so one card and one queue.
        HotFlow => "one flow",
        /// The same as the first with frames of 1,514 bytes.
        Full => "a card a guest, full frames",
    }
}

impl Case {
    /// The machine.
    pub fn machine(self, processors: u32, locks: Locks) -> Machine {
        let (cards, guests) = match self {
            Case::OwnCard | Case::EveryCard | Case::Full => (CARDS, CARDS),
            Case::HotQueue => (CARDS, 1),
            Case::HotFlow => (1, 1),
        };
        Machine {
            processors,
            cards,
            guests,
            queues: 1,
            locks,
            back_end: BackEnd::Tasklets,
            room: PLACES,
            transfer: TRANSFER,
        }
    }

    /// What is sent to it.
    pub fn traffic(self) -> Traffic {
        let (size, flows, frames) = match self {
            Case::OwnCard | Case::HotQueue => (SHORTEST, FLOWS, Frames::OneGuest),
            Case::EveryCard => (SHORTEST, FLOWS, Frames::AllGuests),
            Case::HotFlow => (SHORTEST, 1, Frames::OneGuest),
            Case::Full => (LONGEST, FLOWS, Frames::OneGuest),
        };
        Traffic {
            size,
            flows,
            frames,
            time: TIME,
            flood: None,
        }
    }
}

/// A machine's throughput.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// What was simulated.
    pub case: Case,
    /// The machine.
    pub machine: Machine,
    /// What became of what was sent.
    pub outcome: Outcome,
    /// Frames a second.
    pub rate: f64,
    /// That of one processor is 1, with the locks that are best for it.
    pub ratio: f64,
}

/// Both of Dong's back ends at equal load, and what they carry when all processors are busy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// Whether guests send or receive.
    #[serde(rename = "sent")]
    pub direction: PacketDirection,
    /// What serves the queues.
    pub back_end: BackEnd,
    /// Frames of 60 bytes on four processors, of what one carries in tasklets.
    pub ratio: f64,
    /// Bits a second of full frames on eight processors.
    pub bits: f64,
    /// What these cost, in hundredths of a processor.
    pub load: f64,
    /// Switches a second, then.
    pub switches: f64,
    /// Frames lost or out of order in all three.
    pub damage: u64,
}

/// All that was simulated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Simulated {
    /// Counted with frames of 60 and of 1,514 bytes.
    pub prices: [WorkPrice; 2],
    /// By case, locks and processors.
    pub lines: Vec<Line>,
    /// The same of what guests send.
    pub sent: Vec<Line>,
    /// Tasklets and threads.
    pub compared: Vec<Compared>,
    /// Four processors of [`Case::EveryCard`] if locks move between processors for nothing.
    pub free_transfer: f64,
}

impl Simulated {
    /// A line of what guests receive, or send.
    pub fn line(
        &self,
        direction: PacketDirection,
        case: Case,
        locks: Locks,
        processors: u32,
    ) -> Option<&Line> {
        let lines = match direction {
            PacketDirection::Send => &self.sent,
            PacketDirection::Receive => &self.lines,
        };
        lines.iter().find(|line| {
            line.case == case
                && line.machine.locks == locks
                && line.machine.processors == processors
        })
    }
}

/// Counts the price and simulates.
///
/// # Errors
/// [`SystemError`] of the process that counts.
pub fn measure(files: &Files, variant: Variant) -> Result<Simulated, SystemError> {
    let prices = apart(|| prices(files, variant))?;
    Ok(all(prices))
}

/// Counts the prices of frames of 60 and of 1,514 bytes. Once in a process.
///
/// # Errors
/// [`SystemError`].
pub fn prices(files: &Files, variant: Variant) -> Result<[WorkPrice; 2], SystemError> {
    let blueprint = Blueprint::new(files, variant, &HashSet::new())?;
    let limits = Limits::of_seconds(120);
    blueprint.booted(limits, |system| {
        with_rig(&system, limits, |rig| {
            let full = prepare(rig)?;
            rig.resize(SHORTEST);
            rig.settle()?;
            let small = Price::count(rig)?;
            // Guests' packets keep their size: what is sent is dearer than 60 bytes would be, which are
            // one descriptor in place of three.
            let sent = SentPrice::count(rig, SAMPLE)?;
            let mut handed = Datagrams::new(outgoing(0), SHORTEST);
            let mut of = |price, size| {
                let mut received = Datagrams::new(incoming(0), size);
                WorkPrice::count(price, sent, received.finished(0), handed.finished(0))
            };
            Ok([of(small, SHORTEST)?, of(full, LONGEST)?])
        })
    })
}

/// All cases with these prices.
pub fn all(prices: [WorkPrice; 2]) -> Simulated {
    let price = |case: Case| match case {
        Case::Full => &prices[1],
        Case::OwnCard | Case::EveryCard | Case::HotQueue | Case::HotFlow => &prices[0],
    };
    let lines = |direction| {
        let cases = Case::ALL.into_iter();
        cases.flat_map(move |case| series(direction, case, price(case)))
    };
    Simulated {
        lines: lines(PacketDirection::Receive).collect(),
        sent: lines(PacketDirection::Send).collect(),
        compared: compared(&prices),
        free_transfer: free_transfer(price(Case::EveryCard)),
        prices,
    }
}

/// The lines of a case.
fn series(direction: PacketDirection, case: Case, price: &WorkPrice) -> Vec<Line> {
    let traffic = case.traffic();
    let mut lines = Vec::new();
    let run = |locks, processors| {
        let machine = case.machine(processors, locks);
        let outcome = simulated(direction, &machine, &traffic, price);
        (machine, outcome.rate(&traffic), outcome)
    };
    // Whatever the locks: a ratio is to be of the best that one processor does.
    let alone = schemes(direction).iter().map(|locks| run(*locks, 1).1);
    let alone = alone.fold(f64::MIN_POSITIVE, f64::max);
    for locks in schemes(direction) {
        for processors in PROCESSORS {
            let (machine, rate, outcome) = run(*locks, processors);
            lines.push(Line {
                case,
                machine,
                rate,
                ratio: rate / alone,
                outcome,
            });
        }
    }
    lines
}

/// What several processors are to have.
pub fn best(direction: PacketDirection) -> Locks {
    match direction {
        PacketDirection::Send => Locks::Handed,
        PacketDirection::Receive => Locks::Queues,
    }
}

/// Locks that make a difference.
pub fn schemes(direction: PacketDirection) -> &'static [Locks] {
    match direction {
        PacketDirection::Send => &[Locks::One, Locks::Queues, Locks::Handed],
        PacketDirection::Receive => &[Locks::One, Locks::Queues],
    }
}

fn simulated(
    direction: PacketDirection,
    machine: &Machine,
    traffic: &Traffic,
    price: &WorkPrice,
) -> Outcome {
    match direction {
        PacketDirection::Send => sending::simulate(machine, traffic, price, &QUOTED),
        PacketDirection::Receive => receiving::simulate(machine, traffic, price, &QUOTED),
    }
}

/// Dong's back ends: throughput where all processors are busy, and load where the cables are.
fn compared(prices: &[WorkPrice; 2]) -> Vec<Compared> {
    let [small, full] = prices;
    let run = |direction, case: Case, price, processors, locks, back_end| {
        let machine = Machine {
            back_end,
            ..case.machine(processors, locks)
        };
        simulated(direction, &machine, &case.traffic(), price)
    };
    let compare = |direction, back_end| {
        let locks = best(direction);
        // One processor has nobody to hand to, and does better without.
        let alone = run(
            direction,
            Case::OwnCard,
            small,
            1,
            Locks::Queues,
            BackEnd::Tasklets,
        );
        let busy = run(direction, Case::OwnCard, small, 4, locks, back_end);
        let calm = run(direction, Case::Full, full, 8, locks, back_end);
        let rate = |outcome: &Outcome| outcome.rate(&Case::OwnCard.traffic());
        Compared {
            direction,
            back_end,
            ratio: rate(&busy) / rate(&alone),
            bits: calm.bits(&Case::Full.traffic()),
            load: calm.load(),
            switches: calm.switches as f64 * 1e9 / calm.time.max(1) as f64,
            damage: [alone, busy, calm].iter().map(Outcome::damage).sum(),
        }
    };
    let ends = [BackEnd::Tasklets, BackEnd::Threads { switch: SWITCH }];
    let all = [PacketDirection::Receive, PacketDirection::Send].into_iter();
    all.flat_map(|direction| ends.map(|end| compare(direction, end)))
        .collect()
}

fn free_transfer(price: &WorkPrice) -> f64 {
    let traffic = Case::EveryCard.traffic();
    let [one, four] = [1, 4].map(|processors| {
        let machine = Machine {
            transfer: 0,
            ..Case::EveryCard.machine(processors, Locks::Queues)
        };
        receiving::simulate(&machine, &traffic, price, &QUOTED).rate(&traffic)
    });
    four / one
}
