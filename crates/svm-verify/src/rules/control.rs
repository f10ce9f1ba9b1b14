//! P2: where control goes, and the facts when it comes back.

use super::{Broken, Next, Step, broken};
use crate::domain::{Direction, Form};
use crate::findings::ViolationCode;
use crate::insn::{BranchTarget, Gpr, Routine};
use crate::targets::{Breakpoints, Callees};

impl Step<'_> {
    /// Leaves the function for good: `ret` and tail calls.
    pub(super) fn leaves(&self) -> Result<(), Broken> {
        match self.state.get(Gpr::RSP).form {
            Form::Stack(0) => self.direction_clear().and_then(|()| self.returns()),
            _ => broken(ViolationCode::Return, "the frame is not empty"),
        }
    }

    fn direction_clear(&self) -> Result<(), Broken> {
        match self.state.direction {
            Some(Direction::Forward) => Ok(()),
            _ => broken(
                ViolationCode::Direction,
                "the direction flag is not known to be clear",
            ),
        }
    }

    fn called(&mut self) {
        match self.laws.rules.callees {
            Callees::KeepByPsabi => self.state.called_by_psabi(),
            Callees::Untrusted => self.state.called(),
        }
    }

    /// Continues at the address in a register, or in memory, which must not be a place that is
    /// interpreted with other facts.
    fn reaches_label(&self, r: Option<Gpr>) -> Result<(), Broken> {
        let label = |r| self.state.addresses.refused().has(r);
        match r.map_or_else(|| self.reads_return_address(), label) {
            true => broken(
                ViolationCode::Target,
                "it goes to code of this object that is no function's start",
            ),
            false => Ok(()),
        }
    }

    pub(super) fn call_indirect(&mut self, r: Option<Gpr>) -> Result<Next, Broken> {
        let known = self.reaches_label(r);
        let next = self.call(BranchTarget::Routine(Routine::Imported));
        known.and(next)
    }

    pub(super) fn jump_indirect(&self, r: Option<Gpr>) -> Result<Next, Broken> {
        self.reaches_label(r)?;
        self.leaves().map(|()| Next::End)
    }

    pub(super) fn call(&mut self, target: BranchTarget) -> Result<Next, Broken> {
        let direction = match self.site.leaving {
            true => self.leaves(),
            false => self.direction_clear(),
        };
        let next = match target {
            BranchTarget::Routine(Routine::Thunk(r)) => return self.call_indirect(Some(r)),
            BranchTarget::Insn(callee) => {
                self.called();
                Next::Called(callee)
            }
            BranchTarget::Routine(Routine::Imported | Routine::Trace | Routine::Indirect)
            | BranchTarget::Bad => {
                self.called();
                Next::Fall
            }
            BranchTarget::Routine(Routine::PutUser) => {
                self.called();
                self.state.lose(Gpr::RBX.set());
                Next::Fall
            }
            BranchTarget::Routine(Routine::PortIn) => {
                self.state.clobber(Gpr::RAX.set());
                Next::Fall
            }
            BranchTarget::Routine(Routine::Keeps) => Next::Fall,
            BranchTarget::Routine(Routine::Bug) => Next::End,
            // call twin_slow_<v>: parts of a check are not interpreted here.
            BranchTarget::Routine(Routine::Slow(r)) => {
                self.state.clobber(r.set());
                return broken(ViolationCode::OutOfLine, "the slow path outside a check");
            }
        };
        direction.map(|()| next)
    }

    /// A nop that the kernel may make a call of the trace entry.
    pub(super) fn traced(&mut self) -> Result<(), Broken> {
        let leaves = self.leaves();
        self.called();
        leaves
    }

    pub(super) fn jump(&mut self, target: BranchTarget) -> Result<Next, Broken> {
        match target {
            BranchTarget::Insn(to) if self.site.leaving => self.leaves().map(|()| Next::Jump(to)),
            BranchTarget::Insn(to) => Ok(Next::Jump(to)),
            BranchTarget::Routine(Routine::Thunk(r)) => self.jump_indirect(Some(r)),
            BranchTarget::Routine(_) => self.leaves().map(|()| Next::End),
            BranchTarget::Bad => Ok(Next::End),
        }
    }

    /// `#BP` is a trap: the saved `rip` is that of the next instruction (SDM volume 3,
    /// 6.3.1), and a hypervisor's handler may continue there. Linux ends the kernel's
    /// thread (`arch/x86/kernel/traps.c`, `do_int3`).
    pub(super) fn breakpoint(&self) -> Result<Next, Broken> {
        match self.laws.rules.breakpoints {
            Breakpoints::EndThread => Ok(Next::End),
            Breakpoints::MayContinue => broken(
                ViolationCode::Instruction,
                "a breakpoint handler may continue after it; int3 is allowed as padding only",
            ),
        }
    }

    pub(super) fn branch(&mut self, target: BranchTarget) -> Result<Next, Broken> {
        self.clobber()?;
        match target {
            BranchTarget::Insn(to) if self.site.leaving => self.leaves().map(|()| Next::Branch(to)),
            BranchTarget::Insn(to) => Ok(Next::Branch(to)),
            BranchTarget::Routine(Routine::Thunk(r)) => {
                self.jump_indirect(Some(r)).map(|_| Next::Fall)
            }
            BranchTarget::Routine(_) => self.leaves().map(|()| Next::Fall),
            BranchTarget::Bad => Ok(Next::Fall),
        }
    }
}
