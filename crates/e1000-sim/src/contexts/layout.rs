//! The parts of the machine's memory.
//!
//! ```text
//! guest 0's kernel | its packets | copies of its rings | stamps |  guest 1's ... | vectors
//!       guest 0's own            |      hypervisor's            |                | hypervisor's
//! ```

use super::{CONTEXTS, stamps, vectors};
use crate::error::LiveError;
use crate::memory::{Machine, Owner, PAGE, Sizes};

/// RAM of a guest's kernel: images, rings, the driver's pool of buffers.
const KERNEL: u64 = 32 << 20;
/// Memory of a guest's packets.
const PACKETS: u64 = 2 << 20;

/// Who has what, by machine address.
#[derive(Clone, Debug)]
pub struct Layout {
    parts: Vec<Sizes>,
}

impl Layout {
    /// Parts for so many guests.
    ///
    /// # Panics
    /// If there are none, or more than contexts.
    pub fn new(guests: usize) -> Layout {
        assert!((1..=CONTEXTS).contains(&guests), "1 to {CONTEXTS} contexts");
        let mut base = 0;
        let parts = (0..guests).map(|_| {
            let part = Sizes {
                base,
                dom0: KERNEL,
                guests: 1,
                guest: PACKETS,
            };
            base = stamps_of(&part) + stamps::BYTES;
            part
        });
        Layout {
            parts: parts.collect(),
        }
    }

    /// Each guest's part.
    pub fn parts(&self) -> &[Sizes] {
        &self.parts
    }

    /// Where the vectors are.
    pub fn vectors(&self) -> u64 {
        self.parts.last().map_or(0, stamps_of) + stamps::BYTES
    }

    /// The machine as each guest has it; its kernel's memory and its packets' are its own.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn machines(&self) -> Result<Vec<Machine>, LiveError> {
        let machines = Machine::divided(&self.parts, self.vectors() + vectors::BYTES)?;
        for machine in &machines {
            let packets = machine.sizes().guest(0);
            let given = machine
                .frames()
                .give(&packets, Owner::Guest(0), Owner::Dom0);
            given.expect("nobody has pinned them yet");
        }
        Ok(machines)
    }
}

/// Where a part's stamps are.
pub fn stamps_of(part: &Sizes) -> u64 {
    part.hypervisor().end
}

const _: () = assert!(stamps::BYTES.is_multiple_of(PAGE) && vectors::BYTES.is_multiple_of(PAGE));
