//! Where a place of the original's code is in the rewritten code.

use elf_loader::SectionId;
use foldhash::HashMap;

use crate::asm::{Label, Position};
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, InstIdx, Lifted};

/// The map from original to new places.
pub struct Places<'p, 'a> {
    lifted: &'p Lifted<'a>,
    applied: &'p Applied,
    /// New offset of the accesses that have a `lock` prefix.
    locks: HashMap<u32, u64>,
    /// New offset of the jumps through thunks that a switch replaced.
    thunks: HashMap<u32, u64>,
}

impl<'p, 'a> Places<'p, 'a> {
    /// The map for rewritten code.
    pub fn new(lifted: &'p Lifted<'a>, applied: &'p Applied) -> Places<'p, 'a> {
        let offset = |&(section, i, at): &(u16, InstIdx, Position)| {
            let laid = &applied.sections[usize::from(section)];
            (i.0, laid.offset(at))
        };
        Places {
            lifted,
            applied,
            locks: applied.locked.iter().map(offset).collect(),
            thunks: applied.thunks.iter().map(offset).collect(),
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
            return Some(self.applied.sections[usize::from(code.0)].bytes.len() as u64);
        }
        let i = self.lifted.inst_at(code, offset)?;
        Some(self.applied.place(Label(i.0)).1)
    }

    /// The new place of the branch through a thunk that was at `offset`.
    pub fn thunk(&self, code: CodeIdx, offset: u64) -> Option<u64> {
        let i = self.lifted.inst_at(code, offset)?;
        let moved = self.thunks.get(&i.0).copied();
        moved.or_else(|| self.place(code, offset))
    }

    /// The new end of the range `start..end`: after the function's out-of-line parts if
    /// `end` was the end of the function, else where the instruction at `end` begins.
    pub fn end(&self, code: CodeIdx, start: u64, end: u64) -> Option<u64> {
        let first = self.lifted.inst_at(code, start)?;
        let f = self.lifted.function_of(first);
        let function = self.lifted.function(f);
        if function.end == end {
            return Some(
                self.applied
                    .place(self.applied.function_ends[f.0 as usize])
                    .1,
            );
        }
        self.place(code, end)
    }

    /// The new place of the `lock` prefix of the access that was at `offset`.
    pub fn lock(&self, code: CodeIdx, offset: u64) -> Option<u64> {
        let i = self.lifted.inst_at(code, offset)?;
        let start = self.locks.get(&i.0).copied();
        let start = start.unwrap_or_else(|| self.applied.place(Label(i.0)).1);
        let bytes = &self.applied.sections[usize::from(code.0)].bytes;
        // Other prefixes may come first.
        const MOST_PREFIXES: usize = 4;
        let from = start as usize;
        let near = bytes.get(from..(from + MOST_PREFIXES).min(bytes.len()))?;
        let at = near.iter().position(|b| *b == 0xf0)?;
        Some(start + at as u64)
    }

    /// The new length in bytes of the kept instructions that were `len` bytes from
    /// `offset` on.
    pub fn kept_len(&self, code: CodeIdx, offset: u64, len: u64) -> Option<u64> {
        let start = self.place(code, offset)?;
        let last = (offset..offset + len)
            .rev()
            .find_map(|at| self.lifted.inst_at(code, at))?;
        let end = self.applied.kept_ends.get(&last.0)?;
        let laid = &self.applied.sections[usize::from(code.0)];
        Some(laid.offset(*end) - start)
    }
}
