//! `twin explain`: what rewriting does, before and after, site by site; and what
//! the codes of refusals and violations mean.

mod code;
mod html;
mod sites;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use command_line::codes::{AnyCode, CommandCode};
use command_line::failure::Failure;
use command_line::input::{self, Input, is_stdin};
use command_line::options::{
    accesses, agree, may_be_strict, processor, processor_of, scheme, suit, target_among,
};
use command_line::output::{self, Destination, Pending};
use elf_loader::{Object, Place};
use svm_rewrite::{Accesses, Options, Processor, Scheme, Site, Target, shortened};

use crate::inputs::refuse_overwriting;
use crate::parallel::guard;

const EXAMPLES: &str = "\
Examples:
  twin explain e1000.ko --function e1000_clean
  twin explain e1000.ko --scheme window32 --function e1000_clean_rx_irq
  twin explain e1000.ko --target linux --accesses stores --function e1000_clean
  twin explain e1000.ko --html -o e1000.html
  twin explain code-reference
  CLICOLOR_FORCE=1 twin explain e1000.ko | less -R

On the left each original instruction, on the right what takes its place.
Colour is used on a terminal, unless NO_COLOR is set. A word that is the code of
a refusal or violation, and no file, is explained itself; --codes lists them.

Exit status:
  0  done
  1  the input was refused, or has no such function
  2  wrong usage, or a file that cannot be read";

/// Suggestions for a misspelt name.
const NEAREST: usize = 3;
/// Least similarity of a suggestion (Jaro-Winkler, 0 to 1).
const ALIKE: f64 = 0.7;

/// Options of `twin explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Object to explain, plain or compressed (`-` is standard input); or the
    /// code of a refusal or violation.
    #[arg(value_name = "FILE|CODE", required_unless_present = "codes")]
    file: Option<PathBuf>,
    /// Explain this function only.
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The scheme to rewrite by.
    #[arg(long, value_name = "SCHEME", default_value = Scheme::Stlb.as_str(),
          value_parser = scheme())]
    scheme: Scheme,
    /// What the rewritten code is to run on.
    #[arg(long, value_name = "TARGET", default_value = Target::Hypervisor.as_str(),
          value_parser = target_among(&[Target::Hypervisor, Target::Linux]))]
    target: Target,
    /// Which accesses to memory are translated.
    #[arg(long, value_name = "ACCESSES", default_value = Accesses::All.as_str(),
          value_parser = accesses())]
    accesses: Accesses,
    /// Which processors the code is for [default: bmi2 for scheme window, else any].
    #[arg(long, value_name = "PROCESSOR", value_parser = processor())]
    processor: Option<Processor>,
    /// Compare pointers with dom0's first and last address before they are used.
    #[arg(long)]
    strict: bool,
    /// Make one page to read in a browser, with nothing to load besides.
    #[arg(long)]
    html: bool,
    /// Where the page goes; standard output without it.
    #[arg(short, long, value_name = "PAGE", requires = "html")]
    output: Option<PathBuf>,
    /// List all codes.
    #[arg(long, conflicts_with_all = ["file", "function", "html", "output", "processor", "strict"])]
    codes: bool,
}

impl Opts {
    /// Explains the file or the code.
    pub fn run(self) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            return code::list();
        };
        agree(self.accesses, self.target)?;
        suit(self.scheme, self.target)?;
        may_be_strict(self.strict, self.scheme)?;
        match code::meant(file) {
            Some(_) if self.asks_for_a_file() => {
                let why = format!(
                    "`{}` is a code, and the options given are for a file; leave them out, or name a file by `./{0}`",
                    input::printable(file)
                );
                Err(Failure::Usage(why))
            }
            Some(code) => code::print(code),
            None => {
                misspelt(file)?;
                guard(file, |path| self.explain(path))
            }
        }
    }

    /// Whether there are options that mean nothing for a code. (Those with defaults are not seen.)
    fn asks_for_a_file(&self) -> bool {
        let given = self.function.is_some() || self.output.is_some() || self.processor.is_some();
        given || self.html || self.strict
    }

    fn explain(&self, path: &Path) -> Result<(), Failure> {
        let input = Input::read_file(path)?;
        let original = input.object()?;
        if let Some(name) = &self.function {
            known(&input.name, &original, name)?;
        }
        let options = Options {
            report: true,
            accesses: self.accesses,
            processor: processor_of(self.processor, self.scheme)?,
            strict: self.strict,
            ..Options::of(self.target, self.scheme)
        };
        let rewritten = svm_rewrite::rewrite(&original, options).map_err(|refusals| {
            let file = input.name.clone();
            Failure::Refused { file, refusals }
        })?;
        if self.html {
            let scheme = options.scheme.as_str();
            let only = self.function.as_deref();
            let page = html::page(&input.name, scheme, &original, &rewritten, only);
            let output = self.output.clone().unwrap_or_else(|| PathBuf::from("-"));
            let to = Destination::new(output);
            refuse_overwriting(&to, self.file.as_deref())?;
            return Pending::create(&to)?.finish_with(page.as_bytes());
        }
        // Sites have names as they are shown.
        let function = self.function.as_deref().map(shortened);
        let chosen = |site: &&Site| {
            let name = function.as_deref();
            name.is_none_or(|name| site.function == name)
        };
        let sites: Vec<&Site> = rewritten.sites.iter().filter(chosen).collect();
        output::pretty(|out| match (&sites[..], &function) {
            ([], Some(name)) => writeln!(out, "{name}: no site: every instruction stays as it is"),
            _ => sites::print(out, &rewritten.object, &sites),
        })
    }
}

/// Refuses an argument that is no file and has the form of a code.
fn misspelt(file: &Path) -> Result<(), Failure> {
    let name = file.to_string_lossy();
    if file.exists() || is_stdin(file) || name.contains(['/', '.']) {
        return Ok(());
    }
    let codes = AnyCode::all().into_iter().map(AnyCode::as_str).collect();
    let likes = hint(&codes, &name);
    let remedy = match likes.is_empty() {
        true => "; `twin explain --codes` lists them",
        false => &likes,
    };
    let why = format!("no such file, and no such code{remedy}");
    Err(Failure::access(name, why))
}

/// Refuses a function that the object does not have, and names similar ones.
fn known(file: &str, object: &Object<'_>, name: &str) -> Result<(), Failure> {
    let in_code = |place| matches!(place, Place::In(id) if object.section(id).is_code());
    let names: BTreeSet<&str> = object
        .symbols()
        .filter(|(_, s)| in_code(s.place) && !s.name.is_empty())
        .map(|(_, s)| &*s.name)
        .collect();
    if names.contains(name) {
        return Ok(());
    }
    let why = format!("no function `{name}`{}", hint(&names, name));
    Err(Failure::refused(file, CommandCode::NoFunction, why))
}

/// Asks whether a similar name was meant, if there is one.
fn hint(names: &BTreeSet<&str>, name: &str) -> String {
    match nearest(names, name)[..] {
        [] => String::new(),
        ref likes => format!("; did you mean {}?", likes.join(", ")),
    }
}

/// The names most similar to this one, best first.
fn nearest<'n>(names: &BTreeSet<&'n str>, name: &str) -> Vec<&'n str> {
    let score = |other: &str| match other.contains(name) && !name.is_empty() {
        true => 2.0 - other.len() as f64 / 1e6,
        false => strsim::jaro_winkler(other, name),
    };
    let mut scored: Vec<_> = names.iter().map(|other| (score(other), *other)).collect();
    scored.retain(|(score, _)| *score >= ALIKE);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
        .into_iter()
        .map(|(_, other)| other)
        .take(NEAREST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_have_neighbours() {
        let names = BTreeSet::from(["e1000_clean", "e1000_clean_rx_irq", "e1000_open", "main"]);
        assert_eq!(nearest(&names, "e1000_claen")[0], "e1000_clean");
        assert_eq!(nearest(&names, "clean_rx"), ["e1000_clean_rx_irq"]);
        assert!(nearest(&names, "zzz").is_empty());
    }
}
