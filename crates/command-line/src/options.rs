//! Options that several commands take.

use std::convert::Infallible;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use twin_abi::{Accesses, Processor, Scheme, Target};

use crate::failure::Failure;

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

/// Reads which accesses are meant by name; help shows each with its summary.
pub fn accesses() -> impl TypedValueParser<Value = Accesses> {
    let shown = Accesses::ALL
        .iter()
        .map(|accesses| PossibleValue::new(accesses.as_str()).help(accesses.summary()));
    PossibleValuesParser::new(shown).map(|name| {
        Accesses::ALL
            .into_iter()
            .find(|accesses| accesses.as_str() == name)
            .expect("clap takes names of accesses only")
    })
}

/// Reads which processors are meant by name; help shows each with its summary.
pub fn processor() -> impl TypedValueParser<Value = Processor> {
    let shown = Processor::ALL
        .iter()
        .map(|processor| PossibleValue::new(processor.as_str()).help(processor.summary()));
    PossibleValuesParser::new(shown).map(|name| {
        Processor::ALL
            .into_iter()
            .find(|processor| processor.as_str() == name)
            .expect("clap takes names of processors only")
    })
}

/// The processors that code in a scheme is for, as asked for.
///
/// # Errors
/// The scheme adds no instruction of theirs.
pub fn processor_of(asked: Option<Processor>, scheme: Scheme) -> Result<Processor, Failure> {
    let processor = asked.unwrap_or(scheme.processor());
    if processor.serves(scheme) {
        return Ok(processor);
    }
    let why = format!(
        "--processor {} is not for --scheme {}, which adds no instruction of theirs; leave it out, \
         or use --scheme {}",
        processor.as_str(),
        scheme.as_str(),
        Scheme::Window.as_str(),
    );
    Err(Failure::Usage(why))
}

/// Refuses comparisons of pointers under a scheme whose checks refuse wild ones already.
///
/// # Errors
/// Why, and what to do.
pub fn may_be_strict(strict: bool, scheme: Scheme) -> Result<(), Failure> {
    if !strict || scheme.window_size().is_some() {
        return Ok(());
    }
    let why = format!(
        "--strict is not for --scheme {}, whose checks refuse every pointer that is not dom0's; \
         leave it out, or use --scheme {}",
        scheme.as_str(),
        Scheme::Window.as_str(),
    );
    Err(Failure::Usage(why))
}

/// Refuses a scheme that code for the target cannot have.
///
/// # Errors
/// Why, and what to do.
pub fn suit(scheme: Scheme, target: Target) -> Result<(), Failure> {
    if scheme.serves(target) {
        return Ok(());
    }
    let why = format!(
        "--scheme {} is not for `{}`: its window is a hypervisor's to lay out; use --scheme {}",
        scheme.as_str(),
        target.as_str(),
        Scheme::Stlb.as_str(),
    );
    Err(Failure::Usage(why))
}

/// Refuses to translate stores alone for a target whose addresses lead elsewhere.
///
/// # Errors
/// Why, and what to do.
pub fn agree(accesses: Accesses, target: Target) -> Result<(), Failure> {
    if accesses.serves(target) {
        return Ok(());
    }
    let why = format!(
        "--accesses {} is not for `{}`: its addresses are dom0's, so a load that stays as it is \
         would read the hypervisor's own memory; use --target linux, or --accesses {}",
        accesses.as_str(),
        target.as_str(),
        Accesses::All.as_str(),
    );
    Err(Failure::Usage(why))
}

/// Options by which other tools leave functions as they are. Here they are refused, with the
/// reason.
#[derive(Args, Clone, Debug)]
pub struct LeftOut {
    /// Leave a function as it is: refused.
    #[arg(long = "skip-function", aliases = ["exclude", "exclude-function"], hide = true,
          value_name = "NAME", value_parser = leave_out)]
    pub function: Option<Infallible>,
}

fn leave_out(_: &str) -> Result<Infallible, &'static str> {
    Err(
        "no function can be left out: it would reach memory that nothing confines, and the \
         verifier refuses such an object; leave out this option, and if the function is refused, \
         change it as `twin explain CODE` says",
    )
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}
