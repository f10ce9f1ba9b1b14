//! The runtime that the rewriter links into a module for a stock kernel, as an
//! object file. Its source is `runtime/platform/linux/slow.S`.
//!
//! It is its own crate because the rewriter puts these bytes into a module and the
//! verifier checks that they are there. The two share no other code.

use twin_abi::Scheme;

/// How the runtime returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `jmp __x86_return_thunk`, which the kernel replaces by what its processor needs.
    Thunk,
    /// `ret`, for kernels that do not have the thunk.
    Plain,
}

/// The instruction that stops the driver: a `ud2` in `.twin.text`.
pub const STOP: &str = "twin_stop";
/// The text for the entry of that instruction in `__bug_table`.
pub const MESSAGE: &str = "twin_message";

/// The relocatable object for a scheme. `build.rs` assembles one for each, with unwind entries
/// in the format of Linux 6.1, and no entry in `__bug_table`. Empty, and so no object, for a
/// scheme that does not serve the target.
pub fn object(scheme: Scheme, returns: Returns) -> &'static [u8] {
    include!(concat!(env!("OUT_DIR"), "/objects.rs"))
}
