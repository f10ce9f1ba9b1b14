//! Scheme `stlb`: the tag is subtracted, and the difference is compared with the size of
//! a page.
//!
//! ```text
//!         lea  ADDRESS, %v
//!         mov  %vd, %id
//!         shr  $8, %id
//!         and  $0xfff0, %id             # offset of the address's entry
//!         sub  twin_stlb(%i), %v        # address - tag
//!         cmp  $0xfff, %v
//!         ja   .Lslow                   # not a place in the tag's page
//!         add  twin_stlb+8(%i), %v      # translated
//! ```

use twin_abi::{Scheme, stlb};

use super::{Gives, NOT_THIS_SCHEME, SchemeRules};
use crate::domain::{Flags, Form, Name, State, Value};
use crate::insn::{Alu, Condition, Gpr, Half, TableRead};

/// The scheme `stlb`.
pub struct Stlb;

const SUB_TAG: TableRead = TableRead {
    op: Alu::Sub,
    half: Half::Tag,
};
const ADD_XLATE: TableRead = TableRead {
    op: Alu::Add,
    half: Half::Xlate,
};

impl SchemeRules for Stlb {
    fn scheme(&self) -> Scheme {
        Scheme::Stlb
    }

    fn reads(&self) -> &'static [TableRead] {
        &[SUB_TAG, ADD_XLATE]
    }

    //      shr $8, %id
    //      and $0xfff0, %id
    fn index_step(&self, op: Alu, before: Value, imm: i32, _: bool) -> Option<Form> {
        const SHIFT: i32 = stlb::INDEX_SHIFT as i32;
        const INDEX: i32 = stlb::INDEX_MASK as i32;
        match (op, before.form, imm) {
            (Alu::Shr, Form::Low32(x), SHIFT) => Some(Form::Shifted(x)),
            (Alu::And, Form::Shifted(x), INDEX) => Some(Form::Index(x)),
            _ => None,
        }
    }

    //      cmp $0xfff, %v      # %v = address - tag
    fn compared(&self, v: Gpr, form: Form, imm: i32, wide: bool) -> Option<Flags> {
        match form {
            Form::Offset(address) if wide && i64::from(imm) == stlb::PAGE_SIZE as i64 - 1 => {
                Some(Flags::Window {
                    register: v,
                    address,
                })
            }
            _ => None,
        }
    }

    fn read(
        &self,
        _: &mut State,
        read: TableRead,
        r: Value,
        index: Form,
    ) -> Result<Gives, &'static str> {
        let entry_of = |address: Name| index == Form::Index(address);
        match (read, r.form, r.name) {
            // sub twin_stlb(%i), %v
            (SUB_TAG, _, Some(v)) if entry_of(v) => Ok(Gives::Register(Form::Offset(v))),
            (SUB_TAG, ..) => Err("the registers are not an address and the index of that address"),
            // add twin_stlb+8(%i), %v
            (ADD_XLATE, Form::Checked(v), _) if entry_of(v) => {
                Ok(Gives::Register(Form::Translated(Some(v))))
            }
            (ADD_XLATE, ..) => {
                Err("the register is not an offset in the window that was checked for this entry")
            }
            _ => Err(NOT_THIS_SCHEME),
        }
    }

    //      ja .Lslow
    fn checked(&self, condition: Condition, flags: Flags) -> Option<Name> {
        match (condition, flags) {
            (Condition::Above, Flags::Window { address, .. }) => Some(address),
            _ => None,
        }
    }

    fn passed(&self, state: &mut State, flags: Flags) {
        if let Flags::Window { register, address } = flags {
            state.learn(register, Value::of(Form::Checked(address)));
        }
    }
}
