//! What a real processor does for sending: guests give packets, it hands them to cards, and gives its own
//! card's to its driver ([`super::handing`]).
//!
//! ```text
//! flows ─ give ─> guests' queues ─ hand ─> cards' queues ─ drive ─> driver ─ card ─> check
//!   └─ each has a window of packets on the way <──────── sent ───────────────────────────┘
//! ```
//!
//! What a driver had when it was aborted is lost; its senders learn that it is not on the way any more
//! ([`Sender::forget`]).

use super::exchange::Exchange;
use super::handing::{CARD_ROOM, FLOWS, Hander, Outgoing, Outward, WEIGHT};
use super::queues::{ProcessorId, Spread};
use crate::inject::service::Service;
use crate::packets::packet_loop::Stop;
use crate::packets::rings::Sent;
use crate::packets::round::outgoing;
use crate::traffic::{Datagrams, Flow};

/// Batches in a row of which the driver takes nothing.
const PATIENCE: u32 = 256;

/// A flow whose guest's part runs on this processor.
struct Outflow {
    frames: Datagrams,
    number: u32,
    guest: u32,
    card: u32,
    /// Packets so far.
    given: u64,
}

/// A processor's end.
pub struct Sender<'x> {
    outward: &'x Outward,
    /// Its part in handing.
    pub hander: Hander<'x>,
    card: u32,
    flows: Vec<Outflow>,
    /// Packets of a flow that may be on the way.
    window: u64,
    /// From its card's queue, for its driver.
    pending: Vec<Outgoing>,
    /// Packets that its driver has, by flow.
    in_flight: Vec<u64>,
    /// Packets that the driver called wrong.
    pub refused: u64,
    idle: u32,
}

impl<'x> Sender<'x> {
    /// A processor whose card has its number, and that has so many flows, by turns of cards and guests.
    /// Frames have `size` bytes.
    ///
    /// # Panics
    /// If there are more flows than [`FLOWS`].
    pub(super) fn new(
        exchange: &'x Exchange,
        spread: Spread,
        number: ProcessorId,
        (flows, size): (u32, usize),
    ) -> Sender<'x> {
        let all = (flows * spread.processors) as usize;
        assert!(all <= FLOWS, "{all} flows, of {FLOWS}");
        let flow = |turn: u32| {
            let guest = turn / spread.processors % spread.guests;
            let number = number.0 * flows + turn;
            let flow = Flow {
                number,
                ..outgoing(guest)
            };
            Outflow {
                frames: Datagrams::new(flow, size),
                number,
                guest,
                card: turn % spread.processors,
                given: 0,
            }
        };
        Sender {
            outward: &exchange.outward,
            hander: Hander::new(&exchange.outward, spread, number, spread.processors),
            card: number.0,
            flows: (0..flows).map(flow).collect(),
            // A card has those of as many flows as each processor has.
            window: (CARD_ROOM as u64 / u64::from(flows)).max(1),
            pending: Vec::with_capacity(WEIGHT),
            in_flight: vec![0; FLOWS],
            refused: 0,
            idle: 0,
        }
    }

    /// So many processors take part from now on, with their cards.
    pub(super) fn among(&mut self, processors: u32) {
        self.hander.spread.processors = processors;
        for (turn, flow) in (0..).zip(&mut self.flows) {
            flow.card = turn % processors;
        }
    }

    /// Guests give what their windows allow, up to packet `most` of each flow; what is in this
    /// processor's queues is handed. Whether there was anything.
    pub(super) fn give_and_hand(&mut self, most: u64) -> bool {
        let mut any = false;
        for flow in &mut self.flows {
            let limit = most.min(self.outward.sent(flow.number) + self.window);
            while flow.given < limit {
                let frame = flow.frames.finished(flow.given);
                let queue = self.hander.spread.queue_of(flow.guest, frame);
                let packet = Outgoing::new(flow.card, flow.guest, flow.number, frame);
                if self.outward.put(queue, &packet).is_err() {
                    break;
                }
                flow.given += 1;
                any = true;
            }
        }
        self.hander.serve() || any
    }

    /// Its driver gets what waits in its card's queue; whether there was anything.
    ///
    /// # Errors
    /// The driver stopped: what it had is lost.
    pub(super) fn drive(&mut self, service: &mut Service<'_>) -> Result<bool, Stop> {
        let room = WEIGHT - self.pending.len();
        self.outward.take(self.card, &mut self.pending, room);
        if self.pending.is_empty() {
            return Ok(false);
        }
        for packet in &self.pending {
            self.in_flight[packet.flow as usize] += 1;
        }
        let mut results = Vec::with_capacity(self.pending.len());
        let Sender {
            outward,
            in_flight,
            pending,
            ..
        } = self;
        let sent = service.packet_loop.send_packets(
            pending,
            |packet| packet.guest,
            Outgoing::describe,
            &mut results,
            |done| {
                outward.note_sent(done.cookie);
                if let Some(flying) = in_flight.get_mut(done.cookie as usize) {
                    *flying = flying.saturating_sub(1);
                }
            },
        );
        if sent.is_err() {
            self.pending.clear();
        }
        sent?;
        self.settle(&results)
    }

    /// What the driver did not take waits, in order.
    fn settle(&mut self, results: &[Sent]) -> Result<bool, Stop> {
        let before = self.pending.len();
        let mut results = results.iter();
        let (outward, in_flight, refused) = (self.outward, &mut self.in_flight, &mut self.refused);
        self.pending.retain(|packet| {
            let flying = &mut in_flight[packet.flow as usize];
            match results.next() {
                Some(Sent::Sent) => false,
                Some(Sent::Invalid | Sent::Foreign | Sent::Spoofed) => {
                    *refused += 1;
                    *flying -= 1;
                    outward.note_sent(packet.flow.into());
                    false
                }
                Some(Sent::Busy | Sent::NoBuffer | Sent::Down) | None => {
                    *flying -= 1;
                    true
                }
            }
        });
        self.idle = match self.pending.len() == before {
            true => self.idle + 1,
            false => 0,
        };
        match self.idle > PATIENCE {
            true => Err(Stop::Stuck("the driver takes no packets")),
            false => Ok(true),
        }
    }

    /// The driver was aborted: what it had is not on the way any more. How many packets these were.
    pub fn forget(&mut self) -> u64 {
        let mut lost = 0;
        for (flow, flying) in (0..).zip(&mut self.in_flight) {
            lost += *flying;
            for _ in 0..std::mem::take(flying) {
                self.outward.note_sent(flow);
            }
        }
        lost
    }
}
