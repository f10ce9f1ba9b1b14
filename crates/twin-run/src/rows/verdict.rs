//! What a row came to.

use serde::Serialize;

/// What a row came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At least the paper's figure, or the design's.
    Reached,
    /// Less than that.
    Missed,
    /// The paper's figure is of something that this testbed does not have.
    NotComparable,
}

impl Verdict {
    /// Reached or missed.
    pub fn of(reached: bool) -> Verdict {
        match reached {
            true => Verdict::Reached,
            false => Verdict::Missed,
        }
    }

    /// In the table.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Reached => "reached",
            Verdict::Missed => "missed",
            Verdict::NotComparable => "not comparable",
        }
    }
}
