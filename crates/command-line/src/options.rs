//! Options that several commands take.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use twin_abi::{Scheme, Target};

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

/// Reads a scheme by its name; help shows each with its summary.
pub fn scheme() -> impl TypedValueParser<Value = Scheme> {
    let shown = Scheme::ALL
        .iter()
        .map(|scheme| PossibleValue::new(scheme.as_str()).help(scheme.summary()));
    PossibleValuesParser::new(shown).map(|name| {
        Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.as_str() == name)
            .expect("clap takes names of schemes only")
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
