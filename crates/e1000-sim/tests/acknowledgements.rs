//! Acknowledgements by template, through the rewritten hot routines, the stock driver and the card:
//! as many as without and as they were, whatever the card computes; and malformed templates.

use e1000_sim::dom0::interface::Feature;
use e1000_sim::engines::twin::TwinEngine;
use e1000_sim::packets::packet_loop::{Engine, Stop};
use e1000_sim::packets::rings::{ACKS, Fragment, Request, Sent, TX_VLAN};
use e1000_sim::packets::streams::{Load, SendTemplate, Streams};
use e1000_sim::system::System;
use e1000_sim::traffic::tcp::MSS;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "common/system.rs"]
mod system;

use system::child::in_child;
use system::with_changed;

const GUESTS: u32 = 2;
const SEGMENTS: u64 = 2000;

fn limits() -> Limits {
    Limits::of_seconds(60)
}

fn with_card(lacking: &[Feature]) {
    with_changed(
        Scheme::Stlb,
        |plan| plan.without(lacking),
        limits(),
        |system| streams(&system, lacking),
    );
}

fn streams(system: &System<'_>, lacking: &[Feature]) {
    let engine = system.twin(limits());
    let mut engine = engine.unwrap_or_else(|error| panic!("{error}"));
    engine.set_offload(!lacking.is_empty());
    system.take_interrupts();
    let card = system.card(GUESTS);
    let card = card.unwrap_or_else(|error| panic!("{error}"));
    let load = Load {
        guests: GUESTS,
        window: 64,
        payload: MSS,
        burst: 64,
    };
    let mut streams = Streams::new(system.machine(), engine, card, load, |engine, source| {
        assert!(engine.attach(source), "no guest has that address");
    });
    for limit in [0, 2, 20, 32] {
        streams.packet_loop.engine.set_aggregate(limit);
        streams.set_template(None);
        let alone = run(&mut streams);
        streams.set_template(Some(TwinEngine::transmit_template));
        let sent = requests(&streams);
        let by_template = run(&mut streams);
        assert!(requests(&streams) < sent + by_template / 8, "limit {limit}");
        // What is left of the burst before is the only difference.
        assert!(alone.abs_diff(by_template) <= u64::from(2 * GUESTS));
    }
    streams.set_template(Some(refused as SendTemplate<TwinEngine<'_>>));
    run(&mut streams);
    let upcalls = streams.packet_loop.engine.instance.upcalls();
    assert_eq!(upcalls, [], "steady state makes no upcalls");
}

/// Requests that the hot routines have taken.
fn requests(streams: &Streams<'_, TwinEngine<'_>>) -> u64 {
    streams
        .packet_loop
        .engine
        .counter("sent")
        .expect("a counter")
}

/// Every byte comes, and every second segment is acknowledged; the wire's checks say how.
fn run(streams: &mut Streams<'_, TwinEngine<'_>>) -> u64 {
    let before = streams.packet_loop.card.sent.corrupted;
    let seen = streams.run(SEGMENTS);
    let seen = seen.unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(seen.wrong, 0, "{seen:?}");
    assert_eq!(streams.packet_loop.card.sent.corrupted, before);
    let off = (2 * seen.acknowledgements).abs_diff(seen.segments);
    assert!(off <= u64::from(4 * GUESTS), "{seen:?}");
    seen.acknowledgements
}

type Spoil = fn(&mut Request);

const SPOILED: [Spoil; 10] = [
    |r| r.acks = 0,
    |r| r.acks = ACKS as u32 + 1,
    |r| r.acks = u32::MAX,
    |r| r.ack[0] = r.ack[0].wrapping_sub(0x4000_0000),
    |r| r.header[47] |= 1,
    |r| r.header[56] = 5,
    |r| r.header[20] |= 0x20,
    |r| r.header_length = 60,
    |r| {
        r.fragments = 1;
        r.fragment[0] = Fragment::new(0, 100);
    },
    |r| r.flags = TX_VLAN,
];

/// Each malformed one is refused and sends nothing; the good one after them is sent.
fn refused(engine: &mut TwinEngine<'_>, guest: u32, template: &Request) -> Result<Sent, Stop> {
    let parts = engine.counter("parts");
    for (number, spoil) in SPOILED.into_iter().enumerate() {
        let mut bad = *template;
        spoil(&mut bad);
        let sent = engine.transmit_template(guest, &bad)?;
        assert_eq!(sent, Sent::Invalid, "{number}");
        assert_eq!(engine.result(0), Sent::Invalid, "{number}");
    }
    assert_eq!(engine.counter("parts"), parts, "none was sent");
    engine.transmit_template(guest, template)
}

#[test]
fn acknowledgements_are_the_same_by_template() {
    for lacking in [&[][..], &[Feature::Checksums]] {
        in_child(&format!("without {lacking:?}"), || with_card(lacking));
    }
}
