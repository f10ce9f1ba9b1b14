//! The driver alone, and whether what was measured repeats.

use super::Spread;
use crate::replay::Turn;

/// How much two measurements of the same may differ: a tenth.
pub const WITHIN: f64 = 0.1;

/// Whether measurements of the same are within a tenth of each other.
pub fn agree(values: &[f64]) -> bool {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    least > 0.0 && most <= least * (1.0 + WITHIN)
}

/// What was measured twice, with recordings of its own each time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twice {
    /// Both together.
    pub all: Spread,
    /// The medians of each.
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

    /// The figure, if both halves give the same one.
    pub fn figure(&self) -> Option<f64> {
        agree(&self.halves).then_some(self.all.median)
    }
}

/// The turns of one driver that played two tapes ([`crate::replay`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alone {
    /// Its instructions for a packet of the tape: the driver's, the thunks and slow
    /// paths that it goes through.
    pub instructions: f64,
    /// Turns with the one tape, and with the other.
    pub halves: [Vec<Turn>; 2],
}

impl Alone {
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

    /// How many times as much it costs as `other`, turn by turn.
    pub fn against(&self, other: &Alone) -> Twice {
        let ratios = |half: usize| -> Vec<f64> {
            let pairs = self.halves[half].iter().zip(&other.halves[half]);
            let known = pairs.filter(|(_, theirs)| theirs.cycles > 0.0);
            known
                .map(|(mine, theirs)| mine.cycles / theirs.cycles)
                .collect()
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
            instructions: 1.0,
            halves: halves.map(|half| half.iter().map(turn).collect()),
        }
    }

    #[test]
    fn a_figure_needs_two_halves_that_agree() {
        let native = alone([&[100.0, 200.0, 100.0], &[100.0]]);
        // The machine was slower in the second turn, for both.
        let same = alone([&[250.0, 500.0, 250.0], &[260.0]]).against(&native);
        assert_eq!((same.figure(), same.halves), (Some(2.5), [2.5, 2.6]));
        let apart = alone([&[250.0, 500.0, 250.0], &[300.0]]).against(&native);
        assert_eq!((apart.figure(), apart.halves), (None, [2.5, 3.0]));
        assert_eq!(native.player(), 10.0);
        assert_eq!(Alone::default().cycles().figure(), None);
    }
}
