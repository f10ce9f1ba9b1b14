//! The card in use: its cable, and the registers that the driver writes without a
//! trap.

use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use crate::memory::{BAR_SIZE, Machine};
use crate::nic::{CardMask, Nic, Received, Wire};
use crate::packets::guard::Guard;
use crate::packets::packet_loop::{Card, Stop};
use crate::traffic::Sink;
use crate::transport::mailbox::Mailbox;
use crate::transport::wire::MachineBus;

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
    dma: Range<u64>,
    /// The check of its rings, if the rewritten driver has it.
    guard: Option<Rc<Guard<'m>>>,
    /// Counts of the frames that it has sent.
    pub sent: Sink,
    /// Frames that it did not store.
    pub not_stored: u64,
    /// Why the first was not.
    pub first_refusal: Option<Received>,
}

impl<'m> OpenCard<'m> {
    /// Opens the registers. DMA goes to machine addresses `dma` only, and with a guard
    /// only where descriptors lead that it has checked. Expects frames of flows below
    /// `flows`.
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn new(
        machine: &'m Machine,
        mailbox: &'m Mailbox,
        dma: Range<u64>,
        flows: usize,
        guard: Option<Rc<Guard<'m>>>,
    ) -> Result<OpenCard<'m>, Stop> {
        let card = OpenCard {
            machine,
            mailbox,
            dma,
            guard,
            sent: Sink::new(flows),
            not_stored: 0,
            first_refusal: None,
        };
        card.open()?;
        Ok(card)
    }

    fn bus(&self, device: &Nic) -> MachineBus<'m> {
        MachineBus::new(self.machine, self.dma.clone()).for_device(device)
    }

    /// Writes all registers anew, after they were used with traps.
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn open(&self) -> Result<(), Stop> {
        let mut device = self.mailbox.device();
        let opened = device.open(registers(self.machine));
        opened.map_err(|untracked| Stop::Card(untracked.to_string()))?;
        match &self.guard {
            Some(guard) => guard.take(&mut device),
            None => Ok(()),
        }
    }

    /// Compares all registers with their expected values, and ends the open view.
    ///
    /// # Errors
    /// [`Stop::Card`]: the driver wrote a register that only a trapped access may write.
    pub fn close(&mut self) -> Result<(), Stop> {
        self.absorb_writes(false)?;
        let audited = self.mailbox.device().audit(registers(self.machine));
        self.leave();
        audited.map_err(|untracked| Stop::Card(untracked.to_string()))
    }

    /// The card's time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.mailbox.device().now()
    }

    /// Lets the card's time pass.
    pub fn tick(&self, nanoseconds: u64) {
        self.mailbox.device().tick(nanoseconds);
    }

    /// How long until the card does something by itself.
    pub fn next_event(&self) -> Option<u64> {
        self.mailbox.device().next_event()
    }

    /// Ends the open view, whatever was written to the registers.
    pub fn leave(&self) {
        let mut device = self.mailbox.device();
        if let Some(guard) = &self.guard {
            guard.give_back(&mut device);
        }
        device.close();
    }
}

/// The card's registers as memory.
pub fn registers(machine: &Machine) -> &[AtomicU32] {
    // SAFETY: mapped as long as the machine; all accesses are of 32-bit words, and
    // they are atomics here because drivers access them plainly.
    unsafe { std::slice::from_raw_parts(machine.bar().cast(), BAR_SIZE as usize / 4) }
}

impl Card for OpenCard<'_> {
    fn absorb_writes(&mut self, handler_ran: bool) -> Result<(), Stop> {
        let mut device = self.mailbox.device();
        if let Some(guard) = &self.guard {
            device.pass_tails(guard.tails());
        }
        let absorbed = device.absorb(registers(self.machine), handler_ran);
        absorbed
            .map(|_| ())
            .map_err(|untracked| Stop::Card(untracked.to_string()))
    }

    fn acknowledge(&mut self, mask: CardMask) -> Result<u32, Stop> {
        self.absorb_writes(false)?;
        let mut device = self.mailbox.device();
        Ok(device.acknowledge_early(registers(self.machine), mask))
    }

    fn show_causes(&mut self, causes: u32) {
        let mut device = self.mailbox.device();
        device.show_causes(registers(self.machine), causes);
    }

    fn send(&mut self) {
        let mut device = self.mailbox.device();
        let mut bus = self.bus(&device);
        device.process_transmit(&mut bus, &mut self.sent);
    }

    fn receive(&mut self, frame: &[u8]) -> bool {
        let mut device = self.mailbox.device();
        let mut bus = self.bus(&device);
        let received = device.receive(frame, &mut bus);
        drop(device);
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
