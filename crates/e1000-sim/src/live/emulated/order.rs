//! What is asked of the emulated card, and what is counted. Plain data: it crosses processes.

use std::cell::UnsafeCell;

use serde::{Deserialize, Serialize};

use super::costs::Costs;
use crate::engines::guest::Failure;

/// How the driver's doorbells are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Every register access traps; the exit sends (2.4).
    Trapped,
    /// The transmit tail is memory while an interrupt is expected (3.3).
    Batched,
    /// Tails, causes and masks are memory while the device side works (4.4).
    StatusBlock,
}

/// What moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// The guest sends as fast as it can.
    Send,
    /// Frames arrive, one each so many nanoseconds.
    Receive(u64),
}

/// What a back end does with a frame for which the card has no descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// It waits, as with QEMU's `can_receive`: the device side wants a doorbell.
    Waits,
    /// It is dropped, as a card on a cable does.
    Dropped,
}

/// Who runs on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// The device side has one of its own.
    Two,
    /// It shares the guest's, which may run after a burst for as long as that took.
    One,
}

/// Whether the device side looks again after it has protected a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// As it has to.
    Yes,
    /// To show what is lost then.
    Left,
}

/// Whether a write of IMS rings while a cause waits for it and the device side sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskDoorbell {
    /// The page of the masks is protected then.
    Rung,
    /// It stays memory: to show what is lost then.
    Left,
}

/// A frame arrives between two instructions of the guest's first interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// Before that instruction of its driver and hot routines, counted from the handler's first.
    pub instruction: u64,
    /// Steps of the device side, then: one is a burst, all go on until it sleeps.
    pub steps: u32,
}

/// What the guest does when it has given all packets to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// It goes on taking interrupts.
    Lives,
    /// It executes nothing any more.
    Dies,
}

/// The guest writes ITR in flight, as `ethtool -C` of a driver that has it would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retune {
    /// Each so many packets.
    pub every: u64,
    /// By turns, in ITR's units of 256 ns.
    pub values: [u32; 2],
}

/// The guest writes registers that share the page of the masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rarely {
    /// Each so many packets the driver is told to receive all frames and a group, or not any more
    /// (`ndo_set_rx_mode`): RCTL, then tables that always trap.
    ReceiveMode(u64),
    /// After so many packets a register is written past the driver.
    Poke(u64, u32, u32),
}

/// Instructions of the driver and its hot routines, counted one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// A packet that is sent.
    pub transmit: u64,
    /// The handler alone.
    pub handler: u64,
    /// The handler and a poll, without packets.
    pub interrupt: u64,
    /// A packet sent, cleaned in a poll.
    pub cleaned: u64,
    /// A packet received in a poll, with its new buffer.
    pub received: u64,
}

impl Price {
    /// Of a packet that is sent and has an interrupt to itself.
    pub fn of_sent(&self) -> u64 {
        self.transmit + self.interrupt + self.cleaned
    }
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// Of doorbells.
    pub scheme: Scheme,
    /// What moves.
    pub traffic: Traffic,
    /// How many packets.
    pub packets: u64,
    /// Of crossings.
    pub costs: Costs,
    /// Of the driver.
    pub price: Price,
    /// Most frames that the device side works before it does something else.
    pub burst: Option<u32>,
    /// Who runs on what.
    pub processors: Processors,
    /// A frame without a descriptor.
    pub no_room: NoRoom,
    /// After protecting.
    pub recheck: Recheck,
    /// Of IMS.
    pub masks: MaskDoorbell,
    /// In the first interrupt.
    pub strike: Option<Strike>,
    /// The guest's end.
    pub at_end: AtEnd,
    /// The throttle's changes.
    pub retune: Option<Retune>,
    /// Registers that are rarely used.
    pub rarely: Option<Rarely>,
    /// dom0 address of the device.
    pub net_device: u64,
    /// dom0 address of the ring of packets that dom0's stack delivers.
    pub rx_ring: u64,
}

/// The limit of a burst (4.4.3).
pub const BURST: u32 = 256;

/// Accesses that trapped, by register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traps {
    /// TDT.
    pub transmit_tail: u64,
    /// RDT.
    pub receive_tail: u64,
    /// ICR.
    pub cause: u64,
    /// IMC.
    pub mask: u64,
    /// IMS.
    pub unmask: u64,
    /// STATUS, read to flush a write.
    pub status: u64,
    /// ITR.
    pub throttle: u64,
    /// Any other.
    pub other: u64,
}

impl Traps {
    /// All of them.
    pub fn all(&self) -> u64 {
        let masks = self.cause + self.mask + self.unmask + self.status;
        self.transmit_tail + self.receive_tail + masks + self.throttle + self.other
    }
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Packets on the cable, or in the application.
    pub packets: u64,
    /// Of them those that came while frames still arrived.
    pub in_time: u64,
    /// Given to the driver and never sent.
    pub stranded: u64,
    /// The back end had no room for them, or the card no descriptor.
    pub missed: u64,
    /// The guest's socket had no room for them.
    pub dropped: u64,
    /// Changed, or at the wrong place.
    pub corrupted: u64,
    /// Register accesses that trapped.
    pub traps: Traps,
    /// Interrupts of the guest.
    pub interrupts: u64,
    /// Polls after them.
    pub polls: u64,
    /// Packets that came after an interrupt was taken, and were found by its polls.
    pub found: u64,
    /// The strike's instruction was executed.
    pub struck: bool,
    /// Halts of the guest in which packets behind a tail in memory went out.
    pub halts: u64,
    /// Pages made writable.
    pub opened: u64,
    /// Pages protected: the re-arms.
    pub rearmed: u64,
    /// Re-arms after which the second look found something.
    pub rescued: u64,
    /// Writes of the throttle that went to memory.
    pub throttle_writes: u64,
    /// Writes of rarely used registers that went to memory, and were found.
    pub rare_writes: u64,
    /// Times that the page of the masks was closed, because the driver used others that trap.
    pub closed: u64,
    /// RCTL at the end.
    pub receive_control: u32,
    /// Most frames of one turn of the device side.
    pub longest_burst: u64,
    /// Nanoseconds from the first of them to the last.
    pub interrupting: u64,
    /// Nanoseconds from the begin to the last packet.
    pub time: u64,
    /// Cycles that the guest's processor worked.
    pub guest_cycles: u64,
    /// Counted, if the order was to count.
    pub price: Price,
}

impl Outcome {
    /// Trapped accesses a packet.
    pub fn traps_a_packet(&self) -> f64 {
        self.traps.all() as f64 / self.packets.max(1) as f64
    }

    /// Packets a second, in thousands.
    pub fn kpps(&self) -> f64 {
        self.packets as f64 / self.time.max(1) as f64 * 1e6
    }

    /// Interrupts a second from the first to the last, in thousands.
    pub fn interrupts_khz(&self) -> f64 {
        self.interrupts.saturating_sub(1) as f64 / self.interrupting.max(1) as f64 * 1e6
    }

    /// Packets that did not arrive whole.
    pub fn damage(&self) -> u64 {
        self.stranded + self.missed + self.dropped + self.corrupted
    }
}

/// What dom0 is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// Count the driver's price.
    Count,
    /// Run.
    Run,
}

/// The mailbox's place for an order and its outcome.
#[repr(C)]
pub struct Slot(UnsafeCell<Contents>);

#[repr(C)]
struct Contents {
    asked: Option<(Task, Order)>,
    outcome: Outcome,
    failure: Failure,
}

// SAFETY: the supervisor writes the order before it sends the command and reads the outcome after
// the answer; dom0 uses it between the two.
unsafe impl Sync for Slot {}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("emulated::Slot")
    }
}

impl Slot {
    /// For the supervisor, before the command.
    pub fn ask(&self, task: Task, order: Order) {
        // SAFETY: the supervisor's turn. Written, not read: zeroes need not be an order.
        unsafe { (&raw mut (*self.0.get()).asked).write(Some((task, order))) };
    }

    /// For the supervisor, after the answer.
    ///
    /// # Errors
    /// Why the run ended early.
    pub fn take(&self) -> Result<Outcome, String> {
        // SAFETY: dom0 has answered and writes no more.
        let (outcome, failure) = unsafe {
            let contents = self.0.get();
            ((*contents).outcome, (*contents).failure)
        };
        match failure.get() {
            text if text.is_empty() => Ok(outcome),
            text => Err(text),
        }
    }

    /// For dom0: what is asked. The supervisor asks before each command.
    pub(super) fn asked(&self) -> Option<(Task, Order)> {
        // SAFETY: dom0's turn; the same program has written it.
        unsafe { (*self.0.get()).asked }
    }

    /// For dom0.
    pub(super) fn put(&self, result: Result<Outcome, String>) {
        // SAFETY: dom0's turn.
        let contents = unsafe { &mut *self.0.get() };
        match result {
            Ok(outcome) => {
                contents.outcome = outcome;
                contents.failure.set("");
            }
            Err(why) => contents.failure.set(&why),
        }
    }
}
