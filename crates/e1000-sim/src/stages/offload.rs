//! The stage `offload`: the hot routines' (`runtime/hot/offload.c`). Guests always have large
//! packets, fragments and checksums; what the card cannot do is done below. Headers are changed in
//! rewritten, verified code. Guests' bytes are out of its reach: the runtime copies and sums
//! them (`runtime/core/gather.c`).

use serde::{Deserialize, Serialize};

/// Packets so far. The driver's memory has the counts: they are for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadCounts {
    /// Large packets that were cut.
    pub cut: u64,
    /// Packets made of others: their segments, or one for one.
    pub parts: u64,
    /// Copies of guests' bytes by the runtime: for one of these, or again for one that the driver
    /// had not taken.
    pub gathered: u64,
}

impl OffloadCounts {
    /// The counts that `counter` gives by name.
    pub fn read(counter: impl Fn(&str) -> Option<u64>) -> OffloadCounts {
        let count = |name| counter(name).unwrap_or(0);
        OffloadCounts {
            cut: count("cut"),
            parts: count("parts"),
            gathered: count("gathered"),
        }
    }

    /// By name.
    pub fn list(&self) -> [(&'static str, u64); 3] {
        [
            ("cut", self.cut),
            ("parts", self.parts),
            ("gathered", self.gathered),
        ]
    }
}
