//! A guest that names frames which are not its own, by either of the guests' paths:
//! its packets are refused and counted, the loop goes on, the others lose nothing.

use std::collections::HashSet;

use e1000_sim::dom0::job::Look;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::paths::{PacketPath, Paths, Work};
use e1000_sim::traffic::source::{Shape, TrafficSource};
use e1000_sim::transport::rendezvous::Limits;

#[path = "common/system.rs"]
mod system;

use system::with_system;

/// Guests: an honest one and this one, whose packets lie in a third's memory.
const LIAR: usize = 1;
const VICTIM: u32 = 2;
const GUESTS: u32 = 2;
const PACKETS: u64 = 300;
const FRAME: usize = 1000;

#[test]
fn a_guest_that_lies_costs_the_others_nothing() {
    let limits = Limits::of_seconds(30);
    with_system(&HashSet::new(), limits, |system| {
        let shape = Shape::Frames(FRAME);
        let mut paths = Paths::new(system, GUESTS, shape).unwrap_or_else(|error| panic!("{error}"));
        let machine = paths.system.machine();
        let liar = |source: &mut TrafficSource<'_>| {
            let memory = machine.sizes().guest(VICTIM);
            TrafficSource::new(machine, source.flow(), memory, shape, GUESTS as usize)
        };
        let own = &mut paths.twin_sources()[LIAR];
        *own = liar(own);
        let front = paths.guest().unwrap_or_else(|error| panic!("{error}"));
        front.sources[LIAR] = liar(&mut front.sources[LIAR]);
        for path in [PacketPath::Twin, PacketPath::Guest, PacketPath::Twin] {
            let work = Work {
                direction: PacketDirection::Send,
                packets: PACKETS,
                look: Look::Cycles,
            };
            let seen = paths.run(path, work);
            let round = seen
                .unwrap_or_else(|error| panic!("{path:?}: {error}"))
                .round;
            assert!(round.foreign > PACKETS / 4, "{path:?} {round:?}");
            assert_eq!(round.frames + round.foreign, PACKETS, "{path:?}");
            assert_eq!((round.lost, round.corrupted), (0, 0), "{path:?}");
            let sources = match path {
                PacketPath::Twin => paths.twin_sources(),
                _ => &paths.guest().expect("it ran").sources,
            };
            // None of the liar's went out, none of the other's was refused.
            assert_eq!((sources[0].refused, sources[LIAR].completed), (0, 0));
            assert_eq!(sources[0].completed, sources[0].sent, "{path:?}");
        }
    });
}
