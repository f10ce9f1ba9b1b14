//! A round: some thousand packets one way through one path, with their cost.
//! Rounds of different paths take turns, so that noise of the machine hits all.

use serde::{Deserialize, Serialize};

use super::card::OpenCard;
use crate::measure::profile::{ByComponent, Component};
use crate::memory::Machine;
use crate::packets::packet_loop::{Engine, PacketLoop, Stop};
use crate::traffic::source::{Shape, TrafficSource};
use crate::traffic::{Datagrams, Flow, Mac, Sink};

/// Packets between two interrupts, as with interrupt throttling at full speed.
pub const BATCH: u32 = 32;

/// The direction of packets. In results it is whether they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum PacketDirection {
    /// From traffic sources to the wire.
    Send,
    /// From the wire to traffic sources.
    Receive,
}

impl PacketDirection {
    /// What is done with packets, in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            PacketDirection::Send => "sent",
            PacketDirection::Receive => "received",
        }
    }
}

impl From<bool> for PacketDirection {
    fn from(sent: bool) -> PacketDirection {
        match sent {
            true => PacketDirection::Send,
            false => PacketDirection::Receive,
        }
    }
}

impl From<PacketDirection> for bool {
    fn from(direction: PacketDirection) -> bool {
        direction == PacketDirection::Send
    }
}

/// The result of a round. Plain integers: it crosses processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// Packets requested; a segment that the card splits counts once.
    pub packets: u64,
    /// Frames on the wire.
    pub frames: u64,
    /// Bytes of them, without FCS.
    pub bytes: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Frames that arrived changed, or at the wrong place.
    pub corrupted: u64,
    /// Interrupts put off by dom0's virtual interrupt flag.
    pub deferred: u64,
    /// Packets refused because a frame was not their guest's.
    pub foreign: u64,
    /// Cycles by the component that ran, of typical batches: the nine of ten that cost
    /// least. A batch that other load of the machine disturbed does not show which
    /// component took the cycles.
    pub spent: ByComponent,
    /// Cycles a packet, without the card's: median of batches.
    pub median: f64,
    /// A tenth of the batches were below.
    pub low: f64,
    /// A tenth of the batches were above.
    pub high: f64,
}

/// Runs rounds on one path: its packet loop, and the traffic sources on it.
pub struct Runner<'m, E> {
    /// The packet loop.
    pub packet_loop: PacketLoop<E, OpenCard<'m>>,
    /// The traffic sources.
    pub sources: Vec<TrafficSource<'m>>,
    peers: Vec<Datagrams>,
    numbers: Vec<u64>,
    shape: Shape,
}

/// The Ethernet address of guest `number`.
pub fn guest_mac(number: u32) -> Mac {
    [0x02, 0x54, 0x57, 0x49, 0x4e, number as u8]
}

/// The Ethernet address at the other end of the cable.
pub const PEER: Mac = [0x02, 0x50, 0x45, 0x45, 0x52, 0x00];

pub(crate) fn outgoing(number: u32) -> Flow {
    Flow {
        number,
        source: guest_mac(number),
        destination: PEER,
    }
}

pub(crate) fn incoming(number: u32) -> Flow {
    Flow {
        number,
        source: PEER,
        destination: guest_mac(number),
    }
}

/// Traffic sources of guests 0 to `guests` - 1.
pub fn sources(machine: &Machine, guests: u32, shape: Shape) -> Vec<TrafficSource<'_>> {
    (0..guests)
        .map(|number| {
            let memory = machine.sizes().guest(number);
            TrafficSource::new(machine, outgoing(number), memory, shape, guests as usize)
        })
        .collect()
}

/// Senders to guests 0 to `guests` - 1; segments arrive split, as full frames.
pub(crate) fn peers(guests: u32, shape: Shape) -> Vec<Datagrams> {
    let size = match shape {
        Shape::Frames(size) => size,
        Shape::Segments(_) => crate::traffic::LONGEST,
    };
    (0..guests)
        .map(|number| Datagrams::new(incoming(number), size))
        .collect()
}

/// The part of batches that is typical.
const TYPICAL: f64 = 0.9;

/// The cost of a batch.
struct Batch {
    /// Cycles a packet, without the card's.
    cost: f64,
    /// Cycles by the component that ran.
    spent: ByComponent,
}

impl Batch {
    fn new(before: &ByComponent, after: &ByComponent, packets: u32) -> Batch {
        let spent: ByComponent = std::array::from_fn(|i| after[i] - before[i]);
        let costs = Component::COSTS.iter().map(|cost| spent[*cost as usize]);
        let cost = costs.sum::<u64>() as f64 / f64::from(packets);
        Batch { cost, spent }
    }
}

/// The counts before a round, to compute what it adds.
struct Before {
    deferred: u64,
    foreign: u64,
    arrived: (u64, u64),
    corrupted: u64,
}

impl<'m, E: Engine> Runner<'m, E> {
    /// A runner for packets of that shape.
    pub fn new(
        engine: E,
        card: OpenCard<'m>,
        sources: Vec<TrafficSource<'m>>,
        shape: Shape,
    ) -> Self {
        let guests = sources.len() as u32;
        Runner {
            packet_loop: PacketLoop::new(engine, card),
            peers: peers(guests, shape),
            numbers: vec![0; guests as usize],
            sources,
            shape,
        }
    }

    /// Changes the packets' shape; the loop and its engine stay.
    pub fn reshape(&mut self, card: OpenCard<'m>, sources: Vec<TrafficSource<'m>>, shape: Shape) {
        self.peers = peers(sources.len() as u32, shape);
        self.numbers = vec![0; sources.len()];
        self.packet_loop.card = card;
        self.sources = sources;
        self.shape = shape;
    }

    /// Runs a round.
    pub fn run(&mut self, direction: PacketDirection, packets: u64) -> Result<Round, Stop> {
        let before = self.before(direction);
        let mut batches = Vec::with_capacity((packets / u64::from(BATCH) + 1) as usize);
        let mut done = 0;
        let mut wanted = 0;
        while done < packets {
            let count = (packets - done).min(u64::from(BATCH)) as u32;
            let spent = self.packet_loop.meter.spent;
            wanted += match direction {
                PacketDirection::Send => self.send(count)?,
                PacketDirection::Receive => self.receive(count)?,
            };
            batches.push(Batch::new(&spent, &self.packet_loop.meter.spent, count));
            done += u64::from(count);
        }
        Ok(self.summary(direction, packets, wanted, &before, &mut batches))
    }

    /// Sends; gives how many frames that makes.
    fn send(&mut self, count: u32) -> Result<u64, Stop> {
        let sent = self.packet_loop.send(&mut self.sources, count)?;
        Ok(u64::from(sent) * self.frames_a_packet())
    }

    fn frames_a_packet(&self) -> u64 {
        match self.shape {
            Shape::Frames(_) => 1,
            Shape::Segments(payload) => {
                payload.div_ceil(crate::traffic::source::SEGMENT_SIZE.into()) as u64
            }
        }
    }

    fn receive(&mut self, count: u32) -> Result<u64, Stop> {
        let turns = self.peers.len();
        let frames: Vec<Vec<u8>> = (0..count as usize)
            .map(|turn| {
                let flow = turn % turns;
                let frame = self.peers[flow].finished(self.numbers[flow]).to_vec();
                self.numbers[flow] += 1;
                frame
            })
            .collect();
        let frames = frames.iter().map(Vec::as_slice);
        self.packet_loop.receive(&mut self.sources, frames)?;
        Ok(u64::from(count))
    }

    /// Frames and bytes that arrived where they should, and corrupted ones.
    fn arrived(&self, direction: PacketDirection) -> ((u64, u64), u64) {
        let total = |sinks: &mut dyn Iterator<Item = &Sink>| {
            sinks.fold(((0, 0), 0), |((frames, bytes), bad), sink| {
                let sums = (frames + sink.packets(), bytes + sink.bytes());
                (sums, bad + sink.corrupted + sink.strangers)
            })
        };
        match direction {
            PacketDirection::Send => total(&mut std::iter::once(&self.packet_loop.card.sent)),
            PacketDirection::Receive => total(&mut self.sources.iter().map(|e| &e.received)),
        }
    }

    fn before(&self, direction: PacketDirection) -> Before {
        let (arrived, corrupted) = self.arrived(direction);
        Before {
            deferred: self.packet_loop.deferred,
            foreign: self.packet_loop.foreign,
            arrived,
            corrupted,
        }
    }

    fn summary(
        &self,
        direction: PacketDirection,
        packets: u64,
        wanted: u64,
        before: &Before,
        batches: &mut [Batch],
    ) -> Round {
        let ((frames, bytes), corrupted) = self.arrived(direction);
        let frames = frames - before.arrived.0;
        batches.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let place = |part: f64| ((batches.len() - 1) as f64 * part) as usize;
        let at = |part: f64| batches[place(part)].cost;
        let typical = &batches[..=place(TYPICAL)];
        Round {
            packets,
            frames,
            bytes: bytes - before.arrived.1,
            lost: wanted.saturating_sub(frames),
            corrupted: corrupted - before.corrupted,
            deferred: self.packet_loop.deferred - before.deferred,
            foreign: self.packet_loop.foreign - before.foreign,
            spent: std::array::from_fn(|i| typical.iter().map(|batch| batch.spent[i]).sum()),
            median: at(0.5),
            low: at(0.1),
            high: at(TYPICAL),
        }
    }
}
