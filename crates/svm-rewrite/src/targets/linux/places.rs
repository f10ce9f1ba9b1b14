//! Where a place of the original's code will be in the rewritten code. Which places there
//! are is known before any code is written; their offsets are known afterwards.

use elf_loader::SectionId;
use foldhash::HashMap;

use crate::analyse::class::Class;
use crate::asm::{Label, Position};
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, FuncIdx, InstIdx, Lifted};
use crate::plan::InstPlan;

/// A place of the rewritten code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewPlace {
    /// Where an instruction, or its sequence, begins.
    Inst(InstIdx),
    /// The `lock` prefix of an access.
    Lock(InstIdx),
    /// A branch through a thunk, or what a switch has in its place.
    Thunk(InstIdx),
    /// The end of a function, after its out-of-line parts.
    FunctionEnd(FuncIdx),
    SectionEnd(CodeIdx),
}

/// The map from original to new places.
pub struct Places<'p, 'a> {
    /// The original's code.
    pub lifted: &'p Lifted<'a>,
    /// Whether an instruction is kept, and so its length.
    pub plans: &'p [InstPlan],
}

impl Places<'_, '_> {
    /// The code section with this id, if it is one.
    pub fn code(&self, id: SectionId) -> Option<CodeIdx> {
        self.lifted.code_section(id)
    }

    /// Where the instruction that began at `offset` begins now; the end of a
    /// section is its end. `None` if no instruction began there.
    pub fn place(&self, code: CodeIdx, offset: u64) -> Option<NewPlace> {
        let section = &self.lifted.sections[usize::from(code.0)];
        if offset == self.lifted.object.section(section.id).data.len() as u64 {
            return Some(NewPlace::SectionEnd(code));
        }
        self.lifted.inst_at(code, offset).map(NewPlace::Inst)
    }

    /// The new place of the branch through a thunk that was at `offset`.
    pub fn thunk(&self, code: CodeIdx, offset: u64) -> Option<NewPlace> {
        self.lifted.inst_at(code, offset).map(NewPlace::Thunk)
    }

    /// The new end of the range `start..end`: after the function's out-of-line parts if
    /// `end` was the end of the function, else where the instruction at `end` begins.
    pub fn end(&self, code: CodeIdx, start: u64, end: u64) -> Option<NewPlace> {
        let first = self.lifted.inst_at(code, start)?;
        let f = self.lifted.function_of(first);
        if self.lifted.function(f).end == end {
            return Some(NewPlace::FunctionEnd(f));
        }
        self.place(code, end)
    }

    /// The new place of the `lock` prefix of the access that was at `offset`.
    pub fn lock(&self, code: CodeIdx, offset: u64) -> Option<NewPlace> {
        let i = self.lifted.inst_at(code, offset)?;
        let locked = self.lifted.inst(i).iced.has_lock_prefix();
        locked.then_some(NewPlace::Lock(i))
    }

    /// The new length in bytes of the instructions of one function that were `len` bytes
    /// from `offset` on, if all of them are kept.
    pub fn kept_len(&self, code: CodeIdx, offset: u64, len: u64) -> Option<u64> {
        let first = self.lifted.inst_at(code, offset)?;
        let last = (offset..offset + len)
            .rev()
            .find_map(|at| self.lifted.inst_at(code, at))?;
        let function = self.lifted.function(self.lifted.function_of(first));
        let kept = function.insts.contains(&last.0);
        let insts = (first.0..=last.0).map(InstIdx);
        let lens = insts.map(|i| match self.plans[i.0 as usize].class {
            Class::Keep(_) | Class::KeepOwnPlace(_) => Some(self.lifted.bytes(i).len() as u64),
            Class::KeepBranch(jump) => Some(jump.long_size().into()),
            _ => None,
        });
        kept.then(|| lens.sum())?
    }
}

/// The offsets of places in the code that was written.
pub struct Offsets<'w> {
    applied: &'w Applied,
    /// Offsets of what is inside a sequence: accesses that have a `lock` prefix, and what
    /// replaces jumps through thunks.
    inside: HashMap<u32, u64>,
}

impl<'w> Offsets<'w> {
    /// Those of rewritten code.
    pub fn new(applied: &'w Applied) -> Offsets<'w> {
        let offset = |&(section, i, at): &(u16, InstIdx, Position)| {
            let laid = &applied.sections[usize::from(section)];
            (i.0, laid.offset(at))
        };
        let inside = applied.locked.iter().chain(&applied.thunks).map(offset);
        let inside = inside.collect();
        Offsets { applied, inside }
    }

    /// The offset of a place in its section.
    pub fn of(&self, place: NewPlace) -> u64 {
        let applied = self.applied;
        let inside = |i: InstIdx| self.inside.get(&i.0).copied();
        match place {
            NewPlace::Inst(i) => applied.place(Label(i.0)).1,
            NewPlace::Thunk(i) => inside(i).unwrap_or_else(|| self.of(NewPlace::Inst(i))),
            NewPlace::Lock(i) => {
                let (section, start) = applied.place(Label(i.0));
                let start = inside(i).unwrap_or(start);
                let bytes = &applied.sections[usize::from(section.0)].bytes[start as usize..];
                // Other prefixes may come first.
                start + bytes.iter().take_while(|b| **b != LOCK).count() as u64
            }
            NewPlace::FunctionEnd(f) => applied.place(applied.function_ends[f.0 as usize]).1,
            NewPlace::SectionEnd(code) => applied.sections[usize::from(code.0)].bytes.len() as u64,
        }
    }
}

/// The prefix (SDM volume 2, 2.1.1).
const LOCK: u8 = 0xf0;
