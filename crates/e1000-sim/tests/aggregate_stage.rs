//! The stage `aggregate`: streams through it and any other stages, segments that are not
//! what they should be, a dom0 that lies about the pieces, a driver that is stopped while it
//! merges, pools that run dry. Nothing is lost, changed or reordered that would not be
//! without the stage.

use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::engines::staged::{self, Staged};
use e1000_sim::inject::recovery::{Quiet, Recovery};
use e1000_sim::inject::service::Service;
use e1000_sim::live::price::{MergedPrice, Price, QUOTED, sample};
use e1000_sim::live::receive::{Offered, Outcome, receive, wire_time};
use e1000_sim::live::rig::Rig;
use e1000_sim::live::rows::with_rig;
use e1000_sim::memory::{DIRECT_MAP, Machine};
use e1000_sim::packets::packet_loop::Engine;
use e1000_sim::packets::rings::{RX_FRAGMENTS, RX_HELD, RX_PIECES, RX_UNWANTED};
use e1000_sim::packets::round::{PEER, guest_mac};
use e1000_sim::packets::streams::{Load, Streams};
use e1000_sim::stages::aggregate::Merged;
use e1000_sim::stages::bridge::STORM;
use e1000_sim::stages::notify::AT_ONCE;
use e1000_sim::stages::{Stage, Stages};
use e1000_sim::system::System;
use e1000_sim::traffic::source::TrafficSource;
use e1000_sim::traffic::tcp::{HEADERS, MSS, Peer};
use e1000_sim::traffic::{Flow, fill_stream};
use e1000_sim::transport::rendezvous::Limits;
use process_lab::packet_path::NotifyLimits;
use process_lab::program::Scheme;
use process_lab::runtime::{self, Aggregate, Frame};

#[path = "common/abort.rs"]
mod abort;
#[path = "common/system.rs"]
mod system;
#[path = "common/turn.rs"]
mod turn;

use abort::{Abort, host_receive};
use system::child::in_child;
use system::{each_alone, with_changed, with_system};

const GUESTS: u32 = 3;

fn limits() -> Limits {
    Limits::of_seconds(60)
}

type Test = fn(&System<'_>);

#[test]
fn segments_and_stages() {
    let _turn = turn::turn();
    let tests: [(&str, Test); 6] = [
        ("alone", |system| streams_arrive(system, &[])),
        ("with a bridge", |system| {
            streams_arrive(system, &[Stage::Bridge]);
        }),
        ("with all", |system| streams_arrive(system, &Stage::ALL)),
        ("segments that are wrong", wrong_segments),
        ("lies", lies),
        ("a storm", storm),
    ];
    each_alone(Scheme::Stlb, limits, &tests, |system, test| test(system));
}

fn streams<'s>(system: &System<'s>, stages: Stages) -> Streams<'s, Staged<'s>> {
    let engine = system.staged(limits(), GUESTS, stages);
    let engine = engine.unwrap_or_else(|error| panic!("{error}"));
    system.take_interrupts();
    let card = system.card(GUESTS);
    let card = card.unwrap_or_else(|error| panic!("{error}"));
    let load = Load {
        guests: GUESTS,
        window: 64,
        payload: MSS,
        burst: 60,
    };
    Streams::new(system.machine(), engine, card, load, |engine, source| {
        assert!(engine.attach(source), "no guest has that address");
    })
}

/// Every byte comes in order, merged while the stage is on and only then.
fn streams_arrive(system: &System<'_>, others: &[Stage]) {
    let with = Stages::of(others.iter().copied().chain([Stage::Aggregate]));
    let without = Stages::of(with.list().filter(|stage| *stage != Stage::Aggregate));
    let mut streams = streams(system, with);
    for stages in [with, without, with] {
        streams.packet_loop.engine.set_stages(stages);
        let merged = |streams: &Streams<'_, Staged<'_>>| {
            let counts = streams.packet_loop.engine.counts().aggregate;
            counts.map(|counts| counts.merged - counts.aggregates)
        };
        let before = merged(&streams);
        let seen = streams.run(3000);
        let seen = seen.unwrap_or_else(|stop| panic!("{stages:?}: {stop}"));
        assert_eq!(seen.wrong, 0, "{stages:?} {seen:?}");
        let saved = seen.segments - seen.packets;
        let counted = merged(&streams).zip(before).map(|(now, then)| now - then);
        match stages.has(Stage::Aggregate) {
            true => {
                assert_eq!(Some(saved), counted, "{seen:?}");
                assert!(seen.segments >= 8 * seen.packets, "{seen:?}");
            }
            false => assert_eq!((saved, counted), (0, None)),
        }
    }
}

/* ---- Segments that are wrong ------------------------------------------------ */

fn incoming(number: u32) -> Flow {
    Flow {
        number,
        source: PEER,
        destination: guest_mac(number),
    }
}

/// The first segments of a guest's stream.
fn segments(number: u32, count: usize) -> Vec<Vec<u8>> {
    let mut peer = Peer::new(incoming(number), u32::MAX, MSS);
    (0..count).filter_map(|_| peer.segment()).collect()
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    let sum: u32 = words
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

/// Makes both checksums right again (RFC 791, 3.1; RFC 9293, 3.1).
fn make_right(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let ip = !(sum(&frame[14..34]) as u16);
    frame[24..26].copy_from_slice(&ip.to_be_bytes());
    frame[50..52].fill(0);
    let length = frame.len() as u32 - 34;
    let mut pseudo = frame[26..34].to_vec();
    pseudo.extend([0, 6, (length >> 8) as u8, length as u8]);
    let all = sum(&pseudo) + sum(&frame[34..]);
    let tcp = !(((all & 0xffff) + (all >> 16)) as u16);
    frame[50..52].copy_from_slice(&tcp.to_be_bytes());
}

/// The segment that is at this offset of the stream.
fn at_offset(frame: &[u8], number: u32, offset: u32) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[38..42].copy_from_slice(&offset.to_be_bytes());
    fill_stream(number, offset, &mut frame[HEADERS..]);
    make_right(&mut frame);
    frame
}

fn byte(frames: &mut [Vec<u8>], at: usize, change: fn(u8) -> u8) {
    let frame = &mut frames[10];
    frame[at] = change(frame[at]);
    make_right(frame);
}

type Spoil = fn(&mut Vec<Vec<u8>>);

/// What happens to the segments of guest 0's stream: at the eleventh.
const SPOILED: [(&str, Spoil); 20] = [
    ("none", |_| ()),
    ("reordered", |f| f.swap(9, 10)),
    ("backwards", |f| f.reverse()),
    ("twice", |f| f.insert(10, f[9].clone())),
    ("an old one", |f| f.insert(10, f[2].clone())),
    ("missing", |f| drop(f.remove(10))),
    ("overlapping", |f| {
        f.insert(10, at_offset(&f[10], 0, 10 * MSS as u32 - 7));
    }),
    ("half the space away", |f| {
        f[10] = at_offset(&f[10], 0, 0x8000_0000);
    }),
    ("a first fragment", |f| byte(f, 20, |b| b | 0x20)),
    ("a later fragment", |f| byte(f, 21, |b| b | 0x10)),
    ("IP checksum", |f| f[10][24] ^= 1),
    ("TCP checksum", |f| f[10][50] ^= 1),
    ("a changed byte", |f| f[10][700] ^= 1),
    ("FIN", |f| byte(f, 47, |b| b | 1)),
    ("SYN", |f| byte(f, 47, |b| b | 2)),
    ("URG", |f| byte(f, 47, |b| b | 0x20)),
    ("longer than the frame", |f| byte(f, 17, |b| b + 1)),
    ("shorter than its headers", |f| {
        byte(f, 16, |_| 0);
        byte(f, 17, |_| 30);
    }),
    ("another guest's address", |f| {
        f[10][..6].copy_from_slice(&guest_mac(1));
    }),
    ("nobody's address", |f| f[10][..6].copy_from_slice(&[2; 6])),
];

/// What guests got: packets, of them wrong ones, gaps of streams.
type Got = Vec<[u64; 4]>;

fn got(streams: &Streams<'_, Staged<'_>>) -> Got {
    let sinks = streams.sources.iter().map(|source| &source.received);
    sinks
        .map(|sink| {
            let missing = sink.flows.iter().map(|flow| flow.missing).sum();
            [sink.packets(), missing, sink.corrupted, sink.strangers]
        })
        .collect()
}

/// Guest 0's stream is spoiled, guest 1's comes in between: both get what they get without
/// the stage.
fn wrong_segments(system: &System<'_>) {
    let mut streams = streams(system, Stages::NONE);
    let mut merged = 0;
    for (name, spoil) in SPOILED {
        let mut first = segments(0, 24);
        spoil(&mut first);
        let second = segments(1, 24);
        let longest = first.len().max(second.len());
        let turns = (0..longest).flat_map(|n| [first.get(n), second.get(n)]);
        let frames: Vec<&[u8]> = turns.flatten().map(Vec::as_slice).collect();
        // The first time the streams' ends are other ones.
        let mut deltas = Vec::new();
        for stages in [Stages::NONE, Stages::NONE, Stages::of(Stage::ALL)] {
            streams.packet_loop.engine.set_stages(stages);
            let before = got(&streams);
            let came = streams
                .packet_loop
                .receive_streams(&mut streams.sources, frames.iter().copied());
            assert_eq!(came, Ok(frames.len() as u32), "{name}");
            let pairs = got(&streams).into_iter().zip(before);
            let delta: Got = pairs
                .map(|(now, then)| std::array::from_fn(|i| now[i] - then[i]))
                .collect();
            deltas.push(delta);
        }
        assert_eq!(deltas[1], deltas[2], "{name}: off and on differ");
        assert_eq!(deltas[1][1][2..], [0, 0], "{name}: the other's");
        let counts = streams.packet_loop.engine.counts().aggregate;
        let now = counts.map_or(0, |counts| counts.merged);
        assert!(
            now >= merged + 24,
            "{name}: {} segments merged",
            now - merged
        );
        merged = now;
    }
}

/* ---- A dom0 that lies -------------------------------------------------------- */

/// dom0's memory that nobody uses.
const CHAIN: u64 = DIRECT_MAP + (24 << 20);
const BYTES: u64 = CHAIN + 0x1_0000;

/// The service as the rewritten code calls it: what it returns, and the answer in rax.
fn call(streams: &Streams<'_, Staged<'_>>, registers: [u64; 6]) -> (c_int, u64) {
    let instance = streams.packet_loop.engine.twin.instance.raw();
    let mut frame = Frame {
        registers,
        rax: 77,
        stack: std::ptr::null(),
        site: 0,
        target: 0,
    };
    // SAFETY: the instance is alive, and this thread is outside of it.
    unsafe { runtime::twin_instance_hold(instance) };
    let returned = staged::HOST_RECEIVE(std::ptr::null_mut(), &raw mut frame);
    // SAFETY: held above.
    unsafe { runtime::twin_instance_release(instance) };
    (returned, frame.rax)
}

/// An aggregate of these segments in dom0's memory; its arguments.
fn chain(system: &System<'_>, frames: &[Vec<u8>], change: fn(&mut Aggregate)) -> [u64; 6] {
    // SAFETY: plain integers.
    let mut chain: Aggregate = unsafe { std::mem::zeroed() };
    chain.segments = frames.len() as u32;
    chain.size = MSS as u32;
    for (number, frame) in frames.iter().enumerate() {
        let data = BYTES + number as u64 * 2048;
        system.memory().write(data, frame).expect("dom0's memory");
        let skip = if number == 0 { 0 } else { HEADERS };
        chain.piece[number].data = data + skip as u64;
        chain.piece[number].length = (frame.len() - skip) as u32;
    }
    change(&mut chain);
    let size = size_of::<Aggregate>();
    // SAFETY: plain integers without padding.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const chain).cast::<u8>(), size) };
    system.memory().write(CHAIN, bytes).expect("dom0's memory");
    let length = 8 + 16 * frames.len() as u64;
    [CHAIN, length, 0, u64::from(RX_PIECES), 0, 0]
}

type Lie = fn(&mut Aggregate);

const LIES: [(&str, Lie); 14] = [
    ("fewer segments", |a| a.segments -= 1),
    ("more segments", |a| a.segments += 1),
    ("none", |a| a.segments = 0),
    ("many", |a| a.segments = u32::MAX),
    ("no size", |a| a.size = 0),
    ("a large size", |a| a.size = u32::MAX),
    ("a header that is short", |a| {
        a.piece[0].length = MSS as u32 + 53
    }),
    ("a frame of 13 bytes", |a| a.piece[0].length = 13),
    ("an endless frame", |a| a.piece[0].length = u32::MAX),
    ("an empty piece", |a| a.piece[1].length = 0),
    ("a large piece", |a| a.piece[2].length = MSS as u32 + 1),
    ("a short piece in between", |a| a.piece[1].length -= 1),
    ("a frame nowhere", |a| a.piece[0].data = 0),
    ("the runtime's own memory", |a| {
        a.piece[0].data = (&raw const *a).addr() as u64;
    }),
];

fn lies(system: &System<'_>) {
    let mut streams = streams(system, Stages::of(Stage::ALL));
    let three = segments(0, 3);
    let held = (runtime::OK, u64::from(RX_HELD));
    let unwanted = (runtime::OK, u64::from(RX_UNWANTED));
    let refused = (runtime::ABORTED, 77);
    let good = |streams: &mut Streams<'_, Staged<'_>>| {
        let engine = &streams.packet_loop.engine;
        let (arrived, merged) = (engine.arrived(), engine.merged());
        let arguments = chain(system, &three, |_| ());
        assert_eq!(call(streams, arguments), held);
        let engine = &mut streams.packet_loop.engine;
        let one = Merged {
            aggregates: 1,
            segments: 3,
        };
        assert_eq!(engine.arrived(), arrived + 3);
        assert_eq!(engine.merged().since(merged), one);
        let delivered = engine.deliver(&mut streams.sources);
        assert!(delivered.is_ok(), "{delivered:?}");
        // The TCP checksum of a real one is the pseudo header's: so it is corrupted, but
        // all of it is there.
        streams.sources.iter_mut().for_each(TrafficSource::check);
        assert_eq!(streams.sources[0].received.corrupted, 1);
        streams.sources[0].received.corrupted = 0;
    };
    good(&mut streams);
    let before = streams.packet_loop.engine.arrived();
    for (name, lie) in LIES {
        let arguments = chain(system, &three, lie);
        assert_eq!(call(&streams, arguments), refused, "{name}");
    }
    let arguments = chain(system, &three, |_| ());
    // What the registers say: no whole piece, no piece, more than there can be, nowhere.
    for (length, data) in [
        (55, CHAIN),
        (57, CHAIN),
        (8, CHAIN),
        (0, CHAIN),
        (24, CHAIN),
        (8 + 16 * 33, CHAIN),
        (u64::from(u32::MAX), CHAIN),
        (56, 0),
        (56, u64::MAX - 8),
    ] {
        let [.., flags, vlan, zero] = arguments;
        let arguments = [data, length, 0, flags, vlan, zero];
        assert_eq!(call(&streams, arguments), refused, "{length} at {data:#x}");
    }
    let fragments = u64::from(RX_PIECES | RX_FRAGMENTS);
    let [data, length, ..] = arguments;
    assert_eq!(call(&streams, [data, length, 0, fragments, 0, 0]), unwanted);
    // Nobody's.
    let mut strange = three.clone();
    strange[0][..6].copy_from_slice(&[2; 6]);
    assert_eq!(call(&streams, chain(system, &strange, |_| ())), unwanted);
    assert_eq!(
        streams.packet_loop.engine.arrived(),
        before,
        "none is told of"
    );
    good(&mut streams);
    // A later piece is nowhere: found when it is copied, and the guest gets nothing.
    let arguments = chain(system, &three, |a| a.piece[2].data = 0x7000_0000_0000);
    assert_eq!(call(&streams, arguments), held);
    let packets = got(&streams);
    let delivered = streams.packet_loop.engine.deliver(&mut streams.sources);
    assert!(delivered.is_err(), "it was copied from nowhere");
    streams.sources.iter_mut().for_each(TrafficSource::check);
    assert_eq!(got(&streams), packets);
}

/// To all guests an aggregate counts as its segments do.
fn storm(system: &System<'_>) {
    let streams = streams(system, Stages::of(Stage::ALL));
    let mut three = segments(0, 3);
    three[0][..6].fill(0xff);
    let arguments = chain(system, &three, |_| ());
    let held = (0..64).filter(|_| call(&streams, arguments).1 == u64::from(RX_HELD));
    let held = held.count() as u32;
    assert!((1..=STORM.burst / 3).contains(&held), "{held} of 64");
    let counts = streams
        .packet_loop
        .engine
        .counts()
        .bridge
        .expect("it is on");
    assert!(counts.storm >= u64::from(64 - held), "{counts:?}");
}

/* ---- A driver that is stopped while it merges --------------------------------- */

/// More segments than the pools have buffers, all of them in open aggregates when the driver
/// is stopped: none stays away.
#[test]
fn a_driver_that_is_stopped_while_it_merges() {
    let _turn = turn::turn();
    in_child("stopped", stopped_while_it_merges);
}

fn stopped_while_it_merges() {
    const ROUNDS: u32 = 120;
    const OPEN: usize = 19;
    with_system(&HashSet::new(), limits(), |mut system| {
        let quiet = Quiet::note(&system);
        let engine = system.twin_with(limits(), host_receive);
        let engine = engine.unwrap_or_else(|error| panic!("{error}"));
        let mut service = Service::start(&system, engine, GUESTS).expect("guests");
        for round in 0..ROUNDS {
            let engine = &mut service.packet_loop.engine.engine.twin;
            engine.set_aggregate(20);
            let before = engine.counter("flush_end");
            let mut frames = segments(0, OPEN);
            // Of no flow, so that the host is called at once.
            let mut other = frames[0].clone();
            other[23] = 17;
            make_right(&mut other);
            frames.push(other);
            Abort::Once.set();
            let frames = frames.iter().map(Vec::as_slice);
            let stopped = service
                .packet_loop
                .receive_streams(&mut service.sources, frames);
            assert!(stopped.is_err(), "round {round}");
            let engine = &mut service.packet_loop.engine.engine.twin;
            assert!(engine.take_stopped().is_some());
            assert_eq!(engine.counter("flush_end"), before, "they were open");
            engine.set_aggregate(0);
            let mut recovery = Recovery {
                system: &mut system,
                service: &mut service,
                quiet: &quiet,
                start: limits(),
                limits: limits(),
            };
            let mended = recovery.mend();
            let (_, why) = mended.unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert_eq!(why, None, "round {round}: dom0 was restarted");
        }
        let exchanged = service.exchange(0..GUESTS as usize, 64).expect("it serves");
        assert_eq!((exchanged.lost, exchanged.damaged), (0, 0));
        let engine = &service.packet_loop.engine.engine.twin;
        for name in ["bad_free", "skb_exhausted", "buffer_exhausted"] {
            assert_eq!(engine.counter(name), Some(0), "{name}");
        }
    });
}

/* ---- Pools that run dry ------------------------------------------------------- */

const FULL: usize = 1514;
/// As it is counted, roughly.
const PRICE: Price = Price {
    interrupt: 2600,
    packet: 1500,
    round: 1200,
    guest: 800,
    taken: 600,
    merged: MergedPrice {
        handed: 2000,
        segment: 1500,
        given: 800,
        taken: 600,
    },
};

#[test]
fn pools_that_run_dry() {
    let _turn = turn::turn();
    in_child("dry pools", dry_pools);
}

fn dry_pools() {
    with_changed(
        Scheme::Stlb,
        |plan| plan.with_driver_args("InterruptThrottleRate=4000"),
        limits(),
        |system| {
            with_rig(&system, limits(), |rig| {
                rig.engine.set_stages(Stages::of(Stage::ALL));
                rig.stream(true);
                let whole = run(rig, AT_ONCE);
                assert_eq!((whole.missed, whole.dropped), (0, 0), "{whole:?}");
                assert!(whole.packets >= 4 * whole.handed, "{whole:?}");
                // As many segments as may wait release the guests, not as many packets.
                let held = run(rig, long(192));
                assert_eq!((held.missed, held.dropped), (0, 0), "{held:?}");
                assert!(held.virtual_interrupts < whole.virtual_interrupts / 4);
                // Nothing releases them before the pools are empty: the card misses the others.
                let dry = run(rig, long(0));
                assert!(dry.missed > 0, "{dry:?}");
                watchdog(system.machine(), rig);
                let again = run(rig, AT_ONCE);
                assert_eq!((again.missed, again.dropped), (0, 0), "{again:?}");
                assert_eq!(rig.engine.twin.counter("bad_free"), Some(0));
                the_same_each_time(rig);
                the_price_is_what_is_counted(rig);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
        },
    );
}

/// What the driver's watchdog does every two seconds, which no dom0 runs here: it has the
/// card interrupt (ICS, RXDMT0), so that a poll fills the ring again.
fn watchdog(machine: &Machine, rig: &mut Rig<'_>) {
    const ICS: usize = 0xc8;
    const RXDMT0: u32 = 0x10;
    // SAFETY: the card's registers, mapped as long as the machine, are words.
    let register = unsafe { &*machine.bar().cast::<AtomicU32>().add(ICS / 4) };
    register.store(RXDMT0, Ordering::SeqCst);
    rig.interrupt().unwrap_or_else(|stop| panic!("{stop}"));
    rig.settle().unwrap_or_else(|stop| panic!("{stop}"));
}

fn long(most: u32) -> NotifyLimits {
    NotifyLimits {
        delay: 1_000_000_000,
        count: 0,
        most,
    }
}

fn run(rig: &mut Rig<'_>, limits: NotifyLimits) -> Outcome {
    const PACKETS: u64 = 8192;
    rig.engine.set_limits(limits);
    let offered = Offered {
        guests: 1,
        packets: PACKETS,
        interval: wire_time(FULL),
        timer: None,
    };
    let outcome = receive(rig, offered, &PRICE, &QUOTED);
    rig.engine.set_limits(AT_ONCE);
    let outcome = outcome.unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(outcome.corrupted, 0, "{outcome:?}");
    let all = outcome.packets + outcome.missed + outcome.dropped;
    assert_eq!(all, PACKETS, "none forgotten: {outcome:?}");
    outcome
}

fn the_same_each_time(rig: &mut Rig<'_>) {
    let mut outcomes = [0, 0].map(|_| {
        rig.stream(true);
        // The card's throttle, too, begins anew.
        rig.settle().unwrap_or_else(|stop| panic!("{stop}"));
        run(rig, AT_ONCE)
    });
    for outcome in &mut outcomes {
        outcome.measured_cycles = 0;
    }
    assert_eq!(outcomes[0], outcomes[1]);
}

/// The price is within a tenth of what is counted, for the driver refills its ring by
/// sixteens: two flows of ten segments, then one
/// segment each of three.
fn the_price_is_what_is_counted(rig: &mut Rig<'_>) {
    let price = Price::count_merged(rig).unwrap_or_else(|stop| panic!("{stop}"));
    let near = |a: u64, b: u64| a.abs_diff(b) * 10 <= b;
    for (packets, guests, aggregates) in [(20, 2, 2), (3, 3, 0)] {
        rig.stream(true);
        let counted = sample(rig, packets, guests);
        let counted = counted.unwrap_or_else(|stop| panic!("{stop}"));
        let packets = u64::from(packets);
        let merged = Merged {
            aggregates,
            segments: if aggregates > 0 { packets } else { 0 },
        };
        let interrupt = price.of_interrupt(packets, merged);
        let deliver = price.of_delivery(guests.into(), packets, merged);
        let what = format!("{price:?} {counted:?}: {interrupt} {deliver}");
        assert!(near(interrupt, counted.interrupt), "{what}");
        assert!(near(deliver, counted.deliver), "{what}");
    }
}
