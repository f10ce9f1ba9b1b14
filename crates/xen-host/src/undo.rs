//! What has been done to a system, and undoing it: the last first.

use crate::code::XenCode;
use crate::livepatch;
use crate::log::KernelLog;
use crate::refusal::Refusal;
use crate::status::{CONTROLS, Status};
use crate::system::{System, describe};

/// Something that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A module of ours was loaded.
    Module(&'static str),
    /// Whether Xen checks what the driver gives to the card was set; it was so before.
    CardCheck {
        /// Whether it did.
        before: bool,
    },
    /// The payload is in Xen.
    Payload,
    /// A driver runs there.
    Driver,
}

/// Undoes all, in reverse. Each step needs the ones before it, so the first that fails is the
/// last that is tried.
///
/// # Errors
/// What could not be undone, and why.
pub fn undo(system: &System, done: &[Done]) -> Result<(), Refusal> {
    done.iter().rev().try_for_each(|one| match one {
        Done::Driver => detach_driver(system),
        Done::Payload => livepatch::unload(system),
        Done::CardCheck { before } => set_card_check(system, *before).map(|_| ()),
        Done::Module(name) => unload_module(system, name),
    })
}

/// The parameter of dom0's module, which an attachment takes.
const CARD_CHECK: &str = "sys/module/twin_dom0/parameters/dma";

/// Whether Xen checks what the driver gives to the card, from the next attachment on. Gives
/// whether it did before.
///
/// # Errors
/// The kernel does not take it.
pub fn set_card_check(system: &System, on: bool) -> Result<bool, Refusal> {
    let refused = |why: String| Refusal::new(XenCode::Kernel, format!("/{CARD_CHECK}: {why}"));
    let before = system.word(CARD_CHECK);
    let before = before.ok_or_else(|| refused("it cannot be read".to_owned()))?;
    let word = if on { "1" } else { "0" };
    let written = system.write(CARD_CHECK, word);
    written.map_err(|error| refused(describe(&error)))?;
    Ok(before != "0")
}

/// dom0's own driver has the interface again.
fn detach_driver(system: &System) -> Result<(), Refusal> {
    control(system, "detach", "1")?;
    match Status::read(system)?.and_then(|status| status.interface) {
        None => Ok(()),
        Some(name) => Err(Refusal::new(
            XenCode::Kernel,
            format!("{name} is still driven inside Xen; look into `dmesg` and `xl dmesg`"),
        )),
    }
}

/// Writes to one of the controls. The kernel answers with a number, and gives the reason in its
/// log.
///
/// # Errors
/// The reason.
pub fn control(system: &System, name: &str, word: &str) -> Result<(), Refusal> {
    let mut log = KernelLog::mark(system);
    let written = system.write(&format!("{CONTROLS}/{name}"), word);
    written.map_err(|error| {
        let error = describe(&error);
        let why = match reason(&log.lines()) {
            Some(reason) => format!("dom0's kernel: {reason} ({error})"),
            None => format!("/{CONTROLS}/{name}: {error}; `dmesg` may say more"),
        };
        Refusal::new(XenCode::Kernel, why)
    })
}

/// The reason among lines of the kernel's log: all but the last word, which says only that
/// there is one.
fn reason(lines: &[String]) -> Option<String> {
    let result = |line: &&String| line.contains(" is not attached: ");
    let reasons: Vec<&str> = lines
        .iter()
        .filter(|line| !result(line))
        .map(String::as_str)
        .collect();
    match reasons.is_empty() {
        true => lines.last().cloned(),
        false => Some(reasons.join("; ")),
    }
}

/// Loads a module from its file.
///
/// # Errors
/// The kernel refuses it: why.
pub fn load_module(system: &System, file: &std::path::Path) -> Result<(), Refusal> {
    let mut log = KernelLog::mark(system);
    let loaded = system.run("insmod", &[file]);
    loaded.map(|_| ()).map_err(|error| {
        let more = reason(&log.lines()).map_or(String::new(), |reason| format!(" ({reason})"));
        Refusal::new(
            XenCode::Module,
            format!("insmod: {}{more}; `dmesg` may say more", error.line()),
        )
    })
}

fn unload_module(system: &System, name: &str) -> Result<(), Refusal> {
    let unloaded = system.run("rmmod", &[name]);
    unloaded.map(|_| ()).map_err(|error| {
        let why = format!("rmmod: {}; it stays loaded", error.line());
        Refusal::new(XenCode::Module, why)
    })
}
