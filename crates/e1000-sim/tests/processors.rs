//! Two processors at once, each a process with a card and an instance of the driver, that share
//! guests' queues. Nothing is lost, repeated or out of order whatever happens to one of them:
//! its instance is aborted, its card has one flow or none, a guest takes nothing.
//!
//! A queue holds 64 packets, and each run sends far more than all queues hold to each
//! processor's: neither can end before the other has worked. So they overlap on any machine.

use std::collections::HashSet;

use e1000_sim::experiment::apart::{apart, together};
use e1000_sim::image::files::Files;
use e1000_sim::inject::recovery::{Mended, Quiet, Recovery};
use e1000_sim::live::price::QUOTED;
use e1000_sim::packets::packet_loop::Card;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::processors::exchange::Exchange;
use e1000_sim::processors::handing::{HandedCounts, Outward, POLL, POLLS, WEIGHT};
use e1000_sim::processors::model::{Locks, Traffic};
use e1000_sim::processors::queues::{ROOM, Spread};
use e1000_sim::processors::real::{BATCH, Done, Processor, SentDone, Shared, with_processor};
use e1000_sim::processors::simulated::{self, Case, Simulated};
use e1000_sim::processors::work::{Handing, WorkPrice};
use e1000_sim::processors::{receiving, sending};
use e1000_sim::system::{Blueprint, SystemError};
use e1000_sim::traffic::{Datagrams, Sink};
use e1000_sim::transport::mailbox::SharedPages;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::{Scheme, Variant};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[path = "common/abort.rs"]
mod abort;
#[path = "common/pools.rs"]
mod pools;
#[path = "common/turn.rs"]
mod turn;

use abort::{Abort, host_receive};
use pools::pools;

const PROCESSORS: u32 = 2;
const GUESTS: u32 = 2;
const QUEUES: u32 = 2;
const FLOWS: u32 = 8;
const SIZE: usize = 300;
/// Of each processor and run: many times what all queues hold.
const FRAMES: u32 = 2048;
const _: () = assert!(FRAMES as usize > 4 * ROOM * (GUESTS * QUEUES) as usize);

const SPREAD: Spread = Spread {
    guests: GUESTS,
    queues: QUEUES,
    processors: PROCESSORS,
};

fn limits() -> Limits {
    Limits::of_seconds(60)
}

/// Both processors do their parts at once; `work` has their numbers.
fn at_once(
    flows: u32,
    work: impl Fn(&mut Processor<'_, '_>, u32) -> Result<(), SystemError>,
) -> (Vec<Done>, SharedPages<Exchange>) {
    at_once_and(flows, work, Done::of)
}

/// The same, and what `done` says of each.
fn at_once_and<T: Serialize + DeserializeOwned>(
    flows: u32,
    work: impl Fn(&mut Processor<'_, '_>, u32) -> Result<(), SystemError>,
    of: impl Fn(&Processor<'_, '_>) -> T,
) -> (Vec<T>, SharedPages<Exchange>) {
    let _turn = turn::turn();
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let variant = Variant::here(Scheme::Stlb);
    let blueprint = Blueprint::new(&files, variant, &HashSet::new());
    let blueprint = blueprint.unwrap_or_else(|error| panic!("{error}"));
    let pages = SharedPages::<Exchange>::new().expect("memory");
    let shared = Shared {
        receive: host_receive,
        ..Shared::new(pages.get(), SPREAD, flows, SIZE)
    };
    let done = together(PROCESSORS, |number| {
        with_processor(&blueprint, shared, number, limits(), |processor| {
            processor.port.meet()?;
            work(processor, number)?;
            processor.port.meet()?;
            Ok(of(processor))
        })
    });
    (done.unwrap_or_else(|error| panic!("{error}")), pages)
}

/// The whole of what both did, with nothing damaged.
fn all(done: &[Done]) -> Done {
    let all = Done::sum(done);
    assert_eq!(all.corrupted, 0);
    for (flow, [packets, _, reordered]) in all.flows.iter().enumerate() {
        assert_eq!(*reordered, 0, "flow {flow} of {packets} packets");
        // A flow has one queue, and so one processor.
        let takers = done.iter().filter(|done| done.flows[flow][0] > 0);
        assert!(takers.count() <= 1, "flow {flow}");
    }
    all
}

#[test]
fn two_processors_share_the_guests_queues() {
    let (done, pages) = at_once(FLOWS, |processor, _| Ok(processor.receive(FRAMES)?));
    let all = all(&done);
    let each = u64::from(FRAMES / FLOWS);
    assert_eq!(all.flows, vec![[each, 0, 0]; (PROCESSORS * FLOWS) as usize]);
    assert_eq!(all.counts.taken, u64::from(PROCESSORS * FRAMES));
    // Each took of what came in by the other's card.
    for (number, done) in done.iter().enumerate() {
        let (first, second) = done.flows.split_at(FLOWS as usize);
        let others = if number == 0 { second } else { first };
        assert!(others.iter().any(|[packets, ..]| *packets > 0), "{number}");
    }
    assert!(pages.get().all_free());
}

/// One instance is aborted while the other processor moves packets, and serves again after dom0
/// has reset its driver.
#[test]
fn an_abort_leaves_the_other_processor_running() {
    for abort in [Abort::Before, Abort::After] {
        let (done, pages) = at_once(FLOWS, |processor, number| match number {
            0 => other(processor),
            _ => aborted(processor, abort),
        });
        let all = all(&done);
        let each = u64::from(FRAMES / FLOWS);
        let (first, second) = all.flows.split_at(FLOWS as usize);
        // Three times that many: before, while it was aborted, after.
        assert_eq!(first, vec![[3 * each, 0, 0]; FLOWS as usize]);
        // Twice, and the batch that the driver had is lost.
        let lost = u64::from(BATCH / FLOWS);
        assert_eq!(second, vec![[2 * each, lost, 0]; FLOWS as usize]);
        assert!(pages.get().all_free());
    }
}

/// What the other processor does meanwhile.
fn other(processor: &mut Processor<'_, '_>) -> Result<(), SystemError> {
    processor.receive(FRAMES)?;
    processor.port.meet()?;
    processor.receive(FRAMES)?;
    processor.port.meet()?;
    Ok(processor.receive(FRAMES)?)
}

fn aborted(processor: &mut Processor<'_, '_>, abort: Abort) -> Result<(), SystemError> {
    let quiet = Quiet::note(&processor.system);
    mend(processor, &quiet);
    let usual = pools(&processor.system);
    processor.receive(FRAMES)?;
    abort.set();
    assert!(processor.receive(FRAMES).is_err(), "it is aborted");
    Abort::Never.set();
    // Between these two the other one moves packets, of which half are in queues that this
    // processor serves, without its driver.
    processor.port.meet()?;
    processor.port.meet()?;
    mend(processor, &quiet);
    assert_eq!(pools(&processor.system), usual, "no buffer is lost");
    Ok(processor.receive(FRAMES)?)
}

fn mend(processor: &mut Processor<'_, '_>, quiet: &Quiet) {
    let mut recovery = Recovery {
        system: &mut processor.system,
        service: &mut processor.service,
        quiet,
        start: limits(),
        limits: limits(),
    };
    assert_eq!(recovery.mend(), Ok((Mended::Reset, None)));
}

/// All frames are of one flow: one card, one queue, one processor that takes; in order.
#[test]
fn a_hot_flow_has_one_processor() {
    let (done, _) = at_once(1, |processor, number| match number {
        0 => Ok(processor.receive(FRAMES)?),
        _ => Ok(()),
    });
    assert_eq!(
        all(&done).flows,
        [[u64::from(FRAMES), 0, 0], [0, 0, 0]],
        "the other card had none"
    );
    let mut taken = [0, 1].map(|number: usize| done[number].counts.taken);
    taken.sort_unstable();
    assert_eq!(taken, [0, u64::from(FRAMES)]);
}

/// A processor whose card has no frames serves the queues that are its own.
#[test]
fn a_processor_without_frames_takes_its_part() {
    let (done, _) = at_once(FLOWS, |processor, number| match number {
        0 => Ok(processor.receive(FRAMES)?),
        _ => Ok(()),
    });
    let all = all(&done);
    assert_eq!(all.counts.taken, u64::from(FRAMES));
    assert_eq!((done[1].counts.put, done[1].counts.waits), (0, 0));
    assert!(done[1].counts.taken > 0);
}

/// Guest 1 takes nothing, and frames for it do not end: its queues are full, what does not fit
/// is dropped, and guest 0 gets all of its own. When it wakes up it gets what waited.
#[test]
fn a_flooded_guest_costs_the_other_nothing() {
    let (done, pages) = at_once(FLOWS, |processor, _| {
        processor.exchange().sleep(1, true);
        processor.port.meet()?;
        processor.receive(FRAMES)?;
        processor.port.meet()?;
        let queues = u64::from(QUEUES) * ROOM as u64;
        assert_eq!(processor.exchange().waiting(&SPREAD, 1), queues);
        processor.port.meet()?;
        processor.exchange().sleep(1, false);
        Ok(())
    });
    let all = all(&done);
    let half = u64::from(PROCESSORS * FRAMES / GUESTS);
    let waited = u64::from(QUEUES) * ROOM as u64;
    assert_eq!(all.counts.dropped, half - waited);
    assert_eq!(all.counts.taken, half + waited);
    // Flows are the guests' by turns.
    let each = u64::from(FRAMES / FLOWS);
    for (flow, seen) in all.flows.iter().enumerate().step_by(GUESTS as usize) {
        assert_eq!(*seen, [each, 0, 0], "flow {flow} of guest 0");
    }
    assert!(pages.get().all_free());
}

/// Packets of each flow in a part of a run that sends: many times a flow's window.
const SENT: u64 = 1000;
const ALL_FLOWS: u32 = PROCESSORS * FLOWS;

/// Whether so many packets of each of these flows were sent.
fn sent(flows: impl IntoIterator<Item = u32>, most: u64, outward: &Outward) -> bool {
    flows.into_iter().all(|flow| outward.sent(flow) >= most)
}

/// The flows of a card.
fn of_card(card: usize) -> impl Iterator<Item = u32> {
    (0..ALL_FLOWS).skip(card).step_by(PROCESSORS as usize)
}

/// Guests of both processors send by both cards: each packet is on its card's cable once, in its flow's order,
/// and each processor has handed packets to the other's card.
#[test]
fn two_processors_send_by_each_others_cards() {
    let (done, pages) = at_once_and(
        FLOWS,
        |processor, _| Ok(processor.send(SENT, |outward| sent(0..ALL_FLOWS, SENT, outward))?),
        SentDone::of,
    );
    for (card, done) in done.iter().enumerate() {
        assert_eq!(done.corrupted, 0);
        for (flow, seen) in (0..).zip(&done.flows) {
            let own = of_card(card).any(|own| own == flow);
            let packets = if own { SENT } else { 0 };
            assert_eq!(*seen, [packets, 0, 0], "card {card}, flow {flow}");
        }
        let HandedCounts {
            taken,
            handed,
            refused,
            dropped,
            ..
        } = done.counts;
        assert_eq!((handed, refused, dropped), (taken, 0, 0));
        // The half of what this processor took is the other card's: flows have cards by turns.
        assert!(taken > 0, "{card}");
    }
    let taken: u64 = done.iter().map(|done| done.counts.taken).sum();
    assert_eq!(taken, u64::from(ALL_FLOWS) * SENT);
    assert!(pages.get().all_free());
}

/// One card's driver is aborted while packets are being sent. Its processor goes on to hand what its
/// guests send by the other card; that is all sent before the driver is back. Of what goes by its own
/// card no more than what the driver had is lost, and no order.
#[test]
fn an_aborted_card_holds_up_no_other() {
    let (done, pages) = at_once_and(
        FLOWS,
        |processor, number| {
            let quiet = Quiet::note(&processor.system);
            if number == 1 {
                mend_apart(processor, &quiet);
            }
            processor.send(SENT, |outward| sent(0..ALL_FLOWS, SENT, outward))?;
            processor.port.meet()?;
            if number == 1 {
                aborted_while_sending(processor, &quiet)?;
            }
            let all = |outward: &Outward| sent(0..ALL_FLOWS, 2 * SENT, outward);
            Ok(processor.send(2 * SENT, all)?)
        },
        SentDone::of,
    );
    for (card, done) in done.iter().enumerate() {
        assert_eq!((done.corrupted, done.counts.dropped), (0, 0));
        let packets: u64 = done.flows.iter().map(|[packets, ..]| packets).sum();
        let reordered = done.flows.iter().map(|[_, _, reordered]| reordered);
        assert_eq!(reordered.sum::<u64>(), 0);
        let all = u64::from(FLOWS) * 2 * SENT;
        let most = if card == 1 { WEIGHT as u64 } else { 0 };
        assert!((all - most..=all).contains(&packets), "{card}: {packets}");
    }
    assert!(pages.get().all_free());
}

fn aborted_while_sending(
    processor: &mut Processor<'_, '_>,
    quiet: &Quiet,
) -> Result<(), SystemError> {
    let usual = pools(&processor.system);
    Abort::Before.set();
    // The poll that finds what was sent meets it, and stops.
    let mut frames = Datagrams::new(e1000_sim::processors::flow(0, 0), SIZE);
    assert!(
        processor
            .service
            .packet_loop
            .card
            .receive(frames.finished(0))
    );
    assert!(
        processor.send(2 * SENT, |_| false).is_err(),
        "it is aborted"
    );
    Abort::Never.set();
    let others = |outward: &Outward| sent(of_card(0), 2 * SENT, outward);
    processor.hand(2 * SENT, others)?;
    let own = processor.exchange().outward.sent(1);
    assert!(own < 2 * SENT, "its card's flows wait");
    let lost = processor.sending.forget();
    assert!((1..=WEIGHT as u64).contains(&lost), "{lost}");
    mend_apart(processor, quiet);
    assert_eq!(pools(&processor.system), usual, "no buffer is lost");
    Ok(())
}

/// Mends; the packets that prove it are none of the flows'.
fn mend_apart(processor: &mut Processor<'_, '_>, quiet: &Quiet) {
    let wire = |processor: &mut Processor<'_, '_>, other: Sink| {
        std::mem::replace(&mut processor.service.packet_loop.card.sent, other)
    };
    let flows = wire(processor, Sink::new(GUESTS as usize));
    mend(processor, quiet);
    wire(processor, flows);
}

/// With the real driver's price, which is the same each time that it is counted.
#[test]
fn the_simulation_is_of_the_counted_price() {
    let _turn = turn::turn();
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let counted = || {
        let prices = apart(|| simulated::prices(&files, Variant::here(Scheme::Stlb)));
        prices.unwrap_or_else(|error| panic!("{error}"))
    };
    let [price, full] = counted();
    assert_eq!([price, full], counted());
    let Handing {
        round,
        check,
        take,
        put,
        tried,
        described,
    } = price.handing;
    let handing = [
        round, check, take.one, take.each, put.one, put.each, tried, described,
    ];
    let parts = [price.hash, price.put, price.take, price.driver.packet];
    let parts = parts.iter().chain(&handing).chain([&price.sent.guest]);
    assert!(parts.copied().all(|part| part > 0), "{price:?}");
    assert!(price.sent.guest < price.sent.packet);
    // What one processor carries bounds what all do, and a lock of each queue's own lets them.
    let ratio = |direction, case, locks, processors| {
        let rate = |count| short(direction, case, locks, count, &price);
        rate(processors) / rate(1)
    };
    for direction in [PacketDirection::Receive, PacketDirection::Send] {
        for case in [Case::OwnCard, Case::EveryCard] {
            assert!(ratio(direction, case, Locks::Queues, 4) >= 2.61, "{case:?}");
            assert!(ratio(direction, case, Locks::One, 4) < 2.61, "{case:?}");
        }
        assert!(ratio(direction, Case::HotQueue, Locks::Queues, 8) < 2.61);
        assert!((ratio(direction, Case::HotFlow, Locks::Queues, 8) - 1.0).abs() < 1e-9);
    }
    both_back_ends_fill_the_cables(&[price, full]);
}

/// Ten cards of full frames on eight processors: threads cost more than tasklets, by their switches
/// only, and both lose nothing.
fn both_back_ends_fill_the_cables(prices: &[WorkPrice; 2]) {
    let all = simulated::all(*prices);
    handing_has_the_designs_part(&all);
    for pair in all.compared.chunks(2) {
        let [tasklets, threads] = pair else {
            panic!("two of each direction");
        };
        assert_eq!((tasklets.damage, threads.damage), (0, 0));
        assert!(tasklets.bits > 9.5e9 && threads.bits > 9.5e9, "{pair:?}");
        assert!(tasklets.switches == 0.0 && threads.switches > 0.0);
        assert!(threads.load > tasklets.load, "{pair:?}");
        // On busy processors a thread has no reason to sleep.
        assert!(threads.ratio > 0.9 * tasklets.ratio, "{pair:?}");
    }
}

/// Handing has the design's 0.85 of each processor, of the better of what one alone does by any locks; and
/// no wait for a card's queue is longer than the code polls.
fn handing_has_the_designs_part(all: &Simulated) {
    for case in [Case::OwnCard, Case::EveryCard] {
        for processors in [4, 8] {
            let line = all.line(PacketDirection::Send, case, Locks::Handed, processors);
            let line = line.expect("simulated");
            assert_eq!(line.outcome.damage(), 0);
            assert!(
                line.ratio >= 0.85 * f64::from(processors),
                "{case:?} {}",
                line.ratio
            );
            assert!(line.outcome.longest_wait < u64::from(POLLS * POLL));
        }
    }
}

/// A row's run, of five milliseconds; nothing is lost or out of order in it.
fn short(
    direction: PacketDirection,
    case: Case,
    locks: Locks,
    processors: u32,
    price: &WorkPrice,
) -> f64 {
    let traffic = Traffic {
        time: 5_000_000,
        ..case.traffic()
    };
    let machine = case.machine(processors, locks);
    let seen = match direction {
        PacketDirection::Send => sending::simulate(&machine, &traffic, price, &QUOTED),
        PacketDirection::Receive => receiving::simulate(&machine, &traffic, price, &QUOTED),
    };
    assert_eq!((seen.missed, seen.dropped, seen.reordered), (0, 0, 0));
    assert_eq!(seen.sent, seen.packets);
    seen.rate(&traffic)
}
