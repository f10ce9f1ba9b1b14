//! The stages of the packet path that can be switched on (`twin run --stages`): each one
//! counts, and with none the path is the plain one ([`crate::engines::twin`]), instruction
//! for instruction.
//!
//! ```text
//! guest ─ admit ─ bridge ─┬─ offload ─ hot_transmit ─ driver ─ card
//!                         └─ local ─┐
//! guest <── deliver <── notify <────┴─ bridge <─ aggregate <─ poll <─ ack <─ card
//! ```
//!
//! Which ones are on is decided when the instance starts: the engine of an instance with
//! stages is another ([`crate::engines::staged`]), and so is its `host_receive`.

pub mod ack;
pub mod aggregate;
pub mod bridge;
mod counts;
pub mod local;
pub mod notify;
pub mod offload;

use serde::Serialize;

use ack::AckCounts;
use aggregate::AggregateCounts;
use bridge::BridgeCounts;
use local::LocalCounts;
use notify::NotifyCounts;
use offload::OffloadCounts;

twin_abi::listed! {
    /// A stage that can be on or off.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Stage {
        /// The card's interrupt is acknowledged when it comes; the handler gets the causes later.
        Ack => "ack",
        /// TCP segments that one poll finds are one packet for their guest.
        Aggregate => "aggregate",
        /// Addresses by a hash, packets between guests, checked sources, limited storms.
        Bridge => "bridge",
        /// Guests are told of packets by count, delay and event index. With it comes `bridge`,
        /// which knows whose they are.
        Notify => "notify",
        /// What the card cannot do for packets that are sent, the hot routines do.
        Offload => "offload",
    }
}

/// The configuration word: the stages that are on, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u32);

impl Stages {
    /// None: the plain path.
    pub const NONE: Stages = Stages(0);

    /// These ones, and what they need.
    pub fn of(stages: impl IntoIterator<Item = Stage>) -> Stages {
        let bit = |stage: Stage| 1 << stage as u32;
        let bits = stages.into_iter().map(|stage| match stage {
            Stage::Ack | Stage::Aggregate | Stage::Bridge | Stage::Offload => bit(stage),
            Stage::Notify => bit(stage) | bit(Stage::Bridge),
        });
        Stages(bits.fold(0, |all, bits| all | bits))
    }

    /// Whether a stage is on.
    #[inline]
    pub fn has(self, stage: Stage) -> bool {
        self.0 >> stage as u32 & 1 != 0
    }

    /// Whether all are off.
    pub fn is_empty(self) -> bool {
        self == Stages::NONE
    }

    /// Those that are on, in the order of the path.
    pub fn list(self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |stage| self.has(*stage))
    }
}

/// What the stages have counted since the instance started; none of a stage that is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct StageCounts {
    /// Interrupts acknowledged before their handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack: Option<AckCounts>,
    /// Segments that became packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateCounts>,
    /// Ways of packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgeCounts>,
    /// Packets from guest to guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalCounts>,
    /// Guests told of packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyCounts>,
    /// Packets that the card could not send as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadCounts>,
}

/// A name and its count.
pub type Count = (&'static str, u64);

impl StageCounts {
    /// Name and counts of each stage that is on.
    pub fn list(&self) -> Vec<(&'static str, Vec<Count>)> {
        let ack = self.ack.map(|counts| ("ack", counts.list().to_vec()));
        let aggregate = self.aggregate;
        let aggregate = aggregate.map(|counts| ("aggregate", counts.list().to_vec()));
        let bridge = self.bridge.map(|counts| ("bridge", counts.list().to_vec()));
        let local = self.local.map(|counts| ("local", counts.list().to_vec()));
        let notify = self.notify.map(|counts| ("notify", counts.list().to_vec()));
        let offload = self.offload;
        let offload = offload.map(|counts| ("offload", counts.list().to_vec()));
        [ack, aggregate, bridge, local, notify, offload]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        assert!(Stages::NONE.is_empty() && Stages::of([]).is_empty());
        for stage in Stage::ALL {
            let one = Stages::of([stage, stage]);
            assert!(one.has(stage) && !one.is_empty());
            assert_eq!(one, Stages::of(one.list()));
        }
        assert_eq!(Stages::of(Stage::ALL).list().count(), Stage::ALL.len());
    }
}
