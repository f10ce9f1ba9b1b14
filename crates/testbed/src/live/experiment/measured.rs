//! What one path costs in one direction, and in comparison with another.

use super::{Shares, Spent, Spread};
use crate::live::endpoint::Shape;
use crate::live::job::Look;
use crate::live::paths::{Path, Seen, Work};
use crate::live::profile::Component;
use crate::live::round::Direction;
use crate::live::steps::Steps;

/// What one path costs in one direction.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which path.
    pub path: Path,
    /// Which packets.
    pub shape: Shape,
    /// Which way.
    pub direction: Direction,
    /// Packets whose cycles were counted; a segment that the card cuts is one.
    pub packets: u64,
    /// Frames that they made on the wire.
    pub frames: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Frames that did not arrive, of all rounds, also of those not counted.
    pub lost: u64,
    /// Frames that arrived not as sent, likewise.
    pub corrupted: u64,
    /// Packets refused because a frame was not their guest's, likewise.
    pub foreign: u64,
    /// Cycles a packet, the card excepted.
    pub cycles: Spread,
    /// Whose these cycles are.
    pub whose: Shares,
    /// What each round's packets cost, and whose it was.
    pub rounds: Vec<(Spread, Shares)>,
    /// Upcalls made for the packets whose cycles were counted.
    pub upcalls: u64,
    /// Packets after the warm-up, the profiled and the single-stepped ones too.
    pub steady: u64,
    /// Upcalls made for these.
    pub steady_upcalls: u64,
    /// Packets that were single-stepped.
    pub stepped: u64,
    /// Their instructions and table look-ups.
    pub steps: Steps,
    /// Look-ups of these that found no entry, and those that found another's.
    pub missed: Missed,
    /// Calls of each hot routine for these by the driver, if it is rewritten.
    pub calls: Vec<(String, u64)>,
    /// In which of the rewritten driver's functions they were executed.
    pub spent: Vec<Spent>,
}

/// Table look-ups that were not hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// The page had to be mapped.
    pub fills: u64,
    /// The page was mapped, but its entry taken by another.
    pub collisions: u64,
}

impl Measured {
    pub(super) fn new(path: Path, shape: Shape, direction: Direction) -> Measured {
        Measured {
            path,
            shape,
            direction,
            packets: 0,
            frames: 0,
            bytes: 0,
            lost: 0,
            corrupted: 0,
            foreign: 0,
            cycles: Spread::default(),
            whose: Shares::new(path.host()),
            rounds: Vec::new(),
            upcalls: 0,
            steady: 0,
            steady_upcalls: 0,
            stepped: 0,
            steps: Steps::default(),
            missed: Missed::default(),
            calls: Vec::new(),
            spent: Vec::new(),
        }
    }

    /// Cycles a packet of one component; all of them add up to what a packet costs.
    pub fn cycles_of(&self, component: Component) -> f64 {
        self.cycles.median * self.whose.part(component)
    }

    /// How many times as much as for `other` a packet costs, or its driver's part,
    /// round by round.
    pub fn against(&self, other: &Measured) -> Against {
        let pairs = || self.rounds.iter().zip(&other.rounds);
        let cycles = pairs().map(|((mine, _), (theirs, _))| mine.median / theirs.median);
        let driver = pairs().filter_map(|((mine, whose), (theirs, others))| {
            let mine = mine.median * whose.part(Component::Driver);
            let theirs = theirs.median * others.part(Component::Driver);
            (theirs > 0.0).then(|| mine / theirs)
        });
        Against {
            cycles: Spread::of_values(cycles),
            driver: Spread::of_values(driver),
        }
    }

    /// Instructions a packet of one component.
    pub fn instructions_of(&self, component: Component) -> f64 {
        self.steps.of(component) as f64 / self.stepped.max(1) as f64
    }

    /// Table look-ups of the single-stepped packets that were hits.
    pub fn hits(&self) -> u64 {
        let missed = self.missed.fills + self.missed.collisions;
        self.steps.lookups.saturating_sub(missed)
    }

    /// All rounds together.
    pub(super) fn sum_up(&mut self) {
        let costs: Vec<Spread> = self.rounds.iter().map(|(cost, _)| *cost).collect();
        self.cycles = Spread::of(&costs);
        for (_, whose) in &self.rounds {
            self.whose.add(whose);
        }
    }

    /// What a path is asked for in a round.
    pub(super) fn work(&self, look: Look, packets: u64) -> Work {
        Work {
            direction: self.direction,
            packets,
            look,
        }
    }

    /// What every round adds.
    pub(super) fn add(&mut self, seen: &Seen) {
        self.lost += seen.round.lost;
        self.corrupted += seen.round.corrupted;
        self.foreign += seen.round.foreign;
    }

    pub(super) fn add_steady(&mut self, seen: &Seen) {
        self.add(seen);
        self.steady += seen.round.packets;
        self.steady_upcalls += seen.upcalls;
    }
}

/// One path in multiples of another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Against {
    /// Of what a packet costs.
    pub cycles: Spread,
    /// Of the driver's part of it.
    pub driver: Spread,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::profile::{ByComponent, Samples};

    #[test]
    fn paths_are_compared_round_by_round() {
        let lane = |costs: [f64; 3], driver: u64| {
            let mut lane = Measured::new(Path::Twin, Shape::Frames(60), Direction::Send);
            lane.rounds.extend(costs.map(|cost| {
                let mut whose = Shares::new(Component::Hypervisor);
                let mut samples = Samples::default();
                samples.0[Component::Driver as usize] = driver;
                samples.0[Component::Support as usize] = 10 - driver;
                whose.add_samples(&samples);
                let mut turns = ByComponent::default();
                turns[Component::Hypervisor as usize] = 1000;
                whose.add_turns(&turns);
                (Spread::of_values([cost].into_iter()), whose)
            }));
            lane
        };
        // The machine was slower in the second round, for both.
        let against = lane([200.0, 400.0, 200.0], 6).against(&lane([100.0, 200.0, 100.0], 4));
        assert_eq!((against.cycles.median, against.cycles.high), (2.0, 2.0));
        assert!((against.driver.median - 3.0).abs() < 1e-9, "{against:?}");
    }
}
