//! The adapter: its pointers, and single bits of it and of all it leads to.

use std::ops::Range;

use process_lab::e1000::TX_BUFFER;
use twin_abi::window::wide;

use super::{RX_BUFFER, Striker};
use crate::inject::anatomy::{DESCRIPTOR, Ring};
use crate::inject::fault::Struck;

impl Striker<'_, '_> {
    pub(super) fn adapter_pointer(&mut self) -> Option<Struck> {
        let anatomy = self.anatomy;
        let adapter = anatomy.adapter.clone();
        let places = anatomy.words(adapter.clone(), |word| anatomy.is_data(word));
        // Half of the time one that packets use: most others are lists and timers.
        let busy = [anatomy.tx.at, anatomy.rx.at, anatomy.info.net_device];
        let busy = anatomy.words(adapter.clone(), |word| busy.contains(&word));
        let at = match self.random.one_in(2) {
            true => self.one_of(&busy)?,
            false => self.one_of(&places)?,
        };
        let value = self.wild();
        self.put(format!("adapter+{:#x}", at - adapter.start), at, 8, value)
    }

    /// A pointer of the adapter or of a ring. A window shows the same page as before.
    pub(super) fn upper_half(&mut self) -> Option<Struck> {
        let anatomy = self.anatomy;
        let (tx, rx) = (&anatomy.tx, &anatomy.rx);
        let busy = [tx.at, rx.at, anatomy.info.net_device];
        let mut places = anatomy.words(anatomy.adapter.clone(), |word| busy.contains(&word));
        places.extend([tx, rx].into_iter().flat_map(|r| [r.at, r.buffers_at]));
        let at = self.one_of(&places)?;
        let other = 1 + self.random.below(u64::MAX >> wide::BITS);
        let value = anatomy.word(at)? ^ other << wide::BITS;
        self.put("upper half".to_owned(), at, 8, value)
    }

    pub(super) fn bit_flip(&mut self) -> Option<Struck> {
        let anatomy = self.anatomy;
        let info = &anatomy.info;
        let sized = |at: u64, structure: &str| at..at + anatomy.field(structure).1;
        let mut ranges = vec![
            ("adapter", anatomy.adapter.clone()),
            ("adapter", anatomy.adapter.clone()),
            ("tx ring", anatomy.tx.at..anatomy.tx.at + 48),
            ("rx ring", anatomy.rx.at..anatomy.rx.at + 56),
            ("tx buffers", anatomy.tx.buffer_array(TX_BUFFER)),
            ("rx buffers", anatomy.rx.buffer_array(RX_BUFFER)),
            ("tx descriptors", descriptors(&anatomy.tx)),
            ("rx descriptors", descriptors(&anatomy.rx)),
            ("net_device", sized(info.net_device, "net_device")),
            ("napi_struct", sized(info.napi, "napi_struct")),
        ];
        if let Some(buffer) = self.a_sk_buff() {
            ranges.push(("sk_buff", sized(buffer, "sk_buff")));
            ranges.push(("sk_buff", sized(buffer, "sk_buff")));
        }
        let (name, range) = self.one_of(&ranges)?;
        let at = range.start + self.random.below(range.end - range.start);
        let mut byte = [0];
        anatomy.view.read(at, &mut byte)?;
        let flipped = u64::from(byte[0] ^ 1 << self.random.below(8));
        self.put(format!("{name}+{:#x}", at - range.start), at, 1, flipped)
    }
}

fn descriptors(ring: &Ring) -> Range<u64> {
    ring.descriptors..ring.descriptors + ring.count * DESCRIPTOR
}
