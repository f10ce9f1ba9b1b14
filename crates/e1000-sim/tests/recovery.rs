//! A driver that is aborted while the host takes a packet: after dom0's reset the pools have
//! every object again.

use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::engines::twin;
use e1000_sim::image::Module;
use e1000_sim::inject::recovery::{Mended, Quiet, Recovery};
use e1000_sim::inject::service::{Exchanged, Service};
use e1000_sim::system::System;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::runtime::{self, Cpu, Frame};

#[path = "common/system.rs"]
mod system;

use system::with_system;

/// Packets each way.
const PACKETS: u32 = 8;
/// `HOT_POOLS` and `HOT_POOL_MAX` (runtime/hot/internal.h).
const POOLS: u64 = 3;
const POOL_MAX: u64 = 2048;
/// `enum hot_state` has so many.
const STATES: usize = 4;

/// When the host aborts the driver.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Abort {
    Never,
    /// The packet is the driver's: nobody will release it.
    Before,
    /// The packet waits for a guest.
    After,
}

static ABORT: AtomicU32 = AtomicU32::new(Abort::Never as u32);

/// In place of the service of that name.
extern "C" fn host_receive(cpu: *mut Cpu, frame: *mut Frame) -> c_int {
    let abort = ABORT.load(Ordering::SeqCst);
    if abort == Abort::Before as u32 {
        return runtime::ABORTED;
    }
    let served = twin::HOST_RECEIVE(cpu, frame);
    if abort == Abort::After as u32 {
        return runtime::ABORTED;
    }
    served
}

/// How many objects of each pool are in each state.
fn pools(system: &System<'_>) -> Vec<[usize; STATES]> {
    let plan = &system.blueprint().plan;
    let hot = &plan.image(Module::Hot).expect("hot.o").object;
    let mut symbols = hot.symbols();
    let found = symbols.find(|(_, symbol)| symbol.name == "hot_pools");
    let size = found.expect("the pools").1.size / POOLS;
    let start = plan.symbol("hot_pools").expect("the pools");
    let count = |pool| {
        let mut states = [0; POOL_MAX as usize];
        // The states are a pool's last field.
        let at = start + (pool + 1) * size - POOL_MAX;
        system.memory().read(at, &mut states).expect("the states");
        let mut counts = [0; STATES];
        states.iter().for_each(|s| counts[usize::from(*s)] += 1);
        counts
    };
    (0..POOLS).map(count).collect()
}

#[test]
fn after_an_abort_in_host_receive_the_pools_have_all_again() {
    let limits = Limits::of_seconds(30);
    with_system(&HashSet::new(), limits, |mut system| {
        let engine = system.twin_with(limits, host_receive);
        let quiet = Quiet::note(&system);
        let mut service = Service::start(&system, engine.expect("an instance"), 2).expect("guests");
        let mut after = |abort: Abort| {
            ABORT.store(abort as u32, Ordering::SeqCst);
            let served = service.exchange(0..2, PACKETS);
            ABORT.store(Abort::Never as u32, Ordering::SeqCst);
            match abort {
                Abort::Never => assert_eq!(served.expect("served"), Exchanged::default()),
                Abort::Before | Abort::After => assert!(served.is_err(), "{abort:?}"),
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
