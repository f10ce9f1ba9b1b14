//! One file a subcommand: its options and `run()`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use twin_abi::Target;

pub mod cc;
pub mod completions;
pub mod explain;
pub mod man;
pub mod rewrite;
pub mod run;
pub mod stats;
pub mod verify;

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

/// Reads a target by its name, out of `allowed`; help shows each with its summary.
pub fn target_among(allowed: &'static [Target]) -> impl TypedValueParser<Value = Target> {
    let shown = allowed
        .iter()
        .map(|target| PossibleValue::new(target.as_str()).help(target.summary()));
    PossibleValuesParser::new(shown).map(|name| {
        Target::ALL
            .into_iter()
            .find(|target| target.as_str() == name)
            .expect("clap takes names of targets only")
    })
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}
