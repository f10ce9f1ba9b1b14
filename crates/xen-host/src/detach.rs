//! A driver is taken out of Xen, or begun anew there.

use crate::attach::drives;
use crate::code::XenCode;
use crate::driver;
use crate::livepatch;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::system::System;
use crate::tools::payloads;
use crate::undo::{Done, control, undo};

/// Where the kernel lists the guests' interfaces that dom0's module serves.
const VIFS: &str = "sys/bus/xen-backend/drivers/twin-vif";

/// What a detachment found, and what stays after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Whether the driver was in Xen, and not only what an attachment had left half way.
    pub was_attached: bool,
    /// Guests' interfaces, for which dom0's modules stay loaded: `vif-1-0`.
    pub interfaces: Vec<String>,
}

/// Gives the interface back to dom0's driver, and takes the payload and the modules away. It
/// also clears up where an attachment was killed half way.
///
/// # Errors
/// Nothing is there to detach, another interface is attached, or a step failed: the ones before
/// it are done, and this can be called again.
pub fn detach(system: &System, interface: &str) -> Result<Left, Refusal> {
    let mut there = Vec::new();
    for name in driver::OURS {
        if driver::is_loaded(system, name) {
            there.push(Done::Module(name));
        }
    }
    // If Xen cannot be asked, it may be there: taking it out says why not.
    if payloads(system).map_or(true, |all| {
        all.iter().any(|one| one.name == livepatch::NAME)
    }) {
        there.push(Done::Payload);
    }
    let attached = attached(system)?;
    let was_attached = attached.is_some();
    match attached {
        Some(name) if name == interface => there.push(Done::Driver),
        Some(other) => return Err(another(interface, &other)),
        None if there.is_empty() => return Err(nothing(interface)),
        None => {}
    }
    let interfaces = guests(system);
    if !interfaces.is_empty() {
        there.retain(|one| !matches!(one, Done::Module(_)));
    }
    undo(system, &there)?;
    Ok(Left {
        was_attached,
        interfaces,
    })
}

/// Detaches the driver and attaches it anew, with the payload that is in Xen.
///
/// # Errors
/// The interface is not attached; or the kernel's reason. If it did not attach again, all is
/// taken away.
pub fn restart(system: &System, interface: &str) -> Result<(), Refusal> {
    match attached(system)? {
        Some(name) if name == interface => {}
        Some(other) => return Err(another(interface, &other)),
        None => return Err(nothing(interface)),
    }
    let restarted = control(system, "restart", "1").and_then(|()| drives(system, interface));
    let Err(refusal) = restarted else {
        return Ok(());
    };
    if attached(system)?.is_some() {
        return Err(refusal);
    }
    // It is dom0's, and does not come back.
    let rest = match detach(system, interface) {
        Ok(_) => format!("{interface} is dom0's again"),
        Err(left) => left.why,
    };
    Err(Refusal::new(
        refusal.code,
        format!("{}; {rest}", refusal.why),
    ))
}

fn attached(system: &System) -> Result<Option<String>, Refusal> {
    Ok(Status::read(system)?.and_then(|status| status.interface))
}

/// Guests' interfaces that dom0's module serves, by the names of their devices.
fn guests(system: &System) -> Vec<String> {
    let names = system.names(VIFS).into_iter();
    names.filter(|name| name.starts_with("vif-")).collect()
}

fn another(interface: &str, other: &str) -> Refusal {
    Refusal::new(
        XenCode::NotAttached,
        format!("{interface} is not driven inside Xen, {other} is; give that"),
    )
}

fn nothing(interface: &str) -> Refusal {
    Refusal::new(
        XenCode::NotAttached,
        format!("{interface} is not driven inside Xen, and nothing else is"),
    )
}
