//! A kind and a seed become words changed in dom0's memory.
//!
//! One file for each part of the driver's data: the adapter, the rings, the kernel's
//! structures around it, pointers to functions.

mod adapter;
mod functions;
mod rings;
mod structures;

use process_lab::random::Random;

use super::anatomy::{Anatomy, Ring};
use super::fault::{FaultKind, Struck, wild_address};

/// Bytes of `struct e1000_rx_buffer`.
const RX_BUFFER: u64 = 16;

/// A fault that is to strike.
pub struct Striker<'a, 'r> {
    /// The driver's data.
    pub anatomy: &'r Anatomy<'a>,
    /// Source of random choices.
    pub random: &'r mut Random,
    /// The `sk_buff` that is being received, inside of a poll.
    pub receiving: Option<u64>,
    /// An address of the hypervisor's own heap.
    pub hypervisor_heap: u64,
}

impl Striker<'_, '_> {
    /// Strikes. `None` if there is nothing of that kind just now; kinds of the
    /// stack are [`super::stack`]'s.
    pub fn strike(&mut self, kind: FaultKind) -> Option<Struck> {
        match kind {
            FaultKind::AdapterPointer => self.adapter_pointer(),
            FaultKind::RingPointer => self.ring_pointer(),
            FaultKind::BufferPointer => self.buffer_pointer(),
            FaultKind::SkBuff => self.sk_buff(),
            FaultKind::DevicePointer => self.device_pointer(),
            FaultKind::RingIndex => self.ring_index(),
            FaultKind::RingAddress => self.ring_address(),
            FaultKind::FunctionNowhere
            | FaultKind::FunctionMiddle
            | FaultKind::FunctionForbidden => {
                let target = self.bad_function(kind)?;
                self.function_pointer(target)
            }
            FaultKind::DmaAddress => self.dma_address(),
            FaultKind::Interface => self.interface(),
            FaultKind::HeldLock => self.held_lock(),
            FaultKind::BitFlip => self.bit_flip(),
            FaultKind::UpperHalf => self.upper_half(),
            FaultKind::StackWord | FaultKind::StackReturn | FaultKind::StackCanary => None,
        }
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let count = all.len() as u64;
        (count > 0).then(|| all[self.random.below(count) as usize].clone())
    }

    fn wild(&mut self) -> u64 {
        let ram = self.anatomy.plan.space().sizes().dom0;
        wild_address(self.random, ram, self.hypervisor_heap)
    }

    fn put(&self, what: String, at: u64, size: u64, after: u64) -> Option<Struck> {
        let mut old = [0; 8];
        let view = &self.anatomy.view;
        view.read(at, &mut old[..size as usize])?;
        view.write(at, &after.to_le_bytes()[..size as usize])?;
        Some(Struck {
            what,
            at,
            size,
            before: u64::from_le_bytes(old),
            after,
        })
    }

    fn ring(&mut self) -> Ring {
        let rings = [&self.anatomy.tx, &self.anatomy.rx];
        rings[self.random.below(2) as usize].clone()
    }
}
