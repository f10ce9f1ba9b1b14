//! A cost with its spread, robust against other load of the machine.

/// The distribution of the cost of packets, over batches.
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
    /// Of single values: a tenth of them are below, and a tenth above.
    pub fn of_values(values: impl Iterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.collect();
        let part = |part| at(values.iter().copied(), part);
        Spread {
            median: part(0.5),
            low: part(0.1),
            high: part(0.9),
        }
    }

    /// Of several rounds: the median of their medians, and the wider of the spread
    /// within them and the spread among them.
    pub fn of(rounds: &[Spread]) -> Spread {
        let medians = || rounds.iter().map(|round| round.median);
        let low = at(rounds.iter().map(|round| round.low), 0.5);
        let high = at(rounds.iter().map(|round| round.high), 0.5);
        Spread {
            median: at(medians(), 0.5),
            low: low.min(at(medians(), 0.1)),
            high: high.max(at(medians(), 0.9)),
        }
    }
}

/// The quantile: the value that this part of all is below, interpolated between two
/// values; 0 without values.
fn at(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let place = values.len().saturating_sub(1) as f64 * part;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match (values.get(below), values.get(above)) {
        (Some(below), Some(above)) => below + (above - below) * place.fract(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_found() {
        assert_eq!(at([3.0, 1.0, 2.0].into_iter(), 0.5), 2.0);
        assert_eq!(at([4.0, 1.0, 2.0, 3.0].into_iter(), 0.5), 2.5);
        assert_eq!(at([].into_iter(), 0.5), 0.0);
    }

    #[test]
    fn rounds_of_one_batch_spread_among_each_other() {
        let round = |median| Spread {
            median,
            low: median,
            high: median,
        };
        let rounds: Vec<Spread> = (0..=10).map(|i| round(f64::from(i))).collect();
        let spread = Spread::of(&rounds);
        assert_eq!((spread.median, spread.low, spread.high), (5.0, 1.0, 9.0));
    }
}
