//! Why something was not done: a code, what was found, what to do.

use std::fmt;

use crate::code::XenCode;

/// A reason, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: XenCode,
    /// What was found, and what to do.
    pub why: String,
}

impl Refusal {
    /// A reason; `why` ends with what to do.
    pub fn new(code: XenCode, why: impl Into<String>) -> Refusal {
        let why = why.into();
        Refusal { code, why }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.why, self.code.as_str())
    }
}
