//! A card with a context for each guest, and what a hypervisor does for it (CDNA: Menon's
//! thesis, chapter 5).
//!
//! ```text
//! guest 0: stock e1000.ko ──┐ its own registers, rings, MAC      ┌─> context 0 ─┐
//! guest 1: stock e1000.ko ──┤  tail ─> protection: a checked copy ├─> context 1 ─┼─ turns ─> wire
//!   ...                     │          that only it writes       └─>    ...    ─┘
//!          <─ virtual interrupts ─ vectors <──── a bit for each context that has news
//! ```
//!
//! The machine's memory is one: a guest's kernel has a part of it, and its physical addresses
//! are machine addresses. So a descriptor can name any byte of another guest, and what
//! keeps it from that is the hypervisor alone.
//!
//! ```text
//! layout      who has which part of memory
//! card        the card: contexts served by turns, frames given to their owner's context
//! vectors     which contexts have news, through the hypervisor's memory
//! stamps      numbers of descriptors, by which the card knows a replay
//! protection  a guest's tail: checked, copied, stamped; or the I/O table filled
//! iommu       the table, and what the card reaches by it
//! guest       a guest's process, from inside: its driver, its packets, the hypervisor's calls
//! rig         all of it, driven: packets, interrupts, counts
//! row         what it costs, beside the path through dom0
//! ```

pub mod card;
pub mod guest;
pub mod iommu;
pub mod layout;
pub mod protection;
pub mod rig;
pub mod row;
pub mod stamps;
pub mod vectors;

/// A context of the card, and the guest that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub usize);

/// Most contexts: the thesis's card has as many (5.2).
pub const CONTEXTS: usize = 32;

impl ContextId {
    /// Its bit in a vector.
    pub fn bit(self) -> u64 {
        1 << self.0
    }

    /// Those of a vector, the lowest first; what is no context's is left out.
    pub fn of_vector(bits: u64) -> impl Iterator<Item = ContextId> {
        let ids = (0..CONTEXTS).map(ContextId);
        ids.filter(move |context| bits & context.bit() != 0)
    }
}
