//! The runtime that the rewriter links into a module for a stock kernel, as an
//! object file. Its source is `runtime/platform/linux/slow.S`.
//!
//! It is its own crate because the rewriter puts these bytes into a module and the
//! verifier checks that they are there. The two share no other code.

use twin_abi::Scheme;

/// The relocatable object for a scheme. `build.rs` assembles one for each.
pub fn object(scheme: Scheme) -> &'static [u8] {
    include!(concat!(env!("OUT_DIR"), "/objects.rs"))
}
