//! The EEPROM: 64 words, read through EERD or by moving the pins of a
//! microwire part (chapter 5).

use super::{Nic, Register};

/// EECD pins and bits (13.4.3).
const SK: u32 = 1 << 0;
const CS: u32 = 1 << 1;
const DI: u32 = 1 << 2;
const DO: u32 = 1 << 3;
const REQ: u32 = 1 << 6;
const GNT: u32 = 1 << 7;
/// Flash writes disabled (bits 5:4 = 01b), EEPROM present, 64 words (bit 9 = 0).
const FIXED: u32 = 1 << 4 | 1 << 8;

/// EERD bits (13.4.4).
const START: u32 = 1 << 0;
const DONE: u32 = 1 << 4;

/// How many words the part has.
pub const WORDS: usize = 64;

/// The sum of all words, the checksum word included (5.6.35).
pub const SUM: u16 = 0xbaba;

/// States of the microwire part: the meaning of the next clock.
const IDLE: u32 = 0;
const COMMAND: u32 = 1;
const READING: u32 = 2;
const WRITING: u32 = 3;
const DONE_COMMAND: u32 = 4;

/// Words and pin state.
#[repr(C)]
#[derive(Clone)]
pub(super) struct Eeprom {
    words: [u16; WORDS],
    /// The last written EECD pins.
    pins: u32,
    /// One of the states above.
    state: u32,
    /// Bits shifted in since chip select or since the command ended.
    shift: u32,
    /// How many of them.
    count: u32,
    /// The word address of the command.
    address: u32,
    /// The level of DO, 0 or 1.
    out: u32,
    /// 1 after EWEN.
    writable: u32,
}

impl Eeprom {
    pub const fn off() -> Eeprom {
        Eeprom {
            words: [0; WORDS],
            pins: 0,
            state: IDLE,
            shift: 0,
            count: 0,
            address: 0,
            out: 0,
            writable: 0,
        }
    }

    /// The image of table 5-2: a copper 82540EM with the address `mac`.
    pub fn power_on(&mut self, mac: [u8; 6]) {
        *self = Eeprom::off();
        self.words = [0xffff; WORDS];
        for (word, pair) in self.words.iter_mut().zip(mac.chunks_exact(2)) {
            *word = u16::from_le_bytes([pair[0], pair[1]]);
        }
        // Compatibility, and LED settings "use the default" (5.6.2).
        self.words[0x03] = 0x0000;
        self.words[0x04] = 0xffff;
        // Part number.
        self.words[0x08] = 0x8254;
        self.words[0x09] = 0x0001;
        // Initialization control 1 (5.6.5): signature 01b, 32-bit BARs, full
        // duplex, power management, load subsystem, vendor and device.
        self.words[0x0a] = 0x640b;
        self.words[0x0b] = super::pci::SUBSYSTEM;
        self.words[0x0c] = super::pci::VENDOR;
        self.words[0x0d] = super::pci::DEVICE;
        self.words[0x0e] = super::pci::VENDOR;
        // Initialization control 2 (5.6.10): both pause bits.
        self.words[0x0f] = 0x3000;
        // Initialization control 3: no wake-up on a magic packet (bit 10).
        self.words[0x14] = 0x0000;
        self.words[0x24] = 0x0000;
        let sum = self.words[..WORDS - 1]
            .iter()
            .fold(0u16, |sum, &word| sum.wrapping_add(word));
        self.words[WORDS - 1] = SUM.wrapping_sub(sum);
    }

    /// RAL and RAH of entry 0 as a reset loads them (5.6.1).
    pub fn receive_address(&self) -> [u32; 2] {
        let word = |index: usize| u32::from(self.words[index]);
        [word(0) | word(1) << 16, word(2) | 1 << 31]
    }

    /// No pin is driven.
    pub fn reset_pins(&mut self) {
        self.pins = 0;
        self.state = IDLE;
        self.writable = 0;
    }

    fn drive(&mut self, pins: u32) {
        let before = self.pins;
        self.pins = pins;
        if pins & CS == 0 {
            // Deselecting ends a command and lets DO float (reads 1).
            self.state = IDLE;
            self.out = 1;
            return;
        }
        if before & CS == 0 {
            self.state = COMMAND;
            self.shift = 0;
            self.count = 0;
            // Selected and ready: programming takes no time here.
            self.out = 1;
        }
        if pins & SK != 0 && before & SK == 0 {
            self.clock(u32::from(pins & DI != 0));
        }
    }

    /// A rising edge of SK.
    fn clock(&mut self, bit: u32) {
        match self.state {
            COMMAND => {
                // Zeros before the start bit are not part of the command.
                if self.count == 0 && bit == 0 {
                    return;
                }
                self.shift = self.shift << 1 | bit;
                self.count += 1;
                // Start bit, two bits of operation, six of address.
                if self.count == 9 {
                    self.command();
                }
            }
            READING => {
                self.out = u32::from(self.words[self.address as usize]) >> (15 - self.count) & 1;
                self.count += 1;
                if self.count == 16 {
                    // The part goes on with the next word.
                    self.count = 0;
                    self.address = (self.address + 1) % WORDS as u32;
                }
            }
            WRITING => {
                self.shift = self.shift << 1 | bit;
                self.count += 1;
                if self.count == 16 {
                    if self.writable != 0 {
                        self.words[self.address as usize] = self.shift as u16;
                    }
                    self.state = DONE_COMMAND;
                }
            }
            _ => {}
        }
    }

    fn command(&mut self) {
        let operation = self.shift >> 6 & 3;
        self.address = self.shift & (WORDS as u32 - 1);
        self.count = 0;
        self.shift = 0;
        match operation {
            // READ: DO leads with a 0.
            2 => {
                self.state = READING;
                self.out = 0;
            }
            // WRITE.
            1 => self.state = WRITING,
            // ERASE.
            3 => {
                if self.writable != 0 {
                    self.words[self.address as usize] = 0xffff;
                }
                self.state = DONE_COMMAND;
            }
            // EWEN (11xxxx) and EWDS (00xxxx); whole-chip operations do nothing.
            _ => {
                match self.address >> 4 {
                    3 => self.writable = 1,
                    0 => self.writable = 0,
                    _ => {}
                }
                self.state = DONE_COMMAND;
            }
        }
    }
}

impl Nic {
    /// EECD (13.4.3): a request is granted at once; nothing else uses the part.
    pub(super) fn read_eecd(&self) -> u32 {
        let pins = self.eeprom.pins;
        let grant = if pins & REQ != 0 { GNT } else { 0 };
        let out = if self.eeprom.out != 0 { DO } else { 0 };
        pins | grant | out | FIXED
    }

    pub(super) fn write_eecd(&mut self, value: u32) {
        let pins = value & (SK | CS | DI | REQ);
        self.eeprom.drive(pins);
        self.poke(Register::Eecd, pins | FIXED);
    }

    /// EERD (13.4.4): START reads the word at bits 15:8 into bits 31:16.
    pub(super) fn write_eerd(&mut self, value: u32) {
        let address = value & 0x0000_ff00;
        if value & START == 0 {
            self.poke(Register::Eerd, address);
            return;
        }
        let index = (address >> 8) as usize;
        let word = self.eeprom.words.get(index).copied().unwrap_or(0xffff);
        self.poke(Register::Eerd, u32::from(word) << 16 | address | DONE);
    }

    /// The EEPROM's words, as a programmer would read them.
    pub fn eeprom(&self) -> &[u16; WORDS] {
        &self.eeprom.words
    }
}
