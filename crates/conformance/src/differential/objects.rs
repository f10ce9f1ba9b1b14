//! The addresses of the driver's objects in an image, and the arguments to pass to its
//! functions.

use process_lab::e1000::{HW, NAPI, NETDEV_SIZE, PDEV_DEVICE, TX_BUFFER};
use process_lab::random::Random;
use process_lab::stock::Stock;

use crate::differential::functions::{Field, Parameter};

/// Where things are in an image.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// `struct net_device`.
    pub netdev: u64,
    /// `struct pci_dev`.
    pub pdev: u64,
    /// Device registers.
    pub mmio: u64,
    /// `struct e1000_tx_ring`.
    pub tx_ring: u64,
    /// `struct e1000_rx_ring`.
    pub rx_ring: u64,
    /// Its `struct e1000_tx_buffer[]`.
    pub tx_buffers: u64,
    /// `struct sk_buff`, four of them.
    pub skbs: [u64; 4],
    /// A page of no shape.
    pub buffer: u64,
    /// Free heap.
    pub arena: (u64, u64),
}

impl Objects {
    /// `struct e1000_adapter`.
    pub fn adapter(&self) -> u64 {
        self.netdev + NETDEV_SIZE
    }

    /// The value to pass for a parameter.
    pub fn argument(&self, parameter: Parameter, random: &mut Random) -> u64 {
        let garbage = random.word();
        match parameter {
            Parameter::Netdev => self.netdev,
            Parameter::Adapter => self.adapter(),
            Parameter::Hw => self.adapter() + HW,
            Parameter::Pdev => self.pdev,
            Parameter::Device => self.pdev + PDEV_DEVICE,
            Parameter::TxRing => self.tx_ring,
            Parameter::RxRing => self.rx_ring,
            Parameter::TxBuffer => self.tx_buffers + random.below(8) * TX_BUFFER,
            Parameter::Skb => self.skbs[0],
            Parameter::Napi => self.adapter() + NAPI,
            Parameter::Work(offset) => self.adapter() + offset,
            Parameter::Record(_) => self.buffer + 0x100,
            Parameter::Buffer => self.buffer + random.below(64) * 8,
            Parameter::Below(bound) => random.below(bound),
            Parameter::OneOf(values) => values[random.below(values.len() as u64) as usize],
            Parameter::Byte => garbage << 8 | random.below(1 << 8),
            Parameter::Half => garbage << 16 | random.below(1 << 16),
            Parameter::Int if random.one_in(3) => garbage,
            Parameter::Int => garbage << 32 | random.below(300),
            Parameter::Word => garbage,
        }
    }
}

/// Writes the fields of a [`Parameter::Record`] that was passed as `address`.
pub fn shape(
    stock: &Stock<'_>,
    file: &mut [u8],
    address: u64,
    fields: &[Field],
    random: &mut Random,
) {
    for (offset, values) in fields {
        let value = values[random.below(values.len() as u64) as usize] as u32;
        if let Some((at, _)) = stock.space.offset(address + offset, 4) {
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
}
