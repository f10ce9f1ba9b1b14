//! The cost of one path in one direction, and in comparison with another.

use super::{Alone, Known, Spent, Spread};
use crate::dom0::job::Look;
use crate::measure::profile::{ByComponent, Component};
use crate::measure::steps::Steps;
use crate::packets::round::PacketDirection;
use crate::paths::{PacketPath, RoundResult, Work};
use crate::stages::StageCounts;
use crate::traffic::source::Shape;

/// The cost of one path in one direction.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The path that was measured.
    pub path: PacketPath,
    /// The packets on it.
    pub shape: Shape,
    /// Whether they were sent or received.
    pub direction: PacketDirection,
    /// Packets whose cycles were counted; a segment that the card splits counts once.
    pub packets: u64,
    /// Frames that they made on the wire.
    pub frames: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Frames that did not arrive, of all rounds, including those not counted.
    pub lost: u64,
    /// Frames that arrived changed, of all rounds.
    pub corrupted: u64,
    /// Packets refused because a frame was not their guest's, of all rounds.
    pub foreign: u64,
    /// Cycles a packet, without the card's.
    pub cycles: Spread,
    /// Cycles of these packets by the component that ran.
    pub turns: ByComponent,
    /// The cost of each round's packets.
    pub rounds: Vec<Spread>,
    /// The cost of the driver alone, if that was measured.
    pub alone: Option<Alone>,
    /// Upcalls made for the packets whose cycles were counted.
    pub upcalls: u64,
    /// Packets after the warm-up, the recorded and the single-stepped ones too.
    pub steady: u64,
    /// Upcalls made for these.
    pub steady_upcalls: u64,
    /// Packets that were single-stepped.
    pub stepped: u64,
    /// Their instructions and table look-ups.
    pub steps: Steps,
    /// Instructions of as many packets without the check of descriptors, in the hypervisor.
    pub unchecked: Option<Steps>,
    /// Look-ups of these that missed: not mapped, or the entry is another page's.
    pub missed: Missed,
    /// Calls of each hot routine for these by the driver, if it is rewritten.
    pub calls: Vec<(String, u64)>,
    /// Their instructions by function of the rewritten driver.
    pub spent: Vec<Spent>,
    /// What the stages have counted since the instance started, in the hypervisor.
    pub stages: StageCounts,
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
    /// Nothing yet.
    pub fn new(path: PacketPath, shape: Shape, direction: PacketDirection) -> Measured {
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
            turns: ByComponent::default(),
            rounds: Vec::new(),
            alone: None,
            upcalls: 0,
            steady: 0,
            steady_upcalls: 0,
            stepped: 0,
            steps: Steps::default(),
            unchecked: None,
            missed: Missed::default(),
            calls: Vec::new(),
            spent: Vec::new(),
            stages: StageCounts::default(),
        }
    }

    /// The driver's cycles a packet, if they are known.
    pub fn driver_cycles(&self) -> Option<f64> {
        self.alone.as_ref()?.cycles().figure()
    }

    /// Cycles a packet of one component; the sum over components is a packet's cost.
    /// Driver and hot routines run while their host's cycles are counted. The hot
    /// routines' part counts as the host's here, and so does the driver's if it is not
    /// known.
    pub fn cycles_of(&self, component: Component) -> f64 {
        let costs = Component::COSTS.iter();
        let all: u64 = costs.map(|cost| self.turns[*cost as usize]).sum();
        let turn =
            |of: Component| self.cycles.median * self.turns[of as usize] as f64 / all.max(1) as f64;
        // Measured alone, with warm caches: limited to the host's cycles.
        let driver = self.driver_cycles().unwrap_or(0.0);
        let driver = driver.min(turn(self.path.host()));
        match component {
            Component::Driver => driver,
            other if other == self.path.host() => turn(other) - driver,
            other => turn(other),
        }
    }

    /// A packet's cost in multiples of `other`'s, round by round, and the driver's alone,
    /// recording by recording.
    pub fn against(&self, other: &Measured) -> Against {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let cycles = pairs.map(|(mine, theirs)| mine.median / theirs.median);
        let alone = self.alone.as_ref().zip(other.alone.as_ref());
        Against {
            cycles: Known::of(cycles.collect()),
            driver: alone.and_then(|(mine, theirs)| mine.against(theirs)),
            driver_unsubtracted: alone.and_then(|(mine, theirs)| mine.unsubtracted_against(theirs)),
        }
    }

    /// Instructions a packet of one component.
    pub fn instructions_of(&self, component: Component) -> f64 {
        self.steps.of(component) as f64 / self.stepped.max(1) as f64
    }

    /// Instructions a packet without the check of descriptors, all components.
    pub fn unchecked_instructions(&self) -> Option<f64> {
        let unchecked = self.unchecked?;
        Some(unchecked.costs() as f64 / self.stepped.max(1) as f64)
    }

    /// Table look-ups of the single-stepped packets that were hits.
    pub fn hits(&self) -> u64 {
        let missed = self.missed.fills + self.missed.collisions;
        self.steps.lookups.saturating_sub(missed)
    }

    /// All rounds together.
    pub(super) fn sum_up(&mut self) {
        self.cycles = Spread::of(&self.rounds);
    }

    /// The round that a path is to run.
    pub(super) fn work(&self, look: Look, packets: u64) -> Work {
        Work {
            direction: self.direction,
            packets,
            look,
        }
    }

    /// Adds a round's counts.
    pub(super) fn add(&mut self, seen: &RoundResult) {
        self.lost += seen.round.lost;
        self.corrupted += seen.round.corrupted;
        self.foreign += seen.round.foreign;
    }

    pub(super) fn add_steady(&mut self, seen: &RoundResult) {
        self.add(seen);
        self.steady += seen.round.packets;
        self.steady_upcalls += seen.upcalls;
    }
}

/// One path in multiples of another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Against {
    /// Of a packet's cost.
    pub cycles: Known,
    /// Of the driver alone.
    pub driver: Option<Known>,
    /// The same, with the player's cycles left in both.
    pub driver_unsubtracted: Option<Known>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Turn;

    fn measured(costs: [f64; 3], driver: f64) -> Measured {
        let mut measured =
            Measured::new(PacketPath::Twin, Shape::Frames(60), PacketDirection::Send);
        let costs = costs.map(|cost| Spread::of_values([cost].into_iter()));
        measured.rounds.extend(costs);
        measured.turns[Component::Hypervisor as usize] = 6000;
        measured.turns[Component::Guest as usize] = 2000;
        measured.turns[Component::Card as usize] = 50_000;
        let turn = Turn {
            cycles: driver,
            player: 5.0,
        };
        measured.alone = Some(Alone {
            executed: 1,
            packets: 1,
            turns: vec![turn; 6],
        });
        measured.sum_up();
        measured
    }

    #[test]
    fn paths_are_compared_round_by_round() {
        // The machine was slower in the second round, for both.
        let against =
            measured([200.0, 400.0, 200.0], 90.0).against(&measured([100.0, 200.0, 100.0], 30.0));
        let cycles = against.cycles.all;
        assert_eq!((cycles.median, cycles.high), (2.0, 2.0));
        let driver = against.driver.expect("both were measured");
        assert_eq!(driver.figure(), Some(3.0));
    }

    #[test]
    fn the_driver_is_a_part_of_its_hosts_turns() {
        let mut measured = measured([800.0; 3], 200.0);
        let parts = |measured: &Measured| Component::COSTS.map(|cost| measured.cycles_of(cost));
        // Driver, support, hypervisor, dom0, guest.
        assert_eq!(parts(&measured), [200.0, 0.0, 400.0, 0.0, 200.0]);
        measured.alone = None;
        assert_eq!(parts(&measured), [0.0, 0.0, 600.0, 0.0, 200.0]);
    }
}
