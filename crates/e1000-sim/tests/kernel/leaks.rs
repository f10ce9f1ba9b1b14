//! Nothing is lost: over reloads, and when an allocation fails.

use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::transport::mailbox::Event;

use crate::setup::{SECOND, counters, heap_is_sound, with_dom0};

/// Allocations and pages that are held, and warnings so far.
fn held(dom0: &mut Dom0<'_, '_>) -> Result<[u64; 3], CommandError> {
    let now = counters(dom0)?;
    Ok([
        now.allocations - now.frees,
        now.pages_allocated,
        now.warnings,
    ])
}

#[test]
fn reloading_the_driver_leaks_nothing() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let mut before = None;
        for round in 0..10 {
            dom0.load("")?;
            dom0.open()?;
            dom0.link_wait(10 * SECOND)?;
            dom0.close()?;
            dom0.open()?;
            dom0.remove()?;
            assert_eq!(dom0.mailbox().events.get(Event::Unregistered).0, round + 1);
            let held = held(dom0)?;
            // The first round's pools and worker stay.
            if round > 0 {
                assert_eq!(*before.get_or_insert(held), held, "round {round}");
            }
        }
        heap_is_sound(dom0)
    });
}

/// Each allocation of probe and open fails once: the driver reports it and gives
/// back all it had, and then works.
#[test]
fn a_failing_allocation_is_an_error_and_no_leak() {
    with_dom0(|dom0| {
        dom0.boot()?;
        // The pools of hot.o stay, so they come before the count.
        dom0.load("")?;
        dom0.open()?;
        dom0.remove()?;
        let before = held(dom0)?;
        let mut refused = 0;
        for which in 1.. {
            dom0.call("kernel_fail_allocation", &[which])?;
            let loaded = dom0.load("").is_ok();
            let opened = loaded && dom0.open().is_ok();
            refused += u32::from(!opened);
            let unused = dom0.call("kernel_fail_allocation", &[0])?.value;
            dom0.remove()?;
            assert_eq!(held(dom0)?, before, "allocation {which}");
            if unused > 0 {
                assert!(opened, "no allocation failed");
                break;
            }
        }
        assert!(refused >= 6, "{refused} of the driver's allocations");
        heap_is_sound(dom0)
    });
}
