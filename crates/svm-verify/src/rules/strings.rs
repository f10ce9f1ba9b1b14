//! P1: string instructions, whose operands are implicit: `rdi` and `rsi`, the number of
//! elements in `rcx` and the direction flag.

use super::{Broken, Next, Proved, Step, broken};
use crate::domain::{Bound, Direction, Form};
use crate::findings::ViolationCode;
use crate::insn::{Access, Gpr, GprSet, MemoryOperand, StringKind};
use crate::targets::{NamedMemory, Reads};

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
        let confined = match self.laws.rules.reads {
            Reads::Confined => pointers,
            Reads::Anywhere => written_through(kind),
        };
        let result = match self.laws.rules.named_memory {
            NamedMemory::Window | NamedMemory::WideWindow => self.window_pointers(pointers),
            NamedMemory::None | NamedMemory::SymbolsAndPerCpu if self.site.faulting => {
                self.excused(kind, pointers, shift, rep)
            }
            NamedMemory::None | NamedMemory::SymbolsAndPerCpu => {
                self.pointers(confined, shift, rep)
            }
        };
        self.state.forget_strings(kind, shift, rep);
        let counter = if rep { Gpr::RCX.set() } else { GprSet::NONE };
        self.state.clobber(self.insn.writes.or(written).or(counter));
        result
    }

    //      lea (%rdi,%t),%rdi; rep stosq
    //
    // Any count and direction: it ends at a guard at the latest (`crate::schemes`).
    fn window_pointers(&self, pointers: &[Gpr]) -> Result<(), Broken> {
        let good = |&r: &Gpr| Some(self.state.get(r).form) == self.laws.scheme.pointer();
        match pointers.iter().all(good) {
            true => Ok(()),
            false => broken(
                ViolationCode::StringPointer,
                "a pointer is not a window pointer",
            ),
        }
    }

    //      rep movsb           # from user memory to the frame, listed in __ex_table
    //
    // In the frame, and where an address leads that was loaded from it, it is judged like an operand,
    // of as many bytes as a constant in `rcx` says. If that is none, of the first element: how far it
    // goes is the count's affair then, as where the pointer is a number.
    fn excused(
        &self,
        kind: StringKind,
        pointers: &[Gpr],
        shift: u8,
        rep: bool,
    ) -> Result<(), Broken> {
        let mut in_frame = pointers
            .iter()
            .filter(|r| self.state.get(**r).form.trusted().in_frame());
        let (disp, size) = self.state.extent(shift, rep).unwrap_or((0, 1 << shift));
        in_frame.try_for_each(|&base| {
            let writes = base == Gpr::RDI && kind.writes();
            self.compiled_frame(&MemoryOperand {
                access: if writes { Access::Write } else { Access::Read },
                disp,
                size,
                base,
                ..MemoryOperand::NONE
            })
        })
    }

    fn pointers(&self, pointers: &[Gpr], shift: u8, rep: bool) -> Result<(), Broken> {
        if pointers.is_empty() {
            return Ok(());
        }
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

/// The pointer through which a string instruction writes, if it does.
fn written_through(kind: StringKind) -> &'static [Gpr] {
    match kind.writes() {
        true => &[Gpr::RDI],
        false => &[],
    }
}
