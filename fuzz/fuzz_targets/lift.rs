//! Any object, or a program with any relocations, taken apart: `conformance::fuzz::lift`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use conformance::fuzz;

fuzz_target!(|data: &[u8]| fuzz::lift(data));
