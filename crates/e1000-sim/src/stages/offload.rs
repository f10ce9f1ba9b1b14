//! The stage `offload`: the hot routines' (`runtime/hot/offload.c`). Guests always have large
//! packets, fragments and checksums; what the card cannot do is done below. Headers are changed in
//! rewritten, verified code. Guests' bytes are out of its reach: the runtime copies and sums
//! them (`runtime/core/gather.c`).

use super::counts::counts;

counts! {
    /// Packets so far. The driver's memory has the counts: they are for people.
    pub struct OffloadCounts {
        /// Large packets that were cut.
        cut,
        /// Packets made of others: their segments, or one for one.
        parts,
        /// Copies of guests' bytes by the runtime: for one of these, or again for one that was made
        /// for a card that could do more.
        gathered,
    }
}
