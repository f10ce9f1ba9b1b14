//! Accesses to the card's registers and ports that trap.

use e1000_sim::memory::{BarMode, PORTS};
use e1000_sim::transport::command::Command;
use e1000_sim::transport::mailbox::Counter;

use crate::world::{World, oops, value};

/// VET: a register that keeps what is written, 16 bits of it.
const VET: u64 = 0x38;
/// TDBAL: keeps all bits but the lowest four.
pub const TDBAL: u64 = 0x3800;
const TDBAH: u64 = 0x3804;

#[test]
fn loads_and_stores_of_every_form_reach_the_device() {
    let world = World::new();
    let mut dom0 = world.dom0();
    value(&mut dom0, "small_write32", &[TDBAL, 0x8765_43f0]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x8765_43f0);
    assert_eq!(value(&mut dom0, "small_read8", &[TDBAL + 1]), 0x43);
    assert_eq!(value(&mut dom0, "small_read16", &[TDBAL + 2]), 0x8765);
    let signed = value(&mut dom0, "small_signed8", &[TDBAL + 3]);
    assert_eq!(signed as i64, i64::from(0x87u8 as i8));
    let signed = value(&mut dom0, "small_signed32", &[TDBAL]);
    assert_eq!(signed as i64, i64::from(0x8765_43f0u32 as i32));
    assert_eq!(
        value(&mut dom0, "small_high_byte", &[TDBAL + 1]),
        0x1111_1111_1111_4311
    );
    assert_eq!(
        value(&mut dom0, "small_low_byte", &[TDBAL + 1]),
        0x2222_2222_2222_2243
    );
    value(&mut dom0, "small_write16", &[TDBAL + 2, 0x1234]);
    value(&mut dom0, "small_write8", &[TDBAL + 1, 0xab]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x1234_abf0);
    value(&mut dom0, "small_write_imm", &[TDBAL]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x89ab_cde0);
    value(&mut dom0, "small_write64", &[TDBAL, 0x1122_3344_5566_7780]);
    assert_eq!(
        value(&mut dom0, "small_read64", &[TDBAL]),
        0x1122_3344_5566_7780
    );
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAH]), 0x1122_3344);
    assert!(world.mailbox.get().counters.get(Counter::MmioTraps) > 10);
    let report = oops(&mut dom0, "small_add_memory", &[VET]);
    assert!(report.contains("small_add_memory+"), "{report}");
}

#[test]
fn ports_reach_the_device_and_other_ports_are_an_oops() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let port = u64::from(PORTS);
    value(&mut dom0, "small_out32", &[port, TDBAL]);
    value(&mut dom0, "small_out32", &[port + 4, 0x5550]);
    assert_eq!(value(&mut dom0, "small_in32", &[port + 4]), 0x5550);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x5550);
    let report = oops(&mut dom0, "small_in32", &[0x60]);
    assert!(report.contains("small_in32+"), "{report}");
    oops(&mut dom0, "small_in8", &[port]);
}

#[test]
fn an_open_bar_does_not_trap() {
    let world = World::new();
    let mut dom0 = world.dom0();
    dom0.command("open", Command::SetBar(BarMode::Open))
        .expect("opened");
    let before = world.mailbox.get().counters.get(Counter::MmioTraps);
    value(&mut dom0, "small_write32", &[TDBAL, 77]);
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 77);
    assert_eq!(world.mailbox.get().counters.get(Counter::MmioTraps), before);
    dom0.command("close", Command::SetBar(BarMode::Trapped))
        .expect("closed");
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0);
}
