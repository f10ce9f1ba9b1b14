//! A driver that is aborted while the host takes a packet: after dom0's reset the pools have
//! every object again.

use std::collections::HashSet;

use e1000_sim::inject::recovery::{Mended, Quiet, Recovery};
use e1000_sim::inject::service::{Exchanged, Service};
use e1000_sim::transport::rendezvous::Limits;

#[path = "common/abort.rs"]
mod abort;
#[path = "common/pools.rs"]
mod pools;
#[path = "common/system.rs"]
mod system;

use abort::{Abort, host_receive};
use pools::pools;
use system::with_system;

/// Packets each way.
const PACKETS: u32 = 8;

#[test]
fn after_an_abort_in_host_receive_the_pools_have_all_again() {
    let limits = Limits::of_seconds(30);
    with_system(&HashSet::new(), limits, |mut system| {
        let engine = system.twin_with(limits, host_receive);
        let quiet = Quiet::note(&system);
        let mut service = Service::start(&system, engine.expect("an instance"), 2).expect("guests");
        let mut after = |abort: Abort| {
            abort.set();
            let served = service.exchange(0..2, PACKETS);
            Abort::Never.set();
            match abort {
                Abort::Never => assert_eq!(served.expect("served"), Exchanged::default()),
                Abort::Before | Abort::After | Abort::Once => assert!(served.is_err(), "{abort:?}"),
            }
            let mut recovery = Recovery {
                system: &mut system,
                service: &mut service,
                quiet: &quiet,
                start: limits,
                limits,
            };
            assert_eq!(recovery.mend(), Ok((Mended::Reset, None)), "{abort:?}");
            pools(&system)
        };
        let usual = after(Abort::Never);
        for abort in [Abort::Before, Abort::After, Abort::Before] {
            assert_eq!(after(abort), usual, "{abort:?}");
        }
    });
}
