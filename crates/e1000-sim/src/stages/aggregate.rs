//! The stage `aggregate`: the hot routines' (`runtime/hot/aggregate.c`), which parse what
//! strangers send in rewritten, verified code. The runtime checks what they say of the
//! pieces (`runtime/core/aggregate.c`), and reads 14 bytes.

use super::counts::counts;

/// Most segments of a packet: as many of full size as IPv4's length has room for.
pub const LIMIT: u32 = crate::packets::rings::SEGMENTS;

counts! {
    /// Packets so far, and why each ended. The driver's memory has them: they are for people.
    pub struct AggregateCounts {
        /// Packets of several segments.
        aggregates,
        /// Segments in them.
        merged,
        /// Flows handed on because the poll ended.
        flush_end => "the poll",
        /// As many segments or bytes as may be.
        flush_limit => "the limit",
        /// A short segment.
        flush_boundary => "a short segment",
        /// The next one was not next by sequence, acknowledgement or time.
        flush_order => "another order",
        /// The next one's header said something else.
        flush_header => "another header",
        /// Another flow needed the place.
        flush_collision => "another flow",
    }
}

/// Aggregates, and the segments in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Packets of several segments.
    pub aggregates: u64,
    /// Their segments.
    pub segments: u64,
}

impl Merged {
    /// Those that came after `before`.
    #[must_use]
    pub fn since(self, before: Merged) -> Merged {
        Merged {
            aggregates: self.aggregates - before.aggregates,
            segments: self.segments - before.segments,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Merged) -> Merged {
        Merged {
            aggregates: self.aggregates + other.aggregates,
            segments: self.segments + other.segments,
        }
    }
}
