//! A program of well-formed instructions, rewritten, verified, and executed
//! natively and rewritten: `testbed::fuzz::execute`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testbed::fuzz;

fuzz_target!(|data: &[u8]| {
    fuzz::execute(data);
});
