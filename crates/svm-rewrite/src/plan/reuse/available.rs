//! The translations that registers hold at a place.

use liveness::{LocSet, Reg};

use super::{Access, AccessPlace, Reuse};
use crate::plan::numbering::{Ids, Motion, NumberedValue, Values};
use crate::schemes::Reach;

/// A translation that a register holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub(super) register: Reg,
    pub(super) address: NumberedValue,
}

/// The facts at a point of a block: value numbers, and the translations that registers
/// hold.
#[derive(Debug)]
pub struct Available {
    /// The numbers in registers and in the frame.
    pub values: Values,
    held: Vec<Held>,
}

impl Available {
    /// Nothing is known.
    pub fn nothing(ids: &mut Ids) -> Available {
        Available {
            values: Values::unknown(ids),
            held: Vec::new(),
        }
    }

    /// Becomes [`Available::nothing`].
    pub fn lose(&mut self, ids: &mut Ids) {
        self.values = Values::unknown(ids);
        self.held.clear();
    }

    /// The translation that serves `operand`, in a register that `usable` accepts.
    pub fn find(
        &self,
        operand: &Access,
        reach: Reach,
        usable: impl Fn(Reg) -> bool,
    ) -> Option<Reuse> {
        let place = operand.place(&self.values)?;
        let mut held = self.held.iter().rev().filter(|held| usable(held.register));
        held.find_map(|held| {
            Some(Reuse {
                register: held.register,
                displacement: reach.distance(held.address, &place)?,
            })
        })
    }

    /// The registers in use.
    pub fn registers(&self) -> LocSet {
        let registers = self.held.iter().map(|held| LocSet::reg(held.register));
        registers.fold(LocSet::empty(), LocSet::union)
    }

    /// `register` holds the translation of `operand` from here on.
    pub fn hold(&mut self, register: Reg, operand: &Access) {
        self.forget(LocSet::reg(register));
        if let Some(AccessPlace { address, .. }) = operand.place(&self.values) {
            self.held.push(Held { register, address });
        }
    }

    /// Removes the translations in registers that change.
    pub fn forget(&mut self, changed: LocSet) {
        self.held
            .retain(|held| !changed.intersects(LocSet::reg(held.register)));
    }

    /// Updates the facts over an instruction that stays in the function. A translation
    /// of an address whose number is in no register or word is dropped: no later operand
    /// can use it.
    pub fn pass(&mut self, motion: Motion, writes: LocSet, ids: &mut Ids) {
        self.values.pass(motion, writes, ids);
        let values = &self.values;
        self.held.retain(|held| values.mention(held.address.id));
    }

    /// All of them, the oldest first.
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// Drops the `n`th one; false if there are fewer.
    pub fn give_up(&mut self, n: usize) -> bool {
        let any = n < self.held.len();
        if any {
            self.held.remove(n);
        }
        any
    }

    /// Keeps only the translations that `other` has as well.
    pub fn join(&mut self, other: &Available, ids: &mut Ids) {
        let pairs = self.values.join(&other.values, ids);
        self.held.retain_mut(|held| {
            let same = other.held.iter().filter(|o| o.register == held.register);
            let mut joined = same.filter_map(|o| pairs.find(held.address, o.address));
            match joined.next() {
                Some(address) => {
                    held.address = address;
                    true
                }
                None => false,
            }
        });
    }
}

impl Clone for Available {
    fn clone(&self) -> Available {
        Available {
            values: self.values.clone(),
            held: self.held.clone(),
        }
    }

    /// Reuses the allocated memory; the derived method would allocate again.
    fn clone_from(&mut self, other: &Available) {
        self.values.clone_from(&other.values);
        self.held.clone_from(&other.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::numbering::Written;

    const OTHER: Motion = Motion::Other(Written::Nothing);

    #[test]
    fn a_changed_base_or_holder_ends_it() {
        let mut ids = Ids::default();
        let mut available = Available::nothing(&mut ids);
        let operand = Access::at(Reg::RDI, 0, 8);
        available.hold(Reg::RCX, &operand);
        available.forget(LocSet::reg(Reg::RAX));
        assert!(
            available
                .find(&operand, Reach::TRANSLATION, |_| true)
                .is_some()
        );
        assert!(
            available
                .find(&operand, Reach::TRANSLATION, |r| r != Reg::RCX)
                .is_none()
        );
        available.pass(OTHER, LocSet::reg(Reg::RDI), &mut ids);
        assert!(
            available
                .find(&operand, Reach::TRANSLATION, |_| true)
                .is_none()
        );
        assert!(available.held().is_empty(), "of no use to anybody");
        available.hold(Reg::RCX, &operand);
        available.hold(Reg::RCX, &Access::at(Reg::RSI, 0, 8));
        assert!(
            available
                .find(&operand, Reach::TRANSLATION, |_| true)
                .is_none()
        );
    }

    #[test]
    fn a_copied_or_moved_base_is_the_same() {
        let mut ids = Ids::default();
        let mut available = Available::nothing(&mut ids);
        available.hold(Reg::RCX, &Access::at(Reg::RDI, 8, 8));
        let copy = Motion::Copy {
            to: Reg::RBX,
            from: Reg::RDI,
            by: 16,
        };
        available.values.pass(copy, LocSet::reg(Reg::RBX), &mut ids);
        available
            .values
            .pass(OTHER, LocSet::reg(Reg::RDI), &mut ids);
        let found = available.find(&Access::at(Reg::RBX, 0, 8), Reach::TRANSLATION, |_| true);
        assert_eq!(found.map(|r| r.displacement), Some(8));
    }

    #[test]
    fn ways_that_hold_the_same_by_other_instructions_agree() {
        let mut ids = Ids::default();
        let before = Available::nothing(&mut ids);
        let way = |by: i32, ids: &mut Ids| {
            let mut way = before.clone();
            way.values.pass(OTHER, LocSet::reg(Reg::RBX), ids);
            way.hold(Reg::RCX, &Access::at(Reg::RBX, by, 8));
            way
        };
        let mut one = way(8, &mut ids);
        let same = way(8, &mut ids);
        let other = way(16, &mut ids);
        one.join(&same, &mut ids);
        assert!(
            one.find(&Access::at(Reg::RBX, 8, 8), Reach::TRANSLATION, |_| true)
                .is_some()
        );
        one.join(&other, &mut ids);
        assert!(
            one.find(&Access::at(Reg::RBX, 8, 8), Reach::TRANSLATION, |_| true)
                .is_none()
        );
    }
}
