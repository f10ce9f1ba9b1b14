//! Transmit timeouts, self tests, and dumps of registers and EEPROM.

use e1000_sim::dom0::interface::{NamedValue, text};
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::memory::EXCHANGE;

use crate::setup::{MAC, MILLISECOND, SECOND, counters, heap_is_sound, peek, with_link};

#[test]
fn a_transmit_timeout_resets_the_device_and_the_link_returns() {
    with_link(|dom0| {
        for _ in 0..3 {
            let works = counters(dom0)?.works_run;
            dom0.check("kernel_tx_timeout", &[])?;
            dom0.tick(100 * MILLISECOND)?;
            assert!(counters(dom0)?.works_run > works, "the reset task ran");
            dom0.link_wait(10 * SECOND)?;
        }
        let values = dom0.ethtool_statistics()?;
        let timeouts = values.iter().find(|(name, _)| name == "tx_timeout_count");
        assert_eq!(timeouts.map(|(_, value)| *value), Some(3));
        heap_is_sound(dom0)
    });
}

/// `ethtool -t`: each test's name and result, 0 passed.
fn self_test(dom0: &mut Dom0<'_, '_>, offline: u64) -> Result<Vec<(String, u64)>, CommandError> {
    const MOST: usize = 16;
    let size = 8 + MOST * size_of::<NamedValue>();
    let at = dom0.give("self test", &vec![0; size])?;
    let count = dom0.check(
        "kernel_ethtool_selftest",
        &[offline, at, at + 8, MOST as u64],
    )?;
    Ok((0..count.value)
        .map(|i| {
            peek::<NamedValue>(
                dom0,
                EXCHANGE.start + 8 + i * size_of::<NamedValue>() as u64,
            )
        })
        .map(|value| (text(&value.name), value.value))
        .collect())
}

#[test]
fn self_tests_pass() {
    with_link(|dom0| {
        for offline in [0, 1] {
            let results = self_test(dom0, offline)?;
            assert_eq!(results.len(), 5);
            for (name, result) in results {
                assert_eq!(result, 0, "{name}, offline {offline}");
            }
        }
        dom0.link_wait(10 * SECOND)?;
        heap_is_sound(dom0)
    });
}

#[test]
fn registers_and_eeprom_are_read() {
    with_link(|dom0| {
        let at = dom0.give("regs", &[0; 256])?;
        assert!(dom0.check("kernel_ethtool_regs", &[at, 256])?.value > 64);
        let at = dom0.give("eeprom", &[0; 128])?;
        dom0.check("kernel_ethtool_eeprom", &[0, at, 128])?;
        let mut eeprom = [0; 128];
        dom0.take(&mut eeprom);
        assert_eq!(eeprom[..6], MAC);
        let words = eeprom
            .chunks_exact(2)
            .map(|w| u16::from_le_bytes([w[0], w[1]]));
        assert_eq!(words.fold(0, u16::wrapping_add), 0xbaba, "the checksum");
        Ok(())
    });
}
