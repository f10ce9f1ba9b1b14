//! Scheme `window32`: no check. The prefixes 65 and 67 cut each address to 32 bits and add
//! the window's start.
//!
//! ```text
//!         mov  %gs:8(%edi,%ecx,4), %eax # P1 is a property of the operand's form
//! ```
//!
//! String instructions have no such form: what they reach is in 64-bit registers, of which
//! one is relative to no segment. Their pointers are made like this:
//!
//! ```text
//!         movabs $twin_window, %t       # the window start
//!         mov  %edi, %edi               # a low half: any write of 32 bits
//!         lea  (%rdi,%t), %rdi          # a window pointer
//!         rep stosq
//! ```
//!
//! The instruction needs no bound of its count and no direction. It reaches one element
//! after the other, each next to the last and none wider than 8 bytes, from one that begins
//! in the window. So the first that is not wholly in the window touches a guard, and
//! faults. The guards' bytes next to the window are never mapped.

use twin_abi::{Scheme, window};

use super::SchemeRules;
use crate::domain::Form;

/// The scheme `window32`.
pub struct Window32;

/// No listed instruction reaches more bytes beyond its address.
const MOST_BYTES: u64 = 64;

const _: () = assert!(
    window::SIZE == 1 << 32 && window::GUARD >= MOST_BYTES,
    "an address of 32 bits is a place in the window, and an access there ends in the guard"
);

impl SchemeRules for Window32 {
    fn scheme(&self) -> Scheme {
        Scheme::Window32
    }

    fn pointer(&self) -> Option<Form> {
        Some(Form::WindowPointer)
    }

    //      lea (%rdi,%t), %rdi
    fn sum(&self, a: Form, b: Form) -> Option<Form> {
        match (a, b) {
            (low, Form::WindowStart) | (Form::WindowStart, low) if low.is_low_half() => {
                Some(Form::WindowPointer)
            }
            _ => None,
        }
    }
}
