//! `twin xen attach`: checked, rewritten, made, loaded, attached, or as it was.

use command_line::failure::Failure;
use command_line::{interrupt, output};
use xen_host::{CardCheck, Failed, Kit, System, Why, XenCode};

use super::make::Parts;
use super::{alone, check, refused};

/// What is wanted of an attachment.
pub(super) struct Wanted<'a> {
    pub(super) device: &'a str,
    /// The driver's pointers are compared.
    pub(super) strict: bool,
    pub(super) card: CardCheck,
}

/// Puts the interface's driver into Xen.
pub(super) fn run(system: &System, kit: &Kit, wanted: &Wanted) -> Result<(), Failure> {
    let device = wanted.device;
    check::refuse(system, kit, device)?;
    let _whole = interrupt::postpone();
    let _alone = alone(system, device)?;
    // Another run may have changed something since.
    let facts = check::refuse(system, kit, device)?;
    let parts = Parts::read(system, kit, &facts, wanted.strict)?;
    // --- nothing is changed up to here; what is from here on is undone if a step fails ---
    let attached = xen_host::attach(system, kit, device, wanted.card, || parts.make());
    let payload = attached.map_err(|failed| report(device, failed))?;
    output::text(format!("{device}: driven inside Xen {}\n", payload.proved).as_bytes())?;
    output::say(&format!(
        "twin: dom0's own packets to {device} are dropped until `twin xen detach {device}`\n"
    ));
    Ok(())
}

/// The failure; what could not be undone is printed first.
fn report(device: &str, failed: Failed<Failure>) -> Failure {
    if let Some(left) = &failed.left {
        let why = format!(
            "not all could be undone: {}; `twin xen detach {device}` tries again",
            left.why
        );
        Failure::refused(device, XenCode::HalfDone, why).print();
    }
    match failed.why {
        Why::Step(refusal) => refused(device, &refusal),
        Why::Made(failure) => failure,
    }
}
