//! The parts of a code's explanation, which `twin explain CODE` prints. Every crate
//! that has codes provides them.

/// What a code means, at length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What was found, in one or two sentences.
    pub meaning: &'static str,
    /// Why it cannot be passed through.
    pub why: &'static str,
    /// What to do, the likeliest first.
    pub remedy: &'static str,
    /// Something small that has this code.
    pub example: Example,
}

/// Something small that has a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// The body of a function `f` in `.text`, in AT&T syntax. Tests assemble it
    /// and compare the code.
    Assembly(&'static str),
    /// A session, or other text that is not one function.
    Text(&'static str),
}

impl Example {
    /// Its text.
    pub fn text(self) -> &'static str {
        match self {
            Example::Assembly(text) | Example::Text(text) => text,
        }
    }
}
