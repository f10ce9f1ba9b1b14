//! The row `dbnet-bridge`: frames by way of dom0, and of the hypervisor with a bridge.

use std::fmt::Write;

use e1000_sim::live::by_dom0::ByDom0;
use e1000_sim::packets::round::PacketDirection;
use serde::Serialize;

use super::verdict::Verdict;

/// Packets by way of dom0 and of the hypervisor, with the paper's figure.
#[derive(Debug, Serialize)]
pub struct Way {
    #[serde(flatten)]
    pub seen: ByDom0,
    pub wanted: f64,
    /// Of the median of measured cycles: a switch between processes is no instruction.
    verdict: Verdict,
}

impl Way {
    /// What was measured, judged.
    pub fn new(seen: ByDom0) -> Way {
        let wanted = match seen.direction {
            PacketDirection::Send => 1.4,
            PacketDirection::Receive => 1.24,
        };
        Way {
            verdict: Verdict::of(seen.measured[1] >= wanted && seen.damage == 0),
            seen,
            wanted,
        }
    }
}

/// For people.
pub fn text(ways: &[Way]) -> String {
    let mut out = "\ndbnet-bridge: a frame of 1,514 bytes by way of dom0, and of the hypervisor with a bridge; the \
                   ratio of measured cycles\n"
        .to_owned();
    for way in ways {
        let [dom0, twin] = way.seen.instructions;
        let [least, half, most] = way.seen.measured;
        let _ = writeln!(
            out,
            "  {:<9} {dom0:.0} and {twin:.0} instructions, cycles {half:.2} ({least:.2}..{most:.2}); DBNet {}: {}",
            way.seen.direction.as_str(),
            way.wanted,
            way.verdict.text(),
        );
    }
    out
}
