//! `twin explain`: what rewriting does, before and after, site by site.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::Args;
use elf_loader::{Object, Place};
use svm_rewrite::{Options, Scheme, Site};

use crate::failure::Failure;
use crate::input::Input;
use crate::output;
use crate::parallel::guard;
use crate::text::count;
use svm_rewrite::listing::{Line, Lister};

const EXAMPLES: &str = "\
Examples:
  twin explain e1000.ko --function e1000_clean
  CLICOLOR_FORCE=1 twin explain e1000.ko | less -R

On the left each original instruction, on the right what takes its place.
Colour is used on a terminal, unless NO_COLOR is set.

Exit status:
  0  done
  1  the input was refused, or has no such function
  2  wrong usage, or a file that cannot be read";

/// Columns of the left side.
const LEFT: usize = 36;
/// Suggestions for a misspelt name.
const NEAREST: usize = 3;
/// How alike a suggestion must be (Jaro-Winkler, 0 to 1).
const ALIKE: f64 = 0.7;

const HEADING: Style = Style::new().bold();
const BEFORE: Style = AnsiColor::Red.on_default();
const AFTER: Style = AnsiColor::Green.on_default();
const LABEL: Style = AnsiColor::Cyan.on_default();
const ASIDE: Style = Style::new().dimmed();

/// Options of `twin explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Object to explain, plain or compressed; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Explain this function only.
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
}

impl Opts {
    /// Explains the file.
    pub fn run(self) -> Result<(), Failure> {
        guard(&self.file, |path| self.explain(path))
    }

    fn explain(&self, path: &Path) -> Result<(), Failure> {
        let input = Input::read(path)?;
        let original = input.object()?;
        if let Some(name) = &self.function {
            known(&input.name, &original, name)?;
        }
        let options = Options {
            report: true,
            ..Options::new(Scheme::Stlb)
        };
        let rewritten = svm_rewrite::rewrite(&original, options).map_err(|refusals| {
            let file = input.name.clone();
            Failure::Refused { file, refusals }
        })?;
        let chosen = |site: &&Site| {
            self.function
                .as_ref()
                .is_none_or(|name| site.function == *name)
        };
        let sites: Vec<&Site> = rewritten.sites.iter().filter(chosen).collect();
        let mut out = BufWriter::new(anstream::stdout().lock());
        let result = match (&sites[..], &self.function) {
            ([], Some(name)) => writeln!(out, "{name}: no site: every instruction stays as it is"),
            _ => explain(&mut out, &rewritten.object, &sites),
        };
        output::text_result(result.and_then(|()| out.flush()))
    }
}

/// Refuses a function that the object does not have, and names its likes.
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
    let hint = match nearest(&names, name)[..] {
        [] => String::new(),
        ref likes => format!("; did you mean {}?", likes.join(", ")),
    };
    Err(Failure::input(file, format!("no function `{name}`{hint}")))
}

/// The names most like this one, the likest first.
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

fn explain(out: &mut impl Write, object: &Object<'_>, sites: &[&Site]) -> std::io::Result<()> {
    for group in sites.chunk_by(|a, b| (&a.section, &a.function) == (&b.section, &b.function)) {
        let (section, function) = (&group[0].section, &group[0].function);
        let n = count(group.len() as u64, "site");
        writeln!(out, "{HEADING}{function}{HEADING:#} in {section}: {n}\n")?;
        let Some(mut lister) = Lister::new(object, section) else {
            continue;
        };
        for site in group {
            heading(out, site)?;
            side_by_side(
                out,
                &site.instruction,
                &lister.list(&site.emitted, &site.out_of_line),
            )?;
        }
    }
    Ok(())
}

/// `.text+0x52  heap  stlb  scratch rcx rdx  spills none  flags dead  +7 instructions`
fn heading(out: &mut impl Write, site: &Site) -> std::io::Result<()> {
    let registers = |all: &[&str]| match all {
        [] => "none".to_owned(),
        all => all.join(" "),
    };
    let Site {
        section,
        offset,
        flags,
        ..
    } = site;
    write!(
        out,
        "{HEADING}{section}+{offset:#x}{HEADING:#}  {}",
        site.class.as_str()
    )?;
    if let Some(scheme) = site.scheme {
        write!(out, "  {scheme}")?;
    }
    writeln!(
        out,
        "  scratch {}  spills {}  flags {flags}  {:+} instructions",
        registers(&site.scratch),
        registers(&site.spills),
        site.added_instructions
    )
}

fn side_by_side(out: &mut impl Write, before: &str, after: &[Line]) -> std::io::Result<()> {
    let mut left = before;
    if left.len() > LEFT {
        writeln!(out, "  {BEFORE}{left}{BEFORE:#}")?;
        left = "";
    }
    if after.is_empty() {
        writeln!(
            out,
            "  {BEFORE}{left:LEFT$}{BEFORE:#}   {ASIDE}(dropped){ASIDE:#}"
        )?;
    }
    for line in after {
        write!(out, "  {BEFORE}{left:LEFT$}{BEFORE:#} ")?;
        match line {
            Line::Instruction { label, text } => {
                let label = label
                    .as_ref()
                    .map_or(String::new(), |label| format!("{label}:"));
                writeln!(out, "{LABEL}{label:5}{LABEL:#} {AFTER}{text}{AFTER:#}")?;
            }
            Line::Elsewhere => writeln!(out, "      {ASIDE}-- out of line --{ASIDE:#}")?,
            Line::End(label) => writeln!(out, "{LABEL}{label}:{LABEL:#}")?,
        }
        left = "";
    }
    writeln!(out)
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
