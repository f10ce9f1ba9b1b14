//! When interrupts are taken, and the link's interrupt.

use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::transport::mailbox::Event;
use e1000_sim::transport::wire::NicPort;

use crate::packets::{frame, received};
use crate::setup::{MAC, MILLISECOND, SECOND, with_link};

#[test]
fn interrupts_wait_for_the_flag_and_the_disable_depth() {
    const AGAIN: i64 = -11;
    with_link(|dom0| {
        let irq = u64::from(dom0.info()?.irq);
        let take = |dom0: &mut Dom0<'_, '_>| Ok::<_, CommandError>(dom0.interrupt()?.value as i64);
        let lock = dom0.call("__kmalloc", &[64, 0x100])?.value;
        let flags = dom0.call("_raw_spin_lock_irqsave", &[lock])?.value;
        assert_eq!(take(dom0)?, AGAIN, "flag clear");
        dom0.call("_raw_spin_unlock_irqrestore", &[lock, flags])?;
        assert_eq!(take(dom0)?, 0, "not the device's");
        dom0.call("disable_irq", &[irq])?;
        dom0.call("disable_hardirq", &[irq])?;
        dom0.call("enable_irq", &[irq])?;
        assert_eq!(take(dom0)?, AGAIN, "still disabled");
        let frame = frame(MAC, 100);
        NicPort::new(dom0.mailbox(), dom0.machine(), dom0.plan().space().dma()).receive(&frame);
        dom0.tick(10 * MILLISECOND)?;
        assert!(received(dom0)?.is_empty());
        dom0.call("enable_irq", &[irq])?;
        dom0.tick(10 * MILLISECOND)?;
        assert_eq!(received(dom0)?, [frame], "when it is enabled again");
        Ok(())
    });
}

#[test]
fn the_carrier_follows_the_cable() {
    with_link(|dom0| {
        for round in 1..4 {
            dom0.mailbox().device().set_link(false);
            dom0.tick(5 * SECOND)?;
            assert_eq!(
                dom0.mailbox().events.get(Event::Carrier),
                (2 * round + 1, 0)
            );
            assert_eq!(dom0.link()?.carrier, 0);
            dom0.mailbox().device().set_link(true);
            dom0.link_wait(10 * SECOND)?;
            assert_eq!(dom0.mailbox().events.get(Event::Carrier).0, 2 * round + 2);
        }
        Ok(())
    });
}
