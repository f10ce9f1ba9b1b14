//! Edits of an object that the verifier accepts: `testbed::fuzz::verify`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testbed::fuzz;

fuzz_target!(|data: &[u8]| fuzz::verify(data));
