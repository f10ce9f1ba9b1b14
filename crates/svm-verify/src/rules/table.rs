//! P5: the translation table is read in checks only, as the object's scheme reads it.

use super::{Broken, Step, broken};
use crate::domain::{Flags, Value};
use crate::findings::ViolationCode;
use crate::insn::{Gpr, TableRead};
use crate::schemes::Gives;

impl Step<'_> {
    pub(super) fn table(&mut self, read: TableRead, r: Gpr, index: Gpr) -> Result<(), Broken> {
        let (value, index) = (self.state.get(r), self.state.get(index).form);
        match self.laws.scheme.read(self.state, read, value, index) {
            Ok(Gives::Register(form)) => self.set(r, Value::of(form)),
            Ok(Gives::Flags(flags)) => {
                self.state.flags = flags;
                Ok(())
            }
            Err(reason) => {
                self.clobber()?;
                self.state.flags = Flags::Unknown;
                broken(ViolationCode::Table, reason)
            }
        }
    }
}
