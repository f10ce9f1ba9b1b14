//! Any code, or a program of well-formed instructions, rewritten and then
//! verified: `conformance::fuzz::rewrite`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use conformance::fuzz;

fuzz_target!(|data: &[u8]| fuzz::rewrite(data));
