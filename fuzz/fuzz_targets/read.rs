//! Any bytes as an object file: `testbed::fuzz::read`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testbed::fuzz;

fuzz_target!(|data: &[u8]| fuzz::read(data));
