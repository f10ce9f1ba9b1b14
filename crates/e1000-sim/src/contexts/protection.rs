//! What the hypervisor does with a guest's tail, and with what the card writes back.
//!
//! ```text
//!           tail written                              card has news
//! off       nothing: the card reads the guest's ring  nothing
//! copies    checked, copied, stamped                  shown to the guest's ring
//! table     checked, mapped                           unmapped
//! ```
//!
//! `copies` is the check of `runtime/include/twin/dma.h` with the stock driver's guest in the place
//! of dom0: the frames of a guest's own table that are its, are dom0's there. They are pinned
//! while the guest has its context, not for each descriptor. A frame that it wants to give away
//! is released first, which is refused while the card has a descriptor that names it. All of this is
//! in memory that every process maps, because the hypervisor runs where it is called.

use process_lab::runtime::DmaReport;
use serde::{Deserialize, Serialize};

use super::iommu::IoTable;
use super::layout::stamps_of;
use super::stamps::Stamper;
use crate::error::LiveError;
use crate::memory::{Machine, NotGiven, Owner};
use crate::nic::{Nic, Register, Ring};
use crate::packets::card::registers;
use crate::packets::guard::Guard;
use crate::packets::packet_loop::Stop;

/// What writing the receive tail is to a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveTail {
    /// A trap: the card is short of descriptors, or the tail is the card's own register.
    #[default]
    Traps,
    /// Memory, which the hypervisor reads when it runs for the guest next. It does before the card
    /// runs out: each frame brings an interrupt, and half of the ring is left.
    Memory,
}

const RINGS: [Ring; 2] = [Ring::Transmit, Ring::Receive];

twin_abi::listed! {
    /// What stands between a guest's descriptors and the card.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Protection {
        /// Nothing.
        Off => "off",
        /// Checked copies in rings that only the hypervisor writes.
        Copies => "copies",
        /// The guest's own rings, behind an I/O table.
        Table => "table",
    }
}

impl Protection {
    /// From its place in [`Protection::ALL`], as it crosses processes.
    pub fn from_number(number: u64) -> Protection {
        Protection::ALL
            .iter()
            .copied()
            .find(|protection| *protection as u64 == number)
            .unwrap_or(Protection::Copies)
    }
}

/// One guest's rings, as the hypervisor has them.
pub struct Hypervisor<'m> {
    machine: &'m Machine,
    /// The checked copies.
    pub guard: Guard<'m>,
    /// The I/O table.
    pub table: IoTable<'m>,
    stamper: Stamper<'m>,
}

impl<'m> Hypervisor<'m> {
    /// For a guest that has that part of the machine, and frames for DMA in `pool`.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(
        machine: &'m Machine,
        pool: std::ops::Range<u64>,
    ) -> Result<Hypervisor<'m>, LiveError> {
        let stamps = stamps_of(&machine.sizes());
        let lacking = || LiveError::NoRoom {
            what: "the numbers of descriptors".to_owned(),
            needed: stamps,
            room: machine.frames().count(),
        };
        Ok(Hypervisor {
            machine,
            guard: Guard::new(machine, pool)?,
            table: IoTable::new(machine)?,
            stamper: Stamper::new(machine, stamps).ok_or_else(lacking)?,
        })
    }

    /// Takes the rings of a device whose registers are open, under that protection.
    ///
    /// # Errors
    /// [`Stop::Card`]: a ring, or what the card has of it, is refused.
    pub fn take(&self, protection: Protection, nic: &mut Nic) -> Result<(), Stop> {
        let places = RINGS.map(|ring| nic.driver_ring(ring));
        match protection {
            Protection::Off => Ok(()),
            Protection::Copies => {
                self.stamper.begin(places);
                self.guard.take(nic)?;
                self.stamp();
                Ok(())
            }
            Protection::Table => {
                let refused = || Stop::Card("a ring is not in the guest's frames".to_owned());
                let taken = self.table.take(places, nic.buffer_size() as u32);
                taken.then_some(()).ok_or_else(refused)?;
                let handed = self.table.hand_over(places.map(|place| place.tail));
                handed.map_err(|report| Stop::Card(crate::packets::guard::describe(&report)))
            }
        }
    }

    /// Gives them back: nothing is pinned or mapped, and the card, which is idle, has the guest's
    /// rings again.
    pub fn give_back(&self, nic: &mut Nic) {
        self.guard.give_back(nic);
        self.table.give_back();
    }

    fn stamp(&self) {
        for (ring, tail) in RINGS.into_iter().zip(self.guard.tails()) {
            self.stamper.stamp(ring, tail);
        }
    }

    /// The guest has written tails.
    ///
    /// # Errors
    /// A violation: the card does not see that tail.
    pub fn doorbell(&self, protection: Protection) -> Result<(), DmaReport> {
        match protection {
            Protection::Off => Ok(()),
            Protection::Copies => {
                self.guard.ring_doorbells()?;
                self.stamp();
                Ok(())
            }
            Protection::Table => {
                self.table.take_back();
                self.table.hand_over(self.written_tails())
            }
        }
    }

    /// The tails that the guest wrote last.
    fn written_tails(&self) -> [u32; 2] {
        [Register::Tdt, Register::Rdt].map(|tail| {
            let word = &registers(self.machine)[tail.offset() as usize / 4];
            word.load(std::sync::atomic::Ordering::Acquire)
        })
    }

    /// The card has written back, before the guest looks. The receive tail was `tail` until now: what
    /// it is from now on.
    ///
    /// # Errors
    /// A violation: a descriptor was changed while the card had it, or one that was handed over
    /// by memory is refused.
    pub fn show(
        &self,
        protection: Protection,
        tail: ReceiveTail,
    ) -> Result<ReceiveTail, DmaReport> {
        match protection {
            Protection::Off => Ok(ReceiveTail::Traps),
            Protection::Copies => {
                if tail == ReceiveTail::Memory {
                    self.doorbell(protection)?;
                }
                self.guard.show()?;
                if self.guard.has_half(Ring::Receive) {
                    return Ok(ReceiveTail::Memory);
                }
                // The page is protected from here on: what the guest wrote since the look
                // above did not trap.
                if tail == ReceiveTail::Memory {
                    self.doorbell(protection)?;
                }
                Ok(ReceiveTail::Traps)
            }
            Protection::Table => {
                self.table.take_back();
                Ok(ReceiveTail::Traps)
            }
        }
    }

    /// Whether the guest has written a transmit tail that was not looked at.
    pub fn transmits(&self) -> bool {
        self.written_tails()[0] != self.guard.tails()[0]
    }

    /// Takes a frame from the guest, for another one or nobody.
    ///
    /// # Errors
    /// [`NotGiven`]: the card has it, or it is not this guest's.
    pub fn withdraw(&self, frame: u64) -> Result<(), NotGiven> {
        let bytes = frame..frame + crate::memory::PAGE;
        if self.table.allows(frame, 1) || !self.guard.release(frame / crate::memory::PAGE) {
            return Err(NotGiven::Pinned);
        }
        self.machine
            .frames()
            .give(&bytes, Owner::Dom0, Owner::Nobody)
    }

    /// Gives the guest a frame that is nobody's.
    ///
    /// # Errors
    /// [`NotGiven::NotOwned`]: it is somebody's already, by this guest's table.
    pub fn grant(&self, frame: u64) -> Result<(), NotGiven> {
        let bytes = frame..frame + crate::memory::PAGE;
        self.machine
            .frames()
            .give(&bytes, Owner::Nobody, Owner::Dom0)
    }
}
