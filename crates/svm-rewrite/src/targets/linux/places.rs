//! Where a place of the original's code is in the rewritten code.

use elf_loader::SectionId;
use foldhash::HashMap;

use crate::analyse::class::Class;
use crate::asm::{Label, Position};
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, InstIdx, Lifted};
use crate::plan::InstPlan;

/// The map from original to new places.
pub struct Places<'p, 'a> {
    lifted: &'p Lifted<'a>,
    code: RewrittenCode<'p>,
}

/// What is known of the rewritten code.
enum RewrittenCode<'p> {
    /// Its plans: whether a place will exist, and how long kept instructions will be. All
    /// places are said to be 0.
    Planned(&'p [InstPlan]),
    /// The code, and the new offsets of what is inside a sequence: accesses that have a
    /// `lock` prefix, and jumps through thunks that a switch replaced.
    Written(&'p Applied, HashMap<u32, u64>),
}

impl<'p, 'a> Places<'p, 'a> {
    /// The map before the code is written: it has the places that there will be.
    pub fn planned(lifted: &'p Lifted<'a>, plans: &'p [InstPlan]) -> Places<'p, 'a> {
        let code = RewrittenCode::Planned(plans);
        Places { lifted, code }
    }

    /// The map for rewritten code.
    pub fn new(lifted: &'p Lifted<'a>, applied: &'p Applied) -> Places<'p, 'a> {
        let offset = |&(section, i, at): &(u16, InstIdx, Position)| {
            let laid = &applied.sections[usize::from(section)];
            (i.0, laid.offset(at))
        };
        let inside = applied.locked.iter().chain(&applied.thunks).map(offset);
        let code = RewrittenCode::Written(applied, inside.collect());
        Places { lifted, code }
    }

    fn at(&self, label: Label) -> u64 {
        match &self.code {
            RewrittenCode::Planned(_) => 0,
            RewrittenCode::Written(applied, _) => applied.place(label).1,
        }
    }

    /// The code section with this id, if it is one.
    pub fn code(&self, id: SectionId) -> Option<CodeIdx> {
        self.lifted.code_section(id)
    }

    /// Where the instruction that began at `offset` begins now; the end of a
    /// section is its end. `None` if no instruction began there.
    pub fn place(&self, code: CodeIdx, offset: u64) -> Option<u64> {
        let section = &self.lifted.sections[usize::from(code.0)];
        if offset == self.lifted.object.section(section.id).data.len() as u64 {
            return Some(match &self.code {
                RewrittenCode::Planned(_) => 0,
                RewrittenCode::Written(applied, _) => {
                    applied.sections[usize::from(code.0)].bytes.len() as u64
                }
            });
        }
        let i = self.lifted.inst_at(code, offset)?;
        Some(self.at(Label(i.0)))
    }

    /// The new place of the branch through a thunk that was at `offset`.
    pub fn thunk(&self, code: CodeIdx, offset: u64) -> Option<u64> {
        let i = self.lifted.inst_at(code, offset)?;
        let moved = match &self.code {
            RewrittenCode::Planned(_) => None,
            RewrittenCode::Written(_, inside) => inside.get(&i.0).copied(),
        };
        moved.or_else(|| self.place(code, offset))
    }

    /// The new end of the range `start..end`: after the function's out-of-line parts if
    /// `end` was the end of the function, else where the instruction at `end` begins.
    pub fn end(&self, code: CodeIdx, start: u64, end: u64) -> Option<u64> {
        let first = self.lifted.inst_at(code, start)?;
        let f = self.lifted.function_of(first);
        let function = self.lifted.function(f);
        if function.end == end {
            return Some(match &self.code {
                RewrittenCode::Planned(_) => 0,
                RewrittenCode::Written(applied, _) => self.at(applied.function_ends[f.0 as usize]),
            });
        }
        self.place(code, end)
    }

    /// The new place of the `lock` prefix of the access that was at `offset`.
    pub fn lock(&self, code: CodeIdx, offset: u64) -> Option<u64> {
        let i = self.lifted.inst_at(code, offset)?;
        if !self.lifted.inst(i).iced.has_lock_prefix() {
            return None;
        }
        let (start, bytes) = match &self.code {
            RewrittenCode::Planned(_) => (0, self.lifted.bytes(i)),
            RewrittenCode::Written(applied, locks) => {
                let start = locks.get(&i.0).copied();
                let start = start.unwrap_or_else(|| self.at(Label(i.0)));
                let bytes = &applied.sections[usize::from(code.0)].bytes;
                (start, &bytes[start as usize..])
            }
        };
        // Other prefixes may come first.
        const MOST_PREFIXES: usize = 4;
        let at = bytes.iter().take(MOST_PREFIXES).position(|b| *b == 0xf0)?;
        Some(start + at as u64)
    }

    /// The new length in bytes of the kept instructions that were `len` bytes from
    /// `offset` on.
    pub fn kept_len(&self, code: CodeIdx, offset: u64, len: u64) -> Option<u64> {
        let first = self.lifted.inst_at(code, offset)?;
        let last = (offset..offset + len)
            .rev()
            .find_map(|at| self.lifted.inst_at(code, at))?;
        match &self.code {
            RewrittenCode::Planned(plans) => self.planned_len(plans, first, last),
            RewrittenCode::Written(applied, _) => {
                let end = applied.kept_ends.get(&last.0)?;
                let laid = &applied.sections[usize::from(code.0)];
                Some(laid.offset(*end) - self.at(Label(first.0)))
            }
        }
    }

    /// The bytes that instructions of one function will have, if all of them are kept.
    fn planned_len(&self, plans: &[InstPlan], first: InstIdx, last: InstIdx) -> Option<u64> {
        let function = self.lifted.function(self.lifted.function_of(first));
        let kept = function.insts.contains(&last.0);
        let insts = (first.0..=last.0).map(InstIdx);
        let lens = insts.map(|i| match plans[i.0 as usize].class {
            Class::Keep(_) | Class::KeepOwnPlace(_) => Some(self.lifted.bytes(i).len() as u64),
            Class::KeepBranch(jump) => Some(jump.long_size().into()),
            _ => None,
        });
        kept.then(|| lens.sum())?
    }
}
