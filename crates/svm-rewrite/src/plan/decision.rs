//! What is decided about an instruction: data, made by [`super::Planner`], acted on
//! by [`crate::encode::apply`].

use liveness::{LocSet, Reg};

use crate::analyse::class::Class;
use crate::lift::InstIdx;
use crate::plan::reuse::Reuse;

/// How one instruction is treated. Registers of its sequence stand in `scratch`; where
/// `reuse` is there, it has no sequence.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What it is.
    pub class: Class,
    /// What its sequence may overwrite.
    pub scratch: Scratch,
    /// What happens to the flags.
    pub flags: Flags,
    /// What is live before it, operands of a repeated compare and translations
    /// that registers hold included.
    pub live: LocSet,
    /// The earlier translation that serves it.
    pub reuse: Option<Reuse>,
}

impl Plan {
    /// The scratch registers but for the one that keeps the flags. The translation
    /// ends in the first.
    pub fn roles(&self) -> impl Iterator<Item = Reg> {
        let holder = match self.flags {
            Flags::Save(holder) => Some(holder),
            Flags::Dead | Flags::Recompute(_) => None,
        };
        let all = self.scratch.all().iter().copied();
        all.filter(move |r| Some(*r) != holder)
    }

    /// The register that its translation ends in, unless that is spilled and so gets
    /// its old value back.
    pub(super) fn dead_result(&self) -> Option<Reg> {
        let v = self.roles().next()?;
        (!self.scratch.spilled().contains(&v)).then_some(v)
    }
}

/// Registers that a sequence may overwrite, at most eight. The last ones may be
/// live: these are spilled, which is pushed before the sequence and popped after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    regs: [Reg; Scratch::MAX],
    len: u8,
    spilled: u8,
}

impl Scratch {
    /// More than any sequence asks for.
    const MAX: usize = 8;

    /// None.
    pub const EMPTY: Scratch = Scratch {
        regs: [Reg::RAX; Scratch::MAX],
        len: 0,
        spilled: 0,
    };

    /// All of them.
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

    /// Chooses the register that keeps the flags: `rax` if it is among those that are
    /// dead, since `lahf` needs it anyway, else the last one. The order of the others
    /// stays, so that spilled ones are last.
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

    /// As a set.
    pub(super) fn set(&self) -> LocSet {
        let registers = self.all().iter().map(|r| LocSet::reg(*r));
        registers.fold(LocSet::empty(), LocSet::union)
    }
}

/// What happens to the arithmetic flags around a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// Nobody reads them.
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
