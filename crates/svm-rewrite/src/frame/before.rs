//! What is known before the blocks that control was found to reach.

use liveness::BlockId;

/// What is known on a path.
pub trait Join: Copy + PartialEq {
    /// What is known on both of two paths.
    fn join(self, other: Self) -> Self;
}

/// The known before each block.
pub struct Before<S> {
    /// For each block the number of what is known, or `NONE`.
    slot: Vec<u32>,
    known: Vec<S>,
}

const NONE: u32 = u32::MAX;

impl<S: Join> Before<S> {
    /// No block was reached yet.
    pub fn new(blocks: usize) -> Before<S> {
        Before {
            slot: vec![NONE; blocks],
            known: Vec::with_capacity(blocks),
        }
    }

    /// No block was reached yet, again.
    pub fn clear(&mut self) {
        self.slot.fill(NONE);
        self.known.clear();
    }

    pub fn get(&self, block: BlockId) -> Option<&S> {
        self.known.get(self.slot[block.0 as usize] as usize)
    }

    /// Joins what is known on a path to a block into what is known before it. Returns
    /// whether that changed.
    pub fn arrive(&mut self, block: BlockId, state: &S) -> bool {
        let slot = &mut self.slot[block.0 as usize];
        let Some(old) = self.known.get_mut(*slot as usize) else {
            *slot = self.known.len() as u32;
            self.known.push(*state);
            return true;
        };
        if old == state {
            return false;
        }
        let joined = old.join(*state);
        std::mem::replace(old, joined) != joined
    }
}
