//! Causes, masks, throttling and delays.

use e1000_sim::nic::Register;

use crate::rig::*;

#[test]
fn causes_masks_and_acknowledgement() {
    let mut rig = Rig::powered();
    rig.set(Register::Ics, LSC | RXT0);
    assert_eq!(rig.read(Register::Ics), 0);
    assert!(!rig.nic.interrupt_line());
    rig.set(Register::Ims, RXT0);
    rig.set(Register::Ims, TXDW);
    assert_eq!(rig.read(Register::Ims), RXT0 | TXDW);
    assert!(rig.nic.interrupt_line());
    // Masking takes the line back and leaves the cause.
    rig.set(Register::Imc, RXT0);
    assert_eq!(rig.read(Register::Ims), TXDW);
    assert!(!rig.nic.interrupt_line());
    rig.set(Register::Ims, RXT0);
    // A written 1 acknowledges one cause, a read all.
    rig.set(Register::Icr, RXT0);
    assert!(!rig.nic.interrupt_line());
    assert_eq!(rig.read(Register::Icr), LSC);
    assert_eq!(rig.read(Register::Icr), 0);
    // Bits that are no causes do not stick; 5 and 8 do, for the driver's own
    // interrupt test sets them and looks for them.
    rig.set(Register::Ics, 0xffff_ffff);
    assert_eq!(rig.read(Register::Icr) & 0x7ffe_0920, 0x120);
}

#[test]
fn throttling_spaces_interrupts() {
    let mut rig = Rig::powered();
    rig.set(Register::Ims, RXT0);
    rig.set(Register::Itr, 100); // 25,600 ns
    rig.set(Register::Ics, RXT0);
    assert!(rig.nic.interrupt_line(), "the first is not held back");
    rig.read(Register::Icr);
    rig.set(Register::Ics, RXT0);
    assert!(!rig.nic.interrupt_line());
    assert_eq!(rig.nic.next_event(), Some(25_600));
    rig.nic.tick(25_599);
    assert!(!rig.nic.interrupt_line());
    rig.nic.tick(1);
    assert!(rig.nic.interrupt_line());
    // However long the device runs.
    rig.read(Register::Icr);
    rig.nic.tick(u64::MAX);
    rig.set(Register::Ics, RXT0);
    assert!(rig.nic.interrupt_line());
    let mut rig = Rig::powered();
    rig.set(Register::Ims, RXT0);
    rig.set(Register::Itr, 100);
    rig.set(Register::Ics, RXT0);
    // ITR 0 ends it at once.
    rig.read(Register::Icr);
    rig.set(Register::Ics, RXT0);
    assert!(!rig.nic.interrupt_line());
    rig.set(Register::Itr, 0);
    assert!(rig.nic.interrupt_line());
}

#[test]
fn receive_delays() {
    let mut rig = Rig::running();
    rig.set(Register::Rdtr, 10); // 10,240 ns
    rig.set(Register::Radv, 25); // 25,600 ns
    let bytes = frame(MAC, 60, 3);
    rig.receive(&bytes);
    rig.nic.tick(10_239);
    assert_eq!(rig.read(Register::Icr), 0);
    rig.nic.tick(1);
    assert_eq!(rig.read(Register::Icr), RXT0);
    // Each frame starts the packet timer again; the absolute one runs out.
    rig.receive(&bytes);
    rig.nic.tick(9_000);
    rig.receive(&bytes);
    rig.nic.tick(9_000);
    rig.set(Register::Rdt, 6);
    rig.receive(&bytes);
    assert_eq!(rig.read(Register::Icr), RXDMT0);
    rig.nic.tick(7_600);
    assert_eq!(rig.read(Register::Icr), RXT0);
    assert_eq!(rig.nic.next_event(), None);
    // Flush.
    rig.receive(&bytes);
    assert_eq!(rig.read(Register::Icr), 0);
    rig.set(Register::Rdtr, 1 << 31 | 10);
    assert_eq!(rig.read(Register::Icr), RXT0);
    assert_eq!(rig.read(Register::Rdtr), 10);
}

#[test]
fn transmit_delays() {
    let mut rig = Rig::running();
    rig.set(Register::Tidv, 10);
    rig.set(Register::Tadv, 15);
    let bytes = frame(MAC, 60, 3);
    rig.queue_buffer(&bytes, EOP | RS | IDE, 0);
    rig.transmit();
    assert_eq!(rig.read(Register::Icr), TXQE);
    rig.nic.tick(10_000);
    rig.queue_buffer(&bytes, EOP | RS | IDE, 0);
    rig.transmit();
    rig.nic.tick(5_359);
    assert_eq!(rig.read(Register::Icr), TXQE);
    rig.nic.tick(1);
    assert_eq!(rig.read(Register::Icr), TXDW);
    // Without IDE: at once, and the timers are over.
    rig.queue_buffer(&bytes, EOP | RS | IDE, 0);
    rig.queue_buffer(&bytes, EOP | RS, 0);
    rig.transmit();
    assert_eq!(rig.read(Register::Icr), TXQE | TXDW);
    assert_eq!(rig.nic.next_event(), None);
}
