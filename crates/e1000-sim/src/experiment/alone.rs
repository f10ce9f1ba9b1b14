//! The driver alone, where nothing shared the core with it.
//!
//! A busy second thread of the core makes both drivers slower, the rewritten one by more: on
//! a Xeon (family 6, model 207) the ratio of `stlb` received was 2.1 alone and 2.7 beside it.
//! No count of this machine says so, as the thread may be another machine's. The player
//! ([`crate::replay`]) does: it executes the same in each recording of a direction, and takes a
//! fifth longer then.

use super::{Known, Spread};
use crate::replay::Turn;

/// By how much more than the fastest the player may take in a recording that is counted.
/// Where the code lies makes less of a difference, another thread on the core more.
const UNDISTURBED: f64 = 0.15;

/// The cost of one driver that played recordings ([`crate::replay`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alone {
    /// Its instructions for all recordings, with those of the thunks and slow paths
    /// that it calls.
    pub executed: u64,
    /// Packets of all recordings.
    pub packets: u64,
    /// The cost of each recording.
    pub turns: Vec<Turn>,
}

impl Alone {
    /// Instructions a packet.
    pub fn instructions(&self) -> f64 {
        self.executed as f64 / self.packets.max(1) as f64
    }

    /// Cycles a packet, of the undisturbed recordings.
    pub fn cycles(&self) -> Known {
        let least = self.least();
        let turns = self.turns.iter().filter(|turn| undisturbed(turn, least));
        Known::of(turns.map(|turn| turn.cycles).collect())
    }

    /// The player's own cycles a packet, which were subtracted.
    pub fn player(&self) -> f64 {
        let least = self.least();
        let turns = self.turns.iter().filter(|turn| undisturbed(turn, least));
        Spread::of_values(turns.map(|turn| turn.player)).median
    }

    /// Its cost in multiples of `other`'s, recording by recording, of those that neither was
    /// disturbed in; `None` if there is none.
    pub fn against(&self, other: &Alone) -> Option<Known> {
        self.ratios(other, |turn| turn.cycles)
    }

    /// The same, with the player's cycles left in both. A processor works at driver and
    /// player at once, and the player alone takes longer than it adds. So to subtract that
    /// is too much, to subtract nothing too little, and the driver's own ratio is between
    /// the two.
    pub fn unsubtracted_against(&self, other: &Alone) -> Option<Known> {
        self.ratios(other, |turn| turn.cycles + turn.player)
    }

    /// Recordings that neither was disturbed in.
    pub fn undisturbed_with(&self, other: &Alone) -> usize {
        self.pairs(other).count()
    }

    fn ratios(&self, other: &Alone, cost: fn(&Turn) -> f64) -> Option<Known> {
        let costs = self.pairs(other);
        let costs = costs.map(|(mine, theirs)| (cost(mine), cost(theirs)));
        let known = costs.filter(|(_, theirs)| *theirs > 0.0);
        let ratios: Vec<f64> = known.map(|(mine, theirs)| mine / theirs).collect();
        (!ratios.is_empty()).then(|| Known::of(ratios))
    }

    fn pairs<'a>(&'a self, other: &'a Alone) -> impl Iterator<Item = (&'a Turn, &'a Turn)> {
        let least = self.least().min(other.least());
        let pairs = self.turns.iter().zip(&other.turns);
        pairs.filter(move |(mine, theirs)| undisturbed(mine, least) && undisturbed(theirs, least))
    }

    fn least(&self) -> f64 {
        let players = self.turns.iter().map(|turn| turn.player);
        players.fold(f64::INFINITY, f64::min)
    }
}

fn undisturbed(turn: &Turn, least: f64) -> bool {
    turn.player <= least * (1.0 + UNDISTURBED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles of driver and player.
    fn alone(turns: &[(f64, f64)]) -> Alone {
        let turns = turns.iter();
        Alone {
            executed: 10,
            packets: 10,
            turns: turns
                .map(|&(cycles, player)| Turn { cycles, player })
                .collect(),
        }
    }

    #[test]
    fn recordings_in_which_the_core_was_shared_do_not_count() {
        // The last two: one driver was disturbed, then the other.
        let mut native = vec![(40.0, 40.0); 8];
        let mut rewritten = vec![(80.0, 44.0); 8];
        native.extend([(45.0, 50.0), (40.0, 40.0)]);
        rewritten.extend([(88.0, 40.0), (120.0, 52.0)]);
        let (native, rewritten) = (alone(&native), alone(&rewritten));
        assert_eq!(rewritten.undisturbed_with(&native), 8);
        let figure = |known: Option<Known>| known.and_then(|known| known.figure());
        assert_eq!(figure(rewritten.against(&native)), Some(2.0));
        let unsubtracted = rewritten.unsubtracted_against(&native);
        assert_eq!(figure(unsubtracted), Some(124.0 / 80.0));
        assert_eq!(rewritten.cycles().figure(), Some(80.0));
        assert_eq!((native.player(), rewritten.player()), (40.0, 44.0));
    }

    #[test]
    fn without_enough_recordings_there_is_no_figure() {
        let native = alone(&[(40.0, 40.0); 5]);
        let same = native.against(&native).expect("five ratios");
        assert_eq!((same.all.median, same.figure()), (1.0, None));
        assert_eq!(native.against(&Alone::default()), None);
        // In each recording one of the two was disturbed.
        let [first, second] = [(40.0, 40.0), (45.0, 50.0)];
        assert_eq!(
            alone(&[first, second]).against(&alone(&[second, first])),
            None
        );
        assert_eq!(Alone::default().cycles().figure(), None);
    }
}
