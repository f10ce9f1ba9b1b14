//! Packets of some guests: sent, received and checked.

use std::ops::Range;

use super::faulty::Faulty;
use crate::engines::staged::Staged;
use crate::engines::twin::TwinEngine;
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Engine, PacketLoop, Stop};
use crate::packets::rings::TX_DONE;
use crate::packets::round;
use crate::stages::{Stage, Stages};
use crate::system::{System, SystemError};
use crate::traffic::Datagrams;
use crate::traffic::source::{Shape, TrafficSource};
use crate::traffic::tcp::{MSS, Peer};
use crate::transport::mailbox::InterruptOwner;

/// Bytes of a frame, without FCS.
pub const FRAME: usize = 1000;

/// Counts of frames sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Frames that should have been on the wire or at a guest, and were not.
    pub lost: u64,
    /// Frames that were changed, or of no known sender.
    pub damaged: u64,
}

impl Exchanged {
    /// The sum of both.
    pub fn and(self, other: Exchanged) -> Exchanged {
        Exchanged {
            lost: self.lost + other.lost,
            damaged: self.damaged + other.damaged,
        }
    }
}

/// The guests' traffic through a driver that faults strike.
pub struct Service<'a> {
    /// The packet loop.
    pub packet_loop: PacketLoop<Faulty<'a>, OpenCard<'a>>,
    /// One a guest, in the order of their numbers.
    pub sources: Vec<TrafficSource<'a>>,
    peers: Vec<Datagrams>,
    /// In place of them, if guests receive TCP segments.
    streams: Vec<Peer>,
    numbers: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Seen {
    good: u64,
    bad: u64,
}

/// A sender that waits for no acknowledgement.
fn stream(guest: u32) -> Peer {
    Peer::new(round::incoming(guest), u32::MAX, MSS)
}

impl<'a> Service<'a> {
    /// Attaches guests to the instance and gives it card and interrupts.
    pub fn start(
        system: &System<'a>,
        engine: TwinEngine<'a>,
        guests: u32,
    ) -> Result<Service<'a>, SystemError> {
        Service::staged(system, engine, guests, Stages::NONE)
    }

    /// The same with stages of the packet path. With `aggregate` guests receive TCP segments.
    pub fn staged(
        system: &System<'a>,
        engine: TwinEngine<'a>,
        guests: u32,
        stages: Stages,
    ) -> Result<Service<'a>, SystemError> {
        let mut engine = Staged::new(engine, system.machine(), guests, Stages::NONE);
        engine.set_stages(stages);
        let sources = round::sources(system.machine(), guests, Shape::Frames(FRAME));
        for source in &sources {
            engine.attach(source);
        }
        let mailbox = system.mailbox();
        mailbox.set_interrupt_owner(InterruptOwner::Hypervisor);
        let card = system.card(guests)?;
        let faulty = Faulty {
            engine,
            armed: None,
        };
        let mut service = Service::new(faulty, card, sources);
        if stages.has(Stage::Aggregate) {
            service.streams = (0..guests).map(stream).collect();
        }
        Ok(service)
    }

    /// A service of these guests.
    fn new(engine: Faulty<'a>, card: OpenCard<'a>, sources: Vec<TrafficSource<'a>>) -> Self {
        Service {
            packet_loop: PacketLoop::new(engine, card),
            peers: round::peers(sources.len() as u32, Shape::Frames(FRAME)),
            streams: Vec::new(),
            numbers: vec![0; sources.len()],
            sources,
        }
    }

    fn seen(&self) -> Seen {
        let sinks = self.sources.iter().map(|e| &e.received);
        sinks.chain([&self.packet_loop.card.sent]).fold(
            Seen { good: 0, bad: 0 },
            |Seen { good, bad }, sink| Seen {
                good: good + sink.packets(),
                bad: bad + sink.corrupted + sink.strangers,
            },
        )
    }

    /// `packets` each way for each of `guests`.
    pub fn exchange(&mut self, guests: Range<usize>, packets: u32) -> Result<Exchanged, Stop> {
        let before = self.seen();
        let all = packets * guests.len() as u32;
        self.packet_loop
            .send(&mut self.sources[guests.clone()], all)?;
        let frames = self.frames(guests.clone(), packets);
        let frames = frames.iter().map(Vec::as_slice);
        self.packet_loop
            .receive(&mut self.sources[guests], frames)?;
        let after = self.seen();
        Ok(Exchanged {
            lost: u64::from(2 * all).saturating_sub(after.good - before.good),
            damaged: after.bad - before.bad,
        })
    }

    fn frames(&mut self, guests: Range<usize>, packets: u32) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for _ in 0..packets {
            for guest in guests.clone() {
                if let Some(stream) = self.streams.get_mut(guest) {
                    frames.extend(stream.segment());
                    continue;
                }
                let number = self.numbers[guest];
                self.numbers[guest] += 1;
                frames.push(self.peers[guest].finished(number).to_vec());
            }
        }
        frames
    }

    /// The damaged frames that a guest received.
    pub fn damage(&self, guest: usize) -> u64 {
        let received = &self.sources[guest].received;
        received.corrupted + received.strangers
    }

    /// After a reset: no packet is being sent or received.
    pub fn drop_in_flight(&mut self) {
        for _ in 0..TX_DONE {
            if self.packet_loop.engine.completion().is_none() {
                break;
            }
        }
        self.sources.iter_mut().for_each(TrafficSource::reset);
    }
}
