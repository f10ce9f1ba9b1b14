//! The stock e1000.ko moves packets as a hypervisor driver.

use std::collections::HashSet;

use testbed::live::endpoint::Shape;
use testbed::live::files::Files;
use testbed::live::mailbox::Mailbox;
use testbed::live::memory::{Machine, Sizes};
use testbed::live::rendezvous::Limits;
use testbed::live::round::Direction;
use testbed::live::system::{Blueprint, System};
use testbed::program::Variant;

#[test]
fn packets_go_both_ways_without_upcalls() {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let blueprint = Blueprint::new(&files, Variant::ALL[0], &HashSet::new())
        .unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::new(Sizes::default()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    let system = System::start(&blueprint, &machine, mailbox.get(), Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let engine = system
        .twin(Limits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut lane = system
        .twin_lane(engine, 2, Shape::Frames(1000))
        .unwrap_or_else(|error| panic!("{error}"));
    for direction in [
        Direction::Send,
        Direction::Receive,
        Direction::Send,
        Direction::Receive,
    ] {
        let round = lane
            .run(direction, 1000)
            .unwrap_or_else(|stop| panic!("{stop}\n{}", mailbox.get().console.since(0)));
        eprintln!("{direction:?} {round:?}");
        eprintln!("{:?}", lane.pump.engine.instance.upcalls());
        assert_eq!((round.frames, round.lost, round.corrupted), (1000, 0, 0));
    }
}
