//! The guest's side: a front end that leaves all work to dom0.

use std::sync::atomic::Ordering;

use super::ring::{Ask, DEFERRED, FAILED, NetRing};
use crate::engines::native::deliver_to;
use crate::measure::profile::Component;
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{Done, Request, Rings, Sent};
use crate::traffic::source::TrafficSource;
use crate::transport::rendezvous::Limits;

/// The guest's front end.
pub struct GuestEngine<'m> {
    ring: &'m NetRing,
    rings: Rings,
    limits: Limits,
    /// The back end's cycles when they were last read.
    seen: u64,
}

impl<'m> GuestEngine<'m> {
    /// A front end; [`super::serve`] runs in dom0, or will soon.
    pub fn new(ring: &'m NetRing, limits: Limits) -> GuestEngine<'m> {
        GuestEngine {
            ring,
            rings: ring.rings(),
            limits,
            seen: ring.served.load(Ordering::Relaxed),
        }
    }

    /// Ends the back end.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    pub fn end(&mut self) -> Result<(), Stop> {
        let ended = self.ask(Ask::End, 0).map(|_| ());
        // No packet's cycles.
        self.elsewhere();
        ended
    }

    fn ask(&mut self, ask: Ask, count: u64) -> Result<u64, Stop> {
        let ring = self.ring;
        let write = || {
            ring.ask.store(ask as u64, Ordering::Relaxed);
            ring.count.store(count, Ordering::Relaxed);
        };
        let read = || ring.answer.load(Ordering::Relaxed);
        let answer = ring.meet.call(&self.limits, write, read);
        match answer.map_err(|error| Stop::Driver(format!("dom0's back end: {error}")))? {
            // SAFETY: the back end has answered and does not write now.
            FAILED => Err(Stop::Driver(unsafe { &*ring.failure.get() }.get())),
            answer => Ok(answer),
        }
    }
}

impl Engine for GuestEngine<'_> {
    fn submit(&mut self, index: usize, _: u32, request: &Request) {
        self.rings.put(index, request);
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        Ok(self.ask(Ask::Transmit, count.into())? as u32)
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        if self.ask(Ask::Interrupt, 0)? == DEFERRED {
            return Ok(false);
        }
        card.absorb_writes(true)?;
        Ok(true)
    }

    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop> {
        self.ring.take_packets(|packet| deliver_to(sources, packet));
        Ok(())
    }

    fn result(&self, index: usize) -> Sent {
        self.rings.result(index)
    }

    fn completion(&mut self) -> Option<Done> {
        self.rings.completion()
    }

    fn host(&self) -> Component {
        Component::Hypervisor
    }

    fn user(&self) -> Component {
        Component::Guest
    }

    /// The front end's waits consist of dom0's work, which dom0 counts, and of the
    /// switches between both, which belong to the hypervisor.
    fn elsewhere(&mut self) -> (Component, u64) {
        let served = self.ring.served.load(Ordering::Relaxed);
        let worked = served - std::mem::replace(&mut self.seen, served);
        (Component::Dom0, worked)
    }
}
