//! P5: the translation table is read in checks only, in the four ways that the
//! schemes have.

use twin_abi::Scheme;

use super::{Broken, Step, broken};
use crate::domain::{Flags, Form, Name, Reg, Value};
use crate::insn::TableRead;
use crate::violation::Code;

impl Step<'_> {
    pub(super) fn table(&mut self, read: TableRead, r: Reg, index: Reg) -> Result<(), Broken> {
        let (value, at) = (self.state.get(r), self.state.get(index).form);
        let entry_of = |address: Name| at == Form::Index(address);
        let result = match (self.scheme, read, value.form, value.name) {
            // sub twin_stlb(%i), %v
            (Scheme::Stlb, TableRead::SubTag, _, Some(v)) if entry_of(v) => Form::Offset(v),
            // add twin_stlb+8(%i), %v
            (Scheme::Stlb, TableRead::AddXlate, Form::Checked(v), _) if entry_of(v) => {
                Form::Translated(Some(v))
            }
            // cmp twin_stlb(%i), %p
            (Scheme::Paper, TableRead::CmpTag, Form::Page(v), _) if entry_of(v) => {
                self.state.flags = Flags::Tag(v);
                return Ok(());
            }
            // xor twin_stlb+8(%i), %v
            (Scheme::Paper, TableRead::XorXlate, _, Some(v))
                if entry_of(v) && self.state.matched == Some(v) =>
            {
                self.state.matched = None;
                Form::Translated(Some(v))
            }
            _ => {
                self.clobber()?;
                self.state.flags = Flags::Unknown;
                return broken(Code::Table, table_reason(self.scheme, read));
            }
        };
        self.set(r, Value::of(result))
    }
}

fn table_reason(scheme: Scheme, read: TableRead) -> &'static str {
    match (scheme, read) {
        (Scheme::Stlb, TableRead::SubTag) => {
            "the registers are not an address and the index of that address"
        }
        (Scheme::Stlb, TableRead::AddXlate) => {
            "the register is not an offset in the window that was checked for this entry"
        }
        (Scheme::Paper, TableRead::CmpTag) => {
            "the registers are not a page and the index of that page"
        }
        (Scheme::Paper, TableRead::XorXlate) => {
            "the register is not an address whose page was compared with this entry's tag"
        }
        (Scheme::Stlb, TableRead::CmpTag | TableRead::XorXlate)
        | (Scheme::Paper, TableRead::SubTag | TableRead::AddXlate) => {
            "the object's scheme does not read the table like this"
        }
    }
}
