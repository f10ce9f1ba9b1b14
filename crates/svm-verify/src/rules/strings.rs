//! P1: string instructions, whose operands are implicit: `rdi` and `rsi`, the number of
//! elements in `rcx` and the direction flag.

use super::{Broken, Next, Proved, Step, broken};
use crate::domain::{Bound, Direction, Form};
use crate::insn::{Reg, RegSet, StringKind};
use crate::report::Code;
use crate::targets::NamedMemory;

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
        let in_frame = |&r: &Reg| {
            let form = self.state.get(r).form;
            matches!(form, Form::Stack(_) | Form::Aligned(_))
        };
        let excused = self.faulting && !pointers.iter().any(in_frame);
        let result = match self.rules.named_memory {
            _ if excused => Ok(()),
            NamedMemory::Window => self.window_pointers(pointers),
            NamedMemory::None | NamedMemory::SymbolsAndPerCpu => {
                self.pointers(pointers, shift, rep)
            }
        };
        let counter = if rep { Reg::RCX.set() } else { RegSet::NONE };
        self.state.clobber(self.insn.writes.or(written).or(counter));
        result
    }

    //      lea (%rdi,%t),%rdi; rep stosq
    //
    // Any count and direction: it ends at a guard at the latest (`crate::schemes`).
    fn window_pointers(&self, pointers: &[Reg]) -> Result<(), Broken> {
        let good = |&r: &Reg| self.state.get(r).form == Form::WindowPointer;
        match pointers.iter().all(good) {
            true => Ok(()),
            false => broken(Code::StringPointer, "a pointer is not a window pointer"),
        }
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
