//! A process's access to the NIC: under the mailbox's lock, with DMA checked against
//! the ranges that the machine permits. The frames that the NIC sends are kept for
//! readers.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::SpinLock;
use super::mailbox::Mailbox;
use crate::memory::Machine;
use crate::nic::{Bus, BusFault, Nic, Received, Register, Transmitted, Wire};
use crate::packets::card;

/// The machine's memory as DMA reaches it: `allowed` and nothing else. Beyond
/// dom0's RAM it is only read: the card reads guests' packets from their own memory,
/// but stores received frames in dom0's buffers, from which they are copied (paper,
/// 5.3). So no descriptor, whatever its contents, changes a guest's memory.
pub struct MachineBus<'m> {
    machine: &'m Machine,
    allowed: Range<u64>,
    /// The hypervisor's copies of rings.
    copies: Range<u64>,
    /// Where memory ends that may be written.
    writable: u64,
}

impl<'m> MachineBus<'m> {
    /// DMA to machine addresses `allowed` only ([`crate::memory::Space::dma`]).
    pub fn new(machine: &'m Machine, allowed: Range<u64>) -> MachineBus<'m> {
        MachineBus {
            machine,
            writable: allowed.end.min(machine.sizes().ram().end),
            allowed,
            copies: 0..0,
        }
    }

    /// DMA to all that there is, as on a machine without an IOMMU.
    pub fn unlimited(machine: &'m Machine) -> MachineBus<'m> {
        MachineBus {
            machine,
            allowed: 0..u64::MAX,
            copies: 0..0,
            writable: u64::MAX,
        }
    }

    /// Also to the hypervisor's copies of rings, if `device` has its descriptors there.
    #[must_use]
    pub fn for_device(mut self, device: &Nic) -> MachineBus<'m> {
        if device.is_guarded() {
            self.copies = self.machine.sizes().hypervisor();
        }
        self
    }

    fn at(&self, address: u64, length: usize, end: u64) -> Result<*mut u8, BusFault> {
        let length = length as u64;
        let fault = BusFault { address, length };
        let last = address.checked_add(length).ok_or(fault)?;
        let copy = self.copies.start <= address && last <= self.copies.end;
        if !copy && (address < self.allowed.start || last > end) {
            return Err(fault);
        }
        self.machine.at(address, length).ok_or(fault)
    }

    fn source(&self, address: u64, length: usize) -> Result<*mut u8, BusFault> {
        self.at(address, length, self.allowed.end)
    }

    fn target(&self, address: u64, length: usize) -> Result<*mut u8, BusFault> {
        self.at(address, length, self.writable)
    }
}

impl Bus for MachineBus<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BusFault> {
        let from = self.source(address, into.len())?;
        if let (Ok(word), 0) = (<&mut [u8; 8]>::try_from(&mut *into), address % 8) {
            // SAFETY: checked; aligned. Others may write it: one load.
            *word = unsafe { from.cast::<u64>().read_volatile() }.to_le_bytes();
            return Ok(());
        }
        // SAFETY: checked; no references into the memory exist.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault> {
        let to = self.target(address, bytes.len())?;
        // SAFETY: checked; no references into the memory exist. Aligned
        // words, which others may read meanwhile, are one store.
        unsafe {
            match (bytes, address % 8) {
                ([byte], _) => to.write_volatile(*byte),
                (&[a, b], 0 | 2 | 4 | 6) => {
                    let word = u16::from_le_bytes([a, b]);
                    to.cast::<u16>().write_volatile(word);
                }
                (&[a, b, c, d], 0 | 4) => {
                    let word = u32::from_le_bytes([a, b, c, d]);
                    to.cast::<u32>().write_volatile(word);
                }
                (&[a, b, c, d, e, f, g, h], 0) => {
                    let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                    to.cast::<u64>().write_volatile(word);
                }
                _ => std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()),
            }
        }
        Ok(())
    }
}

/// The NIC of the mailbox with bus and wire, as dom0's trapped accesses use it.
pub struct NicPort<'m> {
    mailbox: &'m Mailbox,
    machine: &'m Machine,
    dma: Range<u64>,
}

impl<'m> NicPort<'m> {
    /// A port with DMA to machine addresses `dma`.
    pub fn new(mailbox: &'m Mailbox, machine: &'m Machine, dma: Range<u64>) -> NicPort<'m> {
        NicPort {
            mailbox,
            machine,
            dma,
        }
    }

    /// Memory as that device's DMA reaches it.
    fn bus(&self, nic: &Nic) -> MachineBus<'m> {
        MachineBus::new(self.machine, self.dma.clone()).for_device(nic)
    }

    /// Reads a register.
    pub fn mmio_read(&self, offset: u32) -> u32 {
        let mut nic = self.mailbox.device();
        nic.beside(card::registers(self.machine), |nic| nic.mmio_read(offset))
    }

    /// Writes a register; a moved transmit tail sends.
    pub fn mmio_write(&self, offset: u32, value: u32) {
        let mut nic = self.mailbox.device();
        self.write(&mut nic, |nic| nic.mmio_write(offset, value));
        if offset == Register::Tdt.offset() {
            self.transmit(&mut nic);
        }
    }

    /// A trapped write, concurrent with users of the open view without traps.
    fn write(&self, nic: &mut Nic, write: impl FnOnce(&mut Nic)) {
        let bar = card::registers(self.machine);
        nic.beside(bar, write);
        if nic.is_open() {
            nic.show_constants(bar);
        }
    }

    /// Reads a port: `offset` from the first, 4 bytes. Others do not exist.
    pub fn io_read(&self, offset: u32, size: u32) -> Option<u32> {
        let mut nic = self.mailbox.device();
        let bar = card::registers(self.machine);
        (size == 4).then(|| nic.beside(bar, |nic| nic.io_read(offset)))
    }

    /// Writes a port.
    pub fn io_write(&self, offset: u32, size: u32, value: u32) -> Option<()> {
        let mut nic = self.mailbox.device();
        (size == 4).then(|| self.write(&mut nic, |nic| nic.io_write(offset, value)))
    }

    /// A frame comes in from the wire.
    pub fn receive(&self, frame: &[u8]) -> Received {
        let mut nic = self.mailbox.device();
        let mut bus = self.bus(&nic);
        nic.receive(frame, &mut bus)
    }

    /// Sends what the driver put into the ring, to the mailbox's wire; a PHY in
    /// loopback receives it.
    pub fn transmit(&self, nic: &mut Nic) -> Transmitted {
        let mut bus = self.bus(nic);
        if !nic.loopback() {
            return nic.process_transmit(&mut bus, &mut &self.mailbox.wire);
        }
        let mut back = Back::default();
        let transmitted = nic.process_transmit(&mut bus, &mut back);
        for frame in back.frames {
            nic.receive(&frame, &mut bus);
        }
        transmitted
    }
}

/// Frames that a PHY in loopback returns.
#[derive(Default)]
struct Back {
    frames: Vec<Vec<u8>>,
}

impl Wire for Back {
    fn transmit(&mut self, frame: &[u8]) {
        self.frames.push(frame.to_vec());
    }
}

const SIZE: usize = 1 << 18;
/// Bytes before each frame: its length.
const HEADER: usize = 4;

/// Frames that were sent, as far as they were not overwritten by later ones.
/// All zeroes is an empty one.
#[repr(C)]
#[derive(Debug)]
pub struct WireRing {
    lock: SpinLock,
    frames: AtomicU64,
    bytes: AtomicU64,
    produced: AtomicU64,
    data: UnsafeCell<[u8; SIZE]>,
}

// SAFETY: the data is reached under the lock only.
unsafe impl Sync for WireRing {}

impl WireRing {
    /// Frames and bytes ever sent.
    pub fn sent(&self) -> (u64, u64) {
        (
            self.frames.load(Ordering::Acquire),
            self.bytes.load(Ordering::Acquire),
        )
    }

    /// The mark of the next frame, for [`WireRing::since`].
    pub fn mark(&self) -> u64 {
        self.produced.load(Ordering::Acquire)
    }

    /// Frames sent since `mark`; `None` if some were overwritten.
    pub fn since(&self, mark: u64) -> Option<Vec<Vec<u8>>> {
        let _guard = self.lock.lock();
        let end = self.produced.load(Ordering::Relaxed);
        if end - mark > SIZE as u64 {
            return None;
        }
        // SAFETY: under the lock.
        let data = unsafe { &*self.data.get() };
        let copy = |at: u64, length: usize| -> Vec<u8> {
            let bytes = (at..at + length as u64).map(|i| data[i as usize % SIZE]);
            bytes.collect()
        };
        let mut frames = Vec::new();
        let mut at = mark;
        while at < end {
            let length = copy(at, HEADER).try_into().expect("four bytes");
            let length = u32::from_le_bytes(length) as usize;
            frames.push(copy(at + HEADER as u64, length));
            at += (HEADER + length) as u64;
        }
        Some(frames)
    }

    fn push(&self, frame: &[u8]) {
        let _guard = self.lock.lock();
        let start = self.produced.load(Ordering::Relaxed) as usize;
        // SAFETY: under the lock.
        let data = unsafe { &mut *self.data.get() };
        let header = (frame.len() as u32).to_le_bytes();
        for (i, byte) in header.iter().chain(frame).enumerate() {
            data[(start + i) % SIZE] = *byte;
        }
        let end = start + HEADER + frame.len();
        self.produced.store(end as u64, Ordering::Release);
        self.frames.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_add(frame.len() as u64, Ordering::AcqRel);
    }

    /// For a thread that was interrupted here and never goes on.
    pub(crate) fn abandon(&self) {
        self.lock.release_if_mine();
    }
}

impl Wire for &WireRing {
    fn transmit(&mut self, frame: &[u8]) {
        self.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{PAGE, Sizes};

    #[test]
    fn dma_reaches_what_is_allowed_and_nothing_else() {
        let machine = Machine::new(Sizes::default()).expect("memory");
        let (end, dom0) = (machine.sizes().total(), machine.sizes().dom0);
        let mut bus = MachineBus::new(&machine, 4 * PAGE..end);
        for length in [1, 2, 3, 4, 8, 16, 1514] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8 ^ 0x5a).collect();
            let mut back = vec![0; length];
            assert_eq!(bus.write(8 * PAGE, &bytes), Ok(()));
            assert_eq!(bus.read(8 * PAGE, &mut back), Ok(()));
            assert_eq!(back, bytes);
            assert_eq!(bus.write(dom0 - length as u64, &bytes), Ok(()));
            assert_eq!(bus.read(end - length as u64, &mut back), Ok(()));
            // A guest's memory is for reading.
            let address = dom0 - length as u64 + 1;
            let refused = BusFault {
                address,
                length: length as u64,
            };
            assert_eq!(bus.write(address, &bytes), Err(refused));
            assert_eq!(bus.read(address, &mut back), Ok(()));
        }
        for address in [0, 4 * PAGE - 1, end - 15, end, u64::MAX - 3] {
            let length = 16;
            let fault = BusFault { address, length };
            assert_eq!(bus.write(address, &[0; 16]), Err(fault));
            assert_eq!(bus.read(address, &mut [0; 16]), Err(fault));
        }
    }

    #[test]
    fn frames_are_kept_until_later_ones_need_the_room() {
        let mailbox = Mailbox::new().expect("memory");
        let wire = &mailbox.get().wire;
        let mark = wire.mark();
        wire.push(&[1; 60]);
        wire.push(&[2; 1514]);
        assert_eq!(wire.since(mark), Some(vec![vec![1; 60], vec![2; 1514]]));
        assert_eq!(wire.sent(), (2, 1574));
        (0..300).for_each(|_| wire.push(&[3; 1514]));
        assert_eq!(wire.since(mark), None);
        let mark = wire.mark();
        wire.push(&[4; 64]);
        assert_eq!(wire.since(mark), Some(vec![vec![4; 64]]));
    }
}
