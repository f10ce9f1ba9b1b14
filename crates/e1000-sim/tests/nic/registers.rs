//! Power, registers, reset, configuration space.

use e1000_sim::nic::{Nic, Received, Register, Table, Transmitted};

use crate::card::*;

#[test]
fn without_power_nothing_answers() {
    let mut nic = Box::new(Nic::off());
    assert_eq!(nic.mmio_read(Register::Status.offset()), u32::MAX);
    assert_eq!(nic.config_read(0, 4), u32::MAX);
    assert_eq!(nic.config_read(0, 2), 0xffff);
    nic.mmio_write(Register::Rctl.offset(), 2);
    let mut memory = Memory(vec![]);
    assert_eq!(
        nic.receive(&frame(MAC, 60, 0), &mut memory),
        Received::Disabled
    );
    let mut wire = Frames::default();
    assert_eq!(
        nic.process_transmit(&mut memory, &mut wire),
        Transmitted::default()
    );
    assert!(!nic.interrupt_line());
}

#[test]
fn each_offset_has_one_register() {
    for (index, &register) in Register::ALL.iter().enumerate() {
        assert_eq!(register as usize, index);
        assert_eq!(register.offset() % 4, 0, "{}", register.name());
        assert_eq!(Register::at(register.offset()), Some(register));
        for table in [Table::Multicast, Table::ReceiveAddress, Table::Vlan] {
            let end = table.offset() + table.words() as u32 * 4;
            let inside = (table.offset()..end).contains(&register.offset());
            assert!(!inside, "{}", register.name());
        }
    }
}

#[test]
fn unknown_registers_are_counted() {
    let mut card = TestCard::powered();
    assert_eq!(card.nic.mmio_read(0x8800), 0);
    card.nic.mmio_write(0x8804, 7);
    card.nic.mmio_write(Register::Ctrl.offset() + 2, 9);
    let unknown = *card.nic.unknown_accesses();
    assert_eq!((unknown.reads, unknown.writes), (1, 2));
    assert_eq!((unknown.last_offset, unknown.last_value), (2, 9));
}

/// The patterns of ethtool's register test (e1000_ethtool.c): which bits exist.
#[test]
fn registers_keep_exactly_their_bits() {
    let mut card = TestCard::powered();
    for (register, mask) in [
        (Register::Fcal, 0xffff_ffff),
        (Register::Fcah, 0xffff),
        (Register::Fct, 0xffff),
        (Register::Vet, 0xffff),
        (Register::Rdtr, 0xffff),
        (Register::Rdbal, 0xffff_fff0),
        (Register::Rdbah, 0xffff_ffff),
        (Register::Rdlen, 0xf_ff80),
        (Register::Rdh, 0xffff),
        (Register::Rdt, 0xffff),
        (Register::Fcrth, 0xfff8),
        (Register::Fcttv, 0xffff),
        (Register::Tipg, 0x3fff_ffff),
        (Register::Tdbal, 0xffff_fff0),
        (Register::Tdlen, 0xf_ff80),
        (Register::Rctl, 0x06df_b3fe),
        (Register::Txcw, 0xc000_ffff),
        (Register::Tidv, 0xffff),
    ] {
        for pattern in [0x5a5a_5a5a, 0xa5a5_a5a5, 0, 0xffff_ffff] {
            card.set(register, pattern);
            assert_eq!(card.read(register), pattern & mask, "{}", register.name());
        }
    }
    let status = card.read(Register::Status);
    card.set(Register::Status, !status);
    assert_eq!(card.read(Register::Status), status);
    for (table, index, mask) in [
        (Table::Multicast, 127, 0xffff_ffff),
        (Table::ReceiveAddress, 30, 0xffff_ffff),
        (Table::ReceiveAddress, 31, 0x8003_ffff),
        (Table::Vlan, 0, 0xffff_ffff),
    ] {
        let offset = table.offset() + index * 4;
        card.nic.mmio_write(offset, 0xffff_ffff);
        assert_eq!(card.nic.mmio_read(offset), mask);
    }
    assert_eq!(card.nic.unknown_accesses().reads, 0);
}

#[test]
fn packet_buffer_is_split_in_64_kib() {
    let mut card = TestCard::powered();
    assert_eq!(card.read(Register::Pba), 0x0010_0030);
    card.set(Register::Pba, 40);
    assert_eq!(card.read(Register::Pba), 24 << 16 | 40);
}

#[test]
fn device_reset_restores_registers_and_address() {
    let mut card = TestCard::running();
    card.set(Register::Ims, 0xff);
    card.nic.mmio_write(Table::ReceiveAddress.offset(), 0);
    card.nic.mmio_write(Table::Multicast.offset(), 1);
    card.nic.config_write(4, 2, 7);
    // As the driver resets an 82540: through the I/O window.
    card.nic.io_write(0, Register::Ctrl.offset());
    let control = card.nic.io_read(4);
    card.nic.io_write(4, control | 1 << 26);
    assert_eq!(card.nic.io_read(0), Register::Ctrl.offset());
    assert_eq!(card.read(Register::Ctrl) & 1 << 26, 0);
    assert_eq!(card.read(Register::Rctl), 0);
    assert_eq!(card.read(Register::Ims), 0);
    assert_eq!(card.nic.mmio_read(Table::Multicast.offset()), 0);
    assert_eq!(
        card.nic.table(Table::ReceiveAddress)[..2],
        [0x1200_5452, 0x8000_5634]
    );
    assert_eq!(card.nic.config_read(4, 2), 7);
}

#[test]
fn configuration_space() {
    let mut card = TestCard::powered();
    let nic = &mut card.nic;
    assert_eq!(nic.config_read(0, 4), 0x100e_8086);
    assert_eq!(nic.config_read(0x0a, 2), 0x0200);
    assert_eq!(nic.config_read(0x2e, 2), 0x001e);
    assert_eq!(nic.config_read(0x3c, 2), 0x010b);
    assert_eq!((nic.bar0(), nic.io_base()), (0xfebc_0000, 0xc000));
    // Sizing: all ones show which bits a BAR has.
    nic.config_write(0x10, 4, 0xffff_ffff);
    assert_eq!(nic.config_read(0x10, 4), !(128 * 1024 - 1));
    nic.config_write(0x18, 4, 0xffff_ffff);
    assert_eq!(nic.config_read(0x18, 4), !63 | 1);
    nic.config_write(0x14, 4, 0xffff_ffff);
    assert_eq!(nic.config_read(0x14, 4), 0);
    nic.config_write(0x10, 4, 0xe000_0000);
    assert_eq!(nic.bar0(), 0xe000_0000);
    // Command keeps its bits; identity does not change; a byte is a byte.
    nic.config_write(4, 2, 0xffff);
    assert_eq!(nic.config_read(4, 2), 0x0557);
    nic.config_write(0, 4, 0);
    assert_eq!(nic.config_read(2, 2), 0x100e);
    nic.config_write(0x3c, 1, 5);
    assert_eq!(nic.config_read(0x3c, 2), 0x0105);
    // Unaligned or outside: all ones.
    assert_eq!(nic.config_read(1, 4), 0xffff_ffff);
    assert_eq!(nic.config_read(256, 1), 0xff);
    // The capability list: power management, PCI-X, end.
    assert_ne!(nic.config_read(6, 2) & 0x10, 0);
    let first = nic.config_read(0x34, 1);
    assert_eq!(nic.config_read(first, 1), 1);
    let second = nic.config_read(first + 1, 1);
    assert_eq!(nic.config_read(second, 1), 7);
    assert_eq!(nic.config_read(second + 1, 1), 0);
    // D3hot and back.
    nic.config_write(first + 4, 2, 3);
    assert_eq!(nic.config_read(first + 4, 2) & 3, 3);
}
