//! PCI configuration space (chapter 4): 256 bytes, header type 0, a power
//! management and a PCI-X capability.
//!
//! ```text
//! 00 8086 100e   08 revision 02, class 020000   10 BAR 0, memory, 128 KiB
//! 18 BAR 2, I/O, 64 bytes   2c 8086 001e   34 -> dc   3c line, pin A
//! dc power management -> e4 PCI-X -> end
//! ```

use super::{BAR0_BYTES, BAR2_BYTES, Config, Nic};

pub(super) const VENDOR: u16 = 0x8086;
pub(super) const DEVICE: u16 = 0x100e;
/// PRO/1000 MT desktop adapter.
pub(super) const SUBSYSTEM: u16 = 0x001e;

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const BAR0: usize = 0x10;
const BAR2: usize = 0x18;
const LINE: usize = 0x3c;
const POWER: usize = 0xdc;
const PCIX: usize = 0xe4;

/// COMMAND: I/O, memory, bus master, write-invalidate, parity, SERR, INTx off.
const COMMAND_MASK: u16 = 0x0557;
/// STATUS bits that a written 1 clears; bit 13 is "received master abort".
const STATUS_CLEAR: u16 = 0xf900;
const MASTER_ABORT: u16 = 1 << 13;

impl Nic {
    pub(super) fn pci_power_on(&mut self, config: &Config) {
        self.config = [0; 256];
        let c = &mut self.config;
        let mut word = |at: usize, value: u16| c[at..at + 2].copy_from_slice(&value.to_le_bytes());
        word(0x00, VENDOR);
        word(0x02, DEVICE);
        word(COMMAND, 0);
        // Capabilities, 66 MHz, medium DEVSEL.
        word(STATUS, 0x0230);
        // Revision 2; network, Ethernet.
        word(0x08, 0x0002);
        word(0x0a, 0x0200);
        // Subsystem.
        word(0x2c, VENDOR);
        word(0x2e, SUBSYSTEM);
        word(0x34, POWER as u16);
        word(LINE, u16::from(config.irq) | 0x0100);
        // Minimum grant and maximum latency.
        word(0x3e, 0x00ff);
        // Power management 1.1: D3hot, PME from D0, D3hot and D3cold, DSI.
        word(POWER, 0x01 | (PCIX as u16) << 8);
        word(POWER + 2, 0xc822);
        // PCI-X: 2 KiB reads, one outstanding; a 133 MHz, 64-bit capable part.
        word(PCIX, 0x07);
        word(PCIX + 2, 0x0002);
        word(PCIX + 4, 0xfff8);
        word(PCIX + 6, 0x0403);
        self.config_store(BAR0, config.bar0 & !(BAR0_BYTES - 1));
        self.config_store(BAR2, config.io_base & !(BAR2_BYTES - 1) | 1);
    }

    fn config_load(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.config[at..at + 4]);
        u32::from_le_bytes(bytes)
    }

    fn config_store(&mut self, at: usize, value: u32) {
        self.config[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Reads `size` (1, 2 or 4) bytes at `offset`, which is a multiple of it.
    /// Anything else, like a device without power, reads as all ones.
    pub fn config_read(&self, offset: u32, size: u32) -> u32 {
        let Some(shift) = access(offset, size).filter(|_| self.powered != 0) else {
            return u32::MAX >> (32 - 8 * size.clamp(1, 4));
        };
        let value = self.config_load(offset as usize & 0xfc) >> shift;
        value & u32::MAX >> (32 - 8 * size)
    }

    /// Writes `size` (1, 2 or 4) bytes at `offset`, which is a multiple of it;
    /// read-only bits keep their value.
    pub fn config_write(&mut self, offset: u32, size: u32, value: u32) {
        let Some(shift) = access(offset, size).filter(|_| self.powered != 0) else {
            return;
        };
        let at = offset as usize & 0xfc;
        let lanes = (u32::MAX >> (32 - 8 * size)) << shift;
        let value = value << shift;
        let old = self.config_load(at);
        let plain = lanes & writable(at);
        let clear = lanes & value & clearable(at);
        let new = (old & !plain | value & plain) & !clear;
        self.config_store(at, new);
    }

    /// Bus address of BAR 0 as configured.
    pub fn bar0(&self) -> u32 {
        self.config_load(BAR0) & !(BAR0_BYTES - 1)
    }

    /// I/O port of BAR 2 as configured.
    pub fn io_base(&self) -> u32 {
        self.config_load(BAR2) & !(BAR2_BYTES - 1)
    }

    pub(super) fn pci_master_abort(&mut self) {
        let status = self.config_load(COMMAND) | u32::from(MASTER_ABORT) << 16;
        self.config_store(COMMAND, status);
    }
}

/// How far the access is shifted in its 32-bit word; `None` if it is not one.
fn access(offset: u32, size: u32) -> Option<u32> {
    let valid = matches!(size, 1 | 2 | 4) && offset < 256 && offset.is_multiple_of(size);
    valid.then_some(8 * (offset % 4))
}

/// The bits of the word at `at` that a write replaces.
fn writable(at: usize) -> u32 {
    match at {
        COMMAND => u32::from(COMMAND_MASK),
        // Cache line size and latency timer.
        0x0c => 0x0000_ffff,
        BAR0 => !(BAR0_BYTES - 1),
        BAR2 => !(BAR2_BYTES - 1),
        LINE => 0x0000_00ff,
        // Power state and PME enable.
        0xe0 => 0x0000_0103,
        // PCI-X command.
        PCIX => 0x007f_0000,
        _ => 0,
    }
}

/// The bits of the word at `at` that a written 1 clears.
fn clearable(at: usize) -> u32 {
    match at {
        COMMAND => u32::from(STATUS_CLEAR) << 16,
        // PME status.
        0xe0 => 0x0000_8000,
        _ => 0,
    }
}
