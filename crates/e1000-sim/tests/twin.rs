//! The stock e1000.ko moves packets as a hypervisor driver.

use std::collections::HashSet;

use e1000_sim::packets::round::Direction;
use e1000_sim::traffic::source::Shape;
use e1000_sim::transport::rendezvous::Limits;

#[path = "common/system.rs"]
mod system;

use system::with_system;

#[test]
fn packets_go_both_ways_without_upcalls() {
    with_system(&HashSet::new(), Limits::default(), |system| {
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
                .unwrap_or_else(|stop| panic!("{stop}\n{}", system.mailbox().console.since(0)));
            eprintln!("{direction:?} {round:?}");
            eprintln!("{:?}", lane.packet_loop.engine.instance.upcalls());
            assert_eq!((round.frames, round.lost, round.corrupted), (1000, 0, 0));
        }
    });
}
