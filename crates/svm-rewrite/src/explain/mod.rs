//! Reports for people: what was done at each site, counts over the original, and
//! listings of rewritten code.

pub mod listing;
pub mod report;
pub mod stats;
