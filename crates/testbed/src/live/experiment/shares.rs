//! Whose a packet's cycles are.
//!
//! Whose turn it is, the packet loop knows, and counts the cycles. Only the host's
//! turns are shared: driver and hot routines run in them, and what each of the three
//! takes is its part of the profiler's samples *there*. What the profiler costs
//! elsewhere, where it wakes processes that wait, has no part in it.

use super::super::profile::{ByComponent, Component, Samples};

/// Turns and samples of some rounds of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    host: Component,
    turns: ByComponent,
    samples: Samples,
}

impl Shares {
    /// Of a path on which `host`'s turns are shared.
    pub fn new(host: Component) -> Shares {
        Shares {
            host,
            turns: ByComponent::default(),
            samples: Samples::default(),
        }
    }

    /// Cycles by whose turn it was, counted without the profiler.
    pub fn add_turns(&mut self, cycles: &ByComponent) {
        for (sum, cycles) in self.turns.iter_mut().zip(cycles) {
            *sum += cycles;
        }
    }

    /// Samples taken where the driver runs.
    pub fn add_samples(&mut self, samples: &Samples) {
        self.samples = self.samples.plus(samples);
    }

    /// Other rounds of the same path.
    pub fn add(&mut self, other: &Shares) {
        self.add_turns(&other.turns);
        self.add_samples(&other.samples);
    }

    /// The part of a packet's cycles that is `component`'s, 0 to 1. Those of all
    /// components of a packet's costs add up to 1.
    pub fn part(&self, component: Component) -> f64 {
        let turns = Component::COSTS.map(|cost| self.turns[cost as usize]);
        let of_turn = |turn: Component| {
            self.turns[turn as usize] as f64 / turns.iter().sum::<u64>().max(1) as f64
        };
        match (self.sharers().contains(&component), self.samples()) {
            (true, samples @ 1..) => {
                of_turn(self.host) * self.samples.of(component) as f64 / samples as f64
            }
            (true, 0) | (false, _) => of_turn(component),
        }
    }

    /// Samples that the shares of the host's turns come from.
    pub fn samples(&self) -> u64 {
        self.sharers()
            .map(|sharer| self.samples.of(sharer))
            .iter()
            .sum()
    }

    fn sharers(&self) -> [Component; 3] {
        [Component::Driver, Component::Support, self.host]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest's packets through dom0: while one process works, the other waits,
    /// and is woken by its profiler all the time.
    #[test]
    fn what_the_profiler_costs_those_who_wait_is_nobodys_share() {
        let mut shares = Shares::new(Component::Dom0);
        let mut turns = ByComponent::default();
        turns[Component::Dom0 as usize] = 6000;
        turns[Component::Hypervisor as usize] = 3000;
        turns[Component::Guest as usize] = 1000;
        turns[Component::Card as usize] = 50_000;
        shares.add_turns(&turns);
        assert_eq!(shares.part(Component::Dom0), 0.6);
        let mut samples = Samples::default();
        samples.0[Component::Driver as usize] = 20;
        samples.0[Component::Support as usize] = 10;
        samples.0[Component::Dom0 as usize] = 30;
        samples.0[Component::Idle as usize] = 900;
        samples.0[Component::Hypervisor as usize] = 70;
        shares.add_samples(&samples);
        let parts = Component::COSTS.map(|cost| (shares.part(cost) * 100.0).round());
        // Driver, support, hypervisor, dom0, guest.
        assert_eq!(parts, [20.0, 10.0, 30.0, 30.0, 10.0]);
        let all: f64 = Component::COSTS.map(|cost| shares.part(cost)).iter().sum();
        assert!((all - 1.0).abs() < 1e-12);
    }
}
