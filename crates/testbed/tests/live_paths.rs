//! The four paths of the paper's figures 5 to 8 move the same packets.

use std::collections::HashSet;

use testbed::live::endpoint::Shape;
use testbed::live::files::Files;
use testbed::live::job::Look;
use testbed::live::mailbox::Mailbox;
use testbed::live::memory::{Machine, Sizes};
use testbed::live::paths::{Path, Paths, Work};
use testbed::live::rendezvous::Limits;
use testbed::live::round::Direction;
use testbed::live::system::{Blueprint, System};
use testbed::program::Variant;

#[test]
fn every_path_moves_packets_of_all_shapes() {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let blueprint = Blueprint::new(&files, Variant::ALL[0], &HashSet::new())
        .unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::new(Sizes::default()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    let system = System::start(&blueprint, &machine, mailbox.get(), Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut paths =
        Paths::new(system, 8, Shape::Frames(1514)).unwrap_or_else(|error| panic!("{error}"));
    for shape in [
        Shape::Frames(1514),
        Shape::Frames(60),
        Shape::Frames(97),
        Shape::Segments(64240),
    ] {
        paths
            .set_shape(shape)
            .unwrap_or_else(|error| panic!("{error}"));
        for direction in [Direction::Send, Direction::Receive] {
            for path in Path::ALL {
                for look in [Look::Cycles, Look::Profile, Look::Steps] {
                    let packets = if look == Look::Steps { 32 } else { 320 };
                    let work = Work {
                        direction,
                        packets,
                        look,
                    };
                    let seen = paths.run(path, work).unwrap_or_else(|error| {
                        panic!(
                            "{} {direction:?} {shape:?} {look:?}: {error}\n{}",
                            path.name(),
                            mailbox.get().console.since(0)
                        )
                    });
                    let round = seen.round;
                    eprintln!(
                        "{shape:?} {direction:?} {} {look:?}: median {:.0} ({:.0}..{:.0}) steps {:?}",
                        path.name(),
                        round.median,
                        round.low,
                        round.high,
                        seen.steps.by.map(|s| s / packets)
                    );
                    assert_eq!((round.lost, round.corrupted, seen.upcalls), (0, 0, 0));
                }
            }
        }
    }
}
