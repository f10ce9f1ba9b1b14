//! A packet's instructions by function of the driver, and how many of them are checks:
//! shows where the rewriting costs.
//!
//! From the single steps, so exact. Slow paths and thunks are not included: they belong
//! to no function.

use process_lab::program::LinkedCode;

/// What one function executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The function, by its symbol.
    pub function: String,
    /// Instructions, those of checks included.
    pub instructions: u64,
    /// Checks: look-ups of the translation table.
    pub checks: u64,
    /// Checks that took the slow path.
    pub slow: u64,
}

/// By function, most instructions first; `executed` has the count of each address.
pub fn spent(program: &LinkedCode, executed: &[(u64, u64)]) -> Vec<Spent> {
    let starts = program.labels();
    let mut all: Vec<Spent> = starts
        .iter()
        .map(|(_, name)| Spent {
            function: (*name).to_owned(),
            ..Spent::default()
        })
        .collect();
    let (mut lookups, mut hits) = (program.lookups(), program.hits());
    lookups.sort_unstable();
    hits.sort_unstable();
    let (start, _) = program.text();
    let end = program.trampolines.base;
    for (address, times) in executed.iter().filter(|(at, _)| (start..end).contains(at)) {
        let after = starts.partition_point(|(at, _)| at <= address);
        let Some(function) = after.checked_sub(1).map(|n| &mut all[n]) else {
            continue;
        };
        function.instructions += times;
        if lookups.binary_search(address).is_ok() {
            function.checks += times;
            function.slow += times;
        }
        if hits.binary_search(address).is_ok() {
            function.slow -= times;
        }
    }
    all.retain(|function| function.instructions > 0);
    all.sort_by_key(|function| std::cmp::Reverse(function.instructions));
    all
}
