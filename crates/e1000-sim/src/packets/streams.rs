//! TCP streams from the wire to guests, with their acknowledgements: a closed loop, so that
//! what a packet costs in both directions is counted together.
//!
//! ```text
//! peers' segments ─> card ─> interrupt, poll ─> guests' endpoints
//!      ^                                              │ each guest's acknowledgements,
//!      └── card <── hot_transmit <────────────────────┘ one batch, or templates
//! ```

use super::card::OpenCard;
use super::packet_loop::{Engine, PacketLoop, Stop};
use super::rings::{Request, Sent};
use super::round::{guest_mac, incoming, sources};
use crate::memory::Machine;
use crate::traffic::source::{Shape, TrafficSource};
use crate::traffic::tcp::{Acknowledge, Endpoint, Peer};

/// What moves on the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Guests, each with one stream.
    pub guests: u32,
    /// Segments of a stream that may be on the way.
    pub window: u32,
    /// Payload of a segment.
    pub payload: usize,
    /// Segments between two interrupts, of all streams.
    pub burst: u32,
}

/// What a round came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Segments that arrived.
    pub segments: u64,
    /// Packets that guests got of them.
    pub packets: u64,
    /// Acknowledgements on the wire.
    pub acknowledgements: u64,
    /// Cycles, without the card's.
    pub cycles: u64,
    /// What arrived changed, out of order, or not at all.
    pub wrong: u64,
}

impl Streamed {
    fn since(self, before: Streamed) -> Streamed {
        Streamed {
            segments: self.segments - before.segments,
            packets: self.packets - before.packets,
            acknowledgements: self.acknowledgements - before.acknowledgements,
            cycles: self.cycles - before.cycles,
            wrong: self.wrong - before.wrong,
        }
    }
}

/// Sends a guest's template of acknowledgements: its result.
pub type SendTemplate<E> = fn(&mut E, u32, &Request) -> Result<Sent, Stop>;

/// Streams through an engine whose guests are attached.
pub struct Streams<'m, E> {
    /// The loop and its engine.
    pub packet_loop: PacketLoop<E, OpenCard<'m>>,
    /// The guests.
    pub sources: Vec<TrafficSource<'m>>,
    peers: Vec<Peer>,
    load: Load,
    template: Option<SendTemplate<E>>,
    request: Request,
}

impl<'m, E: Engine> Streams<'m, E> {
    /// Streams that have yet to begin; `attach` is told of each guest.
    pub fn new(
        machine: &'m Machine,
        mut engine: E,
        card: OpenCard<'m>,
        load: Load,
        mut attach: impl FnMut(&mut E, &TrafficSource<'m>),
    ) -> Streams<'m, E> {
        let mut sources = sources(machine, load.guests, Shape::Frames(crate::traffic::LONGEST));
        for source in &mut sources {
            debug_assert_eq!(source.flow().source, guest_mac(source.flow().number));
            source.endpoint = Some(Endpoint::new(source.flow(), Acknowledge::EverySecond));
            attach(&mut engine, source);
        }
        let peers = (0..load.guests).map(|n| Peer::new(incoming(n), load.window, load.payload));
        Streams {
            packet_loop: PacketLoop::new(engine, card),
            peers: peers.collect(),
            sources,
            load,
            template: None,
            request: Request::default(),
        }
    }

    /// Changes when guests acknowledge.
    pub fn set_acknowledge(&mut self, acknowledge: Acknowledge) {
        let endpoints = self.sources.iter_mut().filter_map(|s| s.endpoint.as_mut());
        endpoints.for_each(|endpoint| endpoint.set_acknowledge(acknowledge));
    }

    /// Guests send acknowledgements that are due at once by templates; None: each by itself.
    pub fn set_template(&mut self, template: Option<SendTemplate<E>>) {
        self.template = template;
    }

    /// Moves at least `segments`, a burst at a time.
    ///
    /// # Errors
    /// [`Stop`], also if a stream does not go on.
    pub fn run(&mut self, segments: u64) -> Result<Streamed, Stop> {
        let before = self.so_far();
        while self.so_far().since(before).segments < segments {
            if self.burst()? == 0 {
                return Err(Stop::Stuck("no window opens"));
            }
        }
        let mut round = self.so_far().since(before);
        // Of the stream's end nobody is waiting for more than a burst.
        let waiting = self.peers.iter().map(Peer::outstanding).sum::<u32>();
        round.wrong += u64::from(waiting > self.load.burst * self.load.payload as u32);
        Ok(round)
    }

    /// One burst of segments, and what guests answer; gives how many there were.
    fn burst(&mut self) -> Result<u32, Stop> {
        let each = (self.load.burst / self.load.guests).max(1);
        let frames: Vec<Vec<u8>> = self
            .peers
            .iter_mut()
            .flat_map(|peer| (0..each).map_while(|_| peer.segment()))
            .collect();
        let arriving = frames.iter().map(Vec::as_slice);
        self.packet_loop
            .receive_streams(&mut self.sources, arriving)?;
        // The window stays shut if one segment is not acknowledged: its timer runs out.
        if frames.is_empty() || self.load.window < 2 {
            let endpoints = self.sources.iter_mut().filter_map(|s| s.endpoint.as_mut());
            endpoints.for_each(Endpoint::hurry);
        }
        self.acknowledge()?;
        Ok(frames.len() as u32)
    }

    fn acknowledge(&mut self) -> Result<(), Stop> {
        for guest in 0..self.sources.len() {
            let source = &mut self.sources[guest..=guest];
            let due = source[0].endpoint.as_ref().map_or(0, Endpoint::due) as u32;
            match self.template {
                Some(send) if due > 1 => self.by_template(guest, send)?,
                _ if due > 0 => _ = self.packet_loop.send(source, due)?,
                _ => {}
            }
            let number = self.sources[guest].flow().number as usize;
            let arrived = self.packet_loop.card.sent.flows[number];
            self.peers[guest].acknowledged(arrived.acknowledged);
        }
        Ok(())
    }

    /// A guest's acknowledgements, as many in a template as it has room for.
    fn by_template(&mut self, guest: usize, send: SendTemplate<E>) -> Result<(), Stop> {
        loop {
            let source = &mut self.sources[guest];
            let due = source.endpoint.as_ref().map_or(0, Endpoint::due);
            if due < 2 {
                let source = &mut self.sources[guest..=guest];
                self.packet_loop.send(source, due as u32)?;
                return Ok(());
            }
            let packet = source.prepare().ok_or(Stop::Stuck("no slot is free"))?;
            let request = &mut self.request;
            self.packet_loop.describe(|| {
                source.describe(&packet, request);
                let endpoint = source.endpoint.as_mut();
                request.acks = endpoint.map_or(0, |end| end.further(&mut request.ack)) as u32;
            });
            let number = source.flow().number;
            let source = &mut self.sources[guest..=guest];
            let sent = self
                .packet_loop
                .send_by(source, |engine| send(engine, number, request))?;
            // The rings have room for all that a window can have due.
            if sent != Sent::Sent {
                return Err(Stop::Stuck("the driver takes no template"));
            }
        }
    }

    fn so_far(&self) -> Streamed {
        let wire = &self.packet_loop.card.sent;
        let endpoints = || self.sources.iter().filter_map(|s| s.endpoint.as_ref());
        let received = || self.sources.iter().map(|source| &source.received);
        Streamed {
            segments: endpoints().map(|endpoint| endpoint.segments).sum(),
            packets: endpoints().map(|endpoint| endpoint.packets).sum(),
            acknowledgements: wire.flows.iter().map(|flow| flow.acknowledgements).sum(),
            cycles: self.packet_loop.meter.costs(),
            wrong: wire.corrupted
                + wire.strangers
                + endpoints()
                    .map(|endpoint| endpoint.out_of_order)
                    .sum::<u64>()
                + received()
                    .map(|sink| {
                        let missing = sink.flows.iter().map(|flow| flow.missing);
                        sink.corrupted + sink.strangers + missing.sum::<u64>()
                    })
                    .sum::<u64>(),
        }
    }
}
