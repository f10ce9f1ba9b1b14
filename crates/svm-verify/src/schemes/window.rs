//! Scheme `window`: no check, and a window of 42 bits. An address is cut in a register, and the
//! prefix 65 adds the window's start.
//!
//! ```text
//!         pext twin_window_mask(%rip), %rdi, %v
//!         mov  %gs:8(%v), %eax          # 8 is any displacement
//!         mov  %gs:8(%esp,%ecx,4), %eax # the prefixes 65 and 67, as in window32
//!         mov  %gs:sym, %eax            # a displacement alone
//! ```
//!
//! The mask may be anded to a register instead, or be in one that the address is anded to; or
//! the address is shifted left and right by 22. Each result is below 2^42.
//!
//! What is added to a place is less than 2 GiB, up or down. Before the window's start are the
//! mirror, which has pages of the window, and a guard; after its end is a guard. An address of
//! 32 bits is in the first 4 GiB of the window.
//!
//! Pointers of string instructions are made like this:
//!
//! ```text
//!         movabs $twin_window, %t       # the window start
//!         pext twin_window_mask(%rip), %rdi, %rdi
//!         lea  (%rdi,%t), %rdi          # a window pointer
//!         rep stosq
//! ```
//!
//! They end as in window32. One that goes down from the window's start goes through the
//! mirror, page by page, to the guard below.

use twin_abi::{Scheme, window, window::wide};

use super::SchemeRules;
use crate::domain::Form;

/// The scheme `window`.
pub struct Window;

/// No listed instruction reaches more bytes beyond its address.
const MOST_BYTES: u64 = 64;
/// No displacement is more than this below its base, nor as much above it.
const DISPLACEMENT: u64 = 1 << 31;

/// Bits of a number that are not of a place.
const UPPER_BITS: i32 = wide::MASK.leading_zeros() as i32;

const _: () = assert!(
    wide::SIZE >= window::SIZE && wide::MASK == wide::SIZE - 1 && wide::SIZE.is_power_of_two(),
    "an address of 32 bits, and one that is cut, are places in the window"
);
const _: () = assert!(
    wide::MIRROR + wide::GUARD >= DISPLACEMENT && wide::GUARD >= DISPLACEMENT + MOST_BYTES,
    "a displacement leads from a place into the window, its mirror or a guard"
);

impl SchemeRules for Window {
    fn scheme(&self) -> Scheme {
        Scheme::Window
    }

    //      mov %gs:8(%v), %eax
    fn is_place(&self, form: Form) -> bool {
        form == Form::Place || form.is_low_half()
    }

    //      shl $22, %v
    //      shr $22, %v
    fn is_shifted_out(&self, by: i32) -> bool {
        (UPPER_BITS..64).contains(&by)
    }

    fn pointer(&self) -> Option<Form> {
        Some(Form::WidePointer)
    }

    //      lea (%rdi,%t), %rdi
    fn sum(&self, a: Form, b: Form) -> Option<Form> {
        match (a, b) {
            (place, Form::WindowStart) | (Form::WindowStart, place) if self.is_place(place) => {
                Some(Form::WidePointer)
            }
            _ => None,
        }
    }
}
