//! The row `vrss`: how throughput grows with processors, by the simulation.
//!
//! Ten cards of a gigabit as in Dong's section 5.4, 1 to 8 processors, with one lock for all
//! guests and with one for each queue. Frames of 60 bytes keep all processors busy. Those of
//! 1,514 bytes are Dong's, and there the cables are the limit: the path is so much shorter
//! that one processor takes most of what ten cards bring.

use std::collections::HashSet;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

use super::model::{Frames, Locks, Machine, Outcome, Traffic};
use super::simulation::simulate;
use super::work::WorkPrice;
use crate::experiment::apart::apart;
use crate::image::files::Files;
use crate::live::price::{Price, QUOTED};
use crate::live::rows::{prepare, with_rig};
use crate::memory::{self, Sizes};
use crate::packets::round::incoming;
use crate::system::{Blueprint, System, SystemError};
use crate::traffic::{Datagrams, LONGEST, SHORTEST};
use crate::transport::mailbox::Mailbox;
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
    /// That of one processor is 1.
    pub ratio: f64,
}

/// All that was simulated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Simulated {
    /// Counted with frames of 60 and of 1,514 bytes.
    pub prices: [WorkPrice; 2],
    /// By case, locks and processors.
    pub lines: Vec<Line>,
    /// Four processors of [`Case::EveryCard`] if locks move between processors for nothing.
    pub free_transfer: f64,
}

impl Simulated {
    /// A line.
    pub fn line(&self, case: Case, locks: Locks, processors: u32) -> Option<&Line> {
        self.lines.iter().find(|line| {
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
    let machine = memory::Machine::new(Sizes::default())?;
    let mailbox = Mailbox::new()?;
    let limits = Limits::of_seconds(120);
    let system = System::start(&blueprint, &machine, mailbox.get(), limits)?;
    with_rig(&system, limits, |rig| {
        let full = prepare(rig)?;
        rig.resize(SHORTEST);
        rig.settle()?;
        let small = Price::count(rig)?;
        let of =
            |price, size| WorkPrice::count(price, Datagrams::new(incoming(0), size).finished(0));
        Ok([of(small, SHORTEST)?, of(full, LONGEST)?])
    })
}

/// All cases with these prices.
pub fn all(prices: [WorkPrice; 2]) -> Simulated {
    let price = |case: Case| match case {
        Case::Full => &prices[1],
        Case::OwnCard | Case::EveryCard | Case::HotQueue | Case::HotFlow => &prices[0],
    };
    let lines = Case::ALL
        .into_iter()
        .flat_map(|case| series(case, price(case)));
    Simulated {
        lines: lines.collect(),
        free_transfer: free_transfer(price(Case::EveryCard)),
        prices,
    }
}

/// The lines of a case.
fn series(case: Case, price: &WorkPrice) -> Vec<Line> {
    let traffic = case.traffic();
    let mut lines = Vec::new();
    for locks in [Locks::One, Locks::Queues] {
        let mut alone = None;
        for processors in PROCESSORS {
            let machine = case.machine(processors, locks);
            let outcome = simulate(&machine, &traffic, price, &QUOTED);
            let rate = outcome.rate(&traffic);
            lines.push(Line {
                case,
                machine,
                rate,
                ratio: rate / *alone.get_or_insert(rate),
                outcome,
            });
        }
    }
    lines
}

fn free_transfer(price: &WorkPrice) -> f64 {
    let traffic = Case::EveryCard.traffic();
    let [one, four] = [1, 4].map(|processors| {
        let machine = Machine {
            transfer: 0,
            ..Case::EveryCard.machine(processors, Locks::Queues)
        };
        simulate(&machine, &traffic, price, &QUOTED).rate(&traffic)
    });
    four / one
}
