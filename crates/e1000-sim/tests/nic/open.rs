//! The open view: registers as plain memory.

use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::nic::{Absorbed, BAR_WORDS, Reason, Register, Table};

use crate::card::*;

pub(crate) fn view() -> Vec<AtomicU32> {
    (0..BAR_WORDS)
        .map(|_| AtomicU32::new(0x5555_5555))
        .collect()
}

pub(crate) fn peek(bar: &[AtomicU32], register: Register) -> u32 {
    bar[register.offset() as usize / 4].load(Ordering::Relaxed)
}

pub(crate) fn poke(bar: &[AtomicU32], register: Register, value: u32) {
    bar[register.offset() as usize / 4].store(value, Ordering::Relaxed);
}

pub(crate) fn opened() -> (TestCard, Vec<AtomicU32>) {
    let mut card = TestCard::running();
    card.set(Register::Ims, 0x9d);
    let bar = view();
    card.nic.open(&bar).unwrap();
    (card, bar)
}

#[test]
fn the_view_shows_the_registers() {
    let (mut card, bar) = opened();
    for &register in Register::ALL {
        let shown = peek(&bar, register);
        let zero = [Register::Ims, Register::Imc, Register::Ics];
        if zero.contains(&register) {
            assert_eq!(shown, 0);
        } else {
            assert_eq!(shown, card.read(register), "{}", register.name());
        }
    }
    assert_eq!(peek(&bar, Register::Rdt), 7);
    assert_ne!(peek(&bar, Register::Status) & 2, 0);
    assert_eq!(bar[0x8800 / 4].load(Ordering::Relaxed), 0);
    let mac = bar[Table::ReceiveAddress.offset() as usize / 4].load(Ordering::Relaxed);
    assert_eq!(mac, 0x1200_5452);
    assert_eq!(card.nic.audit(&bar), Ok(()));
    assert_eq!(card.nic.absorb(&bar, false), Ok(Absorbed::default()));
}

#[test]
fn a_transmit_interrupt_and_poll_without_traps() {
    let (mut card, bar) = opened();
    // Transmit: the driver writes TDT.
    let at = card.queue_buffer(&frame(MAC, 60, 1), EOP | RS, 0);
    card.nic.open(&bar).unwrap();
    card.queue_buffer(&frame(MAC, 60, 2), EOP | RS, 0);
    card.set(Register::Tdt, 1);
    poke(&bar, Register::Tdt, 2);
    let absorbed = card.nic.absorb(&bar, false).unwrap();
    assert!(absorbed.transmit_tail && !absorbed.receive_tail);
    assert_eq!(card.transmit().frames, 2);
    assert!(card.done(at));
    card.receive(&frame(MAC, 60, 3));
    card.nic.publish(&bar);
    assert_eq!(peek(&bar, Register::Icr), ASSERTED | RXT0 | TXQE | TXDW);
    assert_eq!(
        (peek(&bar, Register::Tdh), peek(&bar, Register::Rdh)),
        (2, 1)
    );
    assert!(card.nic.interrupt_line());
    // The handler reads ICR and masks everything.
    poke(&bar, Register::Imc, 0xffff_ffff);
    let absorbed = card.nic.absorb(&bar, true).unwrap();
    assert_eq!(absorbed.acknowledged, RXT0 | TXQE | TXDW);
    assert_eq!(absorbed.masked, 0xffff_ffff);
    assert_eq!(
        (peek(&bar, Register::Icr), peek(&bar, Register::Imc)),
        (0, 0)
    );
    assert!(!card.nic.interrupt_line());
    assert_eq!(card.nic.peek(Register::Ims), 0);
    // The poll gives a buffer back, sets ITR and unmasks.
    poke(&bar, Register::Rdt, 0);
    poke(&bar, Register::Itr, 195);
    poke(&bar, Register::Ims, 0x9d);
    let absorbed = card.nic.absorb(&bar, false).unwrap();
    let expected = Absorbed {
        receive_tail: true,
        throttle: true,
        unmasked: 0x9d,
        ..Absorbed::default()
    };
    assert_eq!(absorbed, expected);
    assert_eq!(card.nic.peek(Register::Ims), 0x9d);
    assert_eq!(card.nic.peek(Register::Itr), 195);
    assert_eq!(card.nic.peek(Register::Rdt), 0);
    // The watchdog's ICS.
    poke(&bar, Register::Ics, RXDMT0);
    assert_eq!(card.nic.absorb(&bar, false).unwrap().raised, RXDMT0);
    assert_eq!(peek(&bar, Register::Icr), ASSERTED | RXDMT0);
    assert_eq!(card.nic.audit(&bar), Ok(()));
}

#[test]
fn mask_and_unmask_in_one_window() {
    // With the handler: masked first, unmasked last.
    let (mut card, bar) = opened();
    poke(&bar, Register::Imc, 0xffff_ffff);
    poke(&bar, Register::Ims, RXT0);
    card.nic.absorb(&bar, true).unwrap();
    assert_eq!(card.nic.peek(Register::Ims), RXT0);
    // Without: the order is unknown.
    poke(&bar, Register::Imc, 0xffff_ffff);
    poke(&bar, Register::Ims, RXT0);
    let error = card.nic.absorb(&bar, false).unwrap_err();
    assert_eq!(error.reason, Reason::OrderUnknown);
    assert_eq!(error.offset, Register::Ims.offset());
}

#[test]
fn a_cause_raised_after_publishing_is_not_lost() {
    let (mut card, bar) = opened();
    card.receive(&frame(MAC, 60, 1));
    card.nic.publish(&bar);
    card.receive(&frame(MAC, 60, 1));
    assert_eq!(card.nic.absorb(&bar, true).unwrap().acknowledged, 0);
    assert_eq!(peek(&bar, Register::Icr), RXT0 | ASSERTED);
    assert_eq!(card.nic.absorb(&bar, true).unwrap().acknowledged, RXT0);
    assert_eq!(peek(&bar, Register::Icr), 0);
}

#[test]
fn every_other_write_is_found() {
    let driver = ["TDT", "RDT", "ITR", "IMS", "IMC", "ICS"];
    for &register in Register::ALL {
        let (mut card, bar) = opened();
        poke(&bar, register, peek(&bar, register) ^ 1);
        let audit = card.nic.audit(&bar);
        if driver.contains(&register.name()) {
            assert_eq!(audit, Ok(()), "{}", register.name());
            assert_ne!(card.nic.absorb(&bar, false), Ok(Absorbed::default()));
            continue;
        }
        let error = audit.unwrap_err();
        assert_eq!(error.offset, register.offset());
        assert_eq!(error.value, peek(&bar, register));
        assert_eq!(error.reason, Reason::NotOpen);
        assert!(error.to_string().contains(register.name()), "{error}");
        // Those that publish rewrites are found before they are rewritten.
        if ["ICR", "STATUS", "TDH", "RDH"].contains(&register.name()) {
            assert_eq!(card.nic.absorb(&bar, true), Err(error));
        }
    }
    for offset in [0x5200, 0x5478, 0x57fc, 0x8800, 0x1_0000, 0x1_fffc] {
        let (card, bar) = opened();
        bar[offset / 4].fetch_xor(1 << 31, Ordering::Relaxed);
        assert_eq!(card.nic.audit(&bar).unwrap_err().offset as usize, offset);
    }
}

#[test]
fn statistics_wait_for_a_trapped_read() {
    let (mut card, bar) = opened();
    card.receive(&frame(MAC, 60, 1));
    card.nic.absorb(&bar, false).unwrap();
    assert_eq!(peek(&bar, Register::Gprc), 0);
    assert_eq!(card.nic.audit(&bar), Ok(()));
    card.nic.close();
    assert_eq!(card.read(Register::Gprc), 1);
    let error = card.nic.absorb(&bar, false).unwrap_err();
    assert_eq!(error.reason, Reason::NotPublished);
    assert_eq!(
        card.nic.audit(&bar).unwrap_err().reason,
        Reason::NotPublished
    );
    let short = &bar[..100];
    assert_eq!(card.nic.open(short).unwrap_err().reason, Reason::WrongSize);
}

#[test]
fn a_trapped_access_beside_the_view_loses_nothing_that_waits_there() {
    let (mut card, bar) = opened();
    let tail = peek(&bar, Register::Tdt) + 3;
    poke(&bar, Register::Tdt, tail);
    poke(&bar, Register::Ics, RXDMT0);
    // A counter is read, as ethtool does: the tail counts from now on, and what
    // was raised waits for the view's user.
    let offset = Register::Gprc.offset();
    card.nic.beside(&bar, |nic| nic.mmio_read(offset));
    assert_eq!(card.nic.peek(Register::Tdt), tail);
    assert_eq!(peek(&bar, Register::Tdt), tail);
    assert_eq!(peek(&bar, Register::Ics), RXDMT0);
    // A tail that the access itself moves is seen in the view.
    let offset = Register::Tdt.offset();
    card.nic
        .beside(&bar, |nic| nic.mmio_write(offset, tail + 2));
    assert_eq!(peek(&bar, Register::Tdt), tail + 2);
    // So is a register that only traps may write, once it is published; and then it
    // does not count as a write without a trap.
    let offset = Register::Rctl.offset();
    let value = peek(&bar, Register::Rctl) ^ 1 << 3;
    card.nic.beside(&bar, |nic| nic.mmio_write(offset, value));
    assert!(card.nic.audit(&bar).is_err());
    card.nic.show_constants(&bar);
    assert_eq!(peek(&bar, Register::Rctl), value);
    assert_eq!(card.nic.audit(&bar), Ok(()));
    assert_eq!(card.nic.absorb(&bar, false).unwrap().raised, RXDMT0);
}

#[test]
fn a_cause_raised_beside_the_view_is_not_acknowledged_by_a_handler_before_it() {
    let (mut card, bar) = opened();
    let offset = Register::Ics.offset();
    card.nic.beside(&bar, |nic| nic.mmio_write(offset, RXT0));
    // The handler had read ICR before.
    assert_eq!(card.nic.absorb(&bar, true).unwrap().acknowledged, 0);
    assert_eq!(card.nic.absorb(&bar, true).unwrap().acknowledged, RXT0);
}
