//! A value that was measured many times, and how well it is known.

use super::Spread;

/// Permitted difference of two measurements of the same: a tenth.
const WITHIN: f64 = 0.1;
/// The interval of a median is wrong no more often than that.
const WRONG: f64 = 0.05;
/// With fewer measurements than that nothing is known of their median.
pub const FEWEST: usize = 6;

/// Whether measurements of the same are within a tenth of each other.
pub fn agree(values: &[f64]) -> bool {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    least > 0.0 && most <= least * (1.0 + WITHIN)
}

/// A value that was measured many times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// All measurements.
    pub all: Spread,
    /// Their median is between these in 95 of 100 such runs; `None` with fewer than [`FEWEST`].
    pub between: Option<[f64; 2]>,
}

impl Known {
    /// Of independent measurements.
    pub fn of(mut values: Vec<f64>) -> Known {
        values.sort_by(f64::total_cmp);
        let between = places(values.len()).map(|ends| ends.map(|end| values[end]));
        Known {
            all: Spread::of_values(values.into_iter()),
            between,
        }
    }

    /// The median, if it is known within a tenth: another run would then give the same.
    pub fn figure(&self) -> Option<f64> {
        agree(&self.between?).then_some(self.all.median)
    }
}

/// The places among so many sorted values between which the median of what they were taken
/// from is, whatever its distribution: how many of them are below it is binomial, with one half
/// (David and Nagaraja, Order Statistics, 7.1).
fn places(count: usize) -> Option<[usize; 2]> {
    let mut probability = 0.5f64.powi(i32::try_from(count).ok()?);
    if probability == 0.0 {
        return None;
    }
    let mut below = probability;
    let mut place = None;
    for least in 0..count / 2 {
        if below > WRONG / 2.0 {
            break;
        }
        place = Some(least);
        probability *= (count - least) as f64 / (least + 1) as f64;
        below += probability;
    }
    place.map(|least| [least, count - 1 - least])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_binomial_distributions() {
        // Tables for 95%: 6 values, the first and the last; 10, the second and the ninth; 24,
        // the seventh and the eighteenth.
        assert_eq!([0, 1, FEWEST - 1].map(places), [None; 3]);
        assert_eq!(
            [6, 8, 9, 10, 20, 24].map(places),
            [[0, 5], [0, 7], [1, 7], [1, 8], [5, 14], [6, 17]].map(Some)
        );
        // 2^-2000 is no double: no interval, rather than a wrong one.
        assert_eq!(places(2000), None);
    }

    #[test]
    fn a_figure_needs_a_median_that_is_known() {
        let around = |middle: f64| (0..12).map(move |i| middle + f64::from(i) / 100.0);
        let known = Known::of(around(2.0).collect());
        assert_eq!(known.figure(), Some(known.all.median));
        // Two machines in one: the median is anywhere between.
        let two = Known::of(around(2.0).chain(around(3.0)).collect());
        assert_eq!((two.figure(), two.between), (None, Some([2.06, 3.05])));
        assert_eq!(Known::of(vec![2.0; 5]).figure(), None);
        assert_eq!(Known::of(vec![0.0; 12]).figure(), None);
    }
}
