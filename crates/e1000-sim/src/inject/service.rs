//! Packets of some guests: sent, received and checked.

use std::ops::Range;

use super::faulty::Faulty;
use crate::engines::twin::TwinEngine;
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Engine, Pump, Stop};
use crate::packets::rings::TX_DONE;
use crate::packets::round;
use crate::system::{System, SystemError};
use crate::traffic::Datagrams;
use crate::traffic::source::{Endpoint, Shape};
use crate::transport::mailbox::InterruptOwner;

/// Bytes of a frame, without FCS.
pub const FRAME: usize = 1000;

/// What went and came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Frames that should have been on the wire or at a guest, and were not.
    pub lost: u64,
    /// Frames that were not as sent, or of nobody here.
    pub damaged: u64,
}

impl Exchanged {
    /// Both.
    pub fn and(self, other: Exchanged) -> Exchanged {
        Exchanged {
            lost: self.lost + other.lost,
            damaged: self.damaged + other.damaged,
        }
    }
}

/// The service.
pub struct Service<'a> {
    /// The packet loop.
    pub pump: Pump<Faulty<'a>, OpenCard<'a>>,
    /// The guests.
    pub endpoints: Vec<Endpoint<'a>>,
    peers: Vec<Datagrams>,
    numbers: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Seen {
    good: u64,
    bad: u64,
}

impl<'a> Service<'a> {
    /// Attaches guests to the instance and gives it card and interrupts.
    ///
    /// # Errors
    /// [`SystemError`].
    pub fn start(
        system: &System<'a>,
        mut engine: TwinEngine<'a>,
        guests: u32,
    ) -> Result<Service<'a>, SystemError> {
        let endpoints = round::endpoints(system.machine(), guests, Shape::Frames(FRAME));
        for endpoint in &endpoints {
            engine.attach(endpoint);
        }
        let mailbox = system.mailbox();
        mailbox.set_interrupt_owner(InterruptOwner::Hypervisor);
        let card = system.card(guests)?;
        let faulty = Faulty {
            engine,
            armed: None,
        };
        Ok(Service::new(faulty, card, endpoints))
    }

    /// A service of these guests.
    fn new(engine: Faulty<'a>, card: OpenCard<'a>, endpoints: Vec<Endpoint<'a>>) -> Self {
        Service {
            pump: Pump::new(engine, card),
            peers: round::peers(endpoints.len() as u32, Shape::Frames(FRAME)),
            numbers: vec![0; endpoints.len()],
            endpoints,
        }
    }

    fn seen(&self) -> Seen {
        let sinks = self.endpoints.iter().map(|e| &e.received);
        sinks.chain([&self.pump.card.sent]).fold(
            Seen { good: 0, bad: 0 },
            |Seen { good, bad }, sink| Seen {
                good: good + sink.packets(),
                bad: bad + sink.corrupted + sink.strangers,
            },
        )
    }

    /// `packets` each way for each of `guests`.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn exchange(&mut self, guests: Range<usize>, packets: u32) -> Result<Exchanged, Stop> {
        let before = self.seen();
        let all = packets * guests.len() as u32;
        self.pump.send(&mut self.endpoints[guests.clone()], all)?;
        let frames = self.frames(guests.clone(), packets);
        let frames = frames.iter().map(Vec::as_slice);
        self.pump.receive(&mut self.endpoints[guests], frames)?;
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
                let number = self.numbers[guest];
                self.numbers[guest] += 1;
                frames.push(self.peers[guest].finished(number).to_vec());
            }
        }
        frames
    }

    /// What damaged frames a guest got.
    pub fn damage(&self, guest: usize) -> u64 {
        let received = &self.endpoints[guest].received;
        received.corrupted + received.strangers
    }

    /// After a reset: nothing is on its way.
    pub fn settle_accounts(&mut self) {
        for _ in 0..TX_DONE {
            if self.pump.engine.completion().is_none() {
                break;
            }
        }
        self.endpoints.iter_mut().for_each(Endpoint::reset);
    }
}
