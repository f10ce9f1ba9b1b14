//! The four paths of the paper's figures 5 to 8 move the same packets, and so does the fifth.

use std::collections::HashSet;

use e1000_sim::dom0::job::Look;
use e1000_sim::measure::profile::Component;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::paths::{PacketPath, Paths, RoundResult, Work};
use e1000_sim::replay::Turn;
use e1000_sim::traffic::source::Shape;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "system.rs"]
mod system;

use system::with_scheme;

/// Packets whose instructions are counted: a signal each.
const STEPPED: u64 = 8;
/// Instructions of the hypervisor for a packet, where few come at once.
const MOST_OF_HYPERVISOR: u64 = 4000;
/// Packets of a recording: more than a batch.
const RECORDED: u64 = 48;

/// Every path moves packets of all shapes. Once in a process.
pub fn run(scheme: Scheme) {
    let has_table = Scheme::TABLES.contains(&scheme);
    with_scheme(scheme, &HashSet::new(), Limits::default(), |system| {
        let mut paths =
            Paths::new(system, 8, Shape::Frames(1514)).unwrap_or_else(|error| panic!("{error}"));
        let shapes = [
            Shape::Frames(1514),
            Shape::Frames(60),
            Shape::Frames(97),
            Shape::Segments(64240),
        ];
        for shape in shapes {
            paths
                .set_shape(shape)
                .unwrap_or_else(|error| panic!("{error}"));
            for (direction, path) in both_ways() {
                let seen = moves(&mut paths, path, direction, Look::Cycles, 320);
                check_turns(path, &seen);
            }
        }
        paths
            .set_shape(Shape::Frames(1514))
            .unwrap_or_else(|error| panic!("{error}"));
        for direction in [PacketDirection::Send, PacketDirection::Receive] {
            plays_alone(&mut paths, direction, has_table);
        }
        for (direction, path) in both_ways() {
            let seen = moves(&mut paths, path, direction, Look::Steps, STEPPED);
            let steps = seen.steps;
            // A driver does not send or receive a packet in a hundred instructions.
            assert!(steps.of(Component::Driver) > STEPPED * 100, "{steps:?}");
            assert!(steps.of(Component::Support) > STEPPED * 100, "{steps:?}");
            assert_eq!(
                path == PacketPath::Twin && has_table,
                steps.lookups > STEPPED * 10,
                "{steps:?}"
            );
            // The making of frames is nobody's, whichever path was counted before: it alone
            // takes more.
            assert!(
                steps.of(Component::Hypervisor) < STEPPED * MOST_OF_HYPERVISOR,
                "{path:?} {direction:?} {steps:?}"
            );
        }
    });
}

/// Both drivers can play the recording, and a play has no lasting effect: packets after
/// it arrive.
fn plays_alone(paths: &mut Paths<'_>, direction: PacketDirection, has_table: bool) {
    let tape = paths
        .record(direction, RECORDED)
        .unwrap_or_else(|error| panic!("{direction:?}: {error}"));
    assert_eq!(tape.packets, RECORDED);
    assert!(tape.instructions > RECORDED * 100, "{}", tape.instructions);
    let failed = |error| -> Turn { panic!("{direction:?}: {error}") };
    // A turn compares the memory that the driver leaves with that of the recording.
    paths.play_natively().unwrap_or_else(failed);
    paths.play_rewritten(&tape).unwrap_or_else(failed);
    let rewritten = paths.count_rewritten(&tape).expect("single steps");
    let driver = rewritten.of(Component::Driver);
    match has_table {
        true => assert!(driver > tape.instructions),
        // docs/spec/window.md: most instructions stay single ones.
        false => assert!(
            driver < tape.instructions * 5 / 4,
            "{rewritten:?} {}",
            tape.instructions
        ),
    }
    assert_eq!(
        rewritten.lookups > RECORDED * 10,
        has_table,
        "{rewritten:?}"
    );
    for path in [PacketPath::Native, PacketPath::Twin] {
        moves(paths, path, direction, Look::Cycles, 320);
    }
}

/// Cycles are assigned to the component that ran, also where one process waits for
/// another.
fn check_turns(path: PacketPath, seen: &RoundResult) {
    let turns = Component::COSTS.map(|cost| seen.round.spent[cost as usize] > 0);
    // Driver, support: never a turn; hypervisor, dom0, guest.
    let expected = match path {
        PacketPath::Native => [false, false, false, true, false],
        PacketPath::Dom0 => [false, false, true, true, false],
        PacketPath::Guest => [false, false, true, true, true],
        PacketPath::Twin | PacketPath::Unconfined => [false, false, true, false, true],
    };
    assert_eq!(turns, expected, "{path:?} {:?}", seen.round);
}

fn both_ways() -> impl Iterator<Item = (PacketDirection, PacketPath)> {
    let directions = [PacketDirection::Send, PacketDirection::Receive];
    directions
        .into_iter()
        .flat_map(|direction| PacketPath::ALL.map(|path| (direction, path)))
}

fn moves(
    paths: &mut Paths<'_>,
    path: PacketPath,
    direction: PacketDirection,
    look: Look,
    packets: u64,
) -> RoundResult {
    let work = Work {
        direction,
        packets,
        look,
    };
    let seen = paths.run(path, work).unwrap_or_else(|error| {
        let console = paths.system.mailbox().console.since(0);
        panic!(
            "{} {direction:?} {look:?}: {error}\n{console}",
            path.as_str()
        )
    });
    let round = seen.round;
    assert_eq!((round.lost, round.corrupted, seen.upcalls), (0, 0, 0));
    assert!(round.frames >= packets, "{round:?}");
    seen
}
