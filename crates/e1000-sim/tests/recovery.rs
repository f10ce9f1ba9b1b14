//! A driver that is aborted while the host takes a packet: after dom0's reset the pools have
//! every object again.

use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::engines::twin;
use e1000_sim::inject::recovery::{Mended, Quiet, Recovery};
use e1000_sim::inject::service::{Exchanged, Service};
use e1000_sim::transport::rendezvous::Limits;
use process_lab::runtime::{self, Cpu, Frame};

#[path = "common/pools.rs"]
mod pools;
#[path = "common/system.rs"]
mod system;

use pools::pools;
use system::with_system;

/// Packets each way.
const PACKETS: u32 = 8;
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
