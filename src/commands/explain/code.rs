//! The long texts of codes: `twin explain CODE`, and the list of all codes.

use std::io::Write;
use std::path::Path;

use anstyle::Style;
use twin_abi::explanation::Example;

use command_line::codes::{AnyCode, ORIGINS, Origin, instructions};
use command_line::failure::Failure;
use command_line::output;
use command_line::text::wrap;

/// Columns of the text.
const COLUMNS: usize = 80;
/// Columns of a code in the list.
const NAMES: usize = 22;

const HEADING: Style = Style::new().bold();

/// The code that an argument means: it is the code's name, and no file is called so.
pub fn meant(argument: &Path) -> Option<AnyCode> {
    let code = AnyCode::named(argument.to_str()?)?;
    (!argument.exists()).then_some(code)
}

/// Prints one code at length.
pub fn print(code: AnyCode) -> Result<(), Failure> {
    output::pretty(|out| at_length(out, code))
}

/// Prints all codes, a line each.
pub fn list() -> Result<(), Failure> {
    output::pretty(all)
}

fn at_length(out: &mut impl Write, code: AnyCode) -> std::io::Result<()> {
    let text = code.explanation();
    let paragraph = |text| wrap(text, COLUMNS, "  ");
    writeln!(out, "{HEADING}{}{HEADING:#}", code.as_str())?;
    writeln!(out, "{}", paragraph(text.meaning))?;
    writeln!(out, "\n{HEADING}Why it cannot be passed through{HEADING:#}")?;
    writeln!(out, "{}", paragraph(text.why))?;
    writeln!(out, "\n{HEADING}What to do{HEADING:#}")?;
    writeln!(out, "{}", paragraph(text.remedy))?;
    writeln!(out, "\n{HEADING}Example{HEADING:#}")?;
    match text.example {
        Example::Assembly(body) => writeln!(out, "{}", instructions(body)),
        Example::Text(text) => text.lines().try_for_each(|line| writeln!(out, "  {line}")),
    }
}

fn all(out: &mut impl Write) -> std::io::Result<()> {
    for (n, Origin { title, codes }) in ORIGINS.iter().enumerate() {
        writeln!(
            out,
            "{}{HEADING}{title}{HEADING:#}",
            if n > 0 { "\n" } else { "" }
        )?;
        for code in codes() {
            let indent = " ".repeat(NAMES + 2);
            let meaning = wrap(code.explanation().meaning, COLUMNS, &indent);
            writeln!(
                out,
                "  {:NAMES$}{}",
                code.as_str(),
                &meaning[indent.len()..]
            )?;
        }
    }
    Ok(())
}
