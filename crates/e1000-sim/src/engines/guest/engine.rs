//! The engine of packets by way of dom0: the front ends of all guests, and the rendezvous with the back end. A kick and
//! an event are for all of them at once.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::front::{FrontCounts, FrontEnd};
use super::ring::{Ask, BackCounts, Channel, DEFERRED, FAILED, NetRing};
use crate::measure::profile::{Component, enter_phase};
use crate::memory::{Machine, PAGE};
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{Done, REQUESTS, Request, Sent};
use crate::packets::round::outgoing;
use crate::traffic::source::{Outline, Prepared, Shape, TrafficSource};
use crate::transport::rendezvous::Limits;

/// The front ends.
pub struct GuestEngine<'m> {
    net: &'m NetRing,
    fronts: Vec<FrontEnd<'m>>,
    limits: Limits,
    /// The back end's cycles when they were last read.
    seen: u64,
    channel: Channel,
    /// The number of the present batch, and the results of its requests.
    batch: u64,
    results: Vec<Sent>,
    /// Guests whose ring is full: their further packets wait too, so that they stay in order.
    blocked: u64,
    done: VecDeque<Done>,
}

impl<'m> GuestEngine<'m> {
    /// Front ends of guests 0 to `guests` - 1; [`super::serve`] runs in dom0, or will soon.
    pub fn new(
        net: &'m NetRing,
        machine: &'m Machine,
        guests: u32,
        limits: Limits,
    ) -> GuestEngine<'m> {
        let channel = Channel::of_word(net.channel.load(Ordering::Relaxed));
        GuestEngine {
            net,
            fronts: (0..guests)
                .map(|guest| FrontEnd::new(net, machine, guest))
                .collect(),
            limits,
            seen: net.served.load(Ordering::Relaxed),
            channel,
            batch: 0,
            results: vec![Sent::Busy; REQUESTS],
            blocked: 0,
            done: VecDeque::new(),
        }
    }

    /// How the next packets travel. Not while any is on its way.
    pub fn set_channel(&mut self, channel: Channel) {
        self.channel = channel;
        self.net.set_channel(channel);
    }

    /// Ends the back end.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    pub fn end(&mut self) -> Result<(), Stop> {
        let ended = self.ask(Ask::End).map(|_| ());
        // No packet's cycles.
        self.elsewhere();
        ended
    }

    /// A guest dies, as it is: it ends no grant. dom0 is told with the next event.
    pub fn kill(&mut self, guest: u32) {
        self.net.disconnect(guest as usize);
        self.leave(guest);
    }

    /// Leaves a guest's rings and table to somebody else, who writes them.
    pub fn leave(&mut self, guest: u32) {
        self.fronts.retain(|front| front.guest() != guest);
    }

    /// What the back end has counted so far.
    pub fn back_counts(&self) -> BackCounts {
        self.net.counts()
    }

    /// What a guest's front end has counted.
    pub fn front_counts(&self, guest: u32) -> Option<FrontCounts> {
        let front = self.fronts.iter().find(|front| front.guest() == guest);
        front.map(|front| front.counts)
    }

    fn ask(&mut self, ask: Ask) -> Result<u64, Stop> {
        let net = self.net;
        let write = || net.ask.store(ask as u64, Ordering::Relaxed);
        let read = || net.answer.load(Ordering::Relaxed);
        // A wait is nobody's work: how often it looks depends on how long dom0 takes.
        enter_phase(Component::Idle);
        let answer = net.meet.call(&self.limits, write, read);
        enter_phase(Component::Hypervisor);
        match answer.map_err(|error| Stop::Driver(format!("dom0's back end: {error}")))? {
            // SAFETY: the back end has answered and does not write now.
            FAILED => Err(Stop::Driver(unsafe { &*net.failure.get() }.get())),
            answer => Ok(answer),
        }
    }

    fn put(&mut self, index: usize, guest: u32, packet: &Outline) {
        if index == 0 {
            self.batch += 1;
            self.blocked = 0;
        }
        let front = self.fronts.iter_mut().find(|front| front.guest() == guest);
        let bit = 1 << (guest % 64);
        let put = self.blocked & bit == 0
            && front.is_some_and(|front| front.put(self.channel, packet, self.batch, index));
        self.blocked |= if put { 0 } else { bit };
        self.results[index % REQUESTS] = if put { Sent::Sent } else { Sent::Busy };
    }

    /// Takes responses. What dom0 refused of the present batch is a result, anything else is a
    /// completion.
    fn reap(&mut self) {
        for front in &mut self.fronts {
            front.reap();
            while let Some(ended) = front.ended.pop_front() {
                let refused = ended.result != Sent::Sent && ended.batch == self.batch;
                match self.results.get_mut(ended.index).filter(|_| refused) {
                    Some(result) => *result = ended.result,
                    None => self.done.push_back(ended.done),
                }
            }
        }
    }
}

impl Engine for GuestEngine<'_> {
    /// A packet whose pieces are not known is not a guest's: it has them in its pages.
    fn submit(&mut self, index: usize, _: u32, _: &Request) {
        self.results[index % REQUESTS] = Sent::Invalid;
    }

    fn submit_packet(
        &mut self,
        index: usize,
        source: &TrafficSource<'_>,
        packet: &Prepared,
        scratch: &mut Request,
    ) {
        let outline = source.outline(packet, scratch);
        self.put(index, source.flow().number, &outline);
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        self.fronts.iter().for_each(FrontEnd::show);
        self.ask(Ask::Transmit)?;
        self.reap();
        let results = self.results[..(count as usize).min(REQUESTS)].iter();
        Ok(results.filter(|result| **result == Sent::Sent).count() as u32)
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        if self.ask(Ask::Interrupt)? == DEFERRED {
            return Ok(false);
        }
        card.absorb_writes(true)?;
        Ok(true)
    }

    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop> {
        for front in &mut self.fronts {
            let mut all = sources.iter_mut();
            if let Some(source) = all.find(|source| source.flow().number == front.guest()) {
                front.deliver(source);
            }
        }
        Ok(())
    }

    fn result(&self, index: usize) -> Sent {
        self.results.get(index).copied().unwrap_or(Sent::Busy)
    }

    fn completion(&mut self) -> Option<Done> {
        if self.done.is_empty() {
            self.reap();
        }
        self.done.pop_front()
    }

    fn host(&self) -> Component {
        Component::Hypervisor
    }

    fn user(&self) -> Component {
        Component::Guest
    }

    /// The front end's waits consist of dom0's work, which dom0 counts, and of the hypervisor's: switches between
    /// both, and hypercalls.
    fn elsewhere(&mut self) -> (Component, u64) {
        let served = self.net.served.load(Ordering::Relaxed);
        let worked = served - std::mem::replace(&mut self.seen, served);
        (Component::Dom0, worked)
    }
}

/// Traffic sources of guests 0 to `guests` - 1, in the memory that their front ends leave them.
pub fn sources(machine: &Machine, guests: u32, shape: Shape) -> Vec<TrafficSource<'_>> {
    (0..guests)
        .map(|number| {
            let memory = machine.sizes().guest(number);
            let memory = memory.start..memory.end - super::front::PAGES * PAGE;
            TrafficSource::new(machine, outgoing(number), memory, shape, guests as usize)
        })
        .collect()
}
