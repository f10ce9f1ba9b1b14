//! The packet loop: the same for every path, so that paths differ only in where the
//! driver runs.
//!
//! ```text
//! send     traffic sources describe packets ─> hot_transmit ─> card sends ─> interrupt
//!          ─> handler, poll ─> completions go back to traffic sources
//! receive  frames come to the card ─> interrupt ─> handler, poll
//!          ─> traffic sources take their packets ─> buffers are released
//! ```
//!
//! A [`CycleMeter`] assigns the time of every step to a component. The card's time is no
//! processor time on a real machine and is left out of a packet's cost.

use std::time::Duration;

use super::rings::{Done, REQUESTS, Request, Sent, TX_DONE};
use crate::measure::profile::{ByComponent, Component, cycles, enter_phase};
use crate::measure::steps;
use crate::nic::CardMask;
use crate::traffic::source::{Prepared, TrafficSource};

/// Why the loop cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The driver was aborted, or dom0 had an oops.
    Driver(String),
    /// The card's model cannot follow the driver.
    Card(String),
    /// The driver makes no progress.
    Stuck(&'static str),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Driver(why) => write!(f, "the driver stopped: {why}"),
            Stop::Card(why) => write!(f, "the card's model: {why}"),
            Stop::Stuck(what) => write!(f, "no progress: {what}"),
        }
    }
}

/// The place where the driver runs, and how its packets get to traffic sources.
pub trait Engine {
    /// Takes request number `index` of the next batch from `guest`, which is the caller's
    /// knowledge, not the request's claim.
    fn submit(&mut self, index: usize, guest: u32, request: &Request);

    /// The same, of a request that `describe` writes: in the engine's own place for it, or
    /// into `scratch` if it has none.
    fn submit_by(
        &mut self,
        index: usize,
        guest: u32,
        scratch: &mut Request,
        describe: impl FnOnce(&mut Request),
    ) {
        describe(scratch);
        self.submit(index, guest, scratch);
    }

    /// The same, of a packet that a source has prepared.
    #[inline(always)]
    fn submit_packet(
        &mut self,
        index: usize,
        source: &TrafficSource<'_>,
        packet: &Prepared,
        scratch: &mut Request,
    ) {
        let guest = source.flow().number;
        self.submit_by(index, guest, scratch, |request| {
            source.describe(packet, request);
        });
    }

    /// `hot_transmit` of requests 0 to `count`: how many were accepted.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn transmit(&mut self, count: u32) -> Result<u32, Stop>;

    /// The interrupt handler and the poll that it schedules, unless dom0 has its
    /// virtual interrupts disabled: then false, and the interrupt stays pending.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop>;

    /// Whether an interrupt that was acknowledged waits for the handler: the card's line does not
    /// say so any more (stage `ack`).
    fn causes_wait(&self) -> bool {
        false
    }

    /// Passes received packets to their traffic sources.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop>;

    /// The result of request `index` of that batch.
    fn result(&self, index: usize) -> Sent;

    /// The next packet that is sent, by its guest and its cookie.
    fn completion(&mut self) -> Option<Done>;

    /// The component of the time outside of driver and support code: the hypervisor or
    /// dom0.
    fn host(&self) -> Component;

    /// The component of the traffic sources' time.
    fn user(&self) -> Component;

    /// Cycles since the last call in which the host waited for another process, and the
    /// component that they belong to.
    fn elsewhere(&mut self) -> (Component, u64) {
        (self.host(), 0)
    }
}

/// The loop's interface to the card.
pub trait Card {
    /// Takes the driver's writes to its registers; `handler_ran` if the interrupt
    /// handler has read the cause since.
    ///
    /// # Errors
    /// [`Stop::Card`].
    fn absorb_writes(&mut self, handler_ran: bool) -> Result<(), Stop>;

    /// Acknowledges all causes before the handler runs, with the driver's writes so far taken;
    /// gives the causes.
    ///
    /// # Errors
    /// [`Stop::Card`].
    fn acknowledge(&mut self, mask: CardMask) -> Result<u32, Stop>;

    /// The handler that runs next reads these causes.
    fn show_causes(&mut self, causes: u32);

    /// Sends what the ring holds.
    fn send(&mut self);

    /// A frame comes in; whether it was stored.
    fn receive(&mut self, frame: &[u8]) -> bool;

    /// Whether the interrupt line is asserted.
    fn interrupt(&self) -> bool;

    /// Lets time pass until the card's next timer; false if none runs.
    fn wait(&mut self) -> bool;
}

/// Cycles by component.
#[derive(Clone, Copy, Debug)]
pub struct CycleMeter {
    at: u64,
    now: Component,
    /// Spent, by component.
    pub spent: ByComponent,
}

impl Default for CycleMeter {
    fn default() -> CycleMeter {
        CycleMeter {
            at: cycles(),
            now: Component::Idle,
            spent: ByComponent::default(),
        }
    }
}

impl CycleMeter {
    /// From here on, time is `component`'s.
    #[inline]
    pub fn switch(&mut self, component: Component) {
        let at = cycles();
        self.spent[self.now as usize] += at.wrapping_sub(self.at);
        self.at = at;
        self.now = component;
        enter_phase(component);
        if steps::counting() {
            steps::attend(Component::COSTS.contains(&component));
        }
    }

    /// Moves cycles of `from` to `to`, which worked while `from` waited.
    fn shift(&mut self, from: Component, to: Component, cycles: u64) {
        let moved = cycles.min(self.spent[from as usize]);
        self.spent[from as usize] -= moved;
        self.spent[to as usize] += moved;
    }

    /// The packets' cost so far: all but the card's and idle time.
    pub fn costs(&self) -> u64 {
        let costs = Component::COSTS.iter();
        costs.map(|component| self.spent[*component as usize]).sum()
    }
}

/// The card for an engine: the model's time counts for the card, then for the previous
/// component again.
pub(crate) struct Metered<'p, C> {
    card: &'p mut C,
    meter: &'p mut CycleMeter,
}

impl<'p, C: Card> Metered<'p, C> {
    /// The card's time counts for the card.
    pub(crate) fn new(card: &'p mut C, meter: &'p mut CycleMeter) -> Metered<'p, C> {
        Metered { card, meter }
    }

    fn timed<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
        let whose = self.meter.now;
        self.meter.switch(Component::Card);
        let result = work(self.card);
        self.meter.switch(whose);
        result
    }
}

impl<C: Card> Card for Metered<'_, C> {
    fn absorb_writes(&mut self, handler_ran: bool) -> Result<(), Stop> {
        self.timed(|card| card.absorb_writes(handler_ran))
    }

    fn acknowledge(&mut self, mask: CardMask) -> Result<u32, Stop> {
        self.timed(|card| card.acknowledge(mask))
    }

    fn show_causes(&mut self, causes: u32) {
        self.timed(|card| card.show_causes(causes));
    }

    fn send(&mut self) {
        self.timed(C::send);
    }

    fn receive(&mut self, frame: &[u8]) -> bool {
        self.timed(|card| card.receive(frame))
    }

    fn interrupt(&self) -> bool {
        self.card.interrupt()
    }

    fn wait(&mut self) -> bool {
        self.timed(C::wait)
    }
}

/// Processor time of this thread so far.
fn own_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the time; the clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Interrupts and waits in a row after which the loop counts as stuck.
const PATIENCE: u32 = 256;
/// How long dom0 may keep its virtual interrupts disabled while guests wait: in
/// processor time of the waiting thread, which gets no more of it than dom0 does.
const DOM0_PATIENCE: Duration = Duration::from_secs(2);

/// Gives packets to a driver and takes them back, interrupt by interrupt.
pub struct PacketLoop<E, C> {
    /// Where the driver runs.
    pub engine: E,
    /// The card, as the loop reaches it.
    pub card: C,
    /// Cycles by component.
    pub meter: CycleMeter,
    /// Interrupts that dom0's virtual interrupt flag put off.
    pub deferred: u64,
    /// Packets refused because a frame, or the source address, was not their guest's.
    pub foreign: u64,
    put_off_since: Option<Duration>,
    request: Request,
}

impl<E: Engine, C: Card> PacketLoop<E, C> {
    /// A loop that has yet to begin.
    pub fn new(engine: E, card: C) -> PacketLoop<E, C> {
        PacketLoop {
            engine,
            card,
            meter: CycleMeter::default(),
            deferred: 0,
            foreign: 0,
            put_off_since: None,
            request: Request::default(),
        }
    }

    /// Sends `count` packets, traffic sources taking turns, and waits for their
    /// completions. Gives how many were sent: fewer if some were refused.
    pub fn send(&mut self, sources: &mut [TrafficSource<'_>], count: u32) -> Result<u32, Stop> {
        let mut sent = 0;
        let mut refused = 0;
        let mut idle = 0;
        while sent + refused < count {
            let asked = (count - sent - refused).min(REQUESTS as u32);
            let before = self.foreign;
            let accepted = self.send_batch(sources, asked)?;
            sent += accepted;
            refused += (self.foreign - before) as u32;
            let accepted = accepted + (self.foreign - before) as u32;
            if accepted > 0 {
                self.put_off_since = None;
            } else if self.put_off()? {
                continue;
            }
            idle = if accepted == 0 { idle + 1 } else { 0 };
            if idle > PATIENCE {
                self.meter.switch(Component::Idle);
                return Err(Stop::Stuck("the driver takes no packets"));
            }
        }
        self.meter.switch(Component::Idle);
        Ok(sent)
    }

    /// The guests' part of a step: `describe` writes a request.
    pub fn describe<T>(&mut self, describe: impl FnOnce() -> T) -> T {
        self.meter.switch(self.engine.user());
        let described = describe();
        self.meter.switch(Component::Idle);
        described
    }

    /// Sends what `transmit` gives the engine, by itself, and serves the interrupts that follow; its
    /// result.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn send_by(
        &mut self,
        sources: &mut [TrafficSource<'_>],
        transmit: impl FnOnce(&mut E) -> Result<Sent, Stop>,
    ) -> Result<Sent, Stop> {
        self.meter.switch(self.engine.host());
        let sent = transmit(&mut self.engine)?;
        self.meter.switch(Component::Card);
        self.attribute();
        self.card.absorb_writes(false)?;
        self.card.send();
        self.serve_interrupts()?;
        self.meter.switch(self.engine.user());
        self.complete(sources);
        self.meter.switch(Component::Idle);
        Ok(sent)
    }

    /// Sends packets as one batch, each with its guest, and serves the interrupts that follow. `describe`
    /// writes a packet's request, `results` gets each one's, `done` each completion.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn send_packets<P>(
        &mut self,
        packets: &[P],
        guest: impl Fn(&P) -> u32,
        describe: impl Fn(&P, &mut Request),
        results: &mut Vec<Sent>,
        mut done: impl FnMut(Done),
    ) -> Result<(), Stop> {
        for (index, packet) in packets.iter().enumerate() {
            let describe = |request: &mut Request| describe(packet, request);
            self.engine
                .submit_by(index, guest(packet), &mut self.request, describe);
        }
        self.engine.transmit(packets.len() as u32)?;
        results.extend((0..packets.len()).map(|index| self.engine.result(index)));
        self.card.absorb_writes(false)?;
        self.card.send();
        self.serve_interrupts()?;
        (0..TX_DONE)
            .map_while(|_| self.engine.completion())
            .for_each(&mut done);
        Ok(())
    }

    /// Whether dom0 has put an interrupt off; it then gets the processor, for a limited
    /// time.
    fn put_off(&mut self) -> Result<bool, Stop> {
        let Some(since) = self.put_off_since else {
            return Ok(false);
        };
        if own_time().saturating_sub(since) > DOM0_PATIENCE {
            self.meter.switch(Component::Idle);
            return Err(Stop::Stuck("dom0 keeps its virtual interrupts disabled"));
        }
        std::thread::yield_now();
        Ok(true)
    }

    fn send_batch(&mut self, sources: &mut [TrafficSource<'_>], count: u32) -> Result<u32, Stop> {
        self.meter.switch(Component::Card);
        let turns = sources.len();
        let packets: Vec<_> = (0..count as usize)
            .map_while(|turn| sources[turn % turns].prepare())
            .collect();
        self.meter.switch(self.engine.user());
        for (turn, packet) in packets.iter().enumerate() {
            let source = &sources[turn % turns];
            self.engine
                .submit_packet(turn, source, packet, &mut self.request);
        }
        self.meter.switch(self.engine.host());
        let accepted = self.engine.transmit(packets.len() as u32)?;
        self.meter.switch(Component::Card);
        self.attribute();
        // Withdrawn in reverse order, because numbers were given in order.
        for (turn, packet) in packets.iter().enumerate().rev() {
            let source = &mut sources[turn % turns];
            match self.engine.result(turn) {
                Sent::Sent => {}
                Sent::Busy | Sent::NoBuffer | Sent::Down => source.cancel(packet),
                Sent::Foreign | Sent::Spoofed => {
                    self.foreign += 1;
                    source.refused(packet);
                }
                Sent::Invalid => return Err(Stop::Stuck("a request was called malformed")),
            }
        }
        self.card.absorb_writes(false)?;
        self.card.send();
        self.serve_interrupts()?;
        self.meter.switch(self.engine.user());
        self.complete(sources);
        Ok(accepted)
    }

    /// Assigns waits to the components that the engine names.
    fn attribute(&mut self) {
        let (whose, cycles) = self.engine.elsewhere();
        self.meter.shift(self.engine.host(), whose, cycles);
    }

    fn complete(&mut self, sources: &mut [TrafficSource<'_>]) {
        // Not more than a ring holds: dom0 may go on writing while this reads.
        for _ in 0..TX_DONE {
            let Some(done) = self.engine.completion() else {
                break;
            };
            let owner = sources.iter_mut().find(|e| e.flow().number == done.guest);
            if let Some(owner) = owner {
                owner.complete(done.cookie);
            }
        }
    }

    /// Delivers interrupts until the card raises no more, now or after its timers have
    /// run.
    pub(crate) fn serve_interrupts(&mut self) -> Result<(), Stop> {
        for _ in 0..PATIENCE {
            self.meter.switch(Component::Card);
            if !self.card.interrupt() && !self.engine.causes_wait() {
                if !self.card.wait() {
                    self.put_off_since = None;
                    return Ok(());
                }
                continue;
            }
            // The handler must find the causes in ICR.
            self.card.absorb_writes(false)?;
            self.meter.switch(self.engine.host());
            let mut card = Metered::new(&mut self.card, &mut self.meter);
            let ran = self.engine.interrupt(&mut card)?;
            self.meter.switch(Component::Card);
            self.attribute();
            if !ran {
                self.deferred += 1;
                self.put_off_since.get_or_insert_with(own_time);
                return Ok(());
            }
            self.put_off_since = None;
            // Segments that waited for room (runtime/hot/transmit.c).
            self.card.send();
        }
        Err(Stop::Stuck("the interrupt line stays asserted"))
    }

    /// Lets `frames` arrive, and traffic sources take them.
    pub fn receive<'f>(
        &mut self,
        sources: &mut [TrafficSource<'_>],
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<u32, Stop> {
        let stored = self.arrive(sources, frames)?;
        self.check(sources);
        Ok(stored)
    }

    /// The same, and their endpoints account them.
    pub fn receive_streams<'f>(
        &mut self,
        sources: &mut [TrafficSource<'_>],
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<u32, Stop> {
        let stored = self.arrive(sources, frames)?;
        self.meter.switch(self.engine.user());
        sources.iter_mut().for_each(TrafficSource::account);
        self.meter.switch(Component::Card);
        self.check(sources);
        Ok(stored)
    }

    /// The same for sources whose packets somebody else reads ([`TrafficSource::read`]).
    pub fn receive_unread<'f>(
        &mut self,
        sources: &mut [TrafficSource<'_>],
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<u32, Stop> {
        let stored = self.arrive(sources, frames);
        self.meter.switch(Component::Idle);
        stored
    }

    #[inline(always)]
    fn arrive<'f>(
        &mut self,
        sources: &mut [TrafficSource<'_>],
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<u32, Stop> {
        self.meter.switch(Component::Card);
        let mut stored = 0;
        for frame in frames {
            stored += u32::from(self.card.receive(frame));
        }
        self.serve_interrupts()?;
        self.meter.switch(self.engine.user());
        self.engine.deliver(sources)?;
        self.meter.switch(Component::Card);
        Ok(stored)
    }

    fn check(&mut self, sources: &mut [TrafficSource<'_>]) {
        sources.iter_mut().for_each(TrafficSource::check);
        self.meter.switch(Component::Idle);
    }
}
