//! P5: the translation table is read in checks only, as the object's scheme reads it.

use super::{Broken, Step, broken};
use crate::domain::{Flags, Value};
use crate::insn::{Reg, TableRead};
use crate::report::Code;
use crate::schemes::Gives;

impl Step<'_> {
    pub(super) fn table(&mut self, read: TableRead, r: Reg, index: Reg) -> Result<(), Broken> {
        let (value, index) = (self.state.get(r), self.state.get(index).form);
        match self.scheme.read(self.state, read, value, index) {
            Ok(Gives::Register(form)) => self.set(r, Value::of(form)),
            Ok(Gives::Flags(flags)) => {
                self.state.flags = flags;
                Ok(())
            }
            Err(reason) => {
                self.clobber()?;
                self.state.flags = Flags::Unknown;
                broken(Code::Table, reason)
            }
        }
    }
}
