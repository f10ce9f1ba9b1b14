//! Time, and the works that wait for it.

use e1000_sim::dom0::{CommandError, Dom0};

use crate::setup::{
    MILLISECOND, SECOND, counters, heap_is_sound, with_dom0, with_link, word, write,
};

/// The reset work sleeps half done while the command waits for it.
#[test]
fn a_command_waits_for_a_work_that_sleeps() {
    with_link(|dom0| {
        for mtu in [1000, 1500, 1200, 1500] {
            dom0.check("kernel_tx_timeout", &[])?;
            dom0.check("kernel_set_mtu", &[mtu])?;
            dom0.check("kernel_tx_timeout", &[])?;
            dom0.close()?;
            dom0.open()?;
        }
        dom0.link_wait(10 * SECOND)?;
        assert_eq!(counters(dom0)?.warnings, 0);
        heap_is_sound(dom0)
    });
}

/// A `delayed_work` in dom0's memory; kernel_check_heap is its function.
fn delayed_work(dom0: &mut Dom0<'_, '_>) -> Result<u64, CommandError> {
    let work = dom0.call("__kmalloc", &[96, 0x100])?.value;
    let symbol = |name| dom0.plan().symbol(name).expect("kernel.o has it");
    let fields = [
        (0, 0xf_ffff_ffe0),
        (8, work + 8),
        (16, work + 8),
        (24, symbol("kernel_check_heap")),
        (56, symbol("delayed_work_timer_fn")),
    ];
    for (offset, value) in fields {
        write(dom0, work + offset, &u64::to_le_bytes(value));
    }
    Ok(work)
}

#[test]
fn delayed_works_run_when_due_and_can_be_cancelled() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let work = delayed_work(dom0)?;
        let ran = |dom0: &mut Dom0<'_, '_>| Ok::<_, CommandError>(counters(dom0)?.works_run);
        // 250 ticks of 4 ms.
        assert_eq!(
            dom0.call("queue_delayed_work_on", &[0, 0, work, 250])?
                .value
                & 1,
            1
        );
        assert_eq!(
            dom0.call("queue_delayed_work_on", &[0, 0, work, 1])?.value & 1,
            0,
            "pending"
        );
        dom0.tick(900 * MILLISECOND)?;
        assert_eq!(ran(dom0)?, 0);
        dom0.tick(200 * MILLISECOND)?;
        assert_eq!(ran(dom0)?, 1);

        dom0.call("queue_delayed_work_on", &[0, 0, work, 250])?;
        assert_eq!(dom0.call("cancel_delayed_work_sync", &[work])?.value & 1, 1);
        assert_eq!(dom0.call("cancel_delayed_work_sync", &[work])?.value & 1, 0);
        dom0.tick(2 * SECOND)?;
        assert_eq!(ran(dom0)?, 1, "cancelled");

        assert_eq!(dom0.call("queue_work_on", &[0, 0, work])?.value & 1, 1);
        dom0.tick(MILLISECOND)?;
        assert_eq!(ran(dom0)?, 2);
        dom0.call("kfree", &[work])?;
        heap_is_sound(dom0)
    });
}

#[test]
fn the_clock_moves_by_sleeping_delaying_and_nudging() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let jiffies = dom0.plan().symbol("jiffies").expect("kernel.o has it");
        let start = word(dom0, jiffies);
        // A boot that takes long is taken for one that waits (dom0/clock.rs).
        let begin = dom0.info()?.now;
        let mut expected = begin;
        for (function, argument, ns) in [
            ("msleep", 100, 100 * MILLISECOND),
            ("__udelay", 50, 50_000),
            // 10 us in units of 2^-32 s.
            ("__const_udelay", 10 * 0x10c7, 10_000),
            ("kernel_clock_nudge", 7 * MILLISECOND, 7 * MILLISECOND),
            ("kernel_tick", SECOND, SECOND),
        ] {
            dom0.call(function, &[argument])?;
            expected += ns;
            let now = dom0.info()?.now;
            assert!(
                now.abs_diff(expected) < 1000,
                "{function}: {now}, {expected}"
            );
            let jiffy = 4 * MILLISECOND;
            assert_eq!(word(dom0, jiffies) - start, now / jiffy - begin / jiffy);
        }
        Ok(())
    });
}
