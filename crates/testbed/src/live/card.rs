//! The card at work: its DMA, its cable, and the registers that the driver writes
//! without a trap.

use std::sync::atomic::AtomicU32;

use super::mailbox::Mailbox;
use super::memory::{BAR_SIZE, Machine};
use super::pump::{Card, Stop};
use super::traffic::Sink;
use crate::nic::{Bus, BusFault, Received, Wire};

/// Machine addresses below are nobody's: an address that was never set.
const LOWEST: u64 = 0x1_0000;

/// The card's way to memory: addresses that are no memory are refused, as an
/// IOMMU would.
pub struct Dma<'m>(pub &'m Machine);

impl Dma<'_> {
    fn check(address: u64, length: usize) -> Result<(), BusFault> {
        if address < LOWEST {
            return Err(fault(address, length));
        }
        Ok(())
    }
}

fn fault(address: u64, length: usize) -> BusFault {
    BusFault {
        address,
        length: length as u64,
    }
}

impl Bus for Dma<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BusFault> {
        let length = into.len();
        Dma::check(address, length)?;
        self.0.read(address, into).ok_or_else(|| fault(address, length))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault> {
        Dma::check(address, bytes.len())?;
        self.0.write(address, bytes).ok_or_else(|| fault(address, bytes.len()))
    }
}

/// The other end of the cable: checks what the card sends.
impl Wire for Sink {
    fn transmit(&mut self, frame: &[u8]) {
        self.take(frame);
    }
}

/// The card of the mailbox, with its registers open: while this exists, the
/// driver's accesses do not trap where the registers are mapped.
pub struct OpenCard<'m> {
    machine: &'m Machine,
    mailbox: &'m Mailbox,
    /// What it has sent.
    pub sent: Sink,
    /// Frames that it did not store.
    pub not_stored: u64,
    /// Why the first was not.
    pub first_refusal: Option<Received>,
}

impl<'m> OpenCard<'m> {
    /// Opens the registers. Expects frames of flows below `flows`.
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn new(
        machine: &'m Machine,
        mailbox: &'m Mailbox,
        flows: usize,
    ) -> Result<OpenCard<'m>, Stop> {
        let card = OpenCard {
            machine,
            mailbox,
            sent: Sink::new(flows),
            not_stored: 0,
            first_refusal: None,
        };
        card.open()?;
        Ok(card)
    }

    /// Writes all registers anew, after they were used with traps.
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn open(&self) -> Result<(), Stop> {
        let opened = self.mailbox.device().open(registers(self.machine));
        opened.map_err(|untracked| Stop::Card(untracked.to_string()))
    }

    /// Compares all registers with what they should be, and ends the open view.
    ///
    /// # Errors
    /// [`Stop::Card`]: the driver wrote what only a trapped access may.
    pub fn close(&mut self) -> Result<(), Stop> {
        self.settle(false)?;
        let mut device = self.mailbox.device();
        let audited = device.audit(registers(self.machine));
        device.close();
        audited.map_err(|untracked| Stop::Card(untracked.to_string()))
    }
}

/// The card's registers as memory.
pub fn registers(machine: &Machine) -> &[AtomicU32] {
    // SAFETY: mapped as long as the machine; everybody accesses it as 32-bit
    // words, and drivers' plain accesses are what atomics are for here.
    unsafe { std::slice::from_raw_parts(machine.bar().cast(), BAR_SIZE as usize / 4) }
}

impl Card for OpenCard<'_> {
    fn settle(&mut self, handler_ran: bool) -> Result<(), Stop> {
        let mut device = self.mailbox.device();
        let absorbed = device.absorb(registers(self.machine), handler_ran);
        absorbed
            .map(|_| ())
            .map_err(|untracked| Stop::Card(untracked.to_string()))
    }

    fn send(&mut self) {
        let mut device = self.mailbox.device();
        device.process_transmit(&mut Dma(self.machine), &mut self.sent);
    }

    fn receive(&mut self, frame: &[u8]) -> bool {
        let received = self.mailbox.device().receive(frame, &mut Dma(self.machine));
        let stored = matches!(received, Received::Stored { .. });
        if !stored {
            self.not_stored += 1;
            self.first_refusal.get_or_insert(received);
        }
        stored
    }

    fn interrupt(&self) -> bool {
        self.mailbox.device().interrupt_line()
    }

    fn wait(&mut self) -> bool {
        let mut device = self.mailbox.device();
        match device.next_event() {
            Some(nanoseconds) => {
                device.tick(nanoseconds);
                true
            }
            None => false,
        }
    }
}
