//! A device with memory and a wire, and packets for it: support of the tests.
//! Expectations are computed here, apart from the model.

use e1000_sim::nic::{Bus, BusFault, Config, Nic, Received, Register, Transmitted, Wire};
use process_lab::random::Random;

pub(crate) const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
pub(crate) const BASE: u64 = 0x1_0000_0000;
pub(crate) const TX_RING: u64 = BASE;
pub(crate) const RX_RING: u64 = BASE + 0x1000;
pub(crate) const TX_DATA: u64 = BASE + 0x2000;
pub(crate) const RX_DATA: u64 = BASE + 0x4_0000;

/// Descriptor command bits, in place.
pub(crate) const EOP: u32 = 1 << 24;
pub(crate) const IC: u32 = 1 << 26;
pub(crate) const TSE: u32 = 1 << 26;
pub(crate) const RS: u32 = 1 << 27;
pub(crate) const DEXT: u32 = 1 << 29;
pub(crate) const VLE: u32 = 1 << 30;
pub(crate) const IDE: u32 = 1 << 31;
pub(crate) const DATA: u32 = DEXT | 1 << 20;

pub(crate) const TXDW: u32 = 1;
pub(crate) const TXQE: u32 = 1 << 1;
pub(crate) const LSC: u32 = 1 << 2;
pub(crate) const RXDMT0: u32 = 1 << 4;
pub(crate) const RXO: u32 = 1 << 6;
pub(crate) const RXT0: u32 = 1 << 7;
pub(crate) const MDAC: u32 = 1 << 9;
pub(crate) const TXD_LOW: u32 = 1 << 15;
pub(crate) const SRPD: u32 = 1 << 16;
pub(crate) const ASSERTED: u32 = 1 << 31;

/// Memory at [`BASE`]; all other addresses are refused.
pub(crate) struct Memory(pub(crate) Vec<u8>);

impl Memory {
    pub(crate) fn range(&self, address: u64, length: usize) -> Result<usize, BusFault> {
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
    pub(crate) fn get(&self, address: u64, length: usize) -> &[u8] {
        let at = self.range(address, length).unwrap();
        &self.0[at..at + length]
    }
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) {
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
pub(crate) struct Frames(pub(crate) Vec<Vec<u8>>);

impl Wire for Frames {
    fn transmit(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }
}

/// A device, its memory and its wire.
pub(crate) struct TestCard {
    pub(crate) nic: Box<Nic>,
    pub(crate) memory: Memory,
    pub(crate) wire: Frames,
    /// Where the next transmit data goes.
    pub(crate) data: u64,
}

pub(crate) const RINGS: u32 = 8;

impl TestCard {
    /// Powered, with nothing configured.
    pub(crate) fn powered() -> TestCard {
        let mut nic = Box::new(Nic::off());
        nic.power_on(&Config {
            mac: MAC,
            bar0: 0xfebc_0000,
            io_base: 0xc000,
            irq: 11,
        });
        TestCard {
            nic,
            memory: Memory(vec![0; 0x8_0000]),
            wire: Frames::default(),
            data: TX_DATA,
        }
    }

    /// With link, transmit and receive on, rings of 8, receive buffers of 2048.
    pub(crate) fn running() -> TestCard {
        let mut card = TestCard::powered();
        card.set(Register::Ctrl, 1 << 6 | 1);
        card.read(Register::Icr);
        for (low, high, length, ring) in [
            (Register::Tdbal, Register::Tdbah, Register::Tdlen, TX_RING),
            (Register::Rdbal, Register::Rdbah, Register::Rdlen, RX_RING),
        ] {
            card.set(low, ring as u32);
            card.set(high, (ring >> 32) as u32);
            card.set(length, RINGS * 16);
        }
        for index in 0..RINGS {
            let buffer = RX_DATA + u64::from(index) * 0x1000;
            let at = RX_RING + u64::from(index) * 16;
            card.memory.put(at, &buffer.to_le_bytes());
        }
        card.set(Register::Rdt, RINGS - 1);
        // Enable; broadcast accept; strip CRC. Enable; pad.
        card.set(Register::Rctl, 1 << 1 | 1 << 15 | 1 << 26);
        card.set(Register::Tctl, 1 << 1 | 1 << 3);
        card
    }

    pub(crate) fn set(&mut self, register: Register, value: u32) {
        self.nic.mmio_write(register.offset(), value);
    }
    pub(crate) fn read(&mut self, register: Register) -> u32 {
        self.nic.mmio_read(register.offset())
    }
    pub(crate) fn or(&mut self, register: Register, bits: u32) {
        let value = self.read(register) | bits;
        self.set(register, value);
    }

    /// Puts data into memory for a descriptor.
    pub(crate) fn place(&mut self, bytes: &[u8]) -> u64 {
        let at = self.data;
        self.memory.put(at, bytes);
        self.data += bytes.len() as u64;
        at
    }

    /// Queues descriptor words at TDT.
    pub(crate) fn queue(&mut self, words: [u32; 4]) -> u64 {
        let tail = self.read(Register::Tdt);
        let at = TX_RING + u64::from(tail) * 16;
        for (index, word) in words.iter().enumerate() {
            self.memory.put(at + index as u64 * 4, &word.to_le_bytes());
        }
        self.set(Register::Tdt, (tail + 1) % RINGS);
        at
    }

    pub(crate) fn queue_buffer(&mut self, bytes: &[u8], control: u32, upper: u32) -> u64 {
        let at = self.place(bytes);
        let length = bytes.len() as u32;
        self.queue([at as u32, (at >> 32) as u32, control | length, upper])
    }

    pub(crate) fn transmit(&mut self) -> Transmitted {
        self.nic.process_transmit(&mut self.memory, &mut self.wire)
    }

    pub(crate) fn receive(&mut self, frame: &[u8]) -> Received {
        self.nic.receive(frame, &mut self.memory)
    }

    pub(crate) fn done(&self, descriptor: u64) -> bool {
        self.memory.get(descriptor + 12, 1)[0] & 1 != 0
    }

    /// The upper half of receive descriptor `index`, and its buffer.
    pub(crate) fn received(&self, index: u32) -> Descriptor {
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
pub(crate) struct Descriptor {
    pub(crate) bytes: Vec<u8>,
    pub(crate) checksum: u16,
    pub(crate) status: u8,
    pub(crate) errors: u8,
    pub(crate) special: u16,
}

/// RFC 1071, the plain way.
pub(crate) fn internet_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// A frame of `length` bytes to `to` with random payload.
pub(crate) fn frame(to: [u8; 6], length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
    bytes[..6].copy_from_slice(&to);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

/// An Ethernet, IP and TCP or UDP frame with every checksum zero.
pub(crate) fn packet(ipv6: bool, udp: bool, payload: usize, seed: u64) -> (Vec<u8>, usize) {
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
pub(crate) fn pseudo_header(bytes: &[u8], transport: usize, length: u32) -> Vec<u8> {
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
pub(crate) fn transport_valid(bytes: &[u8], transport: usize) -> bool {
    let segment = &bytes[transport..];
    let mut all = pseudo_header(bytes, transport, segment.len() as u32);
    all.extend(segment);
    internet_sum(&all) == 0xffff
}

pub(crate) fn fill_checksums(bytes: &mut [u8], transport: usize) {
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

pub(crate) fn transport_protocol(bytes: &[u8]) -> usize {
    if bytes[14] >> 4 == 4 { 23 } else { 20 }
}

impl TestCard {
    pub(crate) fn received_status(&self, index: u32) -> u8 {
        self.memory.get(RX_RING + u64::from(index) * 16 + 12, 1)[0]
    }
}
