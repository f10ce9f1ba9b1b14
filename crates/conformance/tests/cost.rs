//! The cost of objects that are made to be expensive: no kind of unit costs more than
//! its share when there are twice as many, nor more memory than the file's length
//! allows. Work is counted, not timed.
//!
//! Under `make test` bytes of memory are counted. `make cost` builds the same so that
//! the compiler counts steps too: repeated searches that take no memory show only there.
//! One test, because those counters belong to the process.

use conformance::counting::Counting;
use conformance::fuzz::cost::{Unit, grows};
use svm_rewrite::Target;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Units, and then twice as many.
const UNITS: usize = 3000;

#[test]
fn no_kind_of_unit_costs_more_the_more_of_it_there_is() {
    println!(
        "{:<36}{:<8}{:>14}{:>14}{:>14}",
        "unit", "target", "allocated", "peak", "steps"
    );
    for unit in Unit::all() {
        for target in [Target::Hypervisor, Target::Linux] {
            for used in grows(&unit, target, UNITS) {
                let (unit, target) = (format!("{unit:?}"), format!("{target:?}"));
                let (a, p, s) = (used.allocated, used.peak, used.steps);
                println!("{unit:<36}{target:<8}{a:>14}{p:>14}{s:>14}");
            }
        }
    }
}
