//! The pools of the hot routines, object by object.

use e1000_sim::image::Module;
use e1000_sim::system::System;

/// `HOT_POOLS` and `HOT_POOL_MAX` (runtime/hot/internal.h).
const POOLS: u64 = 3;
const POOL_MAX: u64 = 2048;
/// `enum hot_state` has so many.
const STATES: usize = 4;

/// How many objects of each pool are in each state.
pub fn pools(system: &System<'_>) -> Vec<[usize; STATES]> {
    let plan = &system.blueprint().plan;
    let hot = &plan.image(Module::Hot).expect("hot.o").object;
    let mut symbols = hot.symbols();
    let found = symbols.find(|(_, symbol)| symbol.name == "hot_pools");
    let size = found.expect("the pools").1.size / POOLS;
    let start = plan.symbol("hot_pools").expect("the pools");
    let count = |pool| {
        let mut states = [0; POOL_MAX as usize];
        // The states are a pool's last field.
        let at = start + (pool + 1) * size - POOL_MAX;
        system.memory().read(at, &mut states).expect("the states");
        let mut counts = [0; STATES];
        states.iter().for_each(|s| counts[usize::from(*s)] += 1);
        counts
    };
    (0..POOLS).map(count).collect()
}
