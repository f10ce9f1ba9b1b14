//! `twin xen check`: every condition, whether it holds, and what to do if not.

use command_line::failure::{Failure, Status};
use command_line::options::Format;
use command_line::output;
use command_line::text::count;
use serde::Serialize;
use xen_host::{Check, Facts, Kit, System, Verdict, checks, works};

/// Version of the report as JSON. Further fields do not change it.
const VERSION: u32 = 1;

/// The result as JSON has it.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    /// Whether no condition fails.
    works: bool,
    checks: &'a [Check],
}

/// Prints all conditions.
pub(super) fn run(
    system: &System,
    kit: &Kit,
    device: Option<&str>,
    format: Format,
) -> Result<(), Failure> {
    let checks = checks(&Facts::read(system, kit, device));
    match format {
        Format::Json => output::json(&Report {
            version: VERSION,
            works: works(&checks),
            checks: &checks,
        })?,
        Format::Text => output::text(lines(&checks, device).as_bytes())?,
    }
    match works(&checks) {
        true => Ok(()),
        false => Err(Failure::Reported(Status::Refused)),
    }
}

/// A line for each condition; what to do is on the next.
fn lines(checks: &[Check], device: Option<&str>) -> String {
    let mut out = String::new();
    for check in checks {
        let verdict = match check.verdict {
            Verdict::Holds => "ok",
            Verdict::Fails => "NO",
            Verdict::Unknown => "?",
        };
        let Check { what, found, .. } = check;
        out.push_str(&format!("{verdict:<3} {what:<11} {found}\n"));
        if let Some(remedy) = &check.remedy {
            let (wanted, code) = (check.wanted, check.code.as_str());
            out.push_str(&format!(
                "    {:<11} wanted: {wanted}; {remedy} [{code}]\n",
                ""
            ));
        }
    }
    out + &sum(checks, device)
}

fn sum(checks: &[Check], device: Option<&str>) -> String {
    let of = |verdict| {
        checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .count() as u64
    };
    let what = device.unwrap_or("a card of e1000's");
    match (of(Verdict::Fails), of(Verdict::Unknown)) {
        (0, 0) => format!("{what} can be driven inside this Xen\n"),
        (0, n) => format!(
            "{what} can be driven inside this Xen, unless `attach` finds otherwise of {}\n",
            count(n, "condition")
        ),
        (n, _) => format!(
            "{what} cannot be driven inside this Xen: {} not met\n",
            count(n, "condition")
        ),
    }
}

/// Refuses with each condition that fails, a line each.
pub(super) fn refuse(system: &System, kit: &Kit, device: &str) -> Result<Facts, Failure> {
    let facts = Facts::read(system, kit, Some(device));
    let checks = checks(&facts);
    for check in checks
        .iter()
        .filter(|check| check.verdict == Verdict::Fails)
    {
        let Check {
            code,
            found,
            wanted,
            remedy,
            ..
        } = check;
        let remedy = remedy.as_deref().unwrap_or_default();
        let why = format!("{found}; wanted: {wanted}; {remedy}");
        Failure::refused(device, *code, why).print();
    }
    match works(&checks) {
        true => Ok(facts),
        false => Err(Failure::Reported(Status::Refused)),
    }
}
