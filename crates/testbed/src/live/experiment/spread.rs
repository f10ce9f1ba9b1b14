//! A cost with its spread, robust against what else the machine does.

/// What most batches of packets cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Half of the batches cost less.
    pub median: f64,
    /// A tenth cost less.
    pub low: f64,
    /// A tenth cost more.
    pub high: f64,
}

impl Spread {
    /// Of several rounds: the median of each of the three.
    pub fn of(rounds: &[Spread]) -> Spread {
        Spread {
            median: median(rounds.iter().map(|round| round.median)),
            low: median(rounds.iter().map(|round| round.low)),
            high: median(rounds.iter().map(|round| round.high)),
        }
    }
}

/// The one in the middle, of an even number the mean of both; 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (
        values.get(values.len().wrapping_sub(1) / 2),
        values.get(values.len() / 2),
    ) {
        (Some(below), Some(above)) => (below + above) / 2.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_found() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median([].into_iter()), 0.0);
        let round = |median| Spread {
            median,
            low: median / 2.0,
            high: 1e9,
        };
        let spread = Spread::of(&[round(2.0), round(8.0), round(4.0)]);
        assert_eq!((spread.median, spread.low, spread.high), (4.0, 2.0, 1e9));
    }
}
