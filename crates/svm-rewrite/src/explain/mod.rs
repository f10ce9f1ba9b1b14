//! Reports for people: what was done at each site, counts over the original, and
//! listings of rewritten code.

pub mod listing;
pub mod report;
pub mod stats;

use std::borrow::Cow;

/// Most bytes of a name or an instruction. Each site and each line has some, so what is
/// printed would be a multiple of a file that has one long name.
const LONGEST: usize = 1000;

/// The text, or its beginning and `...`.
pub fn shortened<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    if text.len() <= LONGEST {
        return text;
    }
    let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at));
    Cow::Owned(format!("{}...", &text[..end.unwrap_or(0)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(shortened("f".repeat(LONGEST)), "f".repeat(LONGEST));
        let cut = shortened("f".repeat(LONGEST + 1));
        assert_eq!(cut, "f".repeat(LONGEST) + "...");
        // Its second byte would be the last.
        let cut = shortened("f".repeat(LONGEST - 1) + "ü");
        assert_eq!(cut, "f".repeat(LONGEST - 1) + "...");
    }
}
