//! The rings, and the card's registers for them.

use std::ops::Range;

use process_lab::e1000::TX_BUFFER;

use super::{RX_BUFFER, Striker};
use crate::inject::anatomy::{DESCRIPTOR, Ring};
use crate::inject::fault::{Struck, wild_index};
use crate::memory::BAR;
use crate::nic::Register;
use crate::packets::card;

impl Striker<'_, '_> {
    pub(super) fn ring_pointer(&mut self) -> Option<Struck> {
        let ring = self.ring();
        let at = self.one_of(&[ring.at, ring.buffers_at])?;
        let value = self.wild();
        self.put(
            format!("{} ring+{:#x}", ring.name, at - ring.at),
            at,
            8,
            value,
        )
    }

    /// A pointer near where the driver is working; the transmit ring may have
    /// none just now.
    pub(super) fn buffer_pointer(&mut self) -> Option<Struck> {
        let ring = self.ring();
        let struck = self.buffer_pointer_of(&ring);
        struck.or_else(|| self.buffer_pointer_of(&self.anatomy.rx))
    }

    fn buffer_pointer_of(&mut self, ring: &Ring) -> Option<Struck> {
        let anatomy = self.anatomy;
        let each = match ring.name {
            "tx" => TX_BUFFER,
            _ => RX_BUFFER,
        };
        let array = ring.buffer_array(each);
        let places = anatomy.words(array.clone(), |word| anatomy.is_data(word));
        let near = self.near(ring, &array, each, &places);
        let at = self.one_of(&near).or_else(|| self.one_of(&places))?;
        let value = self.wild();
        let what = format!("{} buffers+{:#x}", ring.name, at - array.start);
        self.put(what, at, 8, value)
    }

    /// The places that the next packets use.
    fn near(&self, ring: &Ring, array: &Range<u64>, each: u64, places: &[u64]) -> Vec<u64> {
        const NEXT: u64 = 16;
        let clean = self.anatomy.word(ring.at + 24).unwrap_or(0) >> 32;
        let number = |at: &u64| (at - array.start) / each;
        let ahead = |at: &u64| (number(at) + ring.count - clean % ring.count) % ring.count;
        let near = places.iter().copied();
        near.filter(|at| ahead(at) < NEXT).collect()
    }

    pub(super) fn ring_index(&mut self) -> Option<Struck> {
        let ring = self.ring();
        let places: Vec<u64> = ring.indices().collect();
        let at = self.one_of(&places)?;
        let value = wild_index(self.random, ring.count);
        self.put(
            format!("{} ring+{:#x}", ring.name, at - ring.at),
            at,
            4,
            value,
        )
    }

    /// In the driver's structure, or in the card's register that the driver wrote.
    pub(super) fn ring_address(&mut self) -> Option<Struck> {
        let ring = self.ring();
        if self.random.one_in(2) {
            return Some(self.base_register(&ring));
        }
        let (offset, size) = self.one_of(&[(0, 8), (8, 8), (16, 4)])?;
        let at = ring.at + offset;
        let value = match size {
            8 => self.wild(),
            _ => wild_index(self.random, ring.count * DESCRIPTOR),
        };
        self.put(format!("{} ring+{offset:#x}", ring.name), at, size, value)
    }

    /// Gives the card a wrong base, as a driver would whose ring has one when it sets
    /// the card up. It refuses while the hypervisor has its rings.
    fn base_register(&mut self, ring: &Ring) -> Struck {
        let (low, high) = match ring.name {
            "tx" => (Register::Tdbal, Register::Tdbah),
            _ => (Register::Rdbal, Register::Rdbah),
        };
        let total = self.anatomy.plan.space().sizes().total();
        let value = match self.random.below(3) {
            0 => self.random.below(total),
            1 => total + self.random.below(total),
            _ => self.wild(),
        };
        let mut device = self.anatomy.mailbox.device();
        let before = u64::from(device.mmio_read(high.offset())) << 32
            | u64::from(device.mmio_read(low.offset()));
        device.mmio_write(low.offset(), value as u32);
        device.mmio_write(high.offset(), (value >> 32) as u32);
        device.show_constants(card::registers(self.anatomy.machine));
        Struck {
            what: format!("the card's {low:?}"),
            at: BAR + u64::from(low.offset()),
            size: 8,
            before,
            after: value,
        }
    }

    /// The bus address in a descriptor that the card reads next: one that is being sent,
    /// if any is, or one to receive into.
    pub(super) fn dma_address(&mut self) -> Option<Struck> {
        let sizes = self.anatomy.plan.space().sizes();
        let heap = self.anatomy.plan.space().heap();
        let outside = [
            self.random.below(heap.start - 2048),
            sizes.total() + self.random.below(1 << 20),
            u64::MAX - self.random.below(4096),
            self.random.word() | 1 << 40,
            // A guest's memory: the card may read it, not write it.
            sizes.guest(3).start + self.random.below(sizes.guest - 4096),
        ];
        let (ring, waiting) = self.waiting();
        let choices = if ring.name == "tx" { 4 } else { 5 };
        let value = outside[self.random.below(choices) as usize];
        let clean = self.anatomy.word(ring.at + 24)? >> 32;
        let index = (clean + self.random.below(waiting)) % ring.count;
        let at = ring.descriptors + index * DESCRIPTOR;
        self.put(format!("{} descriptor {index}", ring.name), at, 8, value)
    }

    /// A ring and how many descriptors the card will soon use.
    fn waiting(&mut self) -> (Ring, u64) {
        const NEXT: u64 = 8;
        let tx = &self.anatomy.tx;
        let indices = self.anatomy.word(tx.at + 24).unwrap_or(0);
        let (used, clean) = (indices & 0xffff_ffff, indices >> 32);
        if used != clean {
            (tx.clone(), (used + tx.count - clean) % tx.count)
        } else {
            (self.anatomy.rx.clone(), NEXT)
        }
    }
}
