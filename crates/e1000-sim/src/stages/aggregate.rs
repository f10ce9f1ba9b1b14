//! The stage `aggregate`: the hot routines' (`runtime/hot/aggregate.c`), which parse what
//! strangers send in rewritten, verified code. The runtime checks what they say of the
//! pieces (`runtime/core/aggregate.c`), and reads 14 bytes.

use serde::{Deserialize, Serialize};

/// Most segments of a packet that the thesis found enough (3.6.2).
pub const THESIS: u32 = 20;
/// Most segments of a packet: as many of full size as IPv4's length has room for.
pub const LIMIT: u32 = crate::packets::rings::SEGMENTS;

/// Packets so far, and why each ended. The driver's memory has them: they are for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateCounts {
    /// Packets of several segments.
    pub aggregates: u64,
    /// Segments in them.
    pub merged: u64,
    /// Flows handed on because the poll ended.
    pub flush_end: u64,
    /// As many segments or bytes as may be.
    pub flush_limit: u64,
    /// A short segment.
    pub flush_boundary: u64,
    /// The next one was not next by sequence, acknowledgement or time.
    pub flush_order: u64,
    /// The next one's header said something else.
    pub flush_header: u64,
    /// Another flow needed the place.
    pub flush_collision: u64,
}

impl AggregateCounts {
    /// The counts that `counter` gives by name.
    pub fn read(counter: impl Fn(&str) -> Option<u64>) -> AggregateCounts {
        let count = |name| counter(name).unwrap_or(0);
        AggregateCounts {
            aggregates: count("aggregates"),
            merged: count("merged"),
            flush_end: count("flush_end"),
            flush_limit: count("flush_limit"),
            flush_boundary: count("flush_boundary"),
            flush_order: count("flush_order"),
            flush_header: count("flush_header"),
            flush_collision: count("flush_collision"),
        }
    }

    /// What was counted after `before`.
    #[must_use]
    pub fn since(self, before: AggregateCounts) -> AggregateCounts {
        AggregateCounts {
            aggregates: self.aggregates - before.aggregates,
            merged: self.merged - before.merged,
            flush_end: self.flush_end - before.flush_end,
            flush_limit: self.flush_limit - before.flush_limit,
            flush_boundary: self.flush_boundary - before.flush_boundary,
            flush_order: self.flush_order - before.flush_order,
            flush_header: self.flush_header - before.flush_header,
            flush_collision: self.flush_collision - before.flush_collision,
        }
    }

    /// Why packets ended, for people; reasons that did not occur are left out.
    pub fn reasons(&self) -> String {
        let reasons = [
            ("the poll", self.flush_end),
            ("the limit", self.flush_limit),
            ("a short segment", self.flush_boundary),
            ("another order", self.flush_order),
            ("another header", self.flush_header),
            ("another flow", self.flush_collision),
        ];
        let seen = reasons.into_iter().filter(|(_, count)| *count > 0);
        let seen: Vec<String> = seen.map(|(why, count)| format!("{why} {count}")).collect();
        seen.join(", ")
    }

    /// By name.
    pub fn list(&self) -> [(&'static str, u64); 8] {
        [
            ("aggregates", self.aggregates),
            ("merged", self.merged),
            ("flush_end", self.flush_end),
            ("flush_limit", self.flush_limit),
            ("flush_boundary", self.flush_boundary),
            ("flush_order", self.flush_order),
            ("flush_header", self.flush_header),
            ("flush_collision", self.flush_collision),
        ]
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
