//! What a live run works with: the hypervisor instance with stages, the card with its
//! timers, guests that receive.

use crate::engines::staged::Staged;
use crate::measure::profile::Component;
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Card, CycleMeter, Engine, Metered, Stop};
use crate::packets::rings::{Request, Sent, TX_DONE};
use crate::packets::round::{incoming, peers};
use crate::traffic::Datagrams;
use crate::traffic::source::{Shape, TrafficSource};
use crate::traffic::tcp::{MSS, Peer};

/// Enough for each of the card's delays and throttles: ITR's largest value is 16.8 ms.
const LONG: u64 = 20_000_000;
/// Interrupts and deliveries after which nothing may be left.
const PATIENCE: u32 = 64;

/// A sender that waits for no acknowledgement: frames come at their times.
fn stream(guest: u32, payload: usize) -> Peer {
    Peer::new(incoming(guest), u32::MAX, payload)
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
    request: Request,
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
            request: Request::default(),
        }
    }

    /// Frames of another size from now on.
    pub fn resize(&mut self, size: usize) {
        self.senders = peers(self.sources.len() as u32, Shape::Frames(size));
    }

    /// TCP segments of full size from now on, of streams that begin anew, or datagrams again.
    pub fn stream(&mut self, streaming: bool) {
        self.stream_of(MSS);
        self.streaming = streaming;
    }

    /// The same of segments with so many bytes; each of less than full size is a write of its own, with PSH.
    pub fn stream_of(&mut self, payload: usize) {
        let guests = 0..self.sources.len() as u32;
        self.streams = guests.map(|guest| stream(guest, payload)).collect();
        self.streaming = true;
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
        self.by_host(Staged::interrupt)
    }

    /// The stage `ack`'s part when the line rises.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn acknowledge(&mut self) -> Result<(), Stop> {
        self.by_host(Staged::acknowledge)
    }

    /// The handler alone; false if dom0 has put it off.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn handle(&mut self) -> Result<bool, Stop> {
        self.by_host(Staged::handle)
    }

    /// The polls alone.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn poll(&mut self) -> Result<(), Stop> {
        self.by_host(Staged::poll)
    }

    #[inline(always)]
    fn by_host<T>(
        &mut self,
        work: impl FnOnce(&mut Staged<'s>, &mut dyn Card) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.meter.switch(Component::Card);
        self.card.absorb_writes(false)?;
        self.meter.switch(self.engine.host());
        let mut card = Metered::new(&mut self.card, &mut self.meter);
        let done = work(&mut self.engine, &mut card);
        self.meter.switch(Component::Card);
        done
    }

    /// A guest sends as many packets in one batch; how many the driver took. The card has
    /// them on the cable at once.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn send(&mut self, guest: u32, count: u32) -> Result<u32, Stop> {
        self.meter.switch(Component::Card);
        let source = &mut self.sources[guest as usize];
        let packets: Vec<_> = (0..count).map_while(|_| source.prepare()).collect();
        self.meter.switch(self.engine.user());
        for (at, packet) in packets.iter().enumerate() {
            source.describe(packet, &mut self.request);
            self.engine.submit(at, guest, &self.request);
        }
        self.meter.switch(self.engine.host());
        let sent = self.engine.transmit(packets.len() as u32)?;
        self.meter.switch(Component::Card);
        // In reverse order, because numbers were given in order.
        for (at, packet) in packets.iter().enumerate().rev() {
            if self.engine.result(at) != Sent::Sent {
                source.cancel(packet);
            }
        }
        self.card.absorb_writes(false)?;
        self.card.send();
        Ok(sent)
    }

    /// Guests see the completions of what they sent; how many there were.
    pub fn complete(&mut self) -> u64 {
        self.meter.switch(self.engine.user());
        let mut completed = 0;
        for _ in 0..TX_DONE {
            let Some(done) = self.engine.completion() else {
                break;
            };
            if let Some(source) = self.sources.get_mut(done.guest as usize) {
                source.complete(done.cookie);
                completed += 1;
            }
        }
        self.meter.switch(Component::Card);
        completed
    }

    /// Frames on the cable that guests have sent, and those that are not as they were sent.
    pub fn sent(&self) -> (u64, u64) {
        let wire = &self.card.sent;
        (wire.packets(), wire.corrupted + wire.strangers)
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
            if !self.line() && !self.engine.causes_wait() {
                self.complete();
                return self.deliver();
            }
            self.interrupt()?;
            self.deliver()?;
        }
        Err(Stop::Stuck("the interrupt line stays asserted"))
    }
}
