//! P2: where control goes, and what is known when it comes back.

use super::{Broken, Next, Step, broken};
use crate::domain::{Direction, Form, Reg};
use crate::insn::Target;
use crate::object::Routine;
use crate::targets::{Breakpoints, Callees};
use crate::violation::Code;

impl Step<'_> {
    /// Leaves the function for good: `ret` and tail calls.
    pub(super) fn leaves(&self) -> Result<(), Broken> {
        match self.state.get(Reg::RSP).form {
            Form::Stack(0) => self.direction_clear().and_then(|()| self.returns()),
            _ => broken(Code::Return, "the frame is not empty"),
        }
    }

    fn direction_clear(&self) -> Result<(), Broken> {
        match self.state.direction {
            Some(Direction::Forward) => Ok(()),
            _ => broken(
                Code::Direction,
                "the direction flag is not known to be clear",
            ),
        }
    }

    fn called(&mut self) {
        match self.rules.callees {
            Callees::KeepByPsabi => self.state.called_by_psabi(),
            Callees::Untrusted => self.state.called(),
        }
    }

    /// Goes on where a register points, which is nowhere that other facts arrive.
    fn reaches_label(&self, r: Option<Reg>) -> Result<(), Broken> {
        match r.map(|r| self.state.get(r).form) {
            Some(Form::Label) => broken(
                Code::Target,
                "it goes to code of this object that is no function's start",
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn call_indirect(&mut self, r: Option<Reg>) -> Result<Next, Broken> {
        let known = self.reaches_label(r);
        let next = self.call(Target::Routine(Routine::Imported));
        known.and(next)
    }

    pub(super) fn jump_indirect(&self, r: Option<Reg>) -> Result<Next, Broken> {
        self.reaches_label(r)?;
        self.leaves().map(|()| Next::End)
    }

    pub(super) fn call(&mut self, target: Target) -> Result<Next, Broken> {
        let direction = self.direction_clear();
        let next = match target {
            Target::Routine(Routine::Thunk(r)) => return self.call_indirect(Some(r)),
            Target::Inside(callee) => {
                self.called();
                Next::Called(callee)
            }
            Target::Routine(Routine::Imported | Routine::Indirect) | Target::Bad => {
                self.called();
                Next::Fall
            }
            Target::Routine(Routine::PortIn) => {
                self.state.clobber(Reg::RAX.set());
                Next::Fall
            }
            Target::Routine(Routine::Keeps) => Next::Fall,
            Target::Routine(Routine::Bug) => Next::End,
            // call twin_slow_<v>: parts of a check are not interpreted here.
            Target::Routine(Routine::Slow(r)) => {
                self.state.clobber(r.set());
                return broken(Code::OutOfLine, "the slow path outside a check");
            }
        };
        direction.map(|()| next)
    }

    pub(super) fn jump(&mut self, target: Target) -> Result<Next, Broken> {
        match target {
            Target::Inside(to) if self.leaving => self.leaves().map(|()| Next::Jump(to)),
            Target::Inside(to) => Ok(Next::Jump(to)),
            Target::Routine(Routine::Thunk(r)) => self.jump_indirect(Some(r)),
            Target::Routine(_) => self.leaves().map(|()| Next::End),
            Target::Bad => Ok(Next::End),
        }
    }

    /// `#BP` is a trap: the saved `rip` is behind the instruction (SDM volume 3,
    /// 6.3.1), and there a hypervisor's handler may go on. Linux takes it for the
    /// end of the kernel's thread (`arch/x86/kernel/traps.c`, `do_int3`).
    pub(super) fn breakpoint(&self) -> Result<Next, Broken> {
        match self.rules.breakpoints {
            Breakpoints::EndThread => Ok(Next::End),
            Breakpoints::MayContinue => broken(
                Code::Instruction,
                "a handler of breakpoints may go on behind it; only padding has it",
            ),
        }
    }

    pub(super) fn branch(&mut self, target: Target) -> Result<Next, Broken> {
        self.clobber()?;
        match target {
            Target::Inside(to) => Ok(Next::Branch(to)),
            Target::Routine(Routine::Thunk(r)) => self.jump_indirect(Some(r)).map(|_| Next::Fall),
            Target::Routine(_) => self.leaves().map(|()| Next::Fall),
            Target::Bad => Ok(Next::Fall),
        }
    }
}
