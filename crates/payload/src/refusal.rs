//! Why no payload is made: which of the inputs it is about, what was found, what to do.

use std::fmt;

use svm_verify::Violations;

use crate::code::PayloadCode;

/// What a refusal is about, for the caller to name as the user knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The rewritten driver.
    Driver,
    /// The rewritten hot routines.
    Hot,
    /// The runtime's object.
    Runtime,
    /// The table of the hypervisor's build.
    Table,
    /// The text of `/proc/kallsyms`.
    Kallsyms,
    /// The sections' addresses.
    Sections,
    /// The payload itself.
    Output,
}

/// Something that no payload can be made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: PayloadCode,
    /// What it is about.
    pub part: Part,
    /// Place, reason and remedy.
    pub why: String,
}

impl Refusal {
    /// A refusal; `why` ends with what to do.
    pub fn new(code: PayloadCode, part: Part, why: impl Into<String>) -> Refusal {
        let why = why.into();
        Refusal { code, part, why }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Why [`crate::build`] or [`crate::check()`] failed.
#[derive(Debug)]
pub enum PayloadError {
    /// An input, or the result, is not acceptable.
    Refused(Refusal),
    /// Code does not keep the contract.
    Violated {
        /// The driver or the hot routines as they were given, or the payload.
        part: Part,
        /// The violations.
        violations: Violations,
    },
}

impl From<Refusal> for PayloadError {
    fn from(refusal: Refusal) -> PayloadError {
        PayloadError::Refused(refusal)
    }
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadError::Refused(refusal) => refusal.fmt(f),
            PayloadError::Violated { violations, .. } => match violations.list.first() {
                Some(first) => first.fmt(f),
                None => f.write_str("it does not keep the contract"),
            },
        }
    }
}

impl std::error::Error for PayloadError {}
