//! The stage `bridge`: packets from guest to guest, and guests that lie about who they are,
//! name others' memory, flood one guest or all. Nothing of it reaches the wire or costs the
//! others a packet; without stages the path is the plain one.

use std::collections::HashSet;

use e1000_sim::dom0::job::Look;
use e1000_sim::engines::staged::Staged;
use e1000_sim::packets::packet_loop::{Card, Engine, PacketLoop, Stop};
use e1000_sim::packets::rings::{Fragment, Request, Sent};
use e1000_sim::packets::round::{PEER, PacketDirection, Runner, guest_mac};
use e1000_sim::paths::{PacketPath, Paths, Work};
use e1000_sim::stages::bridge::STORM;
use e1000_sim::stages::{Stage, Stages, local};
use e1000_sim::system::System;
use e1000_sim::traffic::source::{HEADER_COPY, Shape, TrafficSource};
use e1000_sim::traffic::{Datagrams, Flow, Mac};
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "common/system.rs"]
mod system;
#[path = "common/turn.rs"]
mod turn;

use system::each_alone;

const GUESTS: u32 = 4;
const FRAME: usize = 1000;
const BROADCAST: Mac = [0xff; 6];

fn limits() -> Limits {
    Limits::of_seconds(60)
}

type Test = fn(&System<'_>);

#[test]
fn guests_and_a_bridge() {
    let _turn = turn::turn();
    let tests: [(&str, Test); 6] = [
        ("between guests", between_guests),
        ("spoofed", spoofed),
        ("anothers memory", anothers_memory),
        ("flood", flood),
        ("storm", storm),
        ("unfit", unfit),
    ];
    each_alone(Scheme::Stlb, limits, &tests, |system, test| test(system));
}

struct Guests<'s> {
    runner: Runner<'s, Staged<'s>>,
    system: &'s System<'s>,
}

impl<'s> Guests<'s> {
    fn new(system: &'s System<'s>) -> Guests<'s> {
        let stages = Stages::of([Stage::Bridge]);
        let engine = system.staged(limits(), GUESTS, stages);
        let engine = engine.unwrap_or_else(|error| panic!("{error}"));
        let runner = system.staged_runner(engine, GUESTS, Shape::Frames(FRAME));
        let runner = runner.unwrap_or_else(|error| panic!("{error}"));
        Guests { runner, system }
    }

    fn engine(&mut self) -> &mut Staged<'s> {
        &mut self.runner.packet_loop.engine
    }

    /// A guest's request for packet `number` of its flow, whose payload is in its memory.
    fn request(&self, guest: u32, source: Mac, destination: Mac, number: u64) -> Request {
        let flow = Flow {
            number: guest,
            source,
            destination,
        };
        let frame = Datagrams::new(flow, FRAME).make(number).to_vec();
        let at = self.system.machine().sizes().guest(guest).start;
        let (header, rest) = frame.split_at(HEADER_COPY);
        self.system.machine().write(at, rest).expect("its memory");
        let mut request = Request {
            cookie: 7,
            guest,
            header_length: HEADER_COPY as u16,
            fragments: 1,
            ..Request::default()
        };
        request.header[..HEADER_COPY].copy_from_slice(header);
        request.fragment[0] = Fragment::new(at, rest.len() as u32);
        (request.checksum_start, request.checksum_offset) = Datagrams::CHECKSUM;
        request
    }

    /// Submits one request by itself.
    fn send(&mut self, guest: u32, request: &Request) -> Sent {
        let engine = self.engine();
        engine.submit(0, guest, request);
        engine.transmit(1).unwrap_or_else(|stop| panic!("{stop}"));
        let sent = engine.result(0);
        self.card_works().unwrap_or_else(|stop| panic!("{stop}"));
        sent
    }

    /// The card sends, and interrupts until it has no reason to.
    fn card_works(&mut self) -> Result<(), Stop> {
        let PacketLoop { engine, card, .. } = &mut self.runner.packet_loop;
        card.absorb_writes(false)?;
        card.send();
        while card.interrupt() || card.wait() {
            card.absorb_writes(false)?;
            if card.interrupt() {
                engine.interrupt(card)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self) {
        let Runner {
            packet_loop,
            sources,
            ..
        } = &mut self.runner;
        let delivered = packet_loop.engine.deliver(sources);
        delivered.unwrap_or_else(|stop| panic!("{stop}"));
        sources.iter_mut().for_each(TrafficSource::check);
    }

    /// Packets that a guest got, all of them whole.
    fn received(&self, guest: u32) -> u64 {
        let sink = &self.runner.sources[guest as usize].received;
        assert_eq!((sink.corrupted, sink.strangers), (0, 0), "{:?}", sink.first);
        sink.packets()
    }

    /// What goes to the wire and comes from there is as without a bridge.
    fn others_are_served(&mut self) {
        for direction in [PacketDirection::Send, PacketDirection::Receive] {
            let round = self.runner.run(direction, 64);
            let round = round.unwrap_or_else(|stop| panic!("{direction:?}: {stop}"));
            assert_eq!((round.frames, round.lost, round.corrupted), (64, 0, 0));
        }
    }

    fn on_the_wire(&self) -> u64 {
        self.runner.packet_loop.card.sent.packets()
    }
}

fn between_guests(system: &System<'_>) {
    let mut guests = Guests::new(system);
    for number in 0..10 {
        let request = guests.request(0, guest_mac(0), guest_mac(1), number);
        assert_eq!(guests.send(0, &request), Sent::Sent);
        let done = guests.engine().completion().expect("it is sent");
        assert_eq!((done.guest, done.cookie), (0, 7));
    }
    assert_eq!(guests.engine().completion(), None);
    guests.deliver();
    assert_eq!((guests.received(1), guests.received(2)), (10, 0));
    assert_eq!(guests.runner.sources[1].received.flows[0].missing, 0);
    assert_eq!(guests.on_the_wire(), 0);
    let counts = guests.engine().counts();
    let (bridge, local) = (counts.bridge.expect("on"), counts.local.expect("on"));
    assert_eq!((bridge.local, local.queued, local.taken), (10, 10, 10));
    guests.others_are_served();
}

fn spoofed(system: &System<'_>) {
    let mut guests = Guests::new(system);
    for (source, to) in [
        (guest_mac(1), PEER),
        (PEER, guest_mac(1)),
        (BROADCAST, guest_mac(1)),
    ] {
        let request = guests.request(0, source, to, 0);
        assert_eq!(guests.send(0, &request), Sent::Spoofed);
    }
    // A frame that comes in with a guest's address as its source.
    let mut frame = Datagrams::new(
        Flow {
            number: 0,
            source: guest_mac(2),
            destination: guest_mac(1),
        },
        FRAME,
    );
    let frame = frame.finished(0).to_vec();
    let Runner {
        packet_loop,
        sources,
        ..
    } = &mut guests.runner;
    let stored = packet_loop.receive(sources, std::iter::once(&frame[..]));
    assert_eq!(stored.ok(), Some(1));
    assert_eq!((0..GUESTS).map(|g| guests.received(g)).sum::<u64>(), 0);
    assert_eq!(guests.on_the_wire(), 0);
    let bridge = guests.engine().counts().bridge.expect("on");
    assert_eq!(bridge.spoofed, 4);
    guests.others_are_served();
}

fn anothers_memory(system: &System<'_>) {
    let mut guests = Guests::new(system);
    let mut request = guests.request(0, guest_mac(0), guest_mac(1), 0);
    let victim = system.machine().sizes().guest(2).start;
    for address in [victim, 0, u64::MAX - 64] {
        request.fragment[0] = Fragment::new(address, 64);
        assert_eq!(guests.send(0, &request), Sent::Foreign);
        assert_eq!(guests.engine().completion(), None);
    }
    // Past the last address: no memory at all.
    request.fragment[0] = Fragment::new(u64::MAX - 10, 64);
    guests.send(0, &request);
    let counts = guests.engine().counts().local.expect("on");
    assert_eq!((counts.foreign, counts.unfit, counts.queued), (3, 1, 0));
    guests.deliver();
    assert_eq!((guests.received(1), guests.on_the_wire()), (0, 0));
    guests.others_are_served();
}

/// A guest that is never scheduled; and its flood costs others nothing.
fn flood(system: &System<'_>) {
    let mut guests = Guests::new(system);
    let request = guests.request(0, guest_mac(0), guest_mac(1), 0);
    for _ in 0..1000 {
        assert_eq!(guests.send(0, &request), Sent::Sent);
        assert!(guests.engine().completion().is_some());
    }
    let other = guests.request(2, guest_mac(2), guest_mac(3), 0);
    assert_eq!(guests.send(2, &other), Sent::Sent);
    guests.engine().completion();
    let counts = guests.engine().counts().local.expect("on");
    let room = local::QUEUE as u64;
    assert_eq!((counts.queued, counts.dropped), (room + 1, 1000 - room));
    guests.deliver();
    assert_eq!((guests.received(1), guests.received(3)), (room, 1));
    guests.others_are_served();
}

/// Far more packets for all than a source may send at once.
fn storm(system: &System<'_>) {
    let mut guests = Guests::new(system);
    guests.engine().play_time();
    let burst = u64::from(STORM.burst);
    let request = guests.request(0, guest_mac(0), BROADCAST, 0);
    for _ in 0..2000 {
        assert_eq!(guests.send(0, &request), Sent::Sent);
    }
    let counts = guests.engine().counts().bridge.expect("on");
    assert_eq!((counts.group, counts.storm), (burst, 2000 - burst));
    guests.deliver();
    assert_eq!(guests.received(0), 0, "not back to its sender");
    assert_eq!((guests.received(1), guests.received(3)), (burst, burst));
    // Another source has its own limit, and the first one has the next interval.
    let other = guests.request(1, guest_mac(1), BROADCAST, 0);
    assert_eq!(guests.send(1, &other), Sent::Sent);
    guests.engine().set_time(STORM.interval);
    for _ in 0..2 {
        assert_eq!(guests.send(0, &request), Sent::Sent);
    }
    // Each on the wire once.
    assert_eq!(guests.on_the_wire(), burst + 2);
    let after = guests.engine().counts().bridge.expect("on");
    assert_eq!((after.group, after.storm), (burst + 2, counts.storm + 1));
}

/// What is no frame of this network is not delivered, and harms nobody.
fn unfit(system: &System<'_>) {
    let mut guests = Guests::new(system);
    let whole = guests.request(0, guest_mac(0), guest_mac(1), 0);
    let mut requests = [whole; 6];
    requests[0].gso_size = 1460;
    requests[1].flags = 1;
    requests[2].fragment[0].length = 60_000;
    requests[3].fragments = 1000;
    requests[4].checksum_start = 5000;
    requests[5].header_length = 60_000;
    for request in &requests {
        assert_eq!(guests.send(0, request), Sent::Sent, "as on an Ethernet");
        assert!(guests.engine().completion().is_some());
    }
    let mut short = whole;
    short.header_length = 13;
    assert_eq!(guests.send(0, &short), Sent::Invalid);
    guests.deliver();
    assert_eq!(guests.received(1), 0);
    let counts = guests.engine().counts().local.expect("on");
    assert_eq!((counts.unfit, counts.queued), (6, 0));
    guests.others_are_served();
}

/// The path without stages takes the same instructions whether it was asked for by name or
/// not; with the bridge it takes others.
#[test]
fn without_stages_nothing_is_added() {
    let _turn = turn::turn();
    let plain = stepped(None);
    let none = stepped(Some(Stages::NONE));
    let bridge = stepped(Some(Stages::of([Stage::Bridge])));
    assert_eq!(plain, none);
    assert_ne!(plain, bridge);
}

/// Instructions of the hypervisor, driver and hot routines for some packets each way, by a
/// process of its own.
fn stepped(stages: Option<Stages>) -> [[u64; 3]; 2] {
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut child = process_lab::process::fork(|| {
        let mut all = [[0; 3]; 2];
        system::with_system(&HashSet::new(), limits(), |system| {
            let shape = Shape::Frames(FRAME);
            let paths = match stages {
                None => Paths::new(system, GUESTS, shape),
                Some(stages) => Paths::with_stages(system, GUESTS, shape, stages),
            };
            let mut paths = paths.unwrap_or_else(|error| panic!("{error}"));
            let directions = [PacketDirection::Send, PacketDirection::Receive];
            for (all, direction) in all.iter_mut().zip(directions) {
                *all = both_looks(&mut paths, direction);
            }
        });
        let bytes: Vec<u8> = all
            .as_flattened()
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        i32::from(std::io::Write::write_all(&mut writer, &bytes).is_err())
    })
    .expect("fork");
    drop(writer);
    let mut numbers = [[0; 3]; 2];
    for number in numbers.as_flattened_mut() {
        let mut bytes = [0; 8];
        std::io::Read::read_exact(&mut reader, &mut bytes).expect("a number");
        *number = u64::from_le_bytes(bytes);
    }
    child.wait();
    numbers
}

fn both_looks(paths: &mut Paths<'_>, direction: PacketDirection) -> [u64; 3] {
    use e1000_sim::measure::profile::Component::{Driver, Hypervisor, Support};
    let mut run = |packets, look| {
        let work = Work {
            direction,
            packets,
            look,
        };
        let seen = paths.run(PacketPath::Twin, work);
        seen.unwrap_or_else(|error| panic!("{error}")).steps
    };
    run(640, Look::Cycles);
    let steps = run(8, Look::Steps);
    [Driver, Support, Hypervisor].map(|component| steps.of(component))
}
