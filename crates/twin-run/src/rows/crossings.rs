//! The row `crossings`: guests that are called, and guests that are processes of their own.

use std::fmt::Write;

use e1000_sim::live::crossing::ByCrossing;
use e1000_sim::packets::round::PacketDirection;
use serde::Serialize;

use super::verdict::Verdict;

/// The part of the kicks that the design wants gone.
pub(super) const GONE: f64 = 0.9;

/// One direction, judged.
#[derive(Debug, Serialize)]
pub struct Crossed {
    #[serde(flatten)]
    seen: ByCrossing,
    /// Kicks that batches save, or notifications that `notify` saves: a part of one.
    gone: f64,
    wanted: f64,
    verdict: Verdict,
}

impl Crossed {
    /// What was measured, with the design's goal.
    pub fn new(seen: ByCrossing) -> Crossed {
        let gone = seen.gone();
        Crossed {
            gone,
            wanted: GONE,
            verdict: Verdict::of(gone >= GONE && seen.damage == 0),
            seen,
        }
    }

    /// Frames that were lost or changed.
    pub fn damage(&self) -> u64 {
        self.seen.damage
    }
}

/// For people.
pub fn text(rows: &[Crossed]) -> String {
    let mut out = "\ncrossings: guests that are called, and guests that are processes; a packet of 1,514 bytes\n\
                   \x20 way               kicks  notifications  instructions  with crossings  cycles  by call's (p10..p90)\n"
        .to_owned();
    for row in rows {
        row.write(&mut out);
    }
    out
}

impl Crossed {
    fn write(&self, out: &mut String) {
        let what = self.seen.direction.as_str();
        let of = match self.seen.direction {
            PacketDirection::Send => "kicks gone by batches",
            PacketDirection::Receive => "notifications gone",
        };
        let guests = match self.seen.guests {
            1 => "1 guest".to_owned(),
            guests => format!("{guests} guests"),
        };
        let _ = writeln!(out, "  {what}, {guests}");
        for cost in &self.seen.costs {
            let [low, half, high] = cost.measured;
            let _ = writeln!(
                out,
                "    {:<15}{:>6.4}{:>15.4}{:>14.0}{:>16.0}{:>8.0}  {half:.2} ({low:.2}..{high:.2})",
                cost.way.as_str(),
                cost.kicks,
                cost.notifications,
                cost.instructions,
                cost.priced(),
                cost.cycles,
            );
        }
        let _ = writeln!(
            out,
            "    {of}: {:.1}% (design {:.0}%: {})",
            self.gone * 100.0,
            GONE * 100.0,
            self.verdict.text(),
        );
    }
}
