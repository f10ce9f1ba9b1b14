//! The 82540EM model, driven as a driver drives the device: registers, rings in
//! memory, frames on a wire. Expectations are computed here, apart from the
//! model.

use std::sync::atomic::{AtomicU32, Ordering};

use testbed::nic::{
    Absorbed, BAR_WORDS, Bus, BusFault, Config, FRAME_LIMIT, Filter, Nic, Reason, Received,
    Register, Ring, Table, Transmitted, Wire,
};
use testbed::random::Random;

const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
const BASE: u64 = 0x1_0000_0000;
const TX_RING: u64 = BASE;
const RX_RING: u64 = BASE + 0x1000;
const TX_DATA: u64 = BASE + 0x2000;
const RX_DATA: u64 = BASE + 0x4_0000;

/// Descriptor command bits, in place.
const EOP: u32 = 1 << 24;
const IC: u32 = 1 << 26;
const TSE: u32 = 1 << 26;
const RS: u32 = 1 << 27;
const DEXT: u32 = 1 << 29;
const VLE: u32 = 1 << 30;
const IDE: u32 = 1 << 31;
const DATA: u32 = DEXT | 1 << 20;

const TXDW: u32 = 1;
const TXQE: u32 = 1 << 1;
const LSC: u32 = 1 << 2;
const RXDMT0: u32 = 1 << 4;
const RXO: u32 = 1 << 6;
const RXT0: u32 = 1 << 7;
const MDAC: u32 = 1 << 9;
const TXD_LOW: u32 = 1 << 15;
const SRPD: u32 = 1 << 16;
const ASSERTED: u32 = 1 << 31;

/// Memory at [`BASE`]; all other addresses are refused.
struct Memory(Vec<u8>);

impl Memory {
    fn range(&self, address: u64, length: usize) -> Result<usize, BusFault> {
        let fault = BusFault {
            address,
            length: length as u64,
        };
        let at = address.checked_sub(BASE).ok_or(fault)? as usize;
        match at.checked_add(length) {
            Some(end) if end <= self.0.len() => Ok(at),
            _ => Err(fault),
        }
    }
    fn get(&self, address: u64, length: usize) -> &[u8] {
        let at = self.range(address, length).unwrap();
        &self.0[at..at + length]
    }
    fn put(&mut self, address: u64, bytes: &[u8]) {
        self.write(address, bytes).unwrap();
    }
}

impl Bus for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BusFault> {
        let at = self.range(address, into.len())?;
        into.copy_from_slice(&self.0[at..at + into.len()]);
        Ok(())
    }
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault> {
        let at = self.range(address, bytes.len())?;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl Wire for Frames {
    fn transmit(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }
}

/// A device, its memory and its wire.
struct Rig {
    nic: Box<Nic>,
    memory: Memory,
    wire: Frames,
    /// Where the next transmit data goes.
    data: u64,
}

const RINGS: u32 = 8;

impl Rig {
    /// Powered, with nothing configured.
    fn powered() -> Rig {
        let mut nic = Box::new(Nic::off());
        nic.power_on(&Config {
            mac: MAC,
            bar0: 0xfebc_0000,
            io_base: 0xc000,
            irq: 11,
        });
        Rig {
            nic,
            memory: Memory(vec![0; 0x8_0000]),
            wire: Frames::default(),
            data: TX_DATA,
        }
    }

    /// With link, transmit and receive on, rings of 8, receive buffers of 2048.
    fn running() -> Rig {
        let mut rig = Rig::powered();
        rig.set(Register::Ctrl, 1 << 6 | 1);
        rig.read(Register::Icr);
        for (low, high, length, ring) in [
            (Register::Tdbal, Register::Tdbah, Register::Tdlen, TX_RING),
            (Register::Rdbal, Register::Rdbah, Register::Rdlen, RX_RING),
        ] {
            rig.set(low, ring as u32);
            rig.set(high, (ring >> 32) as u32);
            rig.set(length, RINGS * 16);
        }
        for index in 0..RINGS {
            let buffer = RX_DATA + u64::from(index) * 0x1000;
            let at = RX_RING + u64::from(index) * 16;
            rig.memory.put(at, &buffer.to_le_bytes());
        }
        rig.set(Register::Rdt, RINGS - 1);
        // Enable; broadcast accept; strip CRC. Enable; pad.
        rig.set(Register::Rctl, 1 << 1 | 1 << 15 | 1 << 26);
        rig.set(Register::Tctl, 1 << 1 | 1 << 3);
        rig
    }

    fn set(&mut self, register: Register, value: u32) {
        self.nic.mmio_write(register.offset(), value);
    }
    fn read(&mut self, register: Register) -> u32 {
        self.nic.mmio_read(register.offset())
    }
    fn or(&mut self, register: Register, bits: u32) {
        let value = self.read(register) | bits;
        self.set(register, value);
    }

    /// Puts data into memory for a descriptor.
    fn place(&mut self, bytes: &[u8]) -> u64 {
        let at = self.data;
        self.memory.put(at, bytes);
        self.data += bytes.len() as u64;
        at
    }

    /// Queues descriptor words at TDT.
    fn queue(&mut self, words: [u32; 4]) -> u64 {
        let tail = self.read(Register::Tdt);
        let at = TX_RING + u64::from(tail) * 16;
        for (index, word) in words.iter().enumerate() {
            self.memory.put(at + index as u64 * 4, &word.to_le_bytes());
        }
        self.set(Register::Tdt, (tail + 1) % RINGS);
        at
    }

    fn queue_buffer(&mut self, bytes: &[u8], control: u32, upper: u32) -> u64 {
        let at = self.place(bytes);
        let length = bytes.len() as u32;
        self.queue([at as u32, (at >> 32) as u32, control | length, upper])
    }

    fn transmit(&mut self) -> Transmitted {
        self.nic.process_transmit(&mut self.memory, &mut self.wire)
    }

    fn receive(&mut self, frame: &[u8]) -> Received {
        self.nic.receive(frame, &mut self.memory)
    }

    fn done(&self, descriptor: u64) -> bool {
        self.memory.get(descriptor + 12, 1)[0] & 1 != 0
    }

    /// The upper half of receive descriptor `index`, and its buffer.
    fn received(&self, index: u32) -> Descriptor {
        let at = RX_RING + u64::from(index) * 16;
        let raw = self.memory.get(at, 16);
        let length = u16::from_le_bytes([raw[8], raw[9]]);
        let buffer = u64::from_le_bytes(raw[..8].try_into().unwrap());
        Descriptor {
            bytes: self.memory.get(buffer, usize::from(length)).to_vec(),
            checksum: u16::from_le_bytes([raw[10], raw[11]]),
            status: raw[12],
            errors: raw[13],
            special: u16::from_le_bytes([raw[14], raw[15]]),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Descriptor {
    bytes: Vec<u8>,
    checksum: u16,
    status: u8,
    errors: u8,
    special: u16,
}

/// RFC 1071, the plain way.
fn internet_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// A frame of `length` bytes to `to` with random payload.
fn frame(to: [u8; 6], length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
    bytes[..6].copy_from_slice(&to);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

/// An Ethernet, IP and TCP or UDP frame with every checksum zero.
fn packet(ipv6: bool, udp: bool, payload: usize, seed: u64) -> (Vec<u8>, usize) {
    let mut bytes = frame(MAC, 14, seed);
    bytes[12..].copy_from_slice(if ipv6 { &[0x86, 0xdd] } else { &[0x08, 0x00] });
    let transport = if udp { 8 } else { 20 };
    let protocol = if udp { 17 } else { 6 };
    let length = (transport + payload) as u16;
    if ipv6 {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([protocol, 64]);
        bytes.extend((0..32u8).map(|b| b ^ 0xa5));
    } else {
        bytes.extend([0x45, 0]);
        bytes.extend((length.wrapping_add(20)).to_be_bytes());
        bytes.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let at = bytes.len();
    if udp {
        bytes.extend([0x11, 0x22, 0x33, 0x44]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0]);
    } else {
        bytes.extend([0x11, 0x22, 0x33, 0x44]);
        bytes.extend([0xff, 0xff, 0xff, 0x00, 1, 2, 3, 4]);
        // FIN, PSH, ACK.
        bytes.extend([0x50, 0x19, 0x20, 0x00, 0, 0, 0, 0]);
    }
    let mut random = Random::new(seed ^ 77);
    bytes.extend((0..payload).map(|_| random.word() as u8));
    (bytes, at)
}

/// Source and destination address, protocol and length.
fn pseudo_header(bytes: &[u8], transport: usize, length: u32) -> Vec<u8> {
    let (addresses, protocol) = match bytes[14] >> 4 {
        4 => (&bytes[26..34], bytes[23]),
        _ => (&bytes[22..54], bytes[20]),
    };
    assert!(transport == 34 || transport == 54);
    let mut pseudo = addresses.to_vec();
    pseudo.extend([0, protocol]);
    pseudo.extend(length.to_be_bytes());
    pseudo
}

/// Whether the transport checksum is right, by definition.
fn transport_valid(bytes: &[u8], transport: usize) -> bool {
    let segment = &bytes[transport..];
    let mut all = pseudo_header(bytes, transport, segment.len() as u32);
    all.extend(segment);
    internet_sum(&all) == 0xffff
}

fn fill_checksums(bytes: &mut [u8], transport: usize) {
    if bytes[14] >> 4 == 4 {
        let ip = !internet_sum(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&ip.to_be_bytes());
    }
    let field = transport
        + if bytes[transport_protocol(bytes)] == 17 {
            6
        } else {
            16
        };
    let mut all = pseudo_header(bytes, transport, (bytes.len() - transport) as u32);
    all.extend(&bytes[transport..]);
    let sum = !internet_sum(&all);
    bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

fn transport_protocol(bytes: &[u8]) -> usize {
    if bytes[14] >> 4 == 4 { 23 } else { 20 }
}

// ---- Power, registers, reset ------------------------------------------------

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
    let mut rig = Rig::powered();
    assert_eq!(rig.nic.mmio_read(0x8800), 0);
    rig.nic.mmio_write(0x8804, 7);
    rig.nic.mmio_write(Register::Ctrl.offset() + 2, 9);
    let unknown = *rig.nic.unknown_accesses();
    assert_eq!((unknown.reads, unknown.writes), (1, 2));
    assert_eq!((unknown.last_offset, unknown.last_value), (2, 9));
}

/// The patterns of ethtool's register test (e1000_ethtool.c): which bits exist.
#[test]
fn registers_keep_exactly_their_bits() {
    let mut rig = Rig::powered();
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
            rig.set(register, pattern);
            assert_eq!(rig.read(register), pattern & mask, "{}", register.name());
        }
    }
    let status = rig.read(Register::Status);
    rig.set(Register::Status, !status);
    assert_eq!(rig.read(Register::Status), status);
    for (table, index, mask) in [
        (Table::Multicast, 127, 0xffff_ffff),
        (Table::ReceiveAddress, 30, 0xffff_ffff),
        (Table::ReceiveAddress, 31, 0x8003_ffff),
        (Table::Vlan, 0, 0xffff_ffff),
    ] {
        let offset = table.offset() + index * 4;
        rig.nic.mmio_write(offset, 0xffff_ffff);
        assert_eq!(rig.nic.mmio_read(offset), mask);
    }
    assert_eq!(rig.nic.unknown_accesses().reads, 0);
}

#[test]
fn packet_buffer_is_split_in_64_kib() {
    let mut rig = Rig::powered();
    assert_eq!(rig.read(Register::Pba), 0x0010_0030);
    rig.set(Register::Pba, 40);
    assert_eq!(rig.read(Register::Pba), 24 << 16 | 40);
}

#[test]
fn device_reset_restores_registers_and_address() {
    let mut rig = Rig::running();
    rig.set(Register::Ims, 0xff);
    rig.nic.mmio_write(Table::ReceiveAddress.offset(), 0);
    rig.nic.mmio_write(Table::Multicast.offset(), 1);
    rig.nic.config_write(4, 2, 7);
    // As the driver resets an 82540: through the I/O window.
    rig.nic.io_write(0, Register::Ctrl.offset());
    let control = rig.nic.io_read(4);
    rig.nic.io_write(4, control | 1 << 26);
    assert_eq!(rig.nic.io_read(0), Register::Ctrl.offset());
    assert_eq!(rig.read(Register::Ctrl) & 1 << 26, 0);
    assert_eq!(rig.read(Register::Rctl), 0);
    assert_eq!(rig.read(Register::Ims), 0);
    assert_eq!(rig.nic.mmio_read(Table::Multicast.offset()), 0);
    assert_eq!(
        rig.nic.table(Table::ReceiveAddress)[..2],
        [0x1200_5452, 0x8000_5634]
    );
    assert_eq!(rig.nic.config_read(4, 2), 7);
}

#[test]
fn configuration_space() {
    let mut rig = Rig::powered();
    let nic = &mut rig.nic;
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

// ---- EEPROM, PHY, link ------------------------------------------------------

#[test]
fn eeprom_by_eerd() {
    let mut rig = Rig::powered();
    let words: Vec<u16> = (0..64)
        .map(|word| {
            rig.set(Register::Eerd, word << 8 | 1);
            let value = rig.read(Register::Eerd);
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
    assert_eq!(words, rig.nic.eeprom());
}

/// The pins, as e1000_hw.c moves them.
struct Microwire<'a>(&'a mut Rig, u32);

impl Microwire<'_> {
    fn pins(&mut self, set: u32, clear: u32) {
        self.1 = (self.1 | set) & !clear;
        self.0.set(Register::Eecd, self.1);
    }
    fn begin(rig: &mut Rig) -> Microwire<'_> {
        let eecd = rig.read(Register::Eecd);
        rig.set(Register::Eecd, eecd | 0x40);
        assert_ne!(rig.read(Register::Eecd) & 0x80, 0, "granted");
        let mut wire = Microwire(rig, eecd | 0x40);
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
    let mut rig = Rig::powered();
    // 64 words, present.
    assert_eq!(rig.read(Register::Eecd) & 0x300, 0x100);
    let expected = *rig.nic.eeprom();
    let mut wire = Microwire::begin(&mut rig);
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
    assert_eq!(rig.read(Register::Eecd) & 0x80, 0, "released");
    // A device reset in the middle of a command leaves no pin driven.
    Microwire::begin(&mut rig).out(6, 3);
    rig.set(Register::Ctrl, 1 << 26);
    assert_eq!(rig.read(Register::Eecd) & 0xc7, 0);
}

fn phy_read(rig: &mut Rig, register: u32) -> u16 {
    rig.set(Register::Mdic, 2 << 26 | 1 << 21 | register << 16);
    let value = rig.read(Register::Mdic);
    assert_eq!(value >> 28 & 5, 1, "ready without error");
    value as u16
}

fn phy_write(rig: &mut Rig, register: u32, value: u16) {
    let value = u32::from(value);
    rig.set(Register::Mdic, 1 << 26 | 1 << 21 | register << 16 | value);
    assert_eq!(rig.read(Register::Mdic) >> 28 & 5, 1);
}

#[test]
fn phy_identity_and_negotiation() {
    let mut rig = Rig::powered();
    let id = u32::from(phy_read(&mut rig, 2)) << 16 | u32::from(phy_read(&mut rig, 3));
    assert_eq!(id & 0xffff_fff0, 0x0141_0c20);
    // Software reset and restart clear themselves.
    phy_write(&mut rig, 0, 0x9340);
    assert_eq!(phy_read(&mut rig, 0), 0x1140);
    // Link up, negotiation complete.
    assert_eq!(phy_read(&mut rig, 1) & 0x24, 0x24);
    assert_eq!(phy_read(&mut rig, 17) & 0xec00, 0xac00);
    // Partner: pause, 1000 full; both receivers fine.
    assert_ne!(phy_read(&mut rig, 5) & 0x0400, 0);
    assert_eq!(phy_read(&mut rig, 10) & 0x3800, 0x3800);
    // Identity does not change.
    phy_write(&mut rig, 2, 0);
    assert_eq!(phy_read(&mut rig, 2), 0x0141);
    // Without gigabit advertised: 100 full.
    phy_write(&mut rig, 9, 0);
    phy_write(&mut rig, 0, 0x1340);
    assert_eq!(phy_read(&mut rig, 17) >> 13, 0b011);
    // Forced 10 half.
    phy_write(&mut rig, 0, 0);
    assert_eq!(phy_read(&mut rig, 17) >> 13, 0b000);
    assert_eq!(phy_read(&mut rig, 1) & 0x24, 0x04);
    // Nobody at another address.
    rig.set(Register::Mdic, 2 << 26 | 2 << 21);
    assert_eq!(rig.read(Register::Mdic) >> 28 & 5, 5);
    // The interrupt on completion.
    rig.read(Register::Icr);
    rig.set(Register::Mdic, 1 << 29 | 2 << 26 | 1 << 21);
    assert_eq!(rig.read(Register::Icr), MDAC);
}

#[test]
fn phy_reset_and_loopback() {
    let mut rig = Rig::running();
    phy_write(&mut rig, 0, 0x4140);
    assert!(rig.nic.loopback());
    // Looped back, there is a link without a cable.
    rig.nic.set_link(false);
    assert!(rig.nic.link_up());
    // CTRL.PHY_RST brings every PHY register back.
    rig.or(Register::Ctrl, 1 << 31);
    assert_eq!(phy_read(&mut rig, 0), 0x1140);
    assert!(!rig.nic.loopback() && !rig.nic.link_up());
    rig.nic.set_link(true);
    assert!(rig.nic.link_up());
    // Powered down by BMCR, and up again.
    phy_write(&mut rig, 0, 0x1940);
    assert!(!rig.nic.link_up());
    phy_write(&mut rig, 0, 0x1140);
    assert!(rig.nic.link_up());
}

#[test]
fn eeprom_reload_restores_the_address() {
    let mut rig = Rig::powered();
    let word = Table::ReceiveAddress.offset();
    rig.nic.mmio_write(word, 0);
    rig.set(Register::CtrlExt, 1 << 13 | 1);
    assert_eq!(rig.read(Register::CtrlExt), 1);
    assert_eq!(rig.nic.mmio_read(word), 0x1200_5452);
}

#[test]
fn link_changes_show_and_interrupt() {
    let mut rig = Rig::powered();
    // SLU is what lets the MAC see the PHY's link.
    assert_eq!(rig.read(Register::Status) & 2, 0);
    rig.set(Register::Ctrl, 1 << 6);
    assert_eq!(rig.read(Register::Status) & 0xc3, 0x83);
    assert_eq!(rig.read(Register::Icr), LSC);
    rig.set(Register::Ims, LSC);
    rig.nic.set_link(false);
    assert!(rig.nic.interrupt_line());
    assert_eq!(rig.read(Register::Icr), LSC | ASSERTED);
    assert!(!rig.nic.interrupt_line());
    assert_eq!(rig.read(Register::Status) & 2, 0);
    assert_eq!(phy_read(&mut rig, 1) & 0x24, 0);
    assert_eq!(phy_read(&mut rig, 17) & 0x0400, 0);
    // Nothing changed, nothing is reported.
    rig.nic.set_link(false);
    assert_eq!(rig.read(Register::Icr), 0);
    rig.nic.set_link(true);
    assert_eq!(rig.read(Register::Icr), LSC | ASSERTED);
    assert!(rig.nic.link_up());
}

#[test]
fn without_link_nothing_moves() {
    let mut rig = Rig::running();
    rig.nic.set_link(false);
    let at = rig.queue_buffer(&frame(MAC, 60, 1), EOP | RS, 0);
    assert_eq!(rig.transmit().descriptors, 0);
    assert_eq!(rig.receive(&frame(MAC, 60, 1)), Received::LinkDown);
    rig.nic.set_link(true);
    assert_eq!(rig.transmit().frames, 1);
    assert!(rig.done(at));
}

// ---- Interrupts -------------------------------------------------------------

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

// ---- Transmit ---------------------------------------------------------------

#[test]
fn frames_go_out_in_order_and_wrap() {
    let mut rig = Rig::running();
    for number in 0..50u64 {
        let bytes = frame(MAC, 60 + number as usize * 29, number);
        rig.data = TX_DATA;
        let (a, b) = bytes.split_at(bytes.len() / 3);
        let first = rig.queue_buffer(a, 0, 0);
        let second = rig.queue_buffer(b, EOP | RS, 0);
        let done = rig.transmit();
        let expected = Transmitted {
            descriptors: 2,
            frames: 1,
            bytes: bytes.len() as u64,
        };
        assert_eq!(done, expected);
        assert!(!rig.done(first), "RS was not asked for");
        assert!(rig.done(second));
        assert_eq!(rig.read(Register::Tdh), rig.read(Register::Tdt));
        assert_eq!(rig.wire.0.pop().as_deref(), Some(&bytes[..]));
        assert_eq!(rig.read(Register::Icr), TXDW | TXQE);
    }
}

#[test]
fn a_disabled_transmitter_waits() {
    let mut rig = Rig::running();
    rig.set(Register::Tctl, 0);
    rig.queue_buffer(&frame(MAC, 60, 1), EOP, 0);
    assert_eq!(rig.transmit(), Transmitted::default());
    rig.set(Register::Tctl, 2);
    assert_eq!(rig.transmit().frames, 1);
    assert_eq!(rig.read(Register::Icr), TXQE, "without RS no TXDW");
}

#[test]
fn short_frames_are_padded_with_zeros() {
    let mut rig = Rig::running();
    // Something longer before, so that old bytes would show.
    rig.queue_buffer(&frame(MAC, 200, 1), EOP, 0);
    let short = frame(MAC, 20, 2);
    rig.queue_buffer(&short, EOP, 0);
    rig.transmit();
    let mut padded = short.clone();
    padded.resize(60, 0);
    assert_eq!(rig.wire.0[1], padded);
    rig.set(Register::Tctl, 2);
    rig.queue_buffer(&short, EOP, 0);
    rig.transmit();
    assert_eq!(rig.wire.0[2], short);
}

#[test]
fn legacy_checksum() {
    let mut rig = Rig::running();
    let bytes = frame(MAC, 101, 4);
    // CSO in the third word, CSS in the fourth.
    rig.queue_buffer(&bytes, EOP | IC | 40 << 16, 20 << 8);
    rig.transmit();
    let sent = &rig.wire.0[0];
    assert_eq!(be16(sent, 40), !internet_sum(&bytes[20..]));
    assert_eq!((&sent[..40], &sent[42..]), (&bytes[..40], &bytes[42..]));
}

/// The context words as e1000_tx_csum and e1000_tso write them.
fn context(bytes: &[u8], transport: usize, tso: Option<(u32, u32)>) -> [u32; 4] {
    let ipv4 = bytes[14] >> 4 == 4;
    let udp = bytes[transport_protocol(bytes)] == 17;
    let at = transport as u32;
    let field = at + if udp { 6 } else { 16 };
    let ip = 14 | 24 << 8 | if ipv4 { (at - 1) << 16 } else { 0 };
    let mut control = DEXT | if udp { 0 } else { 1 << 24 } | if ipv4 { 1 << 25 } else { 0 };
    let mut upper = 0;
    if let Some((header, segment)) = tso {
        control |= TSE | (bytes.len() as u32 - header);
        upper = segment << 16 | header << 8;
    }
    [ip, at | field << 8, control, upper]
}

#[test]
fn checksum_offload() {
    for (ipv6, udp) in [(false, false), (false, true), (true, false), (true, true)] {
        for payload in [0, 1, 333, 1400] {
            let (mut bytes, transport) = packet(ipv6, udp, payload, 9);
            let field = transport + if udp { 6 } else { 16 };
            let pseudo = pseudo_header(&bytes, transport, (bytes.len() - transport) as u32);
            let seed = internet_sum(&pseudo).to_be_bytes();
            bytes[field..field + 2].copy_from_slice(&seed);
            let mut rig = Rig::running();
            rig.set(Register::Tctl, 2);
            rig.queue(context(&bytes, transport, None));
            let options = if ipv6 { 2 } else { 3 } << 8;
            let (a, b) = bytes.split_at(37);
            rig.queue_buffer(a, DATA, options);
            // Only the first descriptor's options count (3.3.7.2).
            rig.queue_buffer(b, DATA | EOP | RS, 0);
            rig.transmit();
            let sent = &rig.wire.0[0];
            assert_eq!(sent.len(), bytes.len());
            assert!(transport_valid(sent, transport), "{ipv6} {udp} {payload}");
            if !ipv6 {
                assert_eq!(internet_sum(&sent[14..34]), 0xffff);
            }
            // Without options nothing is touched.
            rig.queue_buffer(&bytes, DATA | EOP, 0);
            rig.transmit();
            assert_eq!(rig.wire.0[1], bytes);
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ones() {
    let (mut bytes, transport) = packet(false, true, 2, 9);
    bytes[42..44].copy_from_slice(&[0, 0]);
    let pseudo = pseudo_header(&bytes, transport, 10);
    let mut all = pseudo.clone();
    all.extend(&bytes[transport..]);
    // Payload that makes the sum all ones.
    let rest = !internet_sum(&all);
    bytes[42..44].copy_from_slice(&rest.to_be_bytes());
    let seed = internet_sum(&pseudo).to_be_bytes();
    bytes[40..42].copy_from_slice(&seed);
    let mut rig = Rig::running();
    rig.queue(context(&bytes, transport, None));
    rig.queue_buffer(&bytes, DATA | EOP, 2 << 8);
    rig.transmit();
    assert_eq!(be16(&rig.wire.0[0], 40), 0xffff);
}

#[test]
fn segmentation() {
    for (ipv6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
        for (payload, segment) in [(64000, 1448), (1448 * 3, 1448), (100, 1448), (2801, 700)] {
            let (mut bytes, transport) = packet(ipv6, udp, payload, payload as u64);
            let header = transport + if udp { 8 } else { 20 };
            let field = transport + if udp { 6 } else { 16 };
            // As Linux leaves it: the pseudo header without length.
            let seed = internet_sum(&pseudo_header(&bytes, transport, 0));
            bytes[field..field + 2].copy_from_slice(&seed.to_be_bytes());
            let mut rig = Rig::running();
            // The last segment may be short; unpadded.
            rig.set(Register::Tctl, 2);
            let tso = Some((header as u32, segment as u32));
            rig.queue(context(&bytes, transport, tso));
            let options = if ipv6 { 2 } else { 3 } << 8;
            // The header in its own descriptor; the payload in odd pieces.
            let cuts = [
                header,
                header + payload / 3,
                header + payload / 2,
                bytes.len(),
            ];
            let mut from = 0;
            for to in cuts {
                let end = if to == bytes.len() { EOP | RS } else { 0 };
                rig.queue_buffer(&bytes[from..to], DATA | TSE | end, options);
                from = to;
            }
            assert_eq!(rig.transmit().frames as usize, payload.div_ceil(segment));
            assert_eq!(rig.read(Register::Tsctc), 1);
            assert_eq!(rig.read(Register::Tsctfc), 0);
            let last = rig.wire.0.len() - 1;
            let mut together: Vec<u8> = Vec::new();
            for (number, sent) in rig.wire.0.iter().enumerate() {
                let data = &sent[header..];
                assert!(data.len() == segment || number == last);
                assert!(transport_valid(sent, transport), "segment {number}");
                assert_eq!(sent[..14], bytes[..14]);
                if ipv6 {
                    assert_eq!(usize::from(be16(sent, 18)), sent.len() - 54);
                    assert_eq!(sent[20..54], bytes[20..54]);
                } else {
                    assert_eq!(internet_sum(&sent[14..34]), 0xffff);
                    assert_eq!(usize::from(be16(sent, 16)), sent.len() - 14);
                    assert_eq!(usize::from(be16(sent, 18)), 0x1234 + number);
                    assert_eq!(sent[26..34], bytes[26..34]);
                }
                if udp {
                    let length = usize::from(be16(sent, transport + 4));
                    assert_eq!(length, sent.len() - transport);
                } else {
                    let sequence = &sent[transport + 4..transport + 8];
                    let sequence = u32::from_be_bytes(sequence.try_into().unwrap());
                    let expected = 0xffff_ff00u32.wrapping_add(together.len() as u32);
                    assert_eq!(sequence, expected);
                    let flags = if number == last { 0x19 } else { 0x10 };
                    assert_eq!(sent[transport + 13], flags);
                }
                together.extend(data);
            }
            assert!(together == bytes[header..], "the payload came through");
        }
    }
}

#[test]
fn vlan_tags_are_inserted() {
    let mut rig = Rig::running();
    let bytes = frame(MAC, 99, 5);
    rig.queue_buffer(&bytes, EOP | VLE, 0x6123 << 16);
    rig.transmit();
    assert_eq!(rig.wire.0[0], bytes, "CTRL.VME is 0");
    rig.or(Register::Ctrl, 1 << 30);
    rig.queue_buffer(&bytes, EOP | VLE, 0x6123 << 16);
    rig.queue_buffer(&bytes, EOP, 0x6123 << 16);
    let (tcp, transport) = packet(false, false, 500, 1);
    rig.queue(context(&tcp, transport, Some((54, 200))));
    rig.queue_buffer(&tcp, DATA | TSE | EOP | VLE, 0x0007 << 16);
    rig.transmit();
    let mut tagged = bytes[..12].to_vec();
    tagged.extend([0x81, 0x00, 0x61, 0x23]);
    tagged.extend(&bytes[12..]);
    assert_eq!(rig.wire.0[1], tagged);
    assert_eq!(rig.wire.0[2], bytes, "VLE is 0");
    assert_eq!(rig.wire.0.len(), 6);
    let data: Vec<u8> = rig.wire.0[3..]
        .iter()
        .flat_map(|sent| {
            assert_eq!(sent[..12], tcp[..12]);
            assert_eq!(sent[12..18], [0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
            sent[58..].to_vec()
        })
        .collect();
    assert_eq!(data, tcp[54..]);
}

/// VLE counts in the descriptor with EOP (3.3.7.1).
#[test]
fn the_last_descriptor_decides_about_the_tag() {
    let mut rig = Rig::running();
    rig.or(Register::Ctrl, 1 << 30);
    let bytes = frame(MAC, 99, 5);
    let (a, b) = bytes.split_at(40);
    rig.queue_buffer(a, VLE, 1 << 16);
    rig.queue_buffer(b, EOP, 1 << 16);
    rig.queue_buffer(a, 0, 0);
    rig.queue_buffer(b, EOP | VLE, 7 << 16);
    rig.transmit();
    assert_eq!(rig.wire.0[0], bytes);
    assert_eq!(rig.wire.0[1][12..18], [0x81, 0, 0, 7, bytes[12], bytes[13]]);
    assert_eq!(rig.wire.0[1].len(), bytes.len() + 4);
}

#[test]
fn malformed_packets_are_dropped_and_the_next_goes_out() {
    let good = frame(MAC, 80, 1);
    let (tcp, transport) = packet(false, false, 500, 1);
    let too_long = vec![0; 9000];
    type Make<'a> = &'a dyn Fn(&mut Rig);
    let cases: [(&str, Make); 8] = [
        ("segments longer than the buffer", &|rig| {
            let segment = FRAME_LIMIT as u32 - 53;
            let mut words = context(&tcp, transport, Some((54, segment)));
            words[2] |= 0x8000;
            rig.queue(words);
            rig.queue_buffer(&tcp, DATA | TSE, 0);
            for _ in 0..3 {
                rig.queue_buffer(&too_long, DATA | TSE, 0);
            }
            rig.queue_buffer(&too_long, DATA | TSE | EOP, 0);
        }),
        ("no header", &|rig| {
            rig.queue(context(&tcp, transport, Some((0, 200))));
            rig.queue_buffer(&tcp, DATA | TSE | EOP, 0);
        }),
        ("no segment size", &|rig| {
            rig.queue(context(&tcp, transport, Some((54, 0))));
            rig.queue_buffer(&tcp, DATA | TSE | EOP, 0);
        }),
        ("header ends in TCP's", &|rig| {
            rig.queue(context(&tcp, transport, Some((50, 200))));
            rig.queue_buffer(&tcp, DATA | TSE | EOP, 0);
        }),
        ("more than PAYLEN", &|rig| {
            rig.queue(context(&tcp, transport, Some((54, 1000))));
            rig.queue_buffer(&[&tcp[..], &[0]].concat(), DATA | TSE | EOP, 0);
        }),
        ("checksum field outside", &|rig| {
            rig.queue_buffer(&good[..30], EOP | IC | 29 << 16, 14 << 8);
        }),
        ("longer than the buffer", &|rig| {
            rig.queue_buffer(&too_long, 0, 0);
            rig.queue_buffer(&too_long, EOP, 0);
        }),
        ("unknown descriptor type", &|rig| {
            rig.queue_buffer(&good, DEXT | 5 << 20 | EOP, 0);
        }),
    ];
    for (name, make) in cases {
        let mut rig = Rig::running();
        make(&mut rig);
        let last = rig.queue_buffer(&good, EOP | RS, 0);
        rig.transmit();
        assert_eq!(rig.nic.faults().malformed, 1, "{name}");
        assert!(rig.done(last), "{name}");
        assert_eq!(rig.wire.0.last(), Some(&good), "{name}");
        // What went out before the excess was found is a whole segment.
        let before = if name == "more than PAYLEN" { 1 } else { 0 };
        assert_eq!(rig.wire.0.len(), before + 1, "{name}");
    }
    // Fewer than PAYLEN: what is complete is out, the rest is dropped.
    let mut rig = Rig::running();
    rig.queue(context(&tcp, transport, Some((54, 200))));
    rig.queue_buffer(&tcp[..tcp.len() - 1], DATA | TSE | EOP, 0);
    rig.transmit();
    assert_eq!((rig.wire.0.len(), rig.nic.faults().malformed), (2, 1));
    assert_eq!(rig.read(Register::Tsctfc), 1);
}

#[test]
fn the_longest_frame_goes_out() {
    let mut rig = Rig::running();
    let bytes = frame(MAC, FRAME_LIMIT, 8);
    rig.or(Register::Ctrl, 1 << 30);
    rig.queue_buffer(&bytes, EOP | VLE, 0);
    rig.transmit();
    assert_eq!(rig.wire.0[0].len(), FRAME_LIMIT + 4);
    assert_eq!(rig.wire.0[0][16..], bytes[12..]);
}

#[test]
fn a_refused_address_stops_the_transmit_ring() {
    let bad = BusFault {
        address: 0xdead_0000,
        length: 100,
    };
    let mut rig = Rig::running();
    let good = frame(MAC, 60, 1);
    rig.queue_buffer(&good, EOP | RS, 0);
    let at = rig.queue([bad.address as u32, 0, EOP | RS | 100, 0]);
    rig.queue_buffer(&good, EOP | RS, 0);
    assert_eq!(rig.transmit().descriptors, 1);
    assert_eq!(rig.nic.faults().transmit, bad);
    assert_eq!(rig.nic.faults().bus, 1);
    assert!(rig.nic.stopped(Ring::Transmit) && !rig.nic.stopped(Ring::Receive));
    assert!(!rig.done(at));
    assert_eq!(rig.read(Register::Tdh), 1);
    assert_eq!(rig.read(Register::Icr), TXDW);
    assert_eq!(rig.transmit().descriptors, 0);
    // Configuration space: received master abort, until a 1 is written.
    assert_ne!(rig.nic.config_read(6, 2) & 0x2000, 0);
    rig.nic.config_write(6, 2, 0x2000);
    assert_eq!(rig.nic.config_read(6, 2) & 0x2000, 0);
    // Receive goes on; a reset lets transmit run again.
    assert_eq!(rig.receive(&good), Received::Stored { descriptors: 1 });
    rig.set(Register::Ctrl, 1 << 26);
    assert!(!rig.nic.stopped(Ring::Transmit));
    // The ring itself, and the write-back, are DMA too.
    let mut rig = Rig::running();
    rig.set(Register::Tdbah, 9);
    rig.set(Register::Tdt, 1);
    rig.transmit();
    let ring = 9 << 32 | TX_RING & 0xffff_ffff;
    assert_eq!(rig.nic.faults().transmit.address, ring);
}

#[test]
fn a_tail_outside_stops_the_ring() {
    let mut rig = Rig::running();
    rig.set(Register::Tdt, 8);
    assert_eq!(rig.transmit(), Transmitted::default());
    rig.set(Register::Rdt, 0xffff);
    assert_eq!(rig.receive(&frame(MAC, 60, 1)), Received::Stopped);
    assert_eq!(rig.nic.faults().bad_tails, 2);
    assert!(rig.nic.stopped(Ring::Transmit) && rig.nic.stopped(Ring::Receive));
}

#[test]
fn low_transmit_threshold() {
    let mut rig = Rig::running();
    rig.set(Register::Tdlen, 0x1000 - 0x80);
    rig.set(Register::Txdctl, 1 << 25);
    for _ in 0..8 {
        rig.queue_buffer(&frame(MAC, 60, 1), EOP, 0);
    }
    // `queue` wraps at 8: set the tail past the threshold by hand.
    rig.set(Register::Tdt, 7);
    rig.transmit();
    assert_eq!(rig.read(Register::Icr), TXQE, "never more than 8 waited");
    rig.set(Register::Tdh, 0);
    rig.set(Register::Tdt, 9);
    rig.transmit();
    assert_eq!(rig.read(Register::Icr), TXQE | TXD_LOW);
}

// ---- Receive ----------------------------------------------------------------

#[test]
fn frames_arrive_in_order_and_wrap() {
    let mut rig = Rig::running();
    for number in 0..50u32 {
        let length = 60 + number as usize * 29;
        let bytes = frame(MAC, length, u64::from(number));
        assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
        let index = number % RINGS;
        let descriptor = rig.received(index);
        assert_eq!(descriptor.bytes, bytes);
        // DD, EOP, and no checksum was asked for.
        assert_eq!((descriptor.status, descriptor.errors), (0x07, 0));
        assert_eq!(descriptor.checksum, !internet_sum(&bytes));
        assert_eq!(rig.read(Register::Rdh), (index + 1) % RINGS);
        assert_ne!(rig.read(Register::Icr) & RXT0, 0);
        rig.set(Register::Rdt, index);
    }
}

#[test]
fn the_fcs_is_stored_unless_stripped() {
    let mut rig = Rig::running();
    rig.set(Register::Rctl, 1 << 1);
    let bytes = frame(MAC, 61, 1);
    rig.receive(&bytes);
    let stored = rig.received(0).bytes;
    assert_eq!(stored[..61], bytes);
    // The residue of a frame with its FCS (IEEE 802.3 3.2.9), bit by bit.
    let crc = stored.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    });
    assert_eq!((stored.len(), crc), (65, 0xdebb_20e3));
    rig.nic.skip_fcs(true);
    rig.receive(&bytes);
    assert_eq!(rig.received(1).bytes, [&bytes[..], &[0; 4]].concat());
}

#[test]
fn buffer_sizes_and_frames_over_several() {
    // BSIZE and BSEX to bytes (13.4.22).
    for (bits, size) in [
        (0, 2048),
        (1 << 16, 1024),
        (2 << 16, 512),
        (3 << 16, 256),
        (1 << 25 | 3 << 16, 4096),
    ] {
        let mut rig = Rig::running();
        rig.set(Register::Rctl, 1 << 1 | 1 << 5 | bits);
        let length = size * 2 + 7;
        let bytes = frame(MAC, length, 3);
        assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 3 });
        let parts = [rig.received(0), rig.received(1), rig.received(2)];
        assert_eq!(parts[0].bytes.len(), size);
        assert_eq!(parts[1].bytes.len(), size);
        assert_eq!(parts[2].bytes.len(), 7 + 4);
        assert_eq!(
            [parts[0].status, parts[1].status, parts[2].status],
            [1, 1, 7]
        );
        let stored: Vec<u8> = parts.iter().flat_map(|part| part.bytes.clone()).collect();
        assert_eq!(stored[..length], bytes);
        assert_eq!(rig.read(Register::Rdh), 3);
    }
}

#[test]
fn overrun_when_descriptors_run_out() {
    let mut rig = Rig::running();
    let bytes = frame(MAC, 60, 1);
    let mut thresholds = 0;
    for number in 0..7 {
        assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
        let causes = rig.read(Register::Icr);
        // RDMTS 0: half of the ring is left.
        assert_eq!(causes & RXDMT0 != 0, number == 2, "{number}");
        thresholds += causes >> 4 & 1;
    }
    assert_eq!(thresholds, 1);
    assert_eq!(rig.receive(&bytes), Received::NoDescriptors);
    assert_eq!(rig.read(Register::Icr), RXO);
    assert_eq!(rig.read(Register::Mpc), 1);
    assert_eq!(rig.read(Register::Rnbc), 1);
    rig.set(Register::Rdt, 0);
    assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
    // One descriptor is not enough for two buffers, and stays.
    rig.set(Register::Rdt, 1);
    rig.or(Register::Rctl, 3 << 16);
    let head = rig.read(Register::Rdh);
    assert_eq!(rig.receive(&frame(MAC, 300, 1)), Received::NoDescriptors);
    assert_eq!(rig.read(Register::Rdh), head);
    assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
}

#[test]
fn rdmts_fractions() {
    for (bits, left) in [(0, 4), (1 << 8, 2), (2 << 8, 1)] {
        let mut rig = Rig::running();
        rig.or(Register::Rctl, bits);
        for free in (0..7).rev() {
            rig.receive(&frame(MAC, 60, 1));
            let causes = rig.read(Register::Icr);
            assert_eq!(causes & RXDMT0 != 0, free == left, "{left}: {free}");
        }
    }
}

#[test]
fn small_packets_are_detected() {
    let mut rig = Rig::running();
    rig.set(Register::Rsrpd, 70);
    rig.receive(&frame(MAC, 67, 1));
    assert_eq!(rig.read(Register::Icr), RXT0);
    rig.receive(&frame(MAC, 66, 1));
    assert_eq!(rig.read(Register::Icr), RXT0 | SRPD);
}

#[test]
fn address_filters() {
    let other = [0x52, 0x54, 0x00, 0x12, 0x34, 0x57];
    let group = [0x01, 0x00, 0x5e, 0x12, 0x34, 0x56];
    const STORED: Received = Received::Stored { descriptors: 1 };
    const DROPPED: Received = Received::Filtered(Filter::Address);
    let run = |rctl: u32, to: [u8; 6]| {
        let mut rig = Rig::running();
        rig.set(Register::Rctl, 2 | rctl);
        let result = rig.receive(&frame(to, 60, 1));
        (result, rig.received(0).status >> 7)
    };
    assert_eq!(run(0, MAC), (STORED, 0));
    assert_eq!(run(0, other), (DROPPED, 0));
    assert_eq!(run(1 << 3, other), (STORED, 1), "UPE");
    assert_eq!(run(1 << 4, other), (DROPPED, 0), "MPE");
    assert_eq!(run(0, [0xff; 6]), (DROPPED, 0));
    assert_eq!(run(1 << 15, [0xff; 6]), (STORED, 0), "BAM");
    assert_eq!(run(0, group), (DROPPED, 0));
    assert_eq!(run(1 << 15, group), (DROPPED, 0));
    assert_eq!(run(1 << 3, group), (DROPPED, 0));
    assert_eq!(run(1 << 4, group), (STORED, 1), "MPE");
    // The last receive address entry; only while it is valid.
    let mut rig = Rig::running();
    let last = Table::ReceiveAddress.offset() + 30 * 4;
    rig.nic.mmio_write(last, 0x1200_5452);
    rig.nic.mmio_write(last + 4, 0x5734);
    assert_eq!(rig.receive(&frame(other, 60, 1)), DROPPED);
    rig.nic.mmio_write(last + 4, 0x5734 | 1 << 31);
    assert_eq!(rig.receive(&frame(other, 60, 1)), STORED);
}

/// The hash as e1000_hash_mc_addr has it, by bytes.
#[test]
fn multicast_hash() {
    let mut random = Random::new(6);
    for _ in 0..200 {
        let mut to: [u8; 6] = random.word().to_le_bytes()[..6].try_into().unwrap();
        to[0] |= 1;
        let (a, b) = (u32::from(to[4]), u32::from(to[5]));
        let hashes = [
            a >> 4 | b << 4,
            a >> 3 | b << 5,
            a >> 2 | b << 6,
            a | b << 8,
        ];
        for (mode, hash) in hashes.into_iter().enumerate() {
            let hash = hash & 0xfff;
            let mut rig = Rig::running();
            rig.set(Register::Rctl, 2 | (mode as u32) << 12);
            let word = Table::Multicast.offset() + (hash >> 5) * 4;
            rig.nic.mmio_write(word, !(1 << (hash & 31)));
            let bytes = frame(to, 60, 1);
            assert_eq!(rig.receive(&bytes), Received::Filtered(Filter::Address));
            rig.nic.mmio_write(word, 1 << (hash & 31));
            assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
        }
    }
}

fn tagged(tag: u16, length: usize) -> Vec<u8> {
    let mut bytes = frame(MAC, length, 7);
    bytes[12..14].copy_from_slice(&[0x81, 0x00]);
    bytes[14..16].copy_from_slice(&tag.to_be_bytes());
    bytes
}

#[test]
fn vlan_filter_and_strip() {
    let mut rig = Rig::running();
    let bytes = tagged(0x6123, 100);
    // Not stripped without CTRL.VME.
    rig.receive(&bytes);
    assert_eq!(rig.received(0).bytes, bytes);
    assert_eq!(rig.received(0).status & 8, 0);
    rig.or(Register::Ctrl, 1 << 30);
    rig.receive(&bytes);
    let stored = rig.received(1);
    assert_eq!(stored.bytes, [&bytes[..12], &bytes[16..]].concat());
    assert_eq!((stored.status & 8, stored.special), (8, 0x6123));
    assert_eq!(stored.checksum, !internet_sum(&stored.bytes));
    // The filter table: identifier 0x123 is word 9, bit 3.
    rig.or(Register::Rctl, 1 << 18);
    assert_eq!(rig.receive(&bytes), Received::Filtered(Filter::Vlan));
    rig.nic.mmio_write(Table::Vlan.offset() + 9 * 4, 1 << 3);
    assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
    // Untagged frames pass.
    let plain = frame(MAC, 60, 1);
    assert_eq!(rig.receive(&plain), Received::Stored { descriptors: 1 });
    assert_eq!(rig.received(3).special, 0);
    // The canonical form bit.
    rig.or(Register::Rctl, 1 << 19);
    assert_eq!(rig.receive(&bytes), Received::Stored { descriptors: 1 });
    let odd = tagged(0x7123, 100);
    assert_eq!(rig.receive(&odd), Received::Filtered(Filter::CanonicalForm));
}

#[test]
fn packet_checksum_starts_anywhere() {
    for strip in [false, true] {
        for start in [0usize, 5, 11, 12, 14, 15, 99, 255] {
            let mut rig = Rig::running();
            if strip {
                rig.or(Register::Ctrl, 1 << 30);
            }
            rig.set(Register::Rxcsum, start as u32);
            rig.receive(&tagged(5, 100));
            let stored = rig.received(0);
            let tail = stored.bytes.get(start..).unwrap_or_default();
            let expected = !internet_sum(tail);
            assert_eq!(stored.checksum, expected, "{strip} {start}");
        }
    }
}

#[test]
fn lengths() {
    let mut rig = Rig::running();
    assert_eq!(
        rig.receive(&frame(MAC, 59, 1)),
        Received::Filtered(Filter::TooShort)
    );
    assert_eq!(
        rig.receive(&frame(MAC, 60, 1)),
        Received::Stored { descriptors: 1 }
    );
    assert_eq!(
        rig.receive(&frame(MAC, 1518, 1)),
        Received::Stored { descriptors: 1 }
    );
    assert_eq!(
        rig.receive(&frame(MAC, 1519, 1)),
        Received::Filtered(Filter::TooLong)
    );
    assert_eq!(rig.receive(&[]), Received::Filtered(Filter::TooShort));
    assert_eq!((rig.read(Register::Ruc), rig.read(Register::Roc)), (2, 1));
    rig.or(Register::Rctl, 1 << 5 | 1 << 25 | 1 << 16);
    assert_eq!(
        rig.receive(&frame(MAC, 16380, 1)),
        Received::Stored { descriptors: 1 }
    );
    assert_eq!(
        rig.receive(&frame(MAC, 16381, 1)),
        Received::Filtered(Filter::TooLong)
    );
}

#[test]
fn receive_checksum_offload() {
    const IXSM: u8 = 4;
    const TCPCS: u8 = 0x20;
    const IPCS: u8 = 0x40;
    const TCPE: u8 = 0x20;
    const IPE: u8 = 0x40;
    let check = |rxcsum: u32, bytes: &[u8]| {
        let mut rig = Rig::running();
        rig.set(Register::Rxcsum, rxcsum);
        rig.receive(bytes);
        let descriptor = rig.received(0);
        (descriptor.status & (IXSM | TCPCS | IPCS), descriptor.errors)
    };
    for udp in [false, true] {
        for payload in [0, 1, 17, 1400] {
            let (mut bytes, transport) = packet(false, udp, payload, 5);
            fill_checksums(&mut bytes, transport);
            // Padding behind the packet is not part of it.
            bytes.resize(bytes.len().max(60) + 3, 0xee);
            assert_eq!(check(0, &bytes), (IXSM, 0));
            assert_eq!(check(0x100, &bytes), (IPCS, 0));
            assert_eq!(check(0x200, &bytes), (TCPCS, 0));
            assert_eq!(check(0x300, &bytes), (IPCS | TCPCS, 0));
            let mut wrong = bytes.clone();
            wrong[22] ^= 1;
            assert_eq!(check(0x300, &wrong), (IPCS | TCPCS, IPE));
            let mut wrong = bytes.clone();
            wrong[transport] ^= 1;
            assert_eq!(check(0x300, &wrong), (IPCS | TCPCS, TCPE));
            // The same behind a VLAN tag.
            let mut inside = bytes[..12].to_vec();
            inside.extend([0x81, 0, 0, 1]);
            inside.extend(&bytes[12..]);
            assert_eq!(check(0x300, &inside), (IPCS | TCPCS, 0));
            // A fragment has no transport checksum to check.
            bytes[20] = 0x20;
            let ip = internet_sum(&bytes[14..24]) as u32 + internet_sum(&bytes[26..34]) as u32;
            let ip = !((ip & 0xffff) + (ip >> 16)) as u16;
            bytes[24..26].copy_from_slice(&ip.to_be_bytes());
            assert_eq!(check(0x300, &bytes), (IPCS, 0));
            let (mut bytes, transport) = packet(true, udp, payload, 5);
            fill_checksums(&mut bytes, transport);
            assert_eq!(check(0x700, &bytes), (TCPCS, 0));
            assert_eq!(check(0x300, &bytes), (IXSM, 0));
            let last = bytes.len() - 1;
            bytes[last] ^= 0x80;
            assert_eq!(check(0x700, &bytes), (TCPCS, TCPE));
        }
    }
    // UDP without a checksum.
    let (mut bytes, transport) = packet(false, true, 30, 5);
    fill_checksums(&mut bytes, transport);
    bytes[40..42].copy_from_slice(&[0, 0]);
    assert_eq!(check(0x300, &bytes), (IPCS, 0));
    // Not IP; IP whose lengths are not possible.
    assert_eq!(check(0x700, &frame(MAC, 60, 1)), (IXSM, 0));
    bytes[16..18].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(check(0x700, &bytes), (IXSM, 0));
}

#[test]
fn pause_frames_stay_in_the_mac() {
    let mut pause = frame([0x01, 0x80, 0xc2, 0, 0, 1], 60, 1);
    pause[12..18].copy_from_slice(&[0x88, 0x08, 0, 1, 0, 9]);
    let mut rig = Rig::running();
    rig.or(Register::Rctl, 1 << 4);
    assert_eq!(rig.receive(&pause), Received::Stored { descriptors: 1 });
    assert_eq!(rig.read(Register::Fcruc), 1);
    rig.or(Register::Ctrl, 1 << 27);
    assert_eq!(rig.receive(&pause), Received::Filtered(Filter::Pause));
    pause[17] = 0;
    assert_eq!(rig.receive(&pause), Received::Filtered(Filter::Pause));
    let counts = (rig.read(Register::Xoffrxc), rig.read(Register::Xonrxc));
    assert_eq!(counts, (1, 1));
    rig.or(Register::Rctl, 1 << 23);
    assert_eq!(rig.receive(&pause), Received::Stored { descriptors: 1 });
}

#[test]
fn a_refused_address_stops_the_receive_ring() {
    let mut rig = Rig::running();
    rig.memory.put(RX_RING, &0xdead_0000u64.to_le_bytes());
    let bytes = frame(MAC, 60, 1);
    assert_eq!(rig.receive(&bytes), Received::Stopped);
    let fault = BusFault {
        address: 0xdead_0000,
        length: 60,
    };
    assert_eq!(rig.nic.faults().receive, fault);
    assert!(rig.nic.stopped(Ring::Receive) && !rig.nic.stopped(Ring::Transmit));
    assert_eq!(rig.received_status(0), 0, "not done");
    assert_eq!(rig.read(Register::Rdh), 0);
    assert_eq!(rig.receive(&bytes), Received::Stopped);
    assert_eq!(rig.nic.faults().bus, 1);
    assert_eq!(rig.read(Register::Gprc), 0);
    assert_eq!(rig.read(Register::Mpc), 2);
}

impl Rig {
    fn received_status(&self, index: u32) -> u8 {
        self.memory.get(RX_RING + u64::from(index) * 16 + 12, 1)[0]
    }
}

// ---- Statistics -------------------------------------------------------------

#[test]
fn statistics_count_and_clear() {
    let mut rig = Rig::running();
    let group = [0x01, 0x00, 0x5e, 0, 0, 1];
    rig.or(Register::Rctl, 1 << 4);
    // Lengths without FCS at both ends of each bin.
    let lengths = [60, 61, 123, 124, 251, 252, 507, 508, 1019, 1020, 1514];
    let mut octets = 0;
    for (number, length) in lengths.into_iter().enumerate() {
        let to = [MAC, group, [0xff; 6]][number % 3];
        let bytes = frame(to, length, 1);
        octets += length as u32 + 4;
        rig.data = TX_DATA;
        rig.queue_buffer(&bytes, EOP, 0);
        rig.transmit();
        rig.receive(&bytes);
        let tail = (number as u32 + RINGS - 1) % RINGS;
        rig.set(Register::Rdt, tail);
    }
    // Seen, not received.
    rig.receive(&frame([2, 2, 2, 2, 2, 2], 60, 1));
    for (register, value) in [
        (Register::Gprc, 11),
        (Register::Tpr, 12),
        (Register::Gptc, 11),
        (Register::Tpt, 11),
        (Register::Mprc, 4),
        (Register::Bprc, 3),
        (Register::Mptc, 4),
        (Register::Bptc, 3),
        (Register::Prc64, 1),
        (Register::Prc127, 2),
        (Register::Prc255, 2),
        (Register::Prc511, 2),
        (Register::Prc1023, 2),
        (Register::Prc1522, 2),
        (Register::Ptc64, 1),
        (Register::Ptc127, 2),
        (Register::Ptc255, 2),
        (Register::Ptc511, 2),
        (Register::Ptc1023, 2),
        (Register::Ptc1522, 2),
        (Register::Mpc, 0),
        (Register::Crcerrs, 0),
    ] {
        assert_eq!(rig.read(register), value, "{}", register.name());
        assert_eq!(rig.read(register), 0, "{} clears", register.name());
        rig.set(register, 5);
        assert_eq!(rig.read(register), 0, "{} is not written", register.name());
    }
    for (low, high, value) in [
        (Register::Gorcl, Register::Gorch, octets),
        (Register::Gotcl, Register::Gotch, octets),
        (Register::Torl, Register::Torh, octets + 64),
        (Register::Totl, Register::Toth, octets),
    ] {
        // The low half stays until the high half is read.
        assert_eq!(rig.read(low), value, "{}", low.name());
        assert_eq!(rig.read(low), value);
        assert_eq!(rig.read(high), 0);
        assert_eq!(rig.read(low), 0);
    }
    // The last statistic the watchdog reads, and all between, are known.
    for offset in (Register::Crcerrs.offset()..=Register::Tsctfc.offset()).step_by(4) {
        let gaps = [0x4024, 0x402c, 0x4044, 0x4084, 0x4098, 0x409c];
        assert_eq!(Register::at(offset).is_none(), gaps.contains(&offset));
    }
}

// ---- Open view --------------------------------------------------------------

fn view() -> Vec<AtomicU32> {
    (0..BAR_WORDS)
        .map(|_| AtomicU32::new(0x5555_5555))
        .collect()
}

fn peek(bar: &[AtomicU32], register: Register) -> u32 {
    bar[register.offset() as usize / 4].load(Ordering::Relaxed)
}

fn poke(bar: &[AtomicU32], register: Register, value: u32) {
    bar[register.offset() as usize / 4].store(value, Ordering::Relaxed);
}

fn opened() -> (Rig, Vec<AtomicU32>) {
    let mut rig = Rig::running();
    rig.set(Register::Ims, 0x9d);
    let bar = view();
    rig.nic.open(&bar).unwrap();
    (rig, bar)
}

#[test]
fn the_view_shows_the_registers() {
    let (mut rig, bar) = opened();
    for &register in Register::ALL {
        let shown = peek(&bar, register);
        let zero = [Register::Ims, Register::Imc, Register::Ics];
        if zero.contains(&register) {
            assert_eq!(shown, 0);
        } else {
            assert_eq!(shown, rig.read(register), "{}", register.name());
        }
    }
    assert_eq!(peek(&bar, Register::Rdt), 7);
    assert_ne!(peek(&bar, Register::Status) & 2, 0);
    assert_eq!(bar[0x8800 / 4].load(Ordering::Relaxed), 0);
    let mac = bar[Table::ReceiveAddress.offset() as usize / 4].load(Ordering::Relaxed);
    assert_eq!(mac, 0x1200_5452);
    assert_eq!(rig.nic.audit(&bar), Ok(()));
    assert_eq!(rig.nic.absorb(&bar, false), Ok(Absorbed::default()));
}

#[test]
fn a_transmit_interrupt_and_poll_without_traps() {
    let (mut rig, bar) = opened();
    // Transmit: the driver writes TDT.
    let at = rig.queue_buffer(&frame(MAC, 60, 1), EOP | RS, 0);
    rig.nic.open(&bar).unwrap();
    rig.queue_buffer(&frame(MAC, 60, 2), EOP | RS, 0);
    rig.set(Register::Tdt, 1);
    poke(&bar, Register::Tdt, 2);
    let absorbed = rig.nic.absorb(&bar, false).unwrap();
    assert!(absorbed.transmit_tail && !absorbed.receive_tail);
    assert_eq!(rig.transmit().frames, 2);
    assert!(rig.done(at));
    rig.receive(&frame(MAC, 60, 3));
    rig.nic.publish(&bar);
    assert_eq!(peek(&bar, Register::Icr), ASSERTED | RXT0 | TXQE | TXDW);
    assert_eq!(
        (peek(&bar, Register::Tdh), peek(&bar, Register::Rdh)),
        (2, 1)
    );
    assert!(rig.nic.interrupt_line());
    // The handler reads ICR and masks everything.
    poke(&bar, Register::Imc, 0xffff_ffff);
    let absorbed = rig.nic.absorb(&bar, true).unwrap();
    assert_eq!(absorbed.acknowledged, RXT0 | TXQE | TXDW);
    assert_eq!(absorbed.masked, 0xffff_ffff);
    assert_eq!(
        (peek(&bar, Register::Icr), peek(&bar, Register::Imc)),
        (0, 0)
    );
    assert!(!rig.nic.interrupt_line());
    assert_eq!(rig.nic.peek(Register::Ims), 0);
    // The poll gives a buffer back, sets ITR and unmasks.
    poke(&bar, Register::Rdt, 0);
    poke(&bar, Register::Itr, 195);
    poke(&bar, Register::Ims, 0x9d);
    let absorbed = rig.nic.absorb(&bar, false).unwrap();
    let expected = Absorbed {
        receive_tail: true,
        throttle: true,
        unmasked: 0x9d,
        ..Absorbed::default()
    };
    assert_eq!(absorbed, expected);
    assert_eq!(rig.nic.peek(Register::Ims), 0x9d);
    assert_eq!(rig.nic.peek(Register::Itr), 195);
    assert_eq!(rig.nic.peek(Register::Rdt), 0);
    // The watchdog's ICS.
    poke(&bar, Register::Ics, RXDMT0);
    assert_eq!(rig.nic.absorb(&bar, false).unwrap().raised, RXDMT0);
    assert_eq!(peek(&bar, Register::Icr), ASSERTED | RXDMT0);
    assert_eq!(rig.nic.audit(&bar), Ok(()));
}

#[test]
fn mask_and_unmask_in_one_window() {
    // With the handler: masked first, unmasked last.
    let (mut rig, bar) = opened();
    poke(&bar, Register::Imc, 0xffff_ffff);
    poke(&bar, Register::Ims, RXT0);
    rig.nic.absorb(&bar, true).unwrap();
    assert_eq!(rig.nic.peek(Register::Ims), RXT0);
    // Without: nobody knows.
    poke(&bar, Register::Imc, 0xffff_ffff);
    poke(&bar, Register::Ims, RXT0);
    let error = rig.nic.absorb(&bar, false).unwrap_err();
    assert_eq!(error.reason, Reason::OrderUnknown);
    assert_eq!(error.offset, Register::Ims.offset());
}

#[test]
fn a_cause_raised_after_publishing_is_not_lost() {
    let (mut rig, bar) = opened();
    rig.receive(&frame(MAC, 60, 1));
    rig.nic.publish(&bar);
    rig.receive(&frame(MAC, 60, 1));
    assert_eq!(rig.nic.absorb(&bar, true).unwrap().acknowledged, 0);
    assert_eq!(peek(&bar, Register::Icr), RXT0 | ASSERTED);
    assert_eq!(rig.nic.absorb(&bar, true).unwrap().acknowledged, RXT0);
    assert_eq!(peek(&bar, Register::Icr), 0);
}

#[test]
fn every_other_write_is_found() {
    let driver = ["TDT", "RDT", "ITR", "IMS", "IMC", "ICS"];
    for &register in Register::ALL {
        let (mut rig, bar) = opened();
        poke(&bar, register, peek(&bar, register) ^ 1);
        let audit = rig.nic.audit(&bar);
        if driver.contains(&register.name()) {
            assert_eq!(audit, Ok(()), "{}", register.name());
            assert_ne!(rig.nic.absorb(&bar, false), Ok(Absorbed::default()));
            continue;
        }
        let error = audit.unwrap_err();
        assert_eq!(error.offset, register.offset());
        assert_eq!(error.value, peek(&bar, register));
        assert_eq!(error.reason, Reason::NotOpen);
        assert!(error.to_string().contains(register.name()), "{error}");
        // Those that publish rewrites are found before they are rewritten.
        if ["ICR", "STATUS", "TDH", "RDH"].contains(&register.name()) {
            assert_eq!(rig.nic.absorb(&bar, true), Err(error));
        }
    }
    for offset in [0x5200, 0x5478, 0x57fc, 0x8800, 0x1_0000, 0x1_fffc] {
        let (rig, bar) = opened();
        bar[offset / 4].fetch_xor(1 << 31, Ordering::Relaxed);
        assert_eq!(rig.nic.audit(&bar).unwrap_err().offset as usize, offset);
    }
}

#[test]
fn statistics_wait_for_a_trapped_read() {
    let (mut rig, bar) = opened();
    rig.receive(&frame(MAC, 60, 1));
    rig.nic.absorb(&bar, false).unwrap();
    assert_eq!(peek(&bar, Register::Gprc), 0);
    assert_eq!(rig.nic.audit(&bar), Ok(()));
    rig.nic.close();
    assert_eq!(rig.read(Register::Gprc), 1);
    let error = rig.nic.absorb(&bar, false).unwrap_err();
    assert_eq!(error.reason, Reason::NotPublished);
    assert_eq!(
        rig.nic.audit(&bar).unwrap_err().reason,
        Reason::NotPublished
    );
    let short = &bar[..100];
    assert_eq!(rig.nic.open(short).unwrap_err().reason, Reason::WrongSize);
}

// ---- Anything a driver may do -----------------------------------------------

/// Random registers, descriptors and frames: no panic, no frame longer than the
/// device can send, and a reset always brings it back.
#[test]
fn random_descriptors_do_no_harm() {
    let mut random = Random::new(11);
    let mut frames = 0;
    for _ in 0..3000 {
        let mut rig = Rig::running();
        rig.or(Register::Ctrl, (random.below(2) as u32) << 30);
        rig.set(Register::Txdctl, random.word() as u32);
        rig.set(Register::Rxcsum, random.word() as u32);
        let rctl = random.word() as u32 & !(1 << 18) | 2;
        rig.set(Register::Rctl, rctl);
        for word in 0..RINGS * 4 {
            let value = match word % 4 {
                0 => TX_DATA as u32 + random.below(0x1_0000) as u32,
                1 => 1,
                // Lengths that fit, most of the time.
                2 => random.word() as u32 & if random.one_in(8) { !0 } else { 0xff10_0fff },
                _ => random.word() as u32 & if random.one_in(2) { !0 } else { 0x00ff_ffff },
            };
            let at = TX_RING + u64::from(word) * 4;
            rig.memory.put(at, &value.to_le_bytes());
        }
        rig.set(Register::Tdt, random.below(10) as u32);
        rig.transmit();
        for sent in &rig.wire.0 {
            assert!(sent.len() >= 14 && sent.len() <= FRAME_LIMIT + 4);
        }
        frames += rig.wire.0.len();
        let length = 60 + random.below(1500) as usize;
        let (mut bytes, _) = packet(random.one_in(2), random.one_in(2), length, random.word());
        for _ in 0..random.below(6) {
            let at = 12 + random.below(50) as usize;
            bytes[at] = random.word() as u8;
        }
        rig.receive(&bytes);
        rig.set(Register::Ctrl, 1 << 26);
        assert!(!rig.nic.stopped(Ring::Transmit) && !rig.nic.stopped(Ring::Receive));
    }
    assert!(
        frames > 1000,
        "the descriptors are not all nonsense: {frames}"
    );
}

#[test]
fn a_trapped_access_beside_the_view_loses_nothing_that_waits_there() {
    let (mut rig, bar) = opened();
    let tail = peek(&bar, Register::Tdt) + 3;
    poke(&bar, Register::Tdt, tail);
    poke(&bar, Register::Ics, RXDMT0);
    // A counter is read, as ethtool does: the tail counts from now on, and what
    // was raised waits for the view's user.
    let offset = Register::Gprc.offset();
    rig.nic.beside(&bar, |nic| nic.mmio_read(offset));
    assert_eq!(rig.nic.peek(Register::Tdt), tail);
    assert_eq!(peek(&bar, Register::Tdt), tail);
    assert_eq!(peek(&bar, Register::Ics), RXDMT0);
    // A tail that the access itself moves is seen in the view.
    let offset = Register::Tdt.offset();
    rig.nic.beside(&bar, |nic| nic.mmio_write(offset, tail + 2));
    assert_eq!(peek(&bar, Register::Tdt), tail + 2);
    // So is a register that only traps may write, once it is shown; and then
    // nobody takes it for a write without a trap.
    let offset = Register::Rctl.offset();
    let value = peek(&bar, Register::Rctl) ^ 1 << 3;
    rig.nic.beside(&bar, |nic| nic.mmio_write(offset, value));
    assert!(rig.nic.audit(&bar).is_err());
    rig.nic.show_constants(&bar);
    assert_eq!(peek(&bar, Register::Rctl), value);
    assert_eq!(rig.nic.audit(&bar), Ok(()));
    assert_eq!(rig.nic.absorb(&bar, false).unwrap().raised, RXDMT0);
}

#[test]
fn a_cause_raised_beside_the_view_is_not_acknowledged_by_a_handler_before_it() {
    let (mut rig, bar) = opened();
    let offset = Register::Ics.offset();
    rig.nic.beside(&bar, |nic| nic.mmio_write(offset, RXT0));
    // The handler had read ICR before.
    assert_eq!(rig.nic.absorb(&bar, true).unwrap().acknowledged, 0);
    assert_eq!(rig.nic.absorb(&bar, true).unwrap().acknowledged, RXT0);
}
