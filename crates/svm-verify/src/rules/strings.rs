//! P1: string instructions, whose operands are implicit: `rdi` and `rsi`, the number of
//! elements in `rcx` and the direction flag.

use super::{Broken, Next, Proved, Step, broken};
use crate::domain::{Bound, Direction, Form};
use crate::insn::{Access, Memory, Reg, RegSet, StringKind};
use crate::report::Code;

impl Step<'_> {
    //      cld; mov %v,%rdi; mov %w,%rsi; mov %n,%rcx; rep movsq
    pub(super) fn string(&mut self, kind: StringKind, shift: u8, rep: bool) -> Result<(), Broken> {
        let (pointers, written): (&[Reg], RegSet) = match kind {
            StringKind::Movs | StringKind::Cmps => {
                (&[Reg::RDI, Reg::RSI], Reg::RDI.set().or(Reg::RSI.set()))
            }
            StringKind::Stos | StringKind::Scas | StringKind::Ins => (&[Reg::RDI], Reg::RDI.set()),
            StringKind::Outs => (&[Reg::RSI], Reg::RSI.set()),
            StringKind::Lods => (&[Reg::RSI], Reg::RSI.set().or(Reg::RAX.set())),
        };
        let result = match self.faulting {
            true => self.excused(kind, pointers, shift),
            false => self.pointers(pointers, shift, rep),
        };
        self.state.forget_strings(kind);
        let counter = if rep { Reg::RCX.set() } else { RegSet::NONE };
        self.state.clobber(self.insn.writes.or(written).or(counter));
        result
    }

    //      rep movsb           # from user memory to the frame, listed in __ex_table
    //
    // How far it goes is the count's affair, as where the pointer is a number. The first
    // element in the frame is judged like an operand there.
    fn excused(&self, kind: StringKind, pointers: &[Reg], shift: u8) -> Result<(), Broken> {
        let mut in_frame = pointers
            .iter()
            .filter(|r| self.state.get(**r).form.in_frame());
        in_frame.try_for_each(|&base| {
            let writes = base == Reg::RDI && kind.writes();
            self.compiled_frame(&Memory {
                access: if writes { Access::Write } else { Access::Read },
                size: 1 << shift,
                base,
                ..Memory::NONE
            })
        })
    }

    fn pointers(&self, pointers: &[Reg], shift: u8, rep: bool) -> Result<(), Broken> {
        let Some(direction) = self.state.direction else {
            return broken(
                Code::StringDirection,
                "the direction flag differs between paths",
            );
        };
        let bounds = self.state.get(Reg::RCX).form.bounds();
        for &pointer in pointers {
            let Form::Translated(from) = self.state.get(pointer).form else {
                return broken(Code::StringPointer, "a pointer is not a translated address");
            };
            let wanted = from.map(|from| Bound {
                from,
                shift,
                direction,
            });
            if rep && !(wanted.is_some() && bounds.contains(&wanted)) {
                return broken(
                    Code::StringCount,
                    "%rcx is not bounded by what is covered from each pointer",
                );
            }
        }
        Ok(())
    }

    pub(super) fn set_direction(&mut self, direction: Direction) -> (Next, Proved) {
        self.state.direction = Some(direction);
        (Next::Fall, Proved::Reached)
    }
}
