//! Edits of an object that the verifier accepts: `conformance::fuzz::verify`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use conformance::fuzz;

fuzz_target!(|data: &[u8]| fuzz::verify(data));
