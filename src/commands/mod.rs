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
