//! Defects that are known and not yet fixed: each is excluded by name, and an
//! entry that no longer holds fails the exhaustive run.

use super::cases::Case;

/// A known defect.
pub struct KnownDefect {
    /// For messages.
    pub name: &'static str,
    /// Which cases it spoils.
    pub holds: fn(&Case) -> bool,
}

/// All of them: none at present.
pub const KNOWN: &[KnownDefect] = &[];

/// The known defect that spoils a case.
pub fn of(case: &Case) -> Option<usize> {
    KNOWN.iter().position(|known| (known.holds)(case))
}
