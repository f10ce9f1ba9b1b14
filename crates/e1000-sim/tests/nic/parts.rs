//! EEPROM, PHY and link.

use e1000_sim::nic::{Received, Register, Table};

use crate::card::*;

#[test]
fn eeprom_by_eerd() {
    let mut card = TestCard::powered();
    let words: Vec<u16> = (0..64)
        .map(|word| {
            card.set(Register::Eerd, word << 8 | 1);
            let value = card.read(Register::Eerd);
            assert_ne!(value & 0x10, 0, "word {word} is done");
            (value >> 16) as u16
        })
        .collect();
    let sum = words.iter().fold(0u16, |sum, word| sum.wrapping_add(*word));
    assert_eq!(sum, 0xbaba);
    assert_eq!(words[..3], [0x5452, 0x1200, 0x5634]);
    assert_eq!(words[0x0a] >> 14, 1);
    assert_eq!(words[0x0b..0x0f], [0x001e, 0x8086, 0x100e, 0x8086]);
    assert_eq!(words[0x0f] & 0x3000, 0x3000);
    assert_eq!(words, card.nic.eeprom());
}

/// The pins, as e1000_hw.c moves them.
struct Microwire<'a>(&'a mut TestCard, u32);

impl Microwire<'_> {
    fn pins(&mut self, set: u32, clear: u32) {
        self.1 = (self.1 | set) & !clear;
        self.0.set(Register::Eecd, self.1);
    }
    fn begin(card: &mut TestCard) -> Microwire<'_> {
        let eecd = card.read(Register::Eecd);
        card.set(Register::Eecd, eecd | 0x40);
        assert_ne!(card.read(Register::Eecd) & 0x80, 0, "granted");
        let mut wire = Microwire(card, eecd | 0x40);
        wire.pins(0, 1 | 4);
        wire.pins(2, 0);
        wire
    }
    fn standby(&mut self) {
        for (set, clear) in [(0, 3), (1, 0), (2, 0), (0, 1)] {
            self.pins(set, clear);
        }
    }
    fn out(&mut self, value: u32, bits: u32) {
        for bit in (0..bits).rev() {
            let level = if value >> bit & 1 != 0 { 4 } else { 0 };
            self.pins(level, 4 & !level);
            self.pins(1, 0);
            self.pins(0, 1);
        }
        self.pins(0, 4);
    }
    fn word(&mut self) -> u16 {
        (0..16).fold(0, |word, _| {
            self.pins(1, 0);
            let bit = self.0.read(Register::Eecd) >> 3 & 1;
            self.pins(0, 1);
            word << 1 | bit as u16
        })
    }
    fn read(&mut self, word: u32) -> u16 {
        self.out(6, 3);
        self.out(word, 6);
        let value = self.word();
        self.standby();
        value
    }
    fn write(&mut self, word: u32, value: u16) {
        self.out(5, 3);
        self.out(word, 6);
        self.out(u32::from(value), 16);
        self.standby();
        assert_ne!(self.0.read(Register::Eecd) & 8, 0, "ready");
    }
}

#[test]
fn eeprom_by_pins() {
    let mut card = TestCard::powered();
    // 64 words, present.
    assert_eq!(card.read(Register::Eecd) & 0x300, 0x100);
    let expected = *card.nic.eeprom();
    let mut wire = Microwire::begin(&mut card);
    for word in 0..64 {
        assert_eq!(wire.read(word), expected[word as usize], "word {word}");
    }
    // A write needs EWEN.
    wire.write(0x20, 0x1234);
    assert_eq!(wire.read(0x20), 0xffff);
    wire.out(0x13, 5);
    wire.out(0, 4);
    wire.standby();
    wire.write(0x20, 0x1234);
    assert_eq!(wire.read(0x20), 0x1234);
    wire.out(0x10, 5);
    wire.out(0, 4);
    wire.standby();
    wire.write(0x20, 0x4321);
    assert_eq!(wire.read(0x20), 0x1234);
    wire.pins(0, 0x40);
    assert_eq!(card.read(Register::Eecd) & 0x80, 0, "released");
    // A device reset in the middle of a command leaves no pin driven.
    Microwire::begin(&mut card).out(6, 3);
    card.set(Register::Ctrl, 1 << 26);
    assert_eq!(card.read(Register::Eecd) & 0xc7, 0);
}

pub(crate) fn phy_read(card: &mut TestCard, register: u32) -> u16 {
    card.set(Register::Mdic, 2 << 26 | 1 << 21 | register << 16);
    let value = card.read(Register::Mdic);
    assert_eq!(value >> 28 & 5, 1, "ready without error");
    value as u16
}

pub(crate) fn phy_write(card: &mut TestCard, register: u32, value: u16) {
    let value = u32::from(value);
    card.set(Register::Mdic, 1 << 26 | 1 << 21 | register << 16 | value);
    assert_eq!(card.read(Register::Mdic) >> 28 & 5, 1);
}

#[test]
fn phy_identity_and_negotiation() {
    let mut card = TestCard::powered();
    let id = u32::from(phy_read(&mut card, 2)) << 16 | u32::from(phy_read(&mut card, 3));
    assert_eq!(id & 0xffff_fff0, 0x0141_0c20);
    // Software reset and restart clear themselves.
    phy_write(&mut card, 0, 0x9340);
    assert_eq!(phy_read(&mut card, 0), 0x1140);
    // Link up, negotiation complete.
    assert_eq!(phy_read(&mut card, 1) & 0x24, 0x24);
    assert_eq!(phy_read(&mut card, 17) & 0xec00, 0xac00);
    // Partner: pause, 1000 full; both receivers fine.
    assert_ne!(phy_read(&mut card, 5) & 0x0400, 0);
    assert_eq!(phy_read(&mut card, 10) & 0x3800, 0x3800);
    // Identity does not change.
    phy_write(&mut card, 2, 0);
    assert_eq!(phy_read(&mut card, 2), 0x0141);
    // Without gigabit advertised: 100 full.
    phy_write(&mut card, 9, 0);
    phy_write(&mut card, 0, 0x1340);
    assert_eq!(phy_read(&mut card, 17) >> 13, 0b011);
    // Forced 10 half.
    phy_write(&mut card, 0, 0);
    assert_eq!(phy_read(&mut card, 17) >> 13, 0b000);
    assert_eq!(phy_read(&mut card, 1) & 0x24, 0x04);
    // No PHY at another address.
    card.set(Register::Mdic, 2 << 26 | 2 << 21);
    assert_eq!(card.read(Register::Mdic) >> 28 & 5, 5);
    // The interrupt on completion.
    card.read(Register::Icr);
    card.set(Register::Mdic, 1 << 29 | 2 << 26 | 1 << 21);
    assert_eq!(card.read(Register::Icr), MDAC);
}

#[test]
fn phy_reset_and_loopback() {
    let mut card = TestCard::running();
    phy_write(&mut card, 0, 0x4140);
    assert!(card.nic.loopback());
    // Looped back, there is a link without a cable.
    card.nic.set_link(false);
    assert!(card.nic.link_up());
    // CTRL.PHY_RST brings every PHY register back.
    card.or(Register::Ctrl, 1 << 31);
    assert_eq!(phy_read(&mut card, 0), 0x1140);
    assert!(!card.nic.loopback() && !card.nic.link_up());
    card.nic.set_link(true);
    assert!(card.nic.link_up());
    // Powered down by BMCR, and up again.
    phy_write(&mut card, 0, 0x1940);
    assert!(!card.nic.link_up());
    phy_write(&mut card, 0, 0x1140);
    assert!(card.nic.link_up());
}

#[test]
fn eeprom_reload_restores_the_address() {
    let mut card = TestCard::powered();
    let word = Table::ReceiveAddress.offset();
    card.nic.mmio_write(word, 0);
    card.set(Register::CtrlExt, 1 << 13 | 1);
    assert_eq!(card.read(Register::CtrlExt), 1);
    assert_eq!(card.nic.mmio_read(word), 0x1200_5452);
}

#[test]
fn link_changes_show_and_interrupt() {
    let mut card = TestCard::powered();
    // SLU is what lets the MAC see the PHY's link.
    assert_eq!(card.read(Register::Status) & 2, 0);
    card.set(Register::Ctrl, 1 << 6);
    assert_eq!(card.read(Register::Status) & 0xc3, 0x83);
    assert_eq!(card.read(Register::Icr), LSC);
    card.set(Register::Ims, LSC);
    card.nic.set_link(false);
    assert!(card.nic.interrupt_line());
    assert_eq!(card.read(Register::Icr), LSC | ASSERTED);
    assert!(!card.nic.interrupt_line());
    assert_eq!(card.read(Register::Status) & 2, 0);
    assert_eq!(phy_read(&mut card, 1) & 0x24, 0);
    assert_eq!(phy_read(&mut card, 17) & 0x0400, 0);
    // Nothing changed, nothing is reported.
    card.nic.set_link(false);
    assert_eq!(card.read(Register::Icr), 0);
    card.nic.set_link(true);
    assert_eq!(card.read(Register::Icr), LSC | ASSERTED);
    assert!(card.nic.link_up());
}

#[test]
fn without_link_nothing_moves() {
    let mut card = TestCard::running();
    card.nic.set_link(false);
    let at = card.queue_buffer(&frame(MAC, 60, 1), EOP | RS, 0);
    assert_eq!(card.transmit().descriptors, 0);
    assert_eq!(card.receive(&frame(MAC, 60, 1)), Received::LinkDown);
    card.nic.set_link(true);
    assert_eq!(card.transmit().frames, 1);
    assert!(card.done(at));
}
