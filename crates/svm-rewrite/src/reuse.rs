//! Translations that are used again: `disp(%base)` after `disp0(%base)`
//! needs no check of its own if the first one's result is still in a
//! register (RegionCheck elimination in its simplest form; `facts`: 32% of e1000's
//! heap accesses).
//!
//! ```text
//!     <check of 8(%rdi)> -> %rcx
//!     mov   (%rcx), %rax              was 8(%rdi)
//!     mov   24(%rcx), %edx            was 32(%rdi)
//! ```
//!
//! Why it computes the same:
//! * A window is three pages, so from a translated address on there are
//!   [`stlb::COVERED`] bytes, and before it [`stlb::BELOW`], that are the dom0
//!   bytes around the original address; where dom0 has none, there is a hole.
//! * The table does not change an entry while a CPU is inside a driver, and
//!   nothing between the two leaves the driver.
//! * No page is touched but those that an access is on: what aborts now aborted
//!   before, at the same instruction and address, in a hole instead of in a check.
//! * The register is dead from the check on until the original program writes it,
//!   which ends its use here.
//!
//! Where ways meet, what registers hold on all of them is held. A loop's way back
//! is planned after the place it leads to, so nothing is held over that. That a
//! register holds what it should is for the verifier to see.

use iced_x86::Register;
use liveness::{LocSet, Reg, WordSize};
use twin_abi::stlb;

use crate::class::{Class, Space};
use crate::lift::Inst;
use crate::registers::gpr;
use crate::trace::Trace;
use crate::values::{Ids, Motion, Value, Values};

/// How many instructions ahead a next use is looked for: a translation that is
/// held longer mostly costs others their register.
pub const REACH: usize = 48;

/// An earlier translation serves this access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// Holds the translated address of the earlier access.
    pub register: Reg,
    /// What lies between the two, in bytes.
    pub displacement: i64,
}

/// `displacement(%base)`, no more, and how many bytes are accessed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    base: Reg,
    displacement: i32,
    size: u16,
}

impl Operand {
    /// The operand of a heap access that could share a translation.
    pub fn of(inst: &Inst, class: Class) -> Option<Operand> {
        // With a relocation, the displacement is a symbol's address.
        if !matches!(class, Class::Memory(Space::Heap)) || inst.displacement.is_some() {
            return None;
        }
        let iced = &inst.iced;
        let base = iced.memory_base();
        let alone = iced.memory_index() == Register::None
            && base.is_gpr64()
            && base != Register::RSP
            && iced.segment_prefix() == Register::None;
        let size = u16::try_from(iced.memory_size().size()).ok()?;
        (alone && size > 0).then_some(Operand {
            base: gpr(base)?,
            displacement: iced.memory_displacement64() as i32,
            size,
        })
    }

    /// Where it is, given what registers hold.
    pub fn place(&self, values: &Values) -> Option<Place> {
        let base = values.get(self.base);
        let offset = base.offset.checked_add(self.displacement)?;
        Some(Place {
            address: Value { offset, ..base },
            size: self.size,
        })
    }
}

/// An access's address and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    address: Value,
    size: u16,
}

/// How far an access lies behind an address, if a translation of that covers it.
fn distance(from: Value, to: &Place) -> Option<i64> {
    let distance = i64::from(to.address.offset) - i64::from(from.offset);
    (from.id == to.address.id && covers(distance, to.size)).then_some(distance)
}

/// Whether a translation covers `size` bytes at that distance from its address.
fn covers(distance: i64, size: u16) -> bool {
    -(stlb::BELOW as i64) <= distance && distance + i64::from(size) <= stlb::COVERED as i64
}

/// A translation that a register holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    register: Reg,
    address: Value,
}

/// What is known at a point of a block: which registers hold the same, and the
/// translations that registers hold.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The numbers in registers and in the frame.
    pub values: Values,
    held: Vec<Held>,
}

impl Holding {
    /// Nothing is known.
    pub fn nothing(ids: &mut Ids) -> Holding {
        Holding {
            values: Values::unknown(ids),
            held: Vec::new(),
        }
    }

    /// The translation that serves `operand`, in a register that `usable` accepts.
    pub fn find(&self, operand: &Operand, usable: impl Fn(Reg) -> bool) -> Option<Reuse> {
        let place = operand.place(&self.values)?;
        let mut held = self.held.iter().rev().filter(|held| usable(held.register));
        held.find_map(|held| {
            Some(Reuse {
                register: held.register,
                displacement: distance(held.address, &place)?,
            })
        })
    }

    /// The registers in use.
    pub fn registers(&self) -> LocSet {
        let registers = self.held.iter().map(|held| LocSet::reg(held.register));
        registers.fold(LocSet::empty(), LocSet::union)
    }

    /// `register` holds the translation of `operand` from here on.
    pub fn hold(&mut self, register: Reg, operand: &Operand) {
        self.forget(LocSet::reg(register));
        if let Some(Place { address, .. }) = operand.place(&self.values) {
            self.held.push(Held { register, address });
        }
    }

    /// These registers change: translations in them are gone.
    pub fn forget(&mut self, changed: LocSet) {
        self.held
            .retain(|held| !changed.intersects(LocSet::reg(held.register)));
    }

    /// Becomes what is known after an instruction that stays in the function.
    /// Translations of addresses that nothing has a part of any more are gone.
    pub fn pass(&mut self, motion: Motion, writes: LocSet, ids: &mut Ids) {
        self.values.pass(motion, writes, ids);
        let values = &self.values;
        self.held.retain(|held| values.mention(held.address.id));
    }

    /// All of them, the oldest first.
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// The `n`th one goes; false if there are not so many.
    pub fn give_up(&mut self, n: usize) -> bool {
        let any = n < self.held.len();
        if any {
            self.held.remove(n);
        }
        any
    }

    /// Keeps what `other` has as well.
    pub fn join(&mut self, other: &Holding, ids: &mut Ids) {
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

/// Whether translations survive an instruction of this class: it does not leave
/// the driver, and its sequence overwrites no register but its scratch. Branches
/// differ by where they lead.
pub fn survives(class: Class) -> bool {
    match class {
        Class::Plain
        | Class::Stack
        | Class::Drop
        | Class::AddressOf
        | Class::Memory(_)
        | Class::Prefetch(_)
        | Class::BitString(_) => true,
        // Of these some are branches; see `Planner::survives`.
        Class::Keep(_) | Class::StaticBranch => false,
        Class::PushMemory(_)
        | Class::PopMemory(_)
        | Class::Xlat
        | Class::String(..)
        | Class::CallIndirect(_)
        | Class::JumpIndirect(_)
        | Class::Branch
        | Class::Return
        | Class::Trap(_)
        | Class::Port(_)
        | Class::FramePointerToStack
        | Class::Realign(_)
        | Class::PortString(..) => false,
    }
}

/// What the search for later uses needs to know of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its operand, if it could share a translation.
    pub operand: Option<Operand>,
    /// What it does to values.
    pub motion: Motion,
    /// Registers that it changes.
    pub writes: LocSet,
    /// Registers live before it.
    pub live: LocSet,
    /// [`survives`].
    pub survives: bool,
}

/// Registers that could carry the translation made at the first of `steps` to
/// others that `operand`'s translation covers, to as many of them as any register
/// could: dead all the way, and written by nothing before. Empty if there is no
/// such step.
pub fn carriers(operand: &Operand, values: &Values, steps: impl Iterator<Item = Step>) -> LocSet {
    let mut free = LocSet::registers(WordSize::Bits64);
    let mut carriers = LocSet::empty();
    let Some(Place { address, .. }) = operand.place(values) else {
        return carriers;
    };
    let mut trace = Trace::of(address.id, values);
    for (n, now) in steps.enumerate() {
        if n > 0 {
            free = free.minus(now.live);
            if free.is_empty() {
                break;
            }
            if serves(address, &now, &trace) {
                carriers = free;
            }
        }
        trace.pass(now.motion, now.writes);
        if !now.survives || trace.is_lost() {
            break;
        }
        free = free.minus(now.writes);
    }
    carriers
}

/// Whether a translation serves one of `steps` before its register is written or
/// needed.
pub fn is_used(held: &Held, values: &Values, steps: impl Iterator<Item = Step>) -> bool {
    let register = LocSet::reg(held.register);
    let mut trace = Trace::of(held.address.id, values);
    for now in steps {
        if now.live.intersects(register) {
            return false;
        }
        if serves(held.address, &now, &trace) {
            return true;
        }
        trace.pass(now.motion, now.writes);
        if !now.survives || now.writes.intersects(register) || trace.is_lost() {
            return false;
        }
    }
    false
}

fn serves(translated: Value, step: &Step, trace: &Trace) -> bool {
    step.operand.is_some_and(|operand| {
        let base = trace.offset(operand.base).map(i64::from);
        base.is_some_and(|base| {
            let address = base + i64::from(operand.displacement);
            covers(address - i64::from(translated.offset), operand.size)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Written;

    fn at(base: Reg, displacement: i32, size: u16) -> Operand {
        Operand {
            base,
            displacement,
            size,
        }
    }

    const OTHER: Motion = Motion::Other(Written::Nothing);

    #[test]
    fn what_a_window_covers() {
        let values = Values::unknown(&mut Ids::default());
        let from = at(Reg::RDI, 8, 8).place(&values).unwrap().address;
        let covers = |base, displacement, size| {
            let place = at(base, displacement, size).place(&values)?;
            distance(from, &place)
        };
        assert_eq!(covers(Reg::RDI, 8, 4), Some(0));
        assert_eq!(covers(Reg::RDI, 24, 8), Some(16));
        assert_eq!(covers(Reg::RDI, 8 + 4096, 1), Some(4096));
        assert_eq!(covers(Reg::RDI, 8 + 4096, 2), None);
        assert_eq!(covers(Reg::RDI, 7, 1), Some(-1));
        assert_eq!(covers(Reg::RDI, 8 - 4096, 8), Some(-4096));
        assert_eq!(covers(Reg::RDI, 8 - 4097, 8), None);
        assert_eq!(covers(Reg::RSI, 8, 8), None, "another base");
        assert_eq!(covers(Reg::RDI, i32::MAX, 1), None);
        assert_eq!(covers(Reg::RDI, i32::MIN, 1), None);
    }

    #[test]
    fn a_changed_base_or_holder_ends_it() {
        let mut ids = Ids::default();
        let mut holding = Holding::nothing(&mut ids);
        let operand = at(Reg::RDI, 0, 8);
        holding.hold(Reg::RCX, &operand);
        holding.forget(LocSet::reg(Reg::RAX));
        assert!(holding.find(&operand, |_| true).is_some());
        assert!(holding.find(&operand, |r| r != Reg::RCX).is_none());
        holding.pass(OTHER, LocSet::reg(Reg::RDI), &mut ids);
        assert!(holding.find(&operand, |_| true).is_none());
        assert!(holding.held().is_empty(), "of no use to anybody");
        holding.hold(Reg::RCX, &operand);
        holding.hold(Reg::RCX, &at(Reg::RSI, 0, 8));
        assert!(holding.find(&operand, |_| true).is_none());
    }

    #[test]
    fn a_copied_or_moved_base_is_the_same() {
        let mut ids = Ids::default();
        let mut holding = Holding::nothing(&mut ids);
        holding.hold(Reg::RCX, &at(Reg::RDI, 8, 8));
        let copy = Motion::Copy {
            to: Reg::RBX,
            from: Reg::RDI,
            by: 16,
        };
        holding.values.pass(copy, LocSet::reg(Reg::RBX), &mut ids);
        holding.values.pass(OTHER, LocSet::reg(Reg::RDI), &mut ids);
        let found = holding.find(&at(Reg::RBX, 0, 8), |_| true);
        assert_eq!(found.map(|r| r.displacement), Some(8));
    }

    #[test]
    fn ways_that_hold_the_same_by_other_instructions_agree() {
        let mut ids = Ids::default();
        let before = Holding::nothing(&mut ids);
        let way = |by: i32, ids: &mut Ids| {
            let mut way = before.clone();
            way.values.pass(OTHER, LocSet::reg(Reg::RBX), ids);
            way.hold(Reg::RCX, &at(Reg::RBX, by, 8));
            way
        };
        let mut one = way(8, &mut ids);
        let same = way(8, &mut ids);
        let other = way(16, &mut ids);
        one.join(&same, &mut ids);
        assert!(one.find(&at(Reg::RBX, 8, 8), |_| true).is_some());
        one.join(&other, &mut ids);
        assert!(one.find(&at(Reg::RBX, 8, 8), |_| true).is_none());
    }

    #[test]
    fn a_carrier_is_dead_up_to_the_last_use() {
        let operand = at(Reg::RDI, 0, 8);
        let later = at(Reg::RDI, 16, 4);
        let step = |i: u32| {
            let written = [Reg::RAX, Reg::RDX, Reg::RSI][i as usize];
            Step {
                operand: (i == 0).then_some(operand).or((i == 2).then_some(later)),
                motion: OTHER,
                writes: LocSet::reg(written),
                live: LocSet::reg(Reg::RDI),
                survives: true,
            }
        };
        let mut ids = Ids::default();
        let values = Values::unknown(&mut ids);
        let carriers = carriers(&operand, &values, (0..3).map(step));
        assert!(
            !carriers.intersects(LocSet::reg(Reg::RAX)),
            "written by the first"
        );
        assert!(
            !carriers.intersects(LocSet::reg(Reg::RDX)),
            "written in between"
        );
        assert!(
            carriers.intersects(LocSet::reg(Reg::RSI)),
            "written by the last"
        );
        assert!(carriers.intersects(LocSet::reg(Reg::RCX)));
        assert!(!carriers.intersects(LocSet::reg(Reg::RDI)), "live");
    }
}
