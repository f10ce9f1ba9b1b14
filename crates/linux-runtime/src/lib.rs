//! The runtime that the rewriter links into a module for a stock kernel, as an
//! object file. Its source is `runtime/platform/linux/slow.S`.
//!
//! A crate of its own, because the rewriter puts these bytes into a module and
//! the verifier asks whether they are there, and the two share nothing else.

use twin_abi::Scheme;

/// The relocatable object for a scheme. `build.rs` assembles one for each.
pub fn object(scheme: Scheme) -> &'static [u8] {
    include!(concat!(env!("OUT_DIR"), "/objects.rs"))
}
