//! Scheme `paper` (figure 4 of the paper): the page is compared with the tag.
//!
//! ```text
//!         lea  ADDRESS, %i
//!         mov  %i, %v
//!         and  $-4096, %i
//!         mov  %i, %p                   # the page
//!         and  $0xfff000, %i
//!         shr  $8, %i                   # offset of the address's entry
//!         cmp  twin_stlb(%i), %p
//!         jne  .Lslow                   # not the tag's page
//!         xor  twin_stlb+8(%i), %v      # translated
//! ```

use twin_abi::{Scheme, stlb};

use super::{Gives, NOT_THIS_SCHEME, SchemeRules};
use crate::domain::{Flags, Form, Name, State, Value};
use crate::insn::{Alu, Condition, Gpr, Half, TableRead};

/// The scheme `paper`.
pub struct Paper;

const CMP_TAG: TableRead = TableRead {
    op: Alu::Cmp,
    half: Half::Tag,
};
const XOR_XLATE: TableRead = TableRead {
    op: Alu::Xor,
    half: Half::Xlate,
};

impl SchemeRules for Paper {
    fn scheme(&self) -> Scheme {
        Scheme::Paper
    }

    fn reads(&self) -> [TableRead; 2] {
        [CMP_TAG, XOR_XLATE]
    }

    //      and $-4096, %i
    //      and $0xfff000, %i
    //      shr $8, %i
    fn index_step(&self, op: Alu, before: Value, imm: i32, wide: bool) -> Option<Form> {
        const PAGE: i32 = -(stlb::PAGE_SIZE as i32);
        const INDEX_BITS: i32 = (stlb::INDEX_MASK << stlb::INDEX_SHIFT) as i32;
        const SHIFT: i32 = stlb::INDEX_SHIFT as i32;
        match (op, before.form, imm, before.name) {
            (Alu::And, _, PAGE, Some(x)) if wide => Some(Form::Page(x)),
            (Alu::And, Form::Page(x), INDEX_BITS, _) => Some(Form::PageBits(x)),
            (Alu::Shr, Form::PageBits(x), SHIFT, _) => Some(Form::Index(x)),
            _ => None,
        }
    }

    fn compared(&self, _: Gpr, _: Form, _: i32, _: bool) -> Option<Flags> {
        None
    }

    fn read(
        &self,
        state: &mut State,
        read: TableRead,
        r: Value,
        index: Form,
    ) -> Result<Gives, &'static str> {
        let entry_of = |address: Name| index == Form::Index(address);
        match (read, r.form, r.name) {
            // cmp twin_stlb(%i), %p
            (CMP_TAG, Form::Page(v), _) if entry_of(v) => Ok(Gives::Flags(Flags::Tag(v))),
            (CMP_TAG, ..) => Err("the registers are not a page and the index of that page"),
            // xor twin_stlb+8(%i), %v
            (XOR_XLATE, _, Some(v)) if entry_of(v) && state.matched == Some(v) => {
                state.matched = None;
                Ok(Gives::Register(Form::Translated(Some(v))))
            }
            (XOR_XLATE, ..) => {
                Err("the register is not an address whose page was compared with this entry's tag")
            }
            _ => Err(NOT_THIS_SCHEME),
        }
    }

    //      jne .Lslow
    fn checked(&self, condition: Condition, flags: Flags) -> Option<Name> {
        match (condition, flags) {
            (Condition::NotEqual, Flags::Tag(address)) => Some(address),
            _ => None,
        }
    }

    fn passed(&self, state: &mut State, flags: Flags) {
        if let Flags::Tag(address) = flags {
            state.matched = Some(address);
        }
    }
}
