//! What a live run works with: the hypervisor instance with stages, the card with its
//! timers, guests that receive.

use crate::engines::staged::Staged;
use crate::measure::profile::Component;
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Card, CycleMeter, Engine, Metered, Stop};
use crate::packets::round::{incoming, peers};
use crate::traffic::Datagrams;
use crate::traffic::source::{Shape, TrafficSource};
use crate::traffic::tcp::{MSS, Peer};

/// Enough for each of the card's delays and throttles: ITR's largest value is 16.8 ms.
const LONG: u64 = 20_000_000;
/// Interrupts and deliveries after which nothing may be left.
const PATIENCE: u32 = 64;

/// A sender that waits for no acknowledgement: frames come at their times.
fn stream(guest: u32) -> Peer {
    Peer::new(incoming(guest), u32::MAX, MSS)
}

/// The parts of a machine that receives.
pub struct Rig<'s> {
    /// The driver, and the stages around it.
    pub engine: Staged<'s>,
    card: OpenCard<'s>,
    sources: Vec<TrafficSource<'s>>,
    senders: Vec<Datagrams>,
    numbers: Vec<u64>,
    /// Of TCP segments, in place of datagrams, while `streaming`.
    streams: Vec<Peer>,
    streaming: bool,
    meter: CycleMeter,
}

impl<'s> Rig<'s> {
    /// A rig whose guests get frames of `size` bytes.
    pub fn new(
        engine: Staged<'s>,
        card: OpenCard<'s>,
        sources: Vec<TrafficSource<'s>>,
        size: usize,
    ) -> Rig<'s> {
        Rig {
            engine,
            card,
            senders: peers(sources.len() as u32, Shape::Frames(size)),
            numbers: vec![0; sources.len()],
            streams: Vec::new(),
            streaming: false,
            sources,
            meter: CycleMeter::default(),
        }
    }

    /// Frames of another size from now on.
    pub fn resize(&mut self, size: usize) {
        self.senders = peers(self.sources.len() as u32, Shape::Frames(size));
    }

    /// TCP segments of full size from now on, of streams that begin anew, or datagrams again.
    pub fn stream(&mut self, streaming: bool) {
        self.streaming = streaming;
        self.streams = (0..self.sources.len() as u32).map(stream).collect();
    }

    /// A guest's next frame arrives; whether the card had room for it.
    pub fn arrive(&mut self, guest: u32) -> bool {
        if self.streaming {
            let segment = self.streams[guest as usize].segment();
            return segment.is_some_and(|segment| self.card.receive(&segment));
        }
        let number = &mut self.numbers[guest as usize];
        let frame = self.senders[guest as usize].finished(*number);
        *number += 1;
        self.card.receive(frame)
    }

    /// Packets that a guest has got.
    pub fn received(&self, guest: u32) -> u64 {
        self.sources[guest as usize].received.packets()
    }

    /// Packets that were not as they were sent.
    pub fn corrupted(&self) -> u64 {
        let bad = |s: &TrafficSource<'_>| s.received.corrupted + s.received.strangers;
        self.sources.iter().map(bad).sum()
    }

    /// The card's time.
    pub fn card_time(&self) -> u64 {
        self.card.now()
    }

    /// Lets the card's time pass.
    pub fn tick(&mut self, nanoseconds: u64) {
        self.card.tick(nanoseconds);
    }

    /// How long until the card does something by itself.
    pub fn card_event(&self) -> Option<u64> {
        self.card.next_event()
    }

    /// Whether the card interrupts.
    pub fn line(&self) -> bool {
        self.card.interrupt()
    }

    /// Lets the card's delays pass.
    pub fn let_it_interrupt(&mut self) {
        self.tick(LONG);
    }

    /// Handler and polls; false if dom0 has put it off.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn interrupt(&mut self) -> Result<bool, Stop> {
        self.meter.switch(Component::Card);
        self.card.absorb_writes(false)?;
        self.meter.switch(self.engine.host());
        let mut card = Metered::new(&mut self.card, &mut self.meter);
        let ran = self.engine.interrupt(&mut card);
        self.meter.switch(Component::Card);
        ran
    }

    /// Guests that are due take their packets.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn deliver(&mut self) -> Result<(), Stop> {
        self.meter.switch(self.engine.user());
        let delivered = self.engine.deliver(&mut self.sources);
        self.meter.switch(Component::Card);
        self.sources.iter_mut().for_each(TrafficSource::check);
        delivered
    }

    /// Cycles of this processor so far, without the card's.
    pub fn cycles(&self) -> u64 {
        self.meter.costs()
    }

    /// Lets everything come to an end.
    ///
    /// # Errors
    /// The driver stopped, or does not come to an end.
    pub fn settle(&mut self) -> Result<(), Stop> {
        for _ in 0..PATIENCE {
            self.let_it_interrupt();
            if !self.line() {
                return self.deliver();
            }
            self.interrupt()?;
            self.deliver()?;
        }
        Err(Stop::Stuck("the interrupt line stays asserted"))
    }
}
