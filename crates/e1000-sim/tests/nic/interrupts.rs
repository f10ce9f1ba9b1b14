//! Causes, masks, throttling and delays.

use e1000_sim::nic::Register;

use crate::card::*;

#[test]
fn causes_masks_and_acknowledgement() {
    let mut card = TestCard::powered();
    card.set(Register::Ics, LSC | RXT0);
    assert_eq!(card.read(Register::Ics), 0);
    assert!(!card.nic.interrupt_line());
    card.set(Register::Ims, RXT0);
    card.set(Register::Ims, TXDW);
    assert_eq!(card.read(Register::Ims), RXT0 | TXDW);
    assert!(card.nic.interrupt_line());
    // Masking takes the line back and leaves the cause.
    card.set(Register::Imc, RXT0);
    assert_eq!(card.read(Register::Ims), TXDW);
    assert!(!card.nic.interrupt_line());
    card.set(Register::Ims, RXT0);
    // A written 1 acknowledges one cause, a read all.
    card.set(Register::Icr, RXT0);
    assert!(!card.nic.interrupt_line());
    assert_eq!(card.read(Register::Icr), LSC);
    assert_eq!(card.read(Register::Icr), 0);
    // Bits that are no causes do not stick; 5 and 8 do, because the driver's own
    // interrupt test sets and checks them.
    card.set(Register::Ics, 0xffff_ffff);
    assert_eq!(card.read(Register::Icr) & 0x7ffe_0920, 0x120);
}

#[test]
fn throttling_spaces_interrupts() {
    let mut card = TestCard::powered();
    card.set(Register::Ims, RXT0);
    card.set(Register::Itr, 100); // 25,600 ns
    card.set(Register::Ics, RXT0);
    assert!(card.nic.interrupt_line(), "the first is not held back");
    card.read(Register::Icr);
    card.set(Register::Ics, RXT0);
    assert!(!card.nic.interrupt_line());
    assert_eq!(card.nic.next_event(), Some(25_600));
    card.nic.tick(25_599);
    assert!(!card.nic.interrupt_line());
    card.nic.tick(1);
    assert!(card.nic.interrupt_line());
    // However long the device runs.
    card.read(Register::Icr);
    card.nic.tick(u64::MAX);
    card.set(Register::Ics, RXT0);
    assert!(card.nic.interrupt_line());
    let mut card = TestCard::powered();
    card.set(Register::Ims, RXT0);
    card.set(Register::Itr, 100);
    card.set(Register::Ics, RXT0);
    // ITR 0 ends it at once.
    card.read(Register::Icr);
    card.set(Register::Ics, RXT0);
    assert!(!card.nic.interrupt_line());
    card.set(Register::Itr, 0);
    assert!(card.nic.interrupt_line());
}

#[test]
fn receive_delays() {
    let mut card = TestCard::running();
    card.set(Register::Rdtr, 10); // 10,240 ns
    card.set(Register::Radv, 25); // 25,600 ns
    let bytes = frame(MAC, 60, 3);
    card.receive(&bytes);
    card.nic.tick(10_239);
    assert_eq!(card.read(Register::Icr), 0);
    card.nic.tick(1);
    assert_eq!(card.read(Register::Icr), RXT0);
    // Each frame starts the packet timer again; the absolute one runs out.
    card.receive(&bytes);
    card.nic.tick(9_000);
    card.receive(&bytes);
    card.nic.tick(9_000);
    card.set(Register::Rdt, 6);
    card.receive(&bytes);
    assert_eq!(card.read(Register::Icr), RXDMT0);
    card.nic.tick(7_600);
    assert_eq!(card.read(Register::Icr), RXT0);
    assert_eq!(card.nic.next_event(), None);
    // Flush.
    card.receive(&bytes);
    assert_eq!(card.read(Register::Icr), 0);
    card.set(Register::Rdtr, 1 << 31 | 10);
    assert_eq!(card.read(Register::Icr), RXT0);
    assert_eq!(card.read(Register::Rdtr), 10);
}

#[test]
fn transmit_delays() {
    let mut card = TestCard::running();
    card.set(Register::Tidv, 10);
    card.set(Register::Tadv, 15);
    let bytes = frame(MAC, 60, 3);
    card.queue_buffer(&bytes, EOP | RS | IDE, 0);
    card.transmit();
    assert_eq!(card.read(Register::Icr), TXQE);
    card.nic.tick(10_000);
    card.queue_buffer(&bytes, EOP | RS | IDE, 0);
    card.transmit();
    card.nic.tick(5_359);
    assert_eq!(card.read(Register::Icr), TXQE);
    card.nic.tick(1);
    assert_eq!(card.read(Register::Icr), TXDW);
    // Without IDE: at once, and the timers are over.
    card.queue_buffer(&bytes, EOP | RS | IDE, 0);
    card.queue_buffer(&bytes, EOP | RS, 0);
    card.transmit();
    assert_eq!(card.read(Register::Icr), TXQE | TXDW);
    assert_eq!(card.nic.next_event(), None);
}
