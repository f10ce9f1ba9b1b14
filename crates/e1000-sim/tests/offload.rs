//! The stage `offload`: guests' large packets, fragments and checksums where the card has none
//! of them, through the hypervisor and by way of dom0. Without the stage they are refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use e1000_sim::dom0::interface::Feature::{self, Checksums, ScatterGather, Segmentation};
use e1000_sim::dom0::job::Look;
use e1000_sim::memory::Machine;
use e1000_sim::packets::packet_loop::Stop;
use e1000_sim::packets::round::{PacketDirection, Round};
use e1000_sim::paths::{PacketPath, Paths, Work};
use e1000_sim::stages::offload::OffloadCounts;
use e1000_sim::stages::{Stage, Stages};
use e1000_sim::system::{System, SystemError};
use e1000_sim::traffic::source::{HEADER_COPY, Shape};
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "common/system.rs"]
mod system;
#[path = "common/turn.rs"]
mod turn;

use system::child::in_child;
use system::with_changed;

const GUESTS: u32 = 4;
/// Bytes of a large packet's payload: 44 segments.
const LARGE: Shape = Shape::Segments(64240);
const SEGMENTS: u64 = 44;
const FULL: Shape = Shape::Frames(1514);
/// Large packets are that far apart in their guest's memory.
const SLOT: u64 = 68 << 10;
/// Rounds in which a thread must have run.
const PATIENCE: usize = 1000;
/// All of it in the header that is copied anyway: there are no fragments.
const SHORT: Shape = Shape::Frames(HEADER_COPY);

/// In a process of its own, since it has one hypervisor instance.
fn alone(
    name: &str,
    scheme: Scheme,
    (parameters, lacking): (&str, &[Feature]),
    test: impl FnOnce(System<'_>),
) {
    in_child(name, || {
        with_changed(
            scheme,
            |plan| plan.with_driver_args(parameters).without(lacking),
            Limits::of_seconds(60),
            test,
        );
    });
}

fn paths(system: System<'_>, stages: Stages) -> Paths<'_> {
    Paths::with_stages(system, GUESTS, FULL, stages).unwrap_or_else(|error| panic!("{error}"))
}

fn send(
    paths: &mut Paths<'_>,
    path: PacketPath,
    shape: Shape,
    packets: u64,
) -> Result<Round, SystemError> {
    paths.set_shape(shape)?;
    let work = Work {
        direction: PacketDirection::Send,
        packets,
        look: Look::Cycles,
    };
    Ok(paths.run(path, work)?.round)
}

/// Every packet is on the wire as on a card that can all, and nothing else is.
fn all_arrive(paths: &mut Paths<'_>, path: PacketPath, shape: Shape, packets: u64) {
    let round = send(paths, path, shape, packets);
    let round = round.unwrap_or_else(|error| panic!("{} {shape:?}: {error}", path.as_str()));
    assert_eq!((round.lost, round.corrupted), (0, 0), "{path:?} {shape:?}");
    let frames = if shape == LARGE { SEGMENTS } else { 1 };
    assert_eq!(round.frames, packets * frames, "{path:?} {shape:?}");
}

fn counts(paths: &Paths<'_>) -> OffloadCounts {
    paths.stage_counts().offload.expect("the stage is on")
}

fn whatever_the_card_lacks(scheme: Scheme) {
    let cards: [&[Feature]; 4] = [
        &[Segmentation],
        &[Segmentation, ScatterGather],
        &[Segmentation, Checksums],
        &[Segmentation, ScatterGather, Checksums],
    ];
    for lacking in cards {
        alone(&format!("{lacking:?}"), scheme, ("", lacking), |system| {
            let mut paths = paths(system, Stages::of([Stage::Offload]));
            for path in [PacketPath::Twin, PacketPath::Guest] {
                all_arrive(&mut paths, path, LARGE, 40);
                all_arrive(&mut paths, path, FULL, 96);
                all_arrive(&mut paths, path, SHORT, 96);
            }
            let counts = counts(&paths);
            // Of the hypervisor's CPU: dom0's has counters of its own.
            assert_eq!(counts.cut, 40);
            assert_eq!(counts.parts, 40 * SEGMENTS + 96 + 96);
            let copied = lacking.contains(&ScatterGather) || lacking.contains(&Checksums);
            let [segments, full] = [40 * SEGMENTS, 96].map(|n| if copied { n } else { 0 });
            // A segment that the driver has not taken is made again.
            let again = counts.gathered - segments - full;
            assert!(again < 200 && (again == 0 || segments != 0), "{counts:?}");
        });
    }
}

/// What a card can do, it does: nothing is cut, and nothing copied.
fn a_card_that_can_all(scheme: Scheme) {
    alone("a card that can all", scheme, ("", &[]), |system| {
        let mut paths = paths(system, Stages::of([Stage::Offload]));
        for shape in [LARGE, FULL, SHORT] {
            all_arrive(&mut paths, PacketPath::Twin, shape, 40);
        }
        assert_eq!(counts(&paths), OffloadCounts::default());
    });
}

/// Without the stage the hot routines refuse what the card cannot.
fn refused_without_it(scheme: Scheme) {
    alone(
        "without the stage",
        scheme,
        ("", &[Segmentation]),
        |system| {
            let mut paths = paths(system, Stages::NONE);
            let refused = send(&mut paths, PacketPath::Twin, LARGE, 1);
            let Err(SystemError::Stop(stop)) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(stop.0, Stop::Stuck("a request was called malformed"));
            all_arrive(&mut paths, PacketPath::Twin, FULL, 40);
        },
    );
}

/// A ring with room for half a packet: segments wait for polls, requests behind them.
fn small_rings(scheme: Scheme) {
    for lacking in [&[Segmentation][..], &[Segmentation, Checksums]] {
        let card = ("TxDescriptors=80", lacking);
        alone("small rings", scheme, card, |system| {
            let mut paths = paths(system, Stages::of([Stage::Offload]));
            for path in [PacketPath::Twin, PacketPath::Guest] {
                all_arrive(&mut paths, path, LARGE, 60);
                all_arrive(&mut paths, path, FULL, 60);
            }
        });
    }
}

/// A guest that changes its packets while they are sent costs nobody else anything.
fn changed_meanwhile(scheme: Scheme) {
    let lacking = [Segmentation, ScatterGather, Checksums];
    alone("changed meanwhile", scheme, ("", &lacking), |system| {
        let machine = system.machine();
        let mut paths = paths(system, Stages::of([Stage::Offload]));
        let (passes, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut rounds = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    scribble(machine);
                    passes.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Until it has gone over all of its memory while packets were sent.
            let goes_on = |rounds: &[Result<Round, SystemError>]| {
                let failed = rounds.last().is_some_and(Result::is_err);
                !failed && rounds.len() < PATIENCE && passes.load(Ordering::Relaxed) < 2
            };
            while goes_on(&rounds) {
                rounds.push(send(&mut paths, PacketPath::Twin, LARGE, 80));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(rounds.len() < PATIENCE, "the guest never ran");
        for round in rounds {
            let round = round.unwrap_or_else(|error| panic!("{error}"));
            // Its own frames are wrong. All are sent, and no more.
            assert_eq!(round.frames + round.corrupted, 80 * SEGMENTS, "{round:?}");
            assert!(round.frames >= 80 * SEGMENTS / 4, "{round:?}");
        }
        all_arrive(&mut paths, PacketPath::Twin, LARGE, 40);
    });
}

/// A guest's packets with other bytes, beyond their headers, which begin at the slots.
fn scribble(machine: &Machine) {
    let memory = machine.sizes().guest(0);
    for at in memory.clone().step_by(97) {
        if (at - memory.start) % SLOT >= HEADER_COPY as u64 {
            machine.write(at, &[at as u8]).expect("its memory");
        }
    }
}

#[test]
fn cards_that_lack_something() {
    let _turn = turn::turn();
    for scheme in [Scheme::Stlb, Scheme::Window32] {
        whatever_the_card_lacks(scheme);
    }
    whatever_the_card_lacks(Scheme::Window);
}

#[test]
fn the_stage_by_itself() {
    let _turn = turn::turn();
    a_card_that_can_all(Scheme::Stlb);
    refused_without_it(Scheme::Stlb);
    small_rings(Scheme::Stlb);
    small_rings(Scheme::Window);
    changed_meanwhile(Scheme::Stlb);
}
