//! The payload's way into Xen and out of it, by `xen-livepatch`.
//!
//! ```text
//! absent ──load──> APPLIED        APPLIED ──revert──> CHECKED ──unload──> absent
//!    └─(load failed half way)─> CHECKED ──apply──> APPLIED
//! ```
//!
//! Xen gives its processors 30 ms to meet for applying and reverting; a busy machine, or an
//! emulator, does not always let them. Then nothing has changed, and the step is tried again.
//! What the next step is, Xen's own list says each time, never what the last one printed.

use std::ffi::OsStr;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::code::XenCode;
use crate::log::{added, xen_log, xens_reason};
use crate::refusal::Refusal;
use crate::system::{ProgramError, System};
use crate::tools::payloads;

/// The payload's name in Xen: that of its file, without the ending.
pub const NAME: &str = "twin";
/// How often a step is tried that came too late.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(500);
/// What `xen-livepatch` prints of a step that came too late, or is not over:
/// EBUSY and EAGAIN by number, and its own words.
const LATE: [&str; 4] = [
    "Error 16:",
    "Error 11:",
    "didn't complete",
    "already in progress",
];

/// The payload in Xen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Absent,
    Checked,
    Applied,
}

/// Loads a payload's file, whose name is `twin.livepatch`.
///
/// # Errors
/// Xen refuses it: its reason. It may be in Xen and not applied: [`unload`] takes it out.
pub fn load(system: &System, file: &Path) -> Result<(), Refusal> {
    let (file, name) = (file.as_os_str(), OsStr::new(NAME));
    reach(system, |place| match place {
        Place::Absent => Some(("load", file)),
        Place::Checked => Some(("apply", name)),
        Place::Applied => None,
    })
}

/// Takes the payload out, if it is there.
///
/// # Errors
/// Xen does not let it go: its reason.
pub fn unload(system: &System) -> Result<(), Refusal> {
    let name = OsStr::new(NAME);
    reach(system, |place| match place {
        Place::Applied => Some(("revert", name)),
        Place::Checked => Some(("unload", name)),
        Place::Absent => None,
    })
}

/// Steps until there is none to do.
fn reach<'a>(
    system: &System,
    next: impl Fn(Place) -> Option<(&'a str, &'a OsStr)>,
) -> Result<(), Refusal> {
    for tries in 1..=TRIES {
        let Some((step, of)) = next(place(system)?) else {
            return Ok(());
        };
        let before = xen_log(system).unwrap_or_default();
        match system.run("xen-livepatch", &[OsStr::new(step), of]) {
            Ok(_) => {}
            Err(error) => {
                let after = xen_log(system).unwrap_or_default();
                let said = added(&before, &after);
                if tries == TRIES || !is_late(&error) || is_below(&said) {
                    return Err(refused(step, &error, &said));
                }
                sleep(PAUSE);
            }
        }
    }
    let why = "`xen-livepatch` says that it succeeds, and its list shows nothing of it";
    Err(Refusal::new(XenCode::Livepatch, why))
}

fn is_late(error: &ProgramError) -> bool {
    match error {
        ProgramError::Missing => false,
        ProgramError::Failed(output) => LATE.iter().any(|words| output.contains(words)),
    }
}

/// Another payload is above it, of which Xen says the same as of a step that came too late: time changes nothing.
fn is_below(log: &[&str]) -> bool {
    log.iter()
        .any(|line| line.contains("can't unload. Top is "))
}

fn place(system: &System) -> Result<Place, Refusal> {
    let list = payloads(system).map_err(|error| refused("list", &error, &[]))?;
    let ours = list.iter().find(|payload| payload.name == NAME);
    Ok(match ours {
        None => Place::Absent,
        Some(ours) if ours.is_applied() => Place::Applied,
        Some(_) => Place::Checked,
    })
}

fn refused(step: &str, error: &ProgramError, log: &[&str]) -> Refusal {
    let reason = xens_reason(log).map_or_else(
        || "`xl dmesg` may say more".to_owned(),
        |reason| format!("Xen says: {reason}"),
    );
    let why = format!("`xen-livepatch {step}`: {}; {reason}", error.line());
    Refusal::new(XenCode::Livepatch, why)
}
