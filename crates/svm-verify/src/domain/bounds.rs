//! The arithmetic that the proof depends on: which bytes an access may reach, given the
//! facts about its address. Pure functions of numbers.
//!
//! `make prove` reads this file and translates it to formulas over 64-bit numbers. A
//! solver proves theorems about them (`crates/prove/src/theorems.rs`), for all numbers,
//! and that nothing in them overflows. So it is written in the subset of Rust that
//! `crates/prove/src/translate.rs` translates: functions of `i64`, constants,
//! comparisons, `+`, `-`, `&&`, `||`, `!`.

use twin_abi::{stack, stlb};

/// The largest alignment of a frame, in bytes (target `linux`).
pub const MAX_ALIGNMENT: i64 = 4096;

/// Bytes of a return address.
const RETURN_ADDRESS: i64 = 8;

/// Whether `size` bytes at a displacement from a translated address are all in
/// its window, or in a hole of it.
pub fn covered(disp: i64, size: i64) -> bool {
    -(stlb::BELOW as i64) <= disp && disp + size <= stlb::COVERED as i64
}

/// Whether `rsp` may be at this distance from its value at the function's entry.
pub fn in_frame(rsp: i64) -> bool {
    -stack::MAX_FRAME <= rsp && rsp <= 0
}

/// Whether an access at `at` begins farther below `rsp` than is allowed.
pub fn below_frame(at: i64, rsp: i64) -> bool {
    at < rsp - stack::BELOW_RSP
}

/// Whether `size` bytes at `at` end above the arguments, of `arguments` bytes, that every
/// caller provides above the return address.
pub fn above_arguments(at: i64, size: i64, arguments: i64) -> bool {
    at + size > RETURN_ADDRESS + arguments
}

/// Whether `size` bytes at `at` reach the return address or memory above it.
pub fn reaches_caller(at: i64, size: i64) -> bool {
    at + size > 0
}

/// Whether `size` bytes at `at`, or up to `slack` bytes lower, may overlap the return
/// address.
pub fn reaches_return(at: i64, size: i64, slack: i64) -> bool {
    at + size > 0 && at - slack < RETURN_ADDRESS
}

/// Whether `size` bytes at `start` of a section lie inside its `length` bytes.
pub fn in_section(start: i64, size: i64, length: i64) -> bool {
    0 <= start && start <= length && size <= length - start
}
