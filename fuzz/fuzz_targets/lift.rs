//! Any object, or a program with any relocations, taken apart: `testbed::fuzz::lift`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testbed::fuzz;

fuzz_target!(|data: &[u8]| fuzz::lift(data));
