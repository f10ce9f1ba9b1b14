//! Sites as text: each original instruction and its replacement.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use elf_loader::Object;
use svm_rewrite::listing::{Line, Lister};
use svm_rewrite::{Site, shortened};

use command_line::text::{count, one_line};

/// Columns of the left side.
const LEFT: usize = 36;

const HEADING: Style = Style::new().bold();
const BEFORE: Style = AnsiColor::Red.on_default();
const AFTER: Style = AnsiColor::Green.on_default();
const LABEL: Style = AnsiColor::Cyan.on_default();
const ASIDE: Style = Style::new().dimmed();

/// Prints sites, function by function. `object` is the rewritten one.
pub fn print(out: &mut impl Write, object: &Object<'_>, sites: &[&Site]) -> std::io::Result<()> {
    for group in sites.chunk_by(|a, b| (&a.section, &a.function) == (&b.section, &b.function)) {
        let (section, function) = (&group[0].section, one_line(&group[0].function));
        let n = count(group.len() as u64, "site");
        let shown = one_line(&shortened(&**section));
        writeln!(out, "{HEADING}{function}{HEADING:#} in {shown}: {n}\n")?;
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
    let section = one_line(&shortened(&**section));
    write!(
        out,
        "{HEADING}{section}+{offset:#x}{HEADING:#}  {}",
        site.class.as_str()
    )?;
    if let Some(scheme) = site.scheme {
        write!(out, "  {scheme}")?;
    }
    if !site.return_address.is_empty() {
        write!(out, "  return address {}", site.return_address.join(", "))?;
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
    let before = one_line(before);
    let mut left = &*before;
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
            Line::Instruction { label, text, .. } => {
                let label = label
                    .as_ref()
                    .map_or(String::new(), |label| format!("{}:", one_line(label)));
                let text = one_line(text);
                writeln!(out, "{LABEL}{label:5}{LABEL:#} {AFTER}{text}{AFTER:#}")?;
            }
            Line::Elsewhere => writeln!(out, "      {ASIDE}-- out of line --{ASIDE:#}")?,
            Line::End(label) => writeln!(out, "{LABEL}{label}:{LABEL:#}")?,
        }
        left = "";
    }
    writeln!(out)
}
