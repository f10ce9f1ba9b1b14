//! Any bytes as an object file: `conformance::fuzz::read`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use conformance::fuzz;

fuzz_target!(|data: &[u8]| fuzz::read(data));
