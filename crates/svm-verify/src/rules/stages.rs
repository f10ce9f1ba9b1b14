//! Arithmetic with constants that takes a value from one stage of a count, or of an
//! address in the frame, to the next. The stages of an index are in [`crate::schemes`].
//! Each function is for one kind of instruction, which the comment above it shows.
//! Anything else gives [`Form::Any`].

use twin_abi::{stack, stlb};

use crate::domain::{Bound, Direction, Form, Value};
use crate::insn::Alu;
use crate::schemes;

//      and $MASK, %i           # towards an index
//      and $0xfff, %nd         # strings: offset in the page
//      and $63, %r             # bit offsets
pub fn mask(before: Value, imm: i32, wide: bool) -> Form {
    const IN_PAGE: i32 = stlb::PAGE_SIZE as i32 - 1;
    match (before.form, imm) {
        (Form::Low32(x), IN_PAGE) => Form::PageOffset(x, 0),
        (_, 0..=63) => Form::Below(imm as u8),
        _ => schemes::index_step(Alu::And, before, imm, wide),
    }
}

//      shr $8, %id             # towards an index
//      shr $shift, %nd         # bytes to elements
pub fn shift(before: Value, imm: i32, wide: bool) -> Form {
    match (before.form, imm) {
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
        _ => schemes::index_step(Alu::Shr, before, imm, wide),
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
        form if wide && form.trusted().in_frame() => before.moved(imm).unwrap_or(Form::Any),
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
