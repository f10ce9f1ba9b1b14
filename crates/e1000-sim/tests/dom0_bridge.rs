//! dom0's bridge, and guests' packets that pass it: who is behind which port, what nobody knows, and guests that lie,
//! take nothing, or die.

use std::collections::HashSet;

use e1000_sim::dom0::job::Look;
use e1000_sim::engines::guest::{BridgeCounts, BridgeView, Channel};
use e1000_sim::memory::{NotGiven, Owner, PAGE};
use e1000_sim::packets::packet_loop::{Card, Engine, PacketLoop, Stop};
use e1000_sim::packets::rings::Request;
use e1000_sim::packets::round::{PEER, PacketDirection, Round, guest_mac};
use e1000_sim::paths::{GuestRunner, PacketPath, Paths, Work};
use e1000_sim::system::System;
use e1000_sim::traffic::source::{Shape, TrafficSource};
use e1000_sim::traffic::{Datagrams, Flow, Mac};
use e1000_sim::transport::rendezvous::Limits;

#[path = "common/system.rs"]
mod system;

#[path = "common/turn.rs"]
mod turn;

use system::child::in_child;
use system::with_system;

const GUESTS: u32 = 3;
const FRAME: usize = 1000;
/// Pages that a guest posts, and packets that wait for a port.
const PAGES: u64 = 64;
const QUEUE: u64 = 64;
const SECOND: u64 = 1_000_000_000;
/// The ports: bits.
const CARD: u32 = 1;
const ALL: u32 = 0b1111;

fn limits() -> Limits {
    Limits::of_seconds(60)
}

fn word(mac: Mac) -> u64 {
    let mac = mac.iter().rev();
    mac.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn stranger(number: u32) -> Mac {
    let [_, a, b, c] = number.to_be_bytes();
    [0x06, 0, 0, a, b, c]
}

/// The bridge by itself, with three guests' ports.
struct Bridge<'s> {
    system: System<'s>,
    state: u64,
}

impl<'s> Bridge<'s> {
    fn new(mut system: System<'s>) -> Bridge<'s> {
        let dom0 = &mut system.dom0;
        let state = dom0.call("kernel_bridge", &[]).expect("dom0 answers").value;
        for guest in 0..GUESTS {
            let port = u64::from(guest) + 1;
            dom0.check("kernel_bridge_attach", &[port, word(guest_mac(guest))])
                .expect("a port");
        }
        Bridge { system, state }
    }

    fn view(&self) -> BridgeView {
        BridgeView::new(&self.system.memory(), self.state).expect("the same layout")
    }

    fn counts(&self) -> BridgeCounts {
        self.view().counts()
    }

    /// The ports that a guest's frame goes to.
    fn route(&mut self, guest: u32, source: Mac, destination: Mac) -> u32 {
        let mut request = Request::default();
        (request.guest, request.header_length) = (guest, 60);
        request.header[..6].copy_from_slice(&destination);
        request.header[6..12].copy_from_slice(&source);
        let mut rings = self.system.rings(0).expect("rings");
        rings.put(0, &request);
        let routed = self.system.dom0.check("kernel_bridge_route", &[0, 1]);
        let others = routed.expect("dom0 answers").value;
        let verdict = self.view().verdict(0);
        assert_eq!(others, u64::from(verdict != CARD));
        verdict
    }

    /// The port behind which an address is.
    fn port(&mut self, mac: Mac) -> Option<u32> {
        let found = self.system.dom0.call("kernel_bridge_port", &[word(mac)]);
        u32::try_from(found.expect("dom0 answers").value as i64).ok()
    }
}

#[test]
fn a_bridge_learns_moves_forgets_and_floods() {
    let _turn = turn::turn();
    with_system(&HashSet::new(), limits(), |system| {
        let mut bridge = Bridge::new(system);
        addresses(&mut bridge);
        groups(&mut bridge);
        age(&mut bridge);
        full(&mut bridge);
        gone(&mut bridge);
    });
}

fn addresses(bridge: &mut Bridge<'_>) {
    // Guests are known from their connection.
    assert_eq!(bridge.route(0, guest_mac(0), guest_mac(1)), 1 << 2);
    assert_eq!(bridge.counts().forwarded, 1);
    // The peer is not, until it has sent something: to all but the sender.
    assert_eq!(bridge.route(0, guest_mac(0), PEER), ALL & !(1 << 1));
    assert_eq!(bridge.counts().flooded, 1);
    // A guest with another's address takes it over: a plain bridge does not know better.
    assert_eq!(bridge.port(guest_mac(0)), Some(1));
    bridge.route(2, guest_mac(0), guest_mac(1));
    assert_eq!(bridge.port(guest_mac(0)), Some(3));
    assert_eq!(bridge.counts().moved, 1);
    // Until the owner sends again.
    bridge.route(0, guest_mac(0), guest_mac(1));
    assert_eq!(bridge.port(guest_mac(0)), Some(1));
    // Not back to where it comes from.
    assert_eq!(bridge.route(0, guest_mac(0), guest_mac(0)), 0);
    assert_eq!(bridge.counts().filtered, 1);
}

fn groups(bridge: &mut Bridge<'_>) {
    let all_but = |guest: u32| ALL & !(2 << guest);
    assert_eq!(bridge.route(1, guest_mac(1), [0xff; 6]), all_but(1));
    assert_eq!(
        bridge.route(1, guest_mac(1), [1, 0, 94, 0, 0, 1]),
        all_but(1)
    );
    let before = bridge.counts();
    // A group sends nothing; what is for bridges stays here.
    assert_eq!(bridge.route(1, [1, 0, 94, 0, 0, 1], guest_mac(0)), 0);
    assert_eq!(bridge.route(1, [0; 6], guest_mac(0)), 0);
    let to_bridges = [1, 0x80, 0xc2, 0, 0, 0];
    assert_eq!(bridge.route(1, guest_mac(1), to_bridges), 0);
    // There is no such port.
    assert_eq!(bridge.route(40, guest_mac(1), guest_mac(0)), 0);
    let after = bridge.counts();
    assert_eq!(after.refused - before.refused, 4);
    assert_eq!(after.learned, before.learned);
}

fn age(bridge: &mut Bridge<'_>) {
    let one = stranger(1);
    bridge.route(0, one, guest_mac(1));
    bridge.system.dom0.tick(200 * SECOND).expect("time passes");
    assert_eq!(bridge.route(1, guest_mac(1), one), 1 << 1);
    // It was a destination, which does not make it any younger.
    bridge.system.dom0.tick(101 * SECOND).expect("time passes");
    assert_eq!(bridge.port(one), None);
    assert_eq!(bridge.route(1, guest_mac(1), one), ALL & !(1 << 2));
    // It is known again when it sends.
    bridge.route(0, one, guest_mac(1));
    assert_eq!(bridge.port(one), Some(1));
}

/// A guest that makes addresses up, more than the table holds.
fn full(bridge: &mut Bridge<'_>) {
    let before = bridge.counts();
    for number in 100..1400 {
        assert_eq!(bridge.route(2, stranger(number), guest_mac(1)), 1 << 2);
    }
    let after = bridge.counts();
    assert!(after.full - before.full > 200, "{after:?}");
    let added = after.learned - before.learned;
    assert_eq!(added + after.full - before.full, 1300);
    // What is known stays known, what is not is flooded.
    assert_eq!(bridge.route(0, guest_mac(0), guest_mac(1)), 1 << 2);
    let last = stranger(1399);
    assert_eq!(bridge.route(0, guest_mac(0), last), ALL & !(1 << 1));
    // Five minutes later there is room, for the flood's addresses are old.
    bridge.system.dom0.tick(301 * SECOND).expect("time passes");
    bridge.route(0, last, guest_mac(1));
    assert_eq!(bridge.port(last), Some(1));
    assert!(bridge.counts().aged >= 900, "{:?}", bridge.counts());
}

fn gone(bridge: &mut Bridge<'_>) {
    bridge.route(1, guest_mac(1), guest_mac(0));
    assert_eq!(bridge.port(guest_mac(1)), Some(2));
    let dom0 = &mut bridge.system.dom0;
    dom0.check("kernel_bridge_detach", &[2]).expect("a port");
    assert_eq!(bridge.port(guest_mac(1)), None);
    // And no flood goes there.
    let flood = bridge.route(0, guest_mac(0), guest_mac(1));
    assert_eq!(flood, ALL & !(1 << 1) & !(1 << 2));
}

type Test = fn(&mut Paths<'_>);

#[test]
fn guests_by_way_of_dom0() {
    let _turn = turn::turn();
    let tests: [(&str, Test); 7] = [
        ("each channel", each_channel),
        ("between guests", between_guests),
        ("a receiver without pages", without_pages),
        ("a guest that dies", dies),
        ("dom0 merges", merges),
        ("a guest that writes anything", anything),
        ("a guest that is started again", again),
    ];
    with_tests(&tests);
}

fn with_tests(tests: &[(&str, Test)]) {
    // A process has one hypervisor instance.
    for (name, test) in tests {
        in_child(name, || {
            with_system(&HashSet::new(), limits(), |system| {
                let paths = Paths::new(system, GUESTS, Shape::Frames(FRAME));
                test(&mut paths.unwrap_or_else(|error| panic!("{error}")));
            });
        });
    }
}

fn run(paths: &mut Paths<'_>, direction: PacketDirection, packets: u64) -> Round {
    let work = Work {
        direction,
        packets,
        look: Look::Cycles,
    };
    let seen = paths.run(PacketPath::Guest, work);
    seen.unwrap_or_else(|error| panic!("{error}")).round
}

fn by_dom0<'s>(
    paths: &mut Paths<'s>,
    work: impl FnOnce(&mut GuestRunner<'s>) -> Result<Round, Stop>,
) {
    let seen = paths.by_dom0(Look::Cycles, work);
    seen.unwrap_or_else(|error| panic!("{error}"));
}

fn guest<'p, 's>(paths: &'p mut Paths<'s>) -> &'p mut GuestRunner<'s> {
    paths.guest().unwrap_or_else(|error| panic!("{error}"))
}

/// Nothing that a guest granted stays in use.
fn nothing_is_pinned(paths: &Paths<'_>, number: u32) {
    let machine = paths.system.machine();
    let memory = machine.sizes().guest(number);
    let pins = memory.step_by(PAGE as usize);
    let pins: u32 = pins.map(|at| machine.frames().pins(at)).sum();
    assert_eq!(pins, 0, "guest {number}");
}

fn sound(paths: &mut Paths<'_>) {
    for number in 0..GUESTS {
        nothing_is_pinned(paths, number);
        let engine = &guest(paths).packet_loop.engine;
        let counts = engine.front_counts(number).expect("a guest");
        assert_eq!((counts.bad_responses, counts.kept), (0, 0), "{counts:?}");
    }
    let back = guest(paths).packet_loop.engine.back_counts();
    assert_eq!((back.grants.refused, back.unknown, back.lost), (0, 0, 0));
}

/// Maps and copies a packet, by how it travels.
fn each_channel(paths: &mut Paths<'_>) {
    let shapes = [
        Shape::Frames(60),
        Shape::Frames(FRAME),
        Shape::Segments(64240),
    ];
    for shape in shapes {
        paths.set_shape(shape).expect("a shape");
        let small = shape == Shape::Frames(60);
        let pieces = if let Shape::Segments(_) = shape {
            16
        } else {
            1
        };
        for channel in Channel::ALL.iter().copied() {
            guest(paths).packet_loop.engine.set_channel(channel);
            let before = guest(paths).packet_loop.engine.back_counts();
            let round = run(paths, PacketDirection::Send, 60);
            assert_eq!(
                (round.lost, round.corrupted),
                (0, 0),
                "{shape:?} {channel:?}"
            );
            let after = guest(paths).packet_loop.engine.back_counts();
            let maps = after.grants.maps - before.grants.maps;
            let device = after.grants.device_maps - before.grants.device_maps;
            let copies = after.grants.copies - before.grants.copies;
            let mapped = if small { 0 } else { 60 * pieces };
            let expected = match channel {
                Channel::Copied => (mapped, 0, 60),
                Channel::Mapped => (60 * pieces, 0, 0),
                Channel::InRing => (0, mapped, 0),
            };
            assert_eq!((maps, device, copies), expected, "{shape:?} {channel:?}");
            let unmaps = after.grants.unmaps - before.grants.unmaps;
            assert_eq!(unmaps, maps + device);
            assert_eq!(after.sent - before.sent, 60);
            let round = run(paths, PacketDirection::Receive, 60);
            assert_eq!(
                (round.lost, round.corrupted),
                (0, 0),
                "{shape:?} {channel:?}"
            );
        }
        sound(paths);
    }
}

/// Guest 0 sends to guest 1 from now on, with whole checksums: no card computes them.
fn speak(paths: &mut Paths<'_>) {
    let machine = paths.system.machine();
    let flow = Flow {
        number: 0,
        source: guest_mac(0),
        destination: guest_mac(1),
    };
    let memory = machine.sizes().guest(0);
    let memory = memory.start..memory.end - PAGES * PAGE;
    let shape = Shape::Frames(FRAME);
    let mut source = TrafficSource::new(machine, flow, memory, shape, GUESTS as usize);
    source.sums = true;
    guest(paths).sources[0] = source;
}

fn between_guests(paths: &mut Paths<'_>) {
    speak(paths);
    let before = guest(paths).packet_loop.card.sent.packets();
    run(paths, PacketDirection::Send, 60);
    run(paths, PacketDirection::Receive, 3);
    let runner = guest(paths);
    let back = runner.packet_loop.engine.back_counts();
    let spoken = runner.sources[0].sent;
    assert!(spoken >= 20);
    assert_eq!((back.local, back.local_dropped), (spoken, 0));
    // The others' went to the wire, and nothing of it did.
    assert_eq!(runner.packet_loop.card.sent.packets() - before, 60 - spoken);
    let received = &runner.sources[1].received;
    assert_eq!((received.corrupted, received.strangers), (0, 0));
    assert_eq!(received.flows[0].packets, spoken);
    assert_eq!(runner.sources[0].completed, runner.sources[0].sent);
    sound(paths);
}

/// What has no page waits, up to the queue's end; what is dropped is counted; from guests, too.
fn without_pages(paths: &mut Paths<'_>) {
    const SENT: u64 = 200;
    let mut peer = Datagrams::new(incoming(1), FRAME);
    let mut frames = (0..=SENT).map(|number| peer.finished(number).to_vec());
    let many: Vec<Vec<u8>> = frames.by_ref().take(SENT as usize).collect();
    let last: Vec<Vec<u8>> = frames.collect();
    let mut receive = |frames: &[Vec<u8>]| {
        by_dom0(paths, |runner| {
            let frames = frames.iter().map(Vec::as_slice);
            runner.packet_loop.receive(&mut runner.sources, frames)?;
            Ok(Round::default())
        });
        guest(paths).sources[1].received.packets()
    };
    let got = receive(&many);
    assert!((PAGES..=SENT).contains(&got), "{got}");
    let all = receive(&last);
    let state = paths.system.dom0.call("kernel_bridge", &[]);
    let state = state.expect("dom0 answers").value;
    let bridge = BridgeView::new(&paths.system.memory(), state).expect("its layout");
    let dropped = bridge.dropped(2);
    assert!(dropped >= SENT - PAGES - QUEUE - 64, "{dropped}");
    assert_eq!(all + dropped, SENT + 1);
    let received = &guest(paths).sources[1].received;
    assert_eq!((received.corrupted, received.strangers), (0, 0));
    // From a guest: the receiver does not look.
    speak(paths);
    for _ in 0..4 {
        run(paths, PacketDirection::Send, 96);
    }
    let back = guest(paths).packet_loop.engine.back_counts();
    let spoken = guest(paths).sources[0].sent;
    assert_eq!(back.local, spoken);
    assert_eq!(back.local_dropped, spoken - PAGES);
    run(paths, PacketDirection::Receive, 3);
    assert_eq!(guest(paths).sources[1].received.flows[0].packets, PAGES);
    sound(paths);
}

fn incoming(number: u32) -> Flow {
    Flow {
        number,
        source: PEER,
        destination: guest_mac(number),
    }
}

/// A guest dies while the driver has its pages, and packets wait for it: its pages are let go as soon as the card has
/// read them, and its neighbours lose nothing.
fn dies(paths: &mut Paths<'_>) {
    const DYING: usize = 1;
    let machine = paths.system.machine();
    let memory = machine.sizes().guest(DYING as u32);
    let (theirs, nobody) = (Owner::Guest(DYING as u32), Owner::Nobody);
    let frame = memory.start..memory.start + PAGE;
    by_dom0(paths, |runner| {
        let PacketLoop { engine, card, .. } = &mut runner.packet_loop;
        let mut scratch = Request::default();
        for index in 0..8 {
            let source = &mut runner.sources[DYING];
            let packet = source.prepare().expect("a slot");
            engine.submit_packet(index, source, &packet, &mut scratch);
        }
        assert_eq!(engine.transmit(8)?, 8);
        assert!(machine.frames().pins(memory.start) > 0);
        let mut peer = Datagrams::new(incoming(DYING as u32), FRAME);
        card.absorb_writes(false)?;
        for number in 0..100 {
            card.receive(peer.finished(number));
        }
        engine.kill(DYING as u32);
        // dom0 notices. The card has not sent anything yet.
        assert!(engine.interrupt(card)?);
        let given = machine.frames().give(&frame, theirs, nobody);
        assert_eq!(given, Err(NotGiven::Pinned));
        card.send();
        while card.interrupt() || card.wait() {
            card.absorb_writes(false)?;
            if card.interrupt() {
                engine.interrupt(card)?;
            }
        }
        assert_eq!(machine.frames().give(&frame, theirs, nobody), Ok(()));
        Ok(Round::default())
    });
    nothing_is_pinned(paths, DYING as u32);
    let back = guest(paths).packet_loop.engine.back_counts();
    assert_eq!(back.grants.unmaps, back.grants.maps);
    // The others go on.
    guest(paths).sources.remove(DYING);
    let round = run(paths, PacketDirection::Send, 64);
    assert_eq!((round.frames, round.lost, round.corrupted), (64, 0, 0));
    let others = [0, 2].map(|number| {
        let mut peer = Datagrams::new(incoming(number), FRAME);
        (0..20)
            .map(|number| peer.finished(number).to_vec())
            .collect::<Vec<_>>()
    });
    by_dom0(paths, |runner| {
        // What was for the dead guest went to all, since nobody has its address any more.
        let packet_loop = &mut runner.packet_loop;
        packet_loop.receive(&mut runner.sources, std::iter::empty())?;
        let frames = others.iter().flatten().map(Vec::as_slice);
        packet_loop.receive(&mut runner.sources, frames)?;
        Ok(Round::default())
    });
    let engine = &guest(paths).packet_loop.engine;
    let strays = engine.front_counts(0).expect("a guest").others;
    assert!(strays > 0);
    for source in &guest(paths).sources {
        assert_eq!(source.received.packets(), 20);
        assert_eq!(source.received.corrupted, 0);
    }
}

/// A number that looks like one that a ring or a grant has, or like none.
fn plausible(state: &mut u64, frame: u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let random = (*state >> 32) as u32;
    match random % 8 {
        0 => random,
        1 => frame + random / 8 % 512,
        2 => 1 | (random >> 8 & 4),
        3 => random / 8 % 512,
        4 => (random / 8 % 4096) | (random / 8 % 200) << 16,
        5 => (random / 8 % 64) | (random / 8 % 16) << 16,
        _ => random / 8 % 64,
    }
}

/// A guest that writes anything into its rings and its table, all the time: dom0 goes on, no frame of anybody else's is
/// used, and the others lose nothing.
fn anything(paths: &mut Paths<'_>) {
    const WILD: usize = 1;
    let machine = paths.system.machine();
    let net = &paths.system.mailbox().net;
    let frame = (machine.sizes().guest(WILD as u32).start / PAGE) as u32;
    guest(paths).sources.remove(WILD);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut peers = [0, 2].map(|number| Datagrams::new(incoming(number), FRAME));
    guest(paths).packet_loop.engine.leave(WILD as u32);
    by_dom0(paths, |runner| {
        for round in 0..400 {
            for word in net.guests_words(WILD) {
                word.store(
                    plausible(&mut state, frame),
                    std::sync::atomic::Ordering::Relaxed,
                );
            }
            assert_eq!(runner.packet_loop.send(&mut runner.sources, 4)?, 4);
            let frames = peers.each_mut().map(|peer| peer.finished(round).to_vec());
            let frames = frames.iter().map(Vec::as_slice);
            runner.packet_loop.receive(&mut runner.sources, frames)?;
        }
        Ok(Round::default())
    });
    let runner = guest(paths);
    for source in &runner.sources {
        let number = source.flow().number as usize;
        let sent = runner.packet_loop.card.sent.flows[number];
        assert_eq!((source.sent, source.completed), (800, 800));
        assert_eq!((sent.packets, sent.missing), (800, 0));
        assert_eq!(source.received.packets(), 400);
        assert_eq!(
            (source.received.corrupted, source.received.strangers),
            (0, 0)
        );
    }
    let back = runner.packet_loop.engine.back_counts();
    // It did get through to the checks.
    assert!(back.grants.refused > 50 && back.malformed > 100, "{back:?}");
    by_dom0(paths, |runner| {
        let PacketLoop { engine, card, .. } = &mut runner.packet_loop;
        engine.kill(WILD as u32);
        engine.interrupt(card)?;
        Ok(Round::default())
    });
    (0..GUESTS).for_each(|number| nothing_is_pinned(paths, number));
}

/// An aggregate passes the bridge and the back end as one packet, and the guest gets its segments.
fn merges(paths: &mut Paths<'_>) {
    use e1000_sim::traffic::tcp::{MSS, Peer};
    const SEGMENTS: u64 = 60;
    let mut received = Vec::new();
    let mut peer = Peer::new(incoming(0), 1 << 20, MSS);
    for (limit, packets) in [(0, SEGMENTS), (20, 3)] {
        paths.system.mailbox().net.set_aggregate(limit);
        let before = guest(paths).packet_loop.engine.back_counts();
        let frames: Vec<Vec<u8>> = (0..SEGMENTS)
            .map(|_| peer.segment().expect("its window"))
            .collect();
        by_dom0(paths, |runner| {
            for batch in frames.chunks(20) {
                let frames = batch.iter().map(Vec::as_slice);
                runner.packet_loop.receive(&mut runner.sources, frames)?;
            }
            Ok(Round::default())
        });
        let after = guest(paths).packet_loop.engine.back_counts();
        let handed = after.received - before.received;
        assert!((packets..=packets + 2).contains(&handed), "{handed}");
        let sink = &guest(paths).sources[0].received;
        assert_eq!((sink.corrupted, sink.strangers), (0, 0), "{:?}", sink.first);
        received.push(sink.bytes());
    }
    assert!(received[0] > SEGMENTS * 1448);
    sound(paths);
}

/// A new front end finds its table as the old one left it.
fn again(paths: &mut Paths<'_>) {
    for _ in 0..3 {
        paths.set_shape(Shape::Frames(FRAME)).expect("a shape");
        for direction in [PacketDirection::Send, PacketDirection::Receive] {
            let round = run(paths, direction, 90);
            assert_eq!((round.frames, round.lost, round.corrupted), (90, 0, 0));
        }
        sound(paths);
    }
}
