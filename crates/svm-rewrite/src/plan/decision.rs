//! The plan of an instruction: data that [`super::Planner`] makes and
//! [`crate::encode::apply`] acts on.

use liveness::{LocSet, Reg};

use crate::analyse::class::Class;
use crate::lift::InstIdx;
use crate::plan::borrow::Borrowed;
use crate::plan::reuse::Reuse;
use crate::plan::strict::PointerCheck;

/// How one instruction is treated. `scratch` has the registers of its sequence; with
/// `reuse`, it has no sequence.
#[derive(Clone, Copy, Debug)]
pub struct InstPlan {
    pub class: Class,
    /// Registers that its sequence may overwrite.
    pub scratch: Scratch,
    /// What happens to the flags.
    pub flags: Flags,
    /// Locations that are live before it, including operands of a repeated compare and
    /// translations that registers hold.
    pub live: LocSet,
    /// The earlier translation that serves it.
    pub reuse: Option<Reuse>,
    /// Registers that are pushed before its sequence and popped after its call.
    pub across: LocSet,
    /// How it cuts an address, if it does.
    pub cut: CutBy,
    /// Registers that its sequence may borrow: it restores them.
    pub borrowed: Option<Borrowed>,
    /// The pointers that are compared before it.
    pub pointers: Option<PointerCheck>,
}

impl InstPlan {
    /// The scratch registers without the one that keeps the flags. The translation is
    /// left in the first.
    pub fn roles(&self) -> impl Iterator<Item = Reg> {
        let holder = match self.flags {
            Flags::Save(holder) => Some(holder),
            Flags::Dead | Flags::Recompute(_) => None,
        };
        let all = self.scratch.all().iter().copied();
        all.filter(move |r| Some(*r) != holder)
    }

    /// The register that its translation is left in, unless that register is spilled,
    /// which restores its old value.
    pub fn dead_result(&self) -> Option<Reg> {
        let v = self.roles().next()?;
        (!self.scratch.spilled().contains(&v)).then_some(v)
    }
}

/// What cuts an address to its place in the window ([`crate::schemes::Cut::Register`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutBy {
    /// `pext`: one instruction, three cycles, no flag is changed.
    Pext,
    /// `and`: one cycle, but the flags are changed, and a register that keeps its own
    /// value takes a second instruction.
    And,
    /// `and`, with the flags kept on the stack around it: for processors without `pext`.
    AndKeepingFlags,
}

/// Registers that a sequence may overwrite, at most eight. The last ones may be live:
/// these are spilled (pushed before the sequence, popped after it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    regs: [Reg; Scratch::MAX],
    len: u8,
    spilled: u8,
}

impl Scratch {
    /// More than any sequence needs.
    const MAX: usize = 8;

    /// None.
    pub const EMPTY: Scratch = Scratch {
        regs: [Reg::RAX; Scratch::MAX],
        len: 0,
        spilled: 0,
    };

    pub fn all(&self) -> &[Reg] {
        &self.regs[..usize::from(self.len)]
    }

    /// Those that are live.
    pub fn spilled(&self) -> &[Reg] {
        &self.all()[usize::from(self.len - self.spilled)..]
    }

    pub(super) fn push(&mut self, r: Reg, spilled: bool) {
        self.regs[usize::from(self.len)] = r;
        self.len += 1;
        self.spilled += u8::from(spilled);
    }

    /// Chooses the register that keeps the flags: `rax` if it is a dead one, since
    /// `lahf` needs it anyway, else the last one. The others keep their order, so
    /// spilled ones stay last.
    pub(super) fn choose_holder(&mut self) -> Reg {
        let len = usize::from(self.len);
        let regs = &mut self.regs[..len];
        let dead = len - usize::from(self.spilled);
        // rax comes first in the order of preference when it is dead.
        if dead > 0 && regs[0] == Reg::RAX {
            regs[..dead].rotate_left(1);
            return regs[dead - 1];
        }
        regs[len - 1]
    }

    pub(super) fn set(&self) -> LocSet {
        let registers = self.all().iter().map(|r| LocSet::reg(*r));
        registers.fold(LocSet::empty(), LocSet::union)
    }
}

/// What happens to the arithmetic flags around a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// They are not read.
    Dead,
    /// The compare at this instruction is repeated after the check.
    Recompute(InstIdx),
    /// Kept in a register with `lahf; seto`.
    Save(Reg),
}

impl Flags {
    /// The name as reports print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Flags::Dead => "dead",
            Flags::Recompute(_) => "recomputed",
            Flags::Save(_) => "saved",
        }
    }
}
