//! Rarely used registers on a page that is memory.

use e1000_sim::nic::{Reason, Register};

use crate::open::{opened, peek, poke, view};

/// CTRL.VME and CTRL.RST; RCTL.UPE (13.4.1, 13.4.22).
const VLAN_MODE: u32 = 1 << 30;
const RESET: u32 = 1 << 26;
const PROMISCUOUS: u32 = 1 << 3;

#[test]
fn settings_are_written_and_shown_as_the_card_has_them() {
    let (mut card, bar) = opened();
    assert_eq!(card.nic.absorb_rare(&bar), Ok(0));
    let receive = card.read(Register::Rctl) | PROMISCUOUS;
    // Bit 31 does not exist.
    poke(&bar, Register::Rctl, receive | 1 << 31);
    let control = card.read(Register::Ctrl) | VLAN_MODE;
    poke(&bar, Register::Ctrl, control);
    assert_eq!(card.nic.absorb_rare(&bar), Ok(2));
    assert_eq!(card.read(Register::Rctl), receive);
    assert_eq!(peek(&bar, Register::Rctl), receive);
    for address in [Register::Ctrl, Register::CtrlDup] {
        assert_eq!(
            (card.read(address), peek(&bar, address)),
            (control, control)
        );
    }
    assert_eq!(card.nic.absorb_rare(&bar), Ok(0));
    card.nic.absorb(&bar, false).unwrap();
    assert_eq!(card.nic.audit(&bar), Ok(()));
}

#[test]
fn a_receiver_that_is_disabled_takes_no_frame() {
    let (mut card, bar) = opened();
    poke(&bar, Register::Rctl, 0);
    assert_eq!(card.nic.absorb_rare(&bar), Ok(1));
    assert_eq!(card.read(Register::Rctl), 0);
}

#[test]
fn a_register_that_is_read_only_reads_its_value_again() {
    let (mut card, bar) = opened();
    let before = card.read(Register::Rxcw);
    poke(&bar, Register::Rxcw, before ^ 1);
    assert_eq!(card.nic.absorb_rare(&bar), Ok(1));
    let now = (card.read(Register::Rxcw), peek(&bar, Register::Rxcw));
    assert_eq!(now, (before, before));
}

#[test]
fn what_starts_something_is_refused_and_not_begun() {
    for register in [
        Register::Mdic,
        Register::Eerd,
        Register::Eecd,
        Register::CtrlExt,
    ] {
        let (mut card, bar) = opened();
        let before = card.read(register);
        poke(&bar, register, before ^ 1);
        let refused = card.nic.absorb_rare(&bar).unwrap_err();
        assert_eq!(
            (refused.offset, refused.value, refused.reason),
            (register.offset(), before ^ 1, Reason::NotOpen)
        );
        assert!(refused.to_string().contains(register.name()), "{refused}");
        assert_eq!(card.read(register), before);
    }
    let (mut card, bar) = opened();
    let before = card.read(Register::Ctrl);
    poke(&bar, Register::Ctrl, before | RESET);
    assert_eq!(
        card.nic.absorb_rare(&bar).unwrap_err().reason,
        Reason::NotOpen
    );
    assert_ne!(card.read(Register::Rdt), 0, "it was not reset");
}

#[test]
fn without_a_view_there_is_nothing_to_follow() {
    let (mut card, bar) = opened();
    assert_eq!(
        card.nic.absorb_rare(&bar[1..]).unwrap_err().reason,
        Reason::WrongSize
    );
    card.nic.close();
    assert_eq!(
        card.nic.absorb_rare(&view()).unwrap_err().reason,
        Reason::NotPublished
    );
}
