//! TCP streams through the hypervisor instance, with and without receive aggregation.

use e1000_sim::engines::twin::TwinEngine;
use e1000_sim::packets::streams::{Load, Streamed, Streams};
use e1000_sim::system::System;
use e1000_sim::traffic::tcp::{Acknowledge, MSS};
use e1000_sim::transport::mailbox::InterruptOwner;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "common/system.rs"]
mod system;

use system::each_alone;

fn streams<'s>(system: &System<'s>, load: Load) -> Streams<'s, TwinEngine<'s>> {
    let engine = system
        .twin(Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    system
        .mailbox()
        .set_interrupt_owner(InterruptOwner::Hypervisor);
    let card = system
        .card(load.guests)
        .unwrap_or_else(|error| panic!("{error}"));
    Streams::new(system.machine(), engine, card, load, |engine, source| {
        assert!(engine.attach(source), "no guest has that address");
    })
}

fn run(streams: &mut Streams<'_, TwinEngine<'_>>, limit: u32, segments: u64) -> Streamed {
    streams.packet_loop.engine.set_aggregate(limit);
    let streamed = streams
        .run(segments)
        .unwrap_or_else(|stop| panic!("limit {limit}: {stop}"));
    eprintln!("limit {limit}: {streamed:?}");
    assert_eq!(streamed.wrong, 0, "limit {limit}");
    assert!(streamed.segments >= segments, "limit {limit}");
    streamed
}

fn counter(streams: &Streams<'_, TwinEngine<'_>>, name: &str) -> u64 {
    let counter = streams.packet_loop.engine.counter(name);
    counter.unwrap_or_else(|| panic!("no counter {name}"))
}

/// Every byte arrives in order, whatever the limit, and each change of it works at once.
fn limits(system: &System<'_>, guests: u32) {
    let mut streams = streams(
        system,
        Load {
            guests,
            window: 64,
            payload: MSS,
            burst: 64,
        },
    );
    for limit in [0, 1, 2, 20, 0, 32, 1000, 1] {
        let (merged, packets) = (counter(&streams, "merged"), counter(&streams, "aggregates"));
        let streamed = run(&mut streams, limit, 2000);
        let merged = counter(&streams, "merged") - merged;
        let packets = counter(&streams, "aggregates") - packets;
        assert_eq!(
            streamed.segments - streamed.packets,
            merged - packets,
            "limit {limit}"
        );
        assert_eq!(limit >= 2, packets > 0, "limit {limit}");
        // Two segments are one acknowledgement's, however they came.
        assert!(streamed.acknowledgements * 2 <= streamed.segments + 2 * u64::from(guests));
        assert!(streamed.acknowledgements * 2 + 2 * u64::from(guests) >= streamed.segments);
        if limit == 32 && guests == 1 {
            assert!(streamed.segments >= 15 * streamed.packets, "{streamed:?}");
        }
    }
    streams.set_acknowledge(Acknowledge::EachPacket);
    let streamed = run(&mut streams, 32, 2000);
    assert!(streamed.acknowledgements <= streamed.packets);
    streams
        .packet_loop
        .card
        .close()
        .unwrap_or_else(|stop| panic!("{stop}"));
}

/// A request is never kept waiting for another, and nothing is merged of single segments.
fn requests(system: &System<'_>, guests: u32) {
    let load = Load {
        guests,
        window: 1,
        payload: 1,
        burst: 1,
    };
    let mut streams = streams(system, load);
    for limit in [0, 32, 0] {
        let streamed = run(&mut streams, limit, 300);
        assert_eq!(streamed.packets, streamed.segments);
        assert_eq!(streamed.acknowledgements, streamed.segments);
    }
}

#[test]
fn streams_arrive_whole_with_any_limit() {
    type Test = (fn(&System<'_>, u32), u32);
    let tests: [(&str, Test); 3] = [
        ("one guest", (limits, 1)),
        ("eight guests", (limits, 8)),
        ("requests", (requests, 1)),
    ];
    each_alone(
        Scheme::Stlb,
        Limits::default,
        &tests,
        |system, (test, guests)| test(system, guests),
    );
}
