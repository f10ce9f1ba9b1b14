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
//! * A window is two pages, so from a translated address on there are
//!   [`stlb::COVERED`] bytes that are the dom0 bytes behind the original address.
//! * The table does not change an entry while a CPU is inside a driver, and
//!   nothing between the two leaves the driver.
//! * The later displacement is not lower than the first, so no page is touched
//!   that neither access is on: what aborts now aborted before, at the same
//!   instruction.
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
    displacement: i64,
    size: i64,
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
        let size = iced.memory_size().size() as i64;
        (alone && size > 0).then_some(Operand {
            base: gpr(base)?,
            displacement: iced.memory_displacement64() as i64,
            size,
        })
    }

    /// How far `later` lies behind this, if a translation of this covers it.
    fn covers(&self, later: &Operand) -> Option<i64> {
        let distance = later.displacement.checked_sub(self.displacement)?;
        let end = distance.checked_add(later.size)?;
        let inside = self.base == later.base && distance >= 0 && end <= stlb::COVERED as i64;
        inside.then_some(distance)
    }
}

/// A translation that a register holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    register: Reg,
    operand: Operand,
}

/// The translations that registers hold at a point of a block.
#[derive(Clone, Debug, Default)]
pub struct Holding(Vec<Held>);

impl Holding {
    /// The translation that serves `operand`, in a register that `usable` accepts.
    pub fn find(&self, operand: &Operand, usable: impl Fn(Reg) -> bool) -> Option<Reuse> {
        let mut held = self.0.iter().rev().filter(|held| usable(held.register));
        held.find_map(|held| {
            let displacement = held.operand.covers(operand)?;
            Some(Reuse {
                register: held.register,
                displacement,
            })
        })
    }

    /// The registers in use.
    pub fn registers(&self) -> LocSet {
        let registers = self.0.iter().map(|held| LocSet::reg(held.register));
        registers.fold(LocSet::empty(), LocSet::union)
    }

    /// `register` holds the translation of `operand` from here on.
    pub fn hold(&mut self, register: Reg, operand: Operand) {
        self.forget(LocSet::reg(register));
        self.0.push(Held { register, operand });
    }

    /// These registers change: translations in them, and of addresses made from
    /// them, are gone.
    pub fn forget(&mut self, changed: LocSet) {
        self.0.retain(|held| {
            let names = LocSet::reg(held.register).union(LocSet::reg(held.operand.base));
            !names.intersects(changed)
        });
    }

    /// The oldest one goes; false if there is none.
    pub fn give_up_oldest(&mut self) -> bool {
        let any = !self.0.is_empty();
        if any {
            self.0.remove(0);
        }
        any
    }

    /// Keeps those that `other` has as well; none if that is not known.
    pub fn keep_common(&mut self, other: Option<&Holding>) {
        let same = |a: &Held, b: &Held| {
            let address =
                |held: &Held| (held.register, held.operand.base, held.operand.displacement);
            address(a) == address(b)
        };
        self.0
            .retain(|held| other.is_some_and(|other| other.0.iter().any(|o| same(held, o))));
    }

    /// All are gone.
    pub fn clear(&mut self) {
        self.0.clear();
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

/// What the search for the next use needs to know of an instruction.
pub struct Step {
    /// Its operand, if it could share a translation.
    pub operand: Option<Operand>,
    /// Registers that it changes.
    pub writes: LocSet,
    /// Registers live before it.
    pub live: LocSet,
    /// [`survives`].
    pub survives: bool,
}

/// Registers that could carry the translation made at the first of `steps` to the
/// next one that `operand`'s translation covers: dead all the way, and written by
/// nothing before it. Empty if there is no such step.
pub fn carriers(operand: &Operand, steps: impl Iterator<Item = Step>) -> LocSet {
    let mut free = LocSet::registers(WordSize::Bits64);
    for (n, now) in steps.enumerate() {
        if n > 0 {
            free = free.minus(now.live);
            if now
                .operand
                .is_some_and(|later| operand.covers(&later).is_some())
            {
                return free;
            }
        }
        let base_changes = now.writes.intersects(LocSet::reg(operand.base));
        if !now.survives || base_changes {
            return LocSet::empty();
        }
        free = free.minus(now.writes);
        if free.is_empty() {
            break;
        }
    }
    LocSet::empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: Reg, displacement: i64, size: i64) -> Operand {
        Operand {
            base,
            displacement,
            size,
        }
    }

    #[test]
    fn what_a_window_covers() {
        let first = at(Reg::RDI, 8, 8);
        assert_eq!(first.covers(&at(Reg::RDI, 8, 4)), Some(0));
        assert_eq!(first.covers(&at(Reg::RDI, 24, 8)), Some(16));
        assert_eq!(first.covers(&at(Reg::RDI, 8 + 4096, 1)), Some(4096));
        assert_eq!(first.covers(&at(Reg::RDI, 8 + 4096, 2)), None);
        assert_eq!(first.covers(&at(Reg::RDI, 7, 1)), None, "not backwards");
        assert_eq!(first.covers(&at(Reg::RSI, 8, 8)), None, "another base");
        let far = at(Reg::RDI, i64::MIN, 1);
        assert_eq!(far.covers(&at(Reg::RDI, i64::MAX, 1)), None);
    }

    #[test]
    fn a_changed_base_or_holder_ends_it() {
        let mut holding = Holding::default();
        let operand = at(Reg::RDI, 0, 8);
        holding.hold(Reg::RCX, operand);
        holding.forget(LocSet::reg(Reg::RAX));
        assert!(holding.find(&operand, |_| true).is_some());
        assert!(holding.find(&operand, |r| r != Reg::RCX).is_none());
        holding.forget(LocSet::reg(Reg::RDI));
        assert!(holding.find(&operand, |_| true).is_none());
        holding.hold(Reg::RCX, operand);
        holding.hold(Reg::RCX, at(Reg::RSI, 0, 8));
        assert!(holding.find(&operand, |_| true).is_none());
    }

    #[test]
    fn a_carrier_is_dead_up_to_the_next_use() {
        let operand = at(Reg::RDI, 0, 8);
        let later = at(Reg::RDI, 16, 4);
        let steps = |i: u32| Step {
            operand: (i == 0).then_some(operand).or((i == 2).then_some(later)),
            writes: LocSet::reg([Reg::RAX, Reg::RDX, Reg::RSI][i as usize]),
            live: LocSet::reg(Reg::RDI),
            survives: true,
        };
        let carriers = carriers(&operand, (0..3).map(steps));
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
