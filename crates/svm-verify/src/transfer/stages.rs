//! Arithmetic with constants that takes a value from one stage of a check or of
//! a count to the next. Each function is one kind of instruction; the code it
//! is for stands above it. What is not listed gives [`Form::Any`].

use twin_abi::{stack, stlb};

use crate::domain::{Bound, Direction, Form, Value};

//      and $0xfff0, %id        # stlb: %id = low half >> 8
//      and $-4096, %i          # paper: the page
//      and $0xfff000, %i       # paper: its bits in the index
//      and $0xfff, %nd         # strings: offset in the page
//      and $63, %r             # bit offsets
pub fn mask(before: Value, imm: i32, wide: bool) -> Form {
    const PAGE: i32 = -(stlb::PAGE_SIZE as i32);
    const IN_PAGE: i32 = stlb::PAGE_SIZE as i32 - 1;
    const INDEX: i32 = stlb::INDEX_MASK as i32;
    const INDEX_BITS: i32 = (stlb::INDEX_MASK << stlb::INDEX_SHIFT) as i32;
    match (before.form, imm, before.name) {
        (Form::Shifted(x), INDEX, _) => Form::Index(x),
        (Form::Page(x), INDEX_BITS, _) => Form::PageBits(x),
        (Form::Low32(x), IN_PAGE, _) => Form::PageOffset(x, 0),
        (_, PAGE, Some(x)) if wide => Form::Page(x),
        (_, 0..=63, _) => Form::Below(imm as u8),
        _ => Form::Any,
    }
}

//      shr $8, %id             # towards the index
//      shr $shift, %nd         # bytes to elements
pub fn shift(before: Form, imm: i32) -> Form {
    const INDEX_SHIFT: i32 = stlb::INDEX_SHIFT as i32;
    match (before, imm) {
        (Form::Low32(x), INDEX_SHIFT) => Form::Shifted(x),
        (Form::PageBits(x), INDEX_SHIFT) => Form::Index(x),
        (Form::PageOffset(x, 0), 0..=3) => Form::PageOffset(x, imm as u8),
        (Form::Count(b, None), 0..=3) if b.shift == 0 && b.direction == Direction::Forward => {
            Form::Count(
                Bound {
                    shift: imm as u8,
                    ..b
                },
                None,
            )
        }
        _ => Form::Any,
    }
}

//      xor $0x1fff, %nd        # 0x1fff - offset in the page: fewer than the
//                              # bytes up to the end of the second page
pub fn covered_forward(before: Form, imm: i32) -> Form {
    const LAST: i32 = (stlb::WINDOW_PAGES * stlb::PAGE_SIZE) as i32 - 1;
    match (before, imm) {
        (Form::PageOffset(from, 0), LAST) => Form::Count(
            Bound {
                from,
                shift: 0,
                direction: Direction::Forward,
            },
            None,
        ),
        _ => Form::Any,
    }
}

//      add $imm, %rsp          # and other registers with a stack address
//      add $1, %nd             # backward: elements down to the page's start
pub fn plus(before: Form, imm: i32, wide: bool) -> Form {
    match before {
        Form::Stack(_) | Form::Aligned(_) if wide => before.moved(imm).unwrap_or(Form::Any),
        Form::PageOffset(from, shift) if imm == 1 => Form::Count(
            Bound {
                from,
                shift,
                direction: Direction::Backward,
            },
            None,
        ),
        _ => Form::Any,
    }
}

//      mov %rsp, %t
//      or $0x7fff, %t
//
// Only an address between the deepest `rsp` and the one at entry is certainly
// in this CPU's block.
pub fn context_top(before: Form, imm: i32, wide: bool) -> Form {
    match before {
        Form::Stack(at)
            if wide
                && i64::from(imm) == stack::BLOCK as i64 - 1
                && (-stack::MAX_FRAME..=0).contains(&i64::from(at)) =>
        {
            Form::ContextTop
        }
        _ => Form::Any,
    }
}
