//! A unit of code or of a table, repeated: twice as much costs at most two and a half
//! times as much: `conformance::fuzz::cost`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use conformance::counting::Counting;
use conformance::fuzz;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|data: &[u8]| fuzz::cost(data));
