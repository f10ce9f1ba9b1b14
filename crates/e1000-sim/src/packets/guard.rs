//! The card's rings under the runtime's check (`runtime/include/twin/dma.h`): while they are
//! taken, the card reads copies of descriptors that were checked.
//!
//! ```text
//! open ─ take ─> (driver runs: twin_enter shows write-backs, checks doorbells) ─> give back
//!                    └─ absorb: the card follows the checked tails
//! ```
//!
//! The copies are in frames of the hypervisor's own. The state is in memory that every process
//! of the hypervisor maps at the same address; dom0's trapped accesses see the card's registers
//! as `nic/guard.rs` has them.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use process_lab::runtime::{self, Dma, DmaDescriptor, DmaReport, DmaRing, DmaSlot, DmaStatistics};
use process_lab::shared::Shared;

use super::card::registers;
use super::packet_loop::Stop;
use crate::error::LiveError;
use crate::memory::{Machine, PAGE, RING};
use crate::nic::{Nic, Register, Ring};

const RINGS: [Ring; 2] = [Ring::Transmit, Ring::Receive];
/// Most descriptors of a ring.
const DESCRIPTORS: usize = RING as usize / size_of::<DmaDescriptor>();

/// The check of one card's rings. For one thread, which also runs the driver.
pub struct Guard<'m> {
    machine: &'m Machine,
    state: *mut Dma,
    slots: [*mut DmaSlot; 2],
    tails: *const [AtomicU32; 2],
    off: Cell<bool>,
    /// Kept because the pointers lead there.
    _memory: Shared,
}

impl<'m> Guard<'m> {
    /// Nothing is taken yet. Frames at machine addresses `pool` may be used for DMA
    /// while they are dom0's.
    ///
    /// # Errors
    /// There is no memory for the state.
    pub fn new(machine: &'m Machine, pool: Range<u64>) -> Result<Guard<'m>, LiveError> {
        let words = machine.frames().count().div_ceil(64) as usize;
        // SAFETY: plain function.
        let size = unsafe { runtime::twin_dma_size() };
        // Pages of their own for each: all is aligned.
        let lengths = [
            size,
            words as u64 * 8,
            words as u64 * 8,
            (DESCRIPTORS * size_of::<DmaSlot>()) as u64,
            (DESCRIPTORS * size_of::<DmaSlot>()) as u64,
            size_of::<[AtomicU32; 2]>() as u64,
        ];
        let total = lengths.iter().map(|length| length.next_multiple_of(PAGE));
        let memory = Shared::new(total.sum()).map_err(LiveError::system("a state for rings"))?;
        let mut next = memory.as_ptr();
        let [state, allowed, held, transmit, receive, tails] = lengths.map(|length| {
            let at = next;
            next = next.wrapping_add(length.next_multiple_of(PAGE) as usize);
            at
        });
        // SAFETY: as many words, aligned, and nobody else has them yet.
        let bits = unsafe { std::slice::from_raw_parts_mut(allowed.cast::<u64>(), words) };
        for frame in pool.start.div_ceil(PAGE)..machine.frames().count().min(pool.end / PAGE) {
            bits[frame as usize / 64] |= 1 << (frame % 64);
        }
        let state: *mut Dma = state.cast();
        let bits = (allowed.cast_const().cast(), held.cast());
        // SAFETY: as large as said and aligned; frames and bits outlive the state.
        unsafe { runtime::twin_dma_init(state, machine.frames().raw(), bits.0, bits.1) };
        Ok(Guard {
            machine,
            state,
            slots: [transmit.cast(), receive.cast()],
            tails: tails.cast_const().cast(),
            off: Cell::new(false),
            _memory: memory,
        })
    }

    /// The state, for an instance.
    pub fn raw(&self) -> *mut Dma {
        self.state
    }

    /// Leaves rings alone from the next [`Guard::take`] on, or not any more: to measure
    /// what the check costs.
    pub fn switch_off(&self, off: bool) {
        self.off.set(off);
    }

    /// Takes the rings of a device whose registers are open.
    ///
    /// # Errors
    /// [`Stop::Card`]: a ring, or a descriptor that the card has, is refused.
    pub fn take(&self, device: &mut Nic) -> Result<(), Stop> {
        if self.off.get() {
            return Ok(());
        }
        self.take_rings(device, RINGS.map(|ring| self.ring(device, ring)))
    }

    fn take_rings(&self, device: &mut Nic, rings: [DmaRing; 2]) -> Result<(), Stop> {
        // SAFETY: the state is alive; the pointers are valid for what the runtime checks
        // before it uses them, as long as the machine is.
        match unsafe { runtime::twin_dma_take(self.state, &rings) } {
            runtime::OK => {
                device.guard(RINGS.map(|ring| self.copy(ring)));
                Ok(())
            }
            runtime::BUSY => Err(Stop::Card("its rings are taken already".to_owned())),
            _ => Err(Stop::Card(describe(&self.events().1))),
        }
    }

    fn ring(&self, device: &Nic, ring: Ring) -> DmaRing {
        let place = device.driver_ring(ring);
        let tail = match ring {
            Ring::Transmit => Register::Tdt,
            Ring::Receive => Register::Rdt,
        };
        let at = |machine: u64| self.machine.ram().wrapping_add(machine as usize).cast();
        DmaRing {
            base: place.base,
            driver: at(place.base),
            copy: at(self.copy(ring)),
            slots: self.slots[ring as usize],
            doorbell: &raw const registers(self.machine)[tail.offset() as usize / 4],
            tail_register: &raw const self.shared_tails()[ring as usize],
            count: place.count,
            head: place.head,
            tail: place.tail,
            buffer: device.buffer_size() as u32,
        }
    }

    /// Machine address of a ring's copy.
    fn copy(&self, ring: Ring) -> u64 {
        self.machine.sizes().hypervisor().start + ring as u64 * RING
    }

    /// Gives the rings back, if they are taken.
    pub fn give_back(&self, device: &mut Nic) {
        // SAFETY: the state is alive; the device is idle, because its lock is held.
        unsafe { runtime::twin_dma_give_back(self.state) };
        device.unguard();
    }

    /// Holds a frame no more, so that its owner can give it away; false while the card has it.
    pub fn release(&self, frame: u64) -> bool {
        // SAFETY: the state is alive.
        unsafe { runtime::twin_dma_release(self.state, frame) == runtime::OK }
    }

    /// Whether the card has half of a ring's descriptors at least.
    pub fn has_half(&self, ring: Ring) -> bool {
        // SAFETY: the state is alive.
        unsafe { runtime::twin_dma_has_half(self.state, ring as u32) }
    }

    /// The tails that the card may use: transmit and receive.
    pub fn tails(&self) -> [u32; 2] {
        self.shared_tails()
            .each_ref()
            .map(|tail| tail.load(Ordering::Acquire))
    }

    fn shared_tails(&self) -> &[AtomicU32; 2] {
        // SAFETY: mapped as long as this, and all zeroes at first.
        unsafe { &*self.tails }
    }

    /// Checks the descriptors up to the tails that the driver has written, and passes these on.
    ///
    /// # Errors
    /// The violation; then that ring's tail is not passed on.
    pub fn ring_doorbells(&self) -> Result<(), DmaReport> {
        let mut report = DmaReport::default();
        // SAFETY: the state is alive; the rings are mapped as long as they are taken.
        match unsafe { runtime::twin_dma_ring(self.state, &mut report) } {
            true => Ok(()),
            false => Err(report),
        }
    }

    /// Shows the driver what the card has written back.
    ///
    /// # Errors
    /// The violation: a descriptor was changed while the card had it.
    pub fn show(&self) -> Result<(), DmaReport> {
        let mut report = DmaReport::default();
        // SAFETY: as above.
        match unsafe { runtime::twin_dma_show(self.state, &mut report) } {
            true => Ok(()),
            false => Err(report),
        }
    }

    /// The counts so far, and the last violation.
    pub fn events(&self) -> (DmaStatistics, DmaReport) {
        let mut events = (DmaStatistics::default(), DmaReport::default());
        // SAFETY: the state is alive.
        unsafe { runtime::twin_dma_events(self.state, &mut events.0, &mut events.1) };
        events
    }
}

/// A violation in words: ring, descriptor and what is wrong with it.
pub fn describe(report: &DmaReport) -> String {
    let ring = match report.kind {
        runtime::DMA_TRANSMIT => "transmit",
        _ => "receive",
    };
    let what = match report.fault {
        runtime::DMA_TAIL => "the tail is not in the ring",
        runtime::DMA_OVERRUN => "the tail passes descriptors that the card has",
        runtime::DMA_FORMAT => "no known type",
        runtime::DMA_LENGTH => "too long, or past the last address",
        runtime::DMA_FOREIGN => "a frame that the card may not use",
        runtime::DMA_CHANGED => "changed while the card had it",
        _ => "the ring is not in frames for DMA, or not of a ring's shape",
    };
    let DmaReport { index, address, .. } = report;
    format!("{ring} descriptor {index}: {what} ({address:#x})")
}
