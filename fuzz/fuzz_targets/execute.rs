//! A program of well-formed instructions, rewritten, verified, and executed
//! natively and rewritten: `conformance::fuzz::execute`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use conformance::fuzz;

fuzz_target!(|data: &[u8]| {
    fuzz::execute(data);
});
