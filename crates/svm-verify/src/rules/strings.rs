//! P1: string instructions, whose operands are implicit: `rdi` and `rsi`, the number of
//! elements in `rcx` and the direction flag.

use super::{Broken, Next, Proved, Step, broken};
use crate::domain::{Bound, Direction, Form};
use crate::findings::ViolationCode;
use crate::insn::{Gpr, GprSet, StringKind};
use crate::targets::NamedMemory;

impl Step<'_> {
    //      cld; mov %v,%rdi; mov %w,%rsi; mov %n,%rcx; rep movsq
    pub(super) fn string(&mut self, kind: StringKind, shift: u8, rep: bool) -> Result<(), Broken> {
        let (pointers, written): (&[Gpr], GprSet) = match kind {
            StringKind::Movs | StringKind::Cmps => {
                (&[Gpr::RDI, Gpr::RSI], Gpr::RDI.set().or(Gpr::RSI.set()))
            }
            StringKind::Stos | StringKind::Scas | StringKind::Ins => (&[Gpr::RDI], Gpr::RDI.set()),
            StringKind::Outs => (&[Gpr::RSI], Gpr::RSI.set()),
            StringKind::Lods => (&[Gpr::RSI], Gpr::RSI.set().or(Gpr::RAX.set())),
        };
        let in_frame = |&r: &Gpr| {
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
        let counter = if rep { Gpr::RCX.set() } else { GprSet::NONE };
        self.state.clobber(self.insn.writes.or(written).or(counter));
        result
    }

    //      lea (%rdi,%t),%rdi; rep stosq
    //
    // Any count and direction: it ends at a guard at the latest (`crate::schemes`).
    fn window_pointers(&self, pointers: &[Gpr]) -> Result<(), Broken> {
        let good = |&r: &Gpr| self.state.get(r).form == Form::WindowPointer;
        match pointers.iter().all(good) {
            true => Ok(()),
            false => broken(
                ViolationCode::StringPointer,
                "a pointer is not a window pointer",
            ),
        }
    }

    fn pointers(&self, pointers: &[Gpr], shift: u8, rep: bool) -> Result<(), Broken> {
        let Some(direction) = self.state.direction else {
            return broken(
                ViolationCode::StringDirection,
                "the direction flag differs between paths",
            );
        };
        let bounds = self.state.get(Gpr::RCX).form.bounds();
        for &pointer in pointers {
            let Form::Translated(from) = self.state.get(pointer).form else {
                return broken(
                    ViolationCode::StringPointer,
                    "a pointer is not a translated address",
                );
            };
            let wanted = from.map(|from| Bound {
                from,
                shift,
                direction,
            });
            if rep && !(wanted.is_some() && bounds.contains(&wanted)) {
                return broken(
                    ViolationCode::StringCount,
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
