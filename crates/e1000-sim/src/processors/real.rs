//! A processor for real: a process with a card, a dom0 and an instance of the driver, whose
//! guests are those of all processors.
//!
//! ```text
//! process 0: card ─ driver ─ switch ─ hash ─┐   ┌─ serve ─> guests' checks
//!                                           queues
//! process 1: card ─ driver ─ switch ─ hash ─┘   └─ serve ─> guests' checks
//! ```
//!
//! What guests send goes the other way, by cards' queues ([`super::sender`]).
//!
//! An instance that is aborted takes nothing with it but what its driver had: its processor
//! goes on to serve queues, and the others go on.

use super::exchange::{Counts, Exchange, Port, attended};
use super::handing::{HandedCounts, Outward};
use super::queues::{ProcessorId, Spread};
use super::sender;
use crate::engines::twin;
use crate::hypervisor::instance::Service as HostReceive;
use crate::inject::service::Service;
use crate::packets::packet_loop::Stop;
use crate::packets::rings::HEADER;
use crate::system::{Blueprint, System, SystemError};
use crate::traffic::{Arrived, Datagrams, Sink};
use crate::transport::rendezvous::Limits;

/// Frames between two interrupts.
pub const BATCH: u32 = 32;
/// Rounds without work before a processor sleeps.
const EAGER: u32 = 256;

/// What all processors have in common.
#[derive(Clone, Copy)]
pub struct Shared<'x> {
    /// The queues.
    pub exchange: &'x Exchange,
    /// Which queue is whose.
    pub spread: Spread,
    /// Flows on each card, by turns of all guests.
    pub flows: u32,
    /// Bytes of a frame.
    pub size: usize,
    /// The service `host_receive`.
    pub receive: HostReceive,
}

impl<'x> Shared<'x> {
    /// With the plain service.
    pub fn new(exchange: &'x Exchange, spread: Spread, flows: u32, size: usize) -> Shared<'x> {
        Shared {
            exchange,
            spread,
            flows,
            size,
            receive: twin::HOST_RECEIVE,
        }
    }
}

/// A flow that comes in by this card.
struct Sender {
    frames: Datagrams,
    next: u64,
}

/// A processor at work.
pub struct Processor<'s, 'x> {
    /// Its dom0.
    pub system: System<'s>,
    /// Its instance, and the guests as the instance knows them.
    pub service: Service<'s>,
    /// Its end of the queues.
    pub port: Port<'x>,
    /// Its part in what guests send.
    pub sending: sender::Sender<'x>,
    senders: Vec<Sender>,
    turn: usize,
}

/// Boots a card, a dom0 and an instance, and runs `work` with them, in this process.
///
/// # Errors
/// The system's, or the work's; other processors learn that there was one.
pub fn with_processor<T>(
    blueprint: &Blueprint<'_>,
    shared: Shared<'_>,
    number: u32,
    limits: Limits,
    work: impl FnOnce(&mut Processor<'_, '_>) -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    attended(shared.exchange, || {
        blueprint.booted(limits, |system| {
            work(&mut Processor::start(system, shared, number, limits)?)
        })
    })
}

impl<'s, 'x> Processor<'s, 'x> {
    fn start(
        system: System<'s>,
        shared: Shared<'x>,
        number: u32,
        limits: Limits,
    ) -> Result<Processor<'s, 'x>, SystemError> {
        let Shared {
            exchange,
            spread,
            flows,
            size,
            receive,
        } = shared;
        let engine = system.twin_with(limits, receive)?;
        let mut service = Service::start(&system, engine, spread.guests)?;
        let sender = |turn: u32| Sender {
            frames: Datagrams::new(
                super::flow(number * flows + turn, turn % spread.guests),
                size,
            ),
            next: 0,
        };
        let all = flows * spread.processors;
        service.packet_loop.card.sent = Sink::new(all as usize);
        let outgoing = (flows, size.min(HEADER));
        Ok(Processor {
            system,
            service,
            port: Port::new(exchange, spread, ProcessorId(number), all),
            sending: sender::Sender::new(exchange, spread, ProcessorId(number), outgoing),
            senders: (0..flows).map(sender).collect(),
            turn: 0,
        })
    }

    /// What it shares with the others.
    pub fn exchange(&self) -> &'x Exchange {
        self.port.exchange
    }

    /// So many processors share the queues from now on. All of them say so before they go on.
    pub(super) fn share_among(&mut self, processors: u32) {
        self.port.spread.processors = processors;
        self.sending.among(processors);
    }

    /// So many frames come in by its card, are put into queues, and its own queues served.
    ///
    /// # Errors
    /// The driver stopped, or another processor failed.
    pub fn receive(&mut self, frames: u32) -> Result<(), Stop> {
        let mut left = frames;
        while left > 0 {
            let batch = left.min(BATCH);
            self.batch(batch)?;
            self.port.serve();
            left -= batch;
        }
        Ok(())
    }

    /// Guests send up to packet `most` of each of this processor's flows, until `done`: packets are
    /// handed to cards, and this one's card sends what it was handed.
    ///
    /// # Errors
    /// The driver stopped, or another processor failed.
    pub fn send(&mut self, most: u64, done: impl Fn(&Outward) -> bool) -> Result<(), Stop> {
        let mut idle = 0;
        while !done(&self.exchange().outward) {
            let given = self.sending.give_and_hand(most);
            let driven = self.sending.drive(&mut self.service)?;
            self.rest(given || driven, &mut idle)?;
        }
        Ok(())
    }

    /// The same without a driver, while that is aborted.
    ///
    /// # Errors
    /// Another processor failed.
    pub fn hand(&mut self, most: u64, done: impl Fn(&Outward) -> bool) -> Result<(), Stop> {
        let mut idle = 0;
        while !done(&self.exchange().outward) {
            let given = self.sending.give_and_hand(most);
            self.rest(given, &mut idle)?;
        }
        Ok(())
    }

    /// After a round without work others get the processor, and after many it sleeps: what it waits
    /// for takes less than a sleep.
    fn rest(&mut self, worked: bool, idle: &mut u32) -> Result<(), Stop> {
        *idle = if worked { 0 } else { *idle + 1 };
        match *idle {
            0 => Ok(()),
            1..EAGER => {
                std::thread::yield_now();
                Ok(())
            }
            _ => self.port.idle(),
        }
    }

    fn batch(&mut self, count: u32) -> Result<(), Stop> {
        let frames: Vec<Vec<u8>> = (0..count).map(|_| self.next_frame()).collect();
        let Service {
            packet_loop,
            sources,
            ..
        } = &mut self.service;
        packet_loop.receive_unread(sources, frames.iter().map(Vec::as_slice))?;
        let mut put = Ok(());
        for (guest, source) in sources.iter_mut().enumerate() {
            source.read(|frame| {
                if put.is_ok() {
                    put = self.port.put(guest as u32, frame);
                }
            });
        }
        put
    }

    fn next_frame(&mut self) -> Vec<u8> {
        let turn = self.turn % self.senders.len();
        self.turn += 1;
        let sender = &mut self.senders[turn];
        let frame = sender.frames.finished(sender.next).to_vec();
        sender.next += 1;
        frame
    }
}

/// What a processor did, for whoever started it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Done {
    /// Its packets.
    pub counts: Counts,
    /// What guests got, by flow: packets, those missing, those out of order.
    pub flows: Vec<[u64; 3]>,
    /// Frames that came as they were not sent.
    pub corrupted: u64,
}

impl Done {
    /// So far.
    pub fn of(processor: &Processor<'_, '_>) -> Done {
        let received = &processor.port.received;
        let flow = |seen: &Arrived| [seen.packets, seen.missing, seen.reordered];
        Done {
            counts: processor.port.counts,
            flows: received.flows.iter().map(flow).collect(),
            corrupted: received.corrupted + received.strangers,
        }
    }

    /// All processors' together.
    pub fn sum(all: &[Done]) -> Done {
        let flows = all.first().map_or(0, |done| done.flows.len());
        let total = |of: &dyn Fn(&Done) -> u64| all.iter().map(of).sum();
        let at = |flow: usize| std::array::from_fn(|i| total(&|done| done.flows[flow][i]));
        Done {
            counts: Counts {
                put: total(&|done| done.counts.put),
                dropped: total(&|done| done.counts.dropped),
                taken: total(&|done| done.counts.taken),
                waits: total(&|done| done.counts.waits),
            },
            flows: (0..flows).map(at).collect(),
            corrupted: total(&|done| done.corrupted),
        }
    }
}

/// What a processor's card sent, and what it handed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SentDone {
    /// What it handed.
    pub counts: HandedCounts,
    /// Frames on its cable, by flow: packets, those missing, those out of order.
    pub flows: Vec<[u64; 3]>,
    /// Frames on it that were changed, and packets that its driver refused.
    pub corrupted: u64,
}

impl SentDone {
    /// So far.
    pub fn of(processor: &Processor<'_, '_>) -> SentDone {
        let wire = &processor.service.packet_loop.card.sent;
        let flow = |seen: &Arrived| [seen.packets, seen.missing, seen.reordered];
        SentDone {
            counts: processor.sending.hander.counts,
            flows: wire.flows.iter().map(flow).collect(),
            corrupted: wire.corrupted + wire.strangers + processor.sending.refused,
        }
    }
}

/// Keeps this process, and later children, on one of the processors that it may use.
pub(super) fn keep_to(number: u32) {
    let allowed = allowed();
    let Some(own) = allowed.get(number as usize % allowed.len().max(1)) else {
        return;
    };
    // SAFETY: all zeroes is the empty set; the macro writes inside it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(*own, &mut set);
        set
    };
    // SAFETY: the set is as large as said. A refusal changes no result but the time.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
}

/// Processors that this process may use.
pub(super) fn allowed() -> Vec<usize> {
    // SAFETY: all zeroes is the empty set, which the call fills; it is as large as said.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: the macro reads inside the set.
    let is_in = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    (0..libc::CPU_SETSIZE as usize).filter(is_in).collect()
}
