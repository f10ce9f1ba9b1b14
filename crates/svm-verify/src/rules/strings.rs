//! P1: string instructions, whose operands are implicit: `rdi` and `rsi`, the number of
//! elements in `rcx` and the direction flag.

use super::{Broken, Next, Proved, Step, broken};
use crate::domain::{Bound, Direction, Form};
use crate::findings::ViolationCode;
use crate::insn::{Gpr, GprSet, StringKind};

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
        let result = match self.faulting && !pointers.iter().any(in_frame) {
            true => Ok(()),
            false => self.pointers(pointers, shift, rep),
        };
        let counter = if rep { Gpr::RCX.set() } else { GprSet::NONE };
        self.state.clobber(self.insn.writes.or(written).or(counter));
        result
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
