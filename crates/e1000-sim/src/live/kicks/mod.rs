//! Kicks that a guest need not make: guests that are processes, and send at a rate, with each kick served, and with rings that
//! the hypervisor looks at ([`crate::guests::looks`]), by turns in one process.
//!
//! ```text
//! a guest's burst, at its time ─> its ring ─┬─ kick ──────────────────> driver, card
//!                                           └─ look: card's interrupt, timer ─┘
//! ```
//!
//! One processor does all of it: the card's interrupts first, then the timer, then guests. Work and crossings advance the clock. What
//! work costs is counted of the real processes when a run begins, instruction by instruction; crossings are as quoted. So a request's wait
//! is the played clock's, and the same in each run.
//!
//! `price` counts what work costs, `rig` is the machine, `run` plays a load.

mod price;
mod rig;
mod run;

use process_lab::program::Variant;
use serde::{Deserialize, Serialize};

pub use self::price::KickPrice;
use self::rig::Rig;
use self::run::Run;
use super::entered::with_guests;
use super::price::{HYPERCALL, QUOTED};
use super::receive::wire_time;
use crate::guests::looks::{LookCounts, Pace};
use crate::image::files::Files;
use crate::system::SystemError;
use crate::traffic::LONGEST;

/// Interrupts of the card in a second, as Dong has them (5.2): the driver's parameter.
const THROTTLE: &str = "InterruptThrottleRate=4000";
/// Nanoseconds of that throttle.
const THROTTLE_TIME: u64 = 250_000;
/// A little more: while the card interrupts, the timer does not end.
const RIDING: u64 = THROTTLE_TIME * 5 / 4;
/// Kicks in a window that wake the hypervisor up.
const BUSY: u32 = 4;

/// What guests send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Guests, by turns: 0 to `guests` - 1.
    pub guests: u32,
    /// Packets that a guest makes each time that it has the processor.
    pub burst: u32,
    /// Megabits a second of all guests, of what fills a cable of a gigabit.
    pub rate: u32,
}

impl Sending {
    /// Nanoseconds from one burst to the next.
    fn interval(&self) -> u64 {
        wire_time(LONGEST) * u64::from(self.burst) * 1_000 / u64::from(self.rate)
    }
}

/// The row's: 32 packets of all guests together at a full cable, as in the row `crossings`; packets by themselves; and slower ones.
pub const ROW: [Sending; 7] = [
    sending(1, 32, 1_000),
    sending(8, 4, 1_000),
    sending(8, 4, 500),
    sending(1, 1, 1_000),
    sending(8, 1, 1_000),
    sending(8, 4, 100),
    sending(8, 1, 100),
];

const fn sending(guests: u32, burst: u32, rate: u32) -> Sending {
    Sending {
        guests,
        burst,
        rate,
    }
}

/// Packets of each run of the row.
pub const PACKETS: u64 = 4096;

twin_abi::listed! {
    /// How rings are looked at.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Way {
        /// Not at all: each kick is served.
        Kicks => "kicks",
        /// With a delay by Dong's formula, as if looks had nothing to do with the card's interrupts.
        Formula => "formula",
        /// With one that is longer than the card's throttle, so that most looks are the card's interrupts.
        Riding => "riding",
        /// The same, and one packet in a window is enough to stay awake.
        Eager => "eager",
    }
}

impl Way {
    fn pace(self, price: &KickPrice) -> Option<Pace> {
        let pace = |delay, busy| Some(Pace { delay, busy });
        match self {
            Way::Kicks => None,
            Way::Formula => pace(price.split().guest, BUSY),
            Way::Riding => pace(RIDING, BUSY),
            Way::Eager => pace(RIDING, 1),
        }
    }
}

/// What became of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Packets that the driver got.
    pub packets: u64,
    /// Kicks.
    pub kicks: u64,
    /// Looks without a kick.
    pub looks: LookCounts,
    /// Interrupts of the card.
    pub interrupts: u64,
    /// Notifications of guests.
    pub notifications: u64,
    /// Cycles of the machine that is played: counted instructions, crossings as quoted, a kick as a hypercall.
    pub cycles: u64,
    /// Of which crossings.
    pub crossing_cycles: u64,
    /// Nanoseconds from the ring to the card: half of the packets took less.
    pub latency_median: u64,
    /// One in a hundred took more.
    pub latency_p99: u64,
    /// The longest.
    pub latency_most: u64,
}

impl Sent {
    /// Kicks a packet.
    pub fn kicks_a_packet(&self) -> f64 {
        self.a_packet(self.kicks)
    }

    /// Of something, a packet.
    pub fn a_packet(&self, of: u64) -> f64 {
        of as f64 / self.packets.max(1) as f64
    }

    /// Instructions a packet, without crossings.
    pub fn instructions(&self) -> f64 {
        self.a_packet(self.cycles - self.crossing_cycles)
    }

    /// Cycles a packet, a kick as a hypercall.
    pub fn priced(&self) -> f64 {
        self.a_packet(self.cycles)
    }

    /// Cycles a packet, a kick as a trap: of a guest whose accesses to a card's registers are caught.
    pub fn priced_with_traps(&self) -> f64 {
        self.a_packet(self.cycles + self.kicks * (QUOTED.interrupt - HYPERCALL))
    }
}

/// A load, in one way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ByLooks {
    /// How.
    pub way: Way,
    /// What came of it.
    pub sent: Sent,
}

/// A load, in each way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// What was sent.
    pub sending: Sending,
    /// In the order of [`Way::ALL`].
    pub ways: Vec<ByLooks>,
}

impl Loaded {
    /// What came of a way.
    pub fn by(&self, way: Way) -> Option<&Sent> {
        let found = self.ways.iter().find(|seen| seen.way == way);
        found.map(|seen| &seen.sent)
    }
}

/// All that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kicks {
    /// What work costs.
    pub price: KickPrice,
    /// Nanoseconds from a look to the next one, by the formula, and of the card's throttle, which has [`THROTTLE`].
    pub formula: [u64; 2],
    /// Nanoseconds from a look to the next one, if most are the card's interrupts.
    pub riding: u64,
    /// Each load.
    pub loads: Vec<Loaded>,
    /// Frames that were lost or changed.
    pub damage: u64,
}

/// Measures these loads.
///
/// # Errors
/// [`SystemError`] of the process.
pub fn measure(
    files: &Files,
    variant: Variant,
    loads: &[Sending],
    packets: u64,
) -> Result<Kicks, SystemError> {
    with_guests(files, variant, THROTTLE, |guests, runner| {
        let mut rig = Rig {
            guests,
            packets: runner.packet_loop,
            now: 0,
        };
        rig.guests.tell_each(&mut rig.packets, false)?;
        let price = rig.price()?;
        let before = rig.arrived()?;
        let loads: Vec<Loaded> = loads
            .iter()
            .map(|sending| loaded(&mut rig, *sending, packets, &price))
            .collect::<Result<_, _>>()?;
        let after = rig.arrived()?;
        let asked = packets * (Way::ALL.len() * loads.len()) as u64;
        let latency = price.split();
        Ok(Kicks {
            price,
            formula: [latency.guest, latency.card],
            riding: RIDING,
            loads,
            damage: asked.abs_diff(after[0] - before[0]) + after[1] - before[1],
        })
    })
}

/// A load in each way.
fn loaded(
    rig: &mut Rig<'_>,
    sending: Sending,
    packets: u64,
    price: &KickPrice,
) -> Result<Loaded, SystemError> {
    let run = |way: &Way| {
        rig.guests.set_pace(&mut rig.packets, way.pace(price))?;
        let sent = Run::of(rig, sending, packets, price)?;
        rig.guests.set_pace(&mut rig.packets, None)?;
        rig.settle()?;
        Ok::<_, SystemError>(ByLooks { way: *way, sent })
    };
    Ok(Loaded {
        sending,
        ways: Way::ALL.iter().map(run).collect::<Result<_, _>>()?,
    })
}
