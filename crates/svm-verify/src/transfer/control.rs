//! P2: where control goes, and what is known when it comes back.

use super::{Broken, Next, Step, broken};
use crate::domain::{Direction, Form, Reg};
use crate::insn::Target;
use crate::object::Routine;
use crate::violation::Code;

impl Step<'_> {
    /// Leaves the function for good: `ret` and tail calls.
    pub(super) fn leaves(&self) -> Result<(), Broken> {
        match self.state.get(Reg::RSP).form {
            Form::Stack(0) => self.direction_clear(),
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
        match self.linux {
            true => self.state.called_by_psabi(),
            false => self.state.called(),
        }
    }

    pub(super) fn call(&mut self, target: Target) -> Result<Next, Broken> {
        let direction = self.direction_clear();
        let next = match target {
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
            Target::Inside(to) => Ok(Next::Jump(to)),
            Target::Routine(_) => self.leaves().map(|()| Next::End),
            Target::Bad => Ok(Next::End),
        }
    }

    pub(super) fn branch(&mut self, target: Target) -> Result<Next, Broken> {
        self.clobber()?;
        match target {
            Target::Inside(to) => Ok(Next::Branch(to)),
            Target::Routine(_) => self.leaves().map(|()| Next::Fall),
            Target::Bad => Ok(Next::Fall),
        }
    }
}
