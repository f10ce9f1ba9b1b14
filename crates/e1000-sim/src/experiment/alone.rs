//! The driver alone, and whether its measurements repeat.

use super::Spread;
use crate::replay::Turn;

/// Permitted difference of two measurements of the same: a tenth.
pub const WITHIN: f64 = 0.1;

/// Whether measurements of the same are within a tenth of each other.
pub fn agree(values: &[f64]) -> bool {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    least > 0.0 && most <= least * (1.0 + WITHIN)
}

/// A value that was measured twice, each time with its own recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twice {
    /// All recordings together.
    pub all: Spread,
    /// The medians of the recordings of each half.
    pub halves: [f64; 2],
}

impl Twice {
    /// Of the values of each half.
    pub fn of(halves: [&[f64]; 2]) -> Twice {
        let medians = halves.map(|half| Spread::of_values(half.iter().copied()).median);
        Twice {
            all: Spread::of_values(halves.concat().into_iter()),
            halves: medians,
        }
    }

    /// The value, if both halves agree.
    pub fn figure(&self) -> Option<f64> {
        agree(&self.halves).then_some(self.all.median)
    }
}

/// The cost of one driver that played recordings ([`crate::replay`]), half of them for
/// each of two measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alone {
    /// Its instructions for all recordings, with those of the thunks and slow paths
    /// that it calls.
    pub executed: u64,
    /// Packets of all recordings.
    pub packets: u64,
    /// The cost of each recording.
    pub halves: [Vec<Turn>; 2],
}

impl Alone {
    /// Instructions a packet.
    pub fn instructions(&self) -> f64 {
        self.executed as f64 / self.packets.max(1) as f64
    }

    /// Cycles a packet.
    pub fn cycles(&self) -> Twice {
        let [a, b] = &self.halves;
        let of = |turns: &[Turn]| -> Vec<f64> { turns.iter().map(|turn| turn.cycles).collect() };
        Twice::of([&of(a), &of(b)])
    }

    /// The player's own cycles a packet, which were subtracted.
    pub fn player(&self) -> f64 {
        let turns = self.halves.iter().flatten();
        Spread::of_values(turns.map(|turn| turn.player)).median
    }

    /// Its cost in multiples of `other`'s, recording by recording.
    pub fn against(&self, other: &Alone) -> Twice {
        self.ratios(other, |turn| turn.cycles)
    }

    /// The same, with the player's cycles left in both. A processor works at driver and
    /// player at once, and the player alone takes longer than it adds. So to subtract that
    /// is too much, to subtract nothing too little, and the driver's own ratio is between
    /// the two.
    pub fn unsubtracted_against(&self, other: &Alone) -> Twice {
        self.ratios(other, |turn| turn.cycles + turn.player)
    }

    fn ratios(&self, other: &Alone, cost: fn(&Turn) -> f64) -> Twice {
        let ratios = |half: usize| -> Vec<f64> {
            let pairs = self.halves[half].iter().zip(&other.halves[half]);
            let costs = pairs.map(|(mine, theirs)| (cost(mine), cost(theirs)));
            let known = costs.filter(|(_, theirs)| *theirs > 0.0);
            known.map(|(mine, theirs)| mine / theirs).collect()
        };
        Twice::of([&ratios(0), &ratios(1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(halves: [&[f64]; 2]) -> Alone {
        let turn = |cycles: &f64| Turn {
            cycles: *cycles,
            player: 10.0,
        };
        Alone {
            executed: 10,
            packets: 10,
            halves: halves.map(|half| half.iter().map(turn).collect()),
        }
    }

    #[test]
    fn a_figure_needs_two_halves_that_agree() {
        let native = alone([&[100.0, 200.0, 100.0], &[100.0]]);
        // The second recording costs more, with both.
        let same = alone([&[250.0, 500.0, 250.0], &[260.0]]).against(&native);
        assert_eq!((same.figure(), same.halves), (Some(2.5), [2.5, 2.6]));
        let apart = alone([&[250.0, 500.0, 250.0], &[300.0]]).against(&native);
        assert_eq!((apart.figure(), apart.halves), (None, [2.5, 3.0]));
        assert_eq!(native.player(), 10.0);
        let unsubtracted = alone([&[210.0], &[210.0]]).unsubtracted_against(&native);
        assert_eq!(unsubtracted.figure(), Some(2.0));
        assert_eq!(Alone::default().cycles().figure(), None);
    }
}
