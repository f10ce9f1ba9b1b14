//! The card: one cable, one bus, and a context for each guest (thesis, 5.1.1).
//!
//! ```text
//! context 0: a whole 82540EM ─┐           ┌─> frame to one address: the context that has it
//! context 1: a whole 82540EM ─┼─ turns ─> wire ─> frame to a group: every context's filters
//!   ...                      ─┘
//!      └─ its line rises ─> its bit ─> vector, through the hypervisor's memory ─> one interrupt
//! ```
//!
//! A context is the register file that the stock driver expects ([`Nic`]). Sending is fair by
//! bytes: a turn is worth [`QUANTUM`] bytes, a packet that is longer is paid for with the turns
//! that follow, and a context without packets saves nothing up (surplus round robin).
//!
//! The hypervisor tells the card by whose rings a context works: with numbers beside the
//! descriptors, behind an I/O table, or without either.

use super::iommu::{IoTable, Translated};
use super::layout::stamps_of;
use super::protection::Protection;
use super::stamps::Expected;
use super::vectors::Producer;
use super::{CONTEXTS, ContextId};
use crate::memory::Machine;
use crate::nic::{BusFault, Nic, Received, Register, Ring, Transmitted, Wire};
use crate::traffic::Mac;
use crate::transport::mailbox::Mailbox;
use crate::transport::wire::MachineBus;

/// Bytes of a turn: a full frame.
pub const QUANTUM: i64 = 1514;
const RINGS: [Ring; 2] = [Ring::Transmit, Ring::Receive];
const TAILS: [Register; 2] = [Register::Tdt, Register::Rdt];

/// Why a context does nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A descriptor has another number than the next: it was not handed over.
    Replay {
        /// Of that ring.
        ring: Ring,
        /// Which one.
        index: u32,
    },
    /// The numbers are not in memory.
    Numbers(BusFault),
    /// The hypervisor has taken it away.
    Revoked,
}

/// One guest's part of the card.
struct Context<'m> {
    mailbox: &'m Mailbox,
    machine: &'m Machine,
    mac: Mac,
    table: Option<&'m IoTable<'m>>,
    expected: Option<[Expected; 2]>,
    stopped: Option<Stopped>,
    /// Bytes that it may send before its turn ends; negative: it has sent ahead.
    credit: i64,
    /// The device's interrupts that a vector has, or will have.
    noted: u64,
    sent: Transmitted,
}

/// The card. One process drives it.
pub struct Card<'m> {
    contexts: Vec<Context<'m>>,
    vectors: Producer,
    turn: usize,
    /// Its interrupts: one for each vector.
    pub interrupts: u64,
}

/// What came of a turn.
enum Turn {
    Idle,
    /// It pays for what it has sent ahead.
    Waits,
    Sent(u64),
}

impl<'m> Card<'m> {
    /// A card without contexts, whose vectors go to a machine address.
    pub fn new(vectors: u64) -> Card<'m> {
        Card {
            contexts: Vec::new(),
            vectors: Producer::new(vectors),
            turn: 0,
            interrupts: 0,
        }
    }

    /// Gives a guest a context: the device of its mailbox, which has its power.
    ///
    /// # Panics
    /// If the card has no more.
    pub fn add(&mut self, mailbox: &'m Mailbox, machine: &'m Machine, mac: Mac) -> ContextId {
        assert!(self.contexts.len() < CONTEXTS, "{CONTEXTS} contexts");
        self.contexts.push(Context {
            mailbox,
            machine,
            mac,
            table: None,
            expected: None,
            stopped: None,
            credit: 0,
            noted: mailbox.device().interrupts(),
            sent: Transmitted::default(),
        });
        ContextId(self.contexts.len() - 1)
    }

    /// How many contexts there are.
    pub fn count(&self) -> usize {
        self.contexts.len()
    }

    /// From here on the context works by rings under that protection, from the device's present
    /// heads on.
    pub fn protect(&mut self, id: ContextId, protection: Protection, table: &'m IoTable<'m>) {
        let context = &mut self.contexts[id.0];
        let device = context.mailbox.device();
        let heads = RINGS.map(|ring| device.driver_ring(ring).head);
        context.expected = (protection == Protection::Copies).then(|| heads.map(Expected::begin));
        context.table = (protection == Protection::Table).then_some(table);
    }

    /// The context does nothing from here on, and has no news (thesis, 5.1.1).
    pub fn revoke(&mut self, id: ContextId) {
        self.contexts[id.0].stopped = Some(Stopped::Revoked);
    }

    /// Why a context does nothing, if so.
    pub fn stopped(&self, id: ContextId) -> Option<Stopped> {
        self.contexts[id.0].stopped
    }

    /// What a context has sent.
    pub fn sent(&self, id: ContextId) -> Transmitted {
        self.contexts[id.0].sent
    }

    /// How often the ring of vectors was full.
    pub fn full(&self) -> u64 {
        self.vectors.full
    }

    /// Sends by turns, until `bytes` are sent or nobody has more. Gives how many were.
    pub fn serve<W: Wire + ?Sized>(&mut self, bytes: u64, wire: &mut W) -> u64 {
        let (mut sent, mut idle) = (0, 0);
        while sent < bytes && idle < self.contexts.len() {
            match self.contexts[self.turn].take_turn(wire) {
                Turn::Idle => idle += 1,
                Turn::Waits => idle = 0,
                Turn::Sent(some) => {
                    sent += some;
                    idle = 0;
                }
            }
            self.turn = (self.turn + 1) % self.contexts.len();
        }
        sent
    }

    /// A frame comes in: how many contexts have stored it.
    pub fn receive(&mut self, frame: &[u8]) -> u32 {
        let group = frame.first().is_some_and(|first| first & 1 != 0);
        let takers = self.contexts.iter_mut();
        let takers = takers.filter(|context| group || frame.starts_with(&context.mac));
        takers
            .map(|context| u32::from(context.receive(frame)))
            .sum()
    }

    /// Notes which contexts have news, and writes a vector of them if there is room. Whether it
    /// wrote one: then it interrupts.
    pub fn update(&mut self) -> bool {
        for (number, context) in self.contexts.iter_mut().enumerate() {
            if context.has_news() {
                self.vectors.note(ContextId(number));
            }
        }
        let Some(first) = self.contexts.first() else {
            return false;
        };
        let mut bus = MachineBus::unlimited(first.machine);
        // Out of memory there is no ring: the constructor's address was the hypervisor's.
        let wrote = self.vectors.transfer(&mut bus).unwrap_or(false);
        self.interrupts += u64::from(wrote);
        wrote
    }

    /// Lets time pass for all contexts.
    pub fn tick(&mut self, nanoseconds: u64) {
        for context in &self.contexts {
            context.mailbox.device().tick(nanoseconds);
        }
    }

    /// How long until a context does something by itself, in nanoseconds.
    pub fn next_event(&self) -> Option<u64> {
        let working = self
            .contexts
            .iter()
            .filter(|context| context.stopped.is_none());
        working
            .filter_map(|context| context.mailbox.device().next_event())
            .min()
    }
}

impl Context<'_> {
    fn has_news(&mut self) -> bool {
        let interrupts = self.mailbox.device().interrupts();
        let news = interrupts != self.noted && self.stopped.is_none();
        self.noted = interrupts;
        news
    }

    fn take_turn<W: Wire + ?Sized>(&mut self, wire: &mut W) -> Turn {
        let mut device = self.mailbox.device();
        if self.stopped.is_some() {
            return Turn::Idle;
        }
        if let Some(why) = check(&mut self.expected, self.machine, &device) {
            self.stopped = Some(why);
            return Turn::Idle;
        }
        if device.peek(Register::Tdh) == device.peek(Register::Tdt) {
            self.credit = self.credit.min(0);
            return Turn::Idle;
        }
        self.credit += QUANTUM;
        let Ok(credit @ 1..) = u64::try_from(self.credit) else {
            return Turn::Waits;
        };
        let mut bus = Translated {
            bus: MachineBus::unlimited(self.machine),
            table: self.table,
        };
        let done = device.process_transmit_up_to(credit, &mut bus, wire);
        self.credit -= done.bytes as i64;
        self.sent.frames += done.frames;
        self.sent.bytes += done.bytes;
        self.sent.descriptors += done.descriptors;
        match done.descriptors {
            // A fault, or no link: its packets wait.
            0 => Turn::Idle,
            _ => Turn::Sent(done.bytes),
        }
    }

    fn receive(&mut self, frame: &[u8]) -> bool {
        let mut device = self.mailbox.device();
        if self.stopped.is_none() {
            self.stopped = check(&mut self.expected, self.machine, &device);
        }
        if self.stopped.is_some() {
            return false;
        }
        let mut bus = Translated {
            bus: MachineBus::unlimited(self.machine),
            table: self.table,
        };
        matches!(device.receive(frame, &mut bus), Received::Stored { .. })
    }
}

/// Compares the numbers of new descriptors in both rings.
fn check(expected: &mut Option<[Expected; 2]>, machine: &Machine, device: &Nic) -> Option<Stopped> {
    let bus = MachineBus::unlimited(machine);
    let numbers = stamps_of(&machine.sizes());
    let rings = expected.as_mut()?.iter_mut().zip(RINGS).zip(TAILS);
    for ((expected, ring), tail) in rings {
        let count = device.driver_ring(ring).count;
        match expected.take(numbers, ring, count, device.peek(tail), &bus) {
            Ok(None) => {}
            Ok(Some(index)) => return Some(Stopped::Replay { ring, index }),
            Err(fault) => return Some(Stopped::Numbers(fault)),
        }
    }
    None
}
