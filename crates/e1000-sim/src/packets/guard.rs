//! The card's rings under the runtime's check (`runtime/include/twin/dma.h`): while they are
//! taken, the card reads copies of descriptors that were checked.
//!
//! ```text
//! open ─ take ─> (driver runs: twin_enter shows write-backs, checks doorbells) ─> give back
//!                    └─ absorb: the card follows the checked tails
//! ```
//!
//! The copies are in frames of the hypervisor's own. The state is the hypervisor
//! process's; dom0's trapped accesses see the card's registers as `nic/guard.rs` has them.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use process_lab::runtime::{self, Dma, DmaDescriptor, DmaReport, DmaRing, DmaSlot, DmaStatistics};

use super::card::registers;
use super::packet_loop::Stop;
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
    tails: [AtomicU32; 2],
    off: Cell<bool>,
    /// Kept because the state points to them.
    _memory: [Box<[u64]>; 3],
    _slots: [Box<[DmaSlot]>; 2],
}

impl<'m> Guard<'m> {
    /// Nothing is taken yet. Frames at machine addresses `pool` may be used for DMA
    /// while they are dom0's.
    pub fn new(machine: &'m Machine, pool: Range<u64>) -> Guard<'m> {
        let frames = (machine.sizes().total() / PAGE) as usize;
        let mut allowed = vec![0u64; frames.div_ceil(64)].into_boxed_slice();
        for frame in (pool.start.div_ceil(PAGE) as usize)..frames.min((pool.end / PAGE) as usize) {
            allowed[frame / 64] |= 1 << (frame % 64);
        }
        // SAFETY: plain function.
        let words = unsafe { runtime::twin_dma_size() }.div_ceil(8) as usize;
        let mut memory = vec![0u64; words].into_boxed_slice();
        let state: *mut Dma = memory.as_mut_ptr().cast();
        let mut held = vec![0u64; allowed.len()].into_boxed_slice();
        let bits = (allowed.as_ptr(), held.as_mut_ptr());
        // SAFETY: as large as said and aligned; frames and bits outlive the state.
        unsafe { runtime::twin_dma_init(state, machine.frames().raw(), bits.0, bits.1) };
        let mut slots = RINGS.map(|_| vec![DmaSlot::default(); DESCRIPTORS].into_boxed_slice());
        Guard {
            machine,
            state,
            slots: slots.each_mut().map(|slots| slots.as_mut_ptr()),
            tails: [AtomicU32::new(0), AtomicU32::new(0)],
            off: Cell::new(false),
            _memory: [memory, allowed, held],
            _slots: slots,
        }
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
        let rings = RINGS.map(|ring| self.ring(device, ring));
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
            tail_register: &raw const self.tails[ring as usize],
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

    /// The tails that the card may use: transmit and receive.
    pub fn tails(&self) -> [u32; 2] {
        self.tails
            .each_ref()
            .map(|tail| tail.load(Ordering::Acquire))
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
