//! Options that several commands take.

/// How an address is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheme {
    /// Subtract the tag, compare, add: the fastest.
    Stlb,
    /// Figure 4 of the paper, with 64-bit registers.
    Paper,
}

impl From<Scheme> for svm_rewrite::Scheme {
    fn from(scheme: Scheme) -> svm_rewrite::Scheme {
        match scheme {
            Scheme::Stlb => svm_rewrite::Scheme::Stlb,
            Scheme::Paper => svm_rewrite::Scheme::Paper,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}
