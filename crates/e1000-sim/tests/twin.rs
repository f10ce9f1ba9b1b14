//! The stock e1000.ko moves packets as a hypervisor driver.

use std::collections::HashSet;

use e1000_sim::packets::round::PacketDirection;
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
        let mut runner = system
            .twin_runner(engine, 2, Shape::Frames(1000))
            .unwrap_or_else(|error| panic!("{error}"));
        for direction in [
            PacketDirection::Send,
            PacketDirection::Receive,
            PacketDirection::Send,
            PacketDirection::Receive,
        ] {
            let round = runner
                .run(direction, 1000)
                .unwrap_or_else(|stop| panic!("{stop}\n{}", system.mailbox().console.since(0)));
            eprintln!("{direction:?} {round:?}");
            eprintln!("{:?}", runner.packet_loop.engine.instance.upcalls());
            assert_eq!((round.frames, round.lost, round.corrupted), (1000, 0, 0));
        }
    });
}
