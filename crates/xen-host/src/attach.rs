//! A driver is put into Xen, or everything is as it was.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use crate::code::XenCode;
use crate::driver::{self, Likeness};
use crate::kit::Kit;
use crate::livepatch;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::system::System;
use crate::undo::{Done, control, load_module, set_card_check, undo};

/// Why a driver was not attached.
#[derive(Debug)]
pub struct Failed<E> {
    /// What went wrong.
    pub why: Why<E>,
    /// What could not be undone.
    pub left: Option<Refusal>,
}

/// What went wrong.
#[derive(Debug)]
pub enum Why<E> {
    /// A step, here.
    Step(Refusal),
    /// The payload was not made.
    Made(E),
}

impl<E> From<Refusal> for Why<E> {
    fn from(refusal: Refusal) -> Why<E> {
        Why::Step(refusal)
    }
}

/// Whether Xen checks what the driver gives to the card (the stage `dma`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardCheck {
    /// As the parameter of dom0's module has it: it does, unless somebody has set that.
    AsSet,
    /// It does not, until the module is unloaded or the parameter is set.
    Off,
}

/// Puts the driver of an interface into Xen. `make` is called once dom0's modules have their
/// addresses, and gives the file of the payload, `twin.livepatch`, which lives as long as its
/// result.
///
/// # Errors
/// Why not. All that was done is undone, or it is said what is left.
///
/// # Panics
/// If `make` does. All that was done is undone before.
pub fn attach<P: AsRef<Path>, E>(
    system: &System,
    kit: &Kit,
    interface: &str,
    check: CardCheck,
    make: impl FnOnce() -> Result<P, E>,
) -> Result<P, Failed<E>> {
    let mut done = Vec::new();
    let steps = catch_unwind(AssertUnwindSafe(|| {
        steps(system, kit, interface, check, make, &mut done)
    }));
    match steps {
        Ok(steps) => steps.map_err(|why| Failed {
            why,
            left: undo(system, &done).err(),
        }),
        // A defect of our own. The caller says so; what cannot be undone, `detach` tries again.
        Err(panic) => {
            let _ = undo(system, &done);
            resume_unwind(panic)
        }
    }
}

/// Each step that has changed something is added to `done`.
fn steps<P: AsRef<Path>, E>(
    system: &System,
    kit: &Kit,
    interface: &str,
    check: CardCheck,
    make: impl FnOnce() -> Result<P, E>,
    done: &mut Vec<Done>,
) -> Result<P, Why<E>> {
    let release = system.word("proc/sys/kernel/osrelease").unwrap_or_default();
    for name in driver::OURS {
        module(system, &kit.module(&release, name), name, done)?;
    }
    if check == CardCheck::Off {
        done.push(Done::CardCheck {
            before: set_card_check(system, false)?,
        });
    }
    // dom0's addresses are constants from here on: the modules stay where they are.
    let payload = make().map_err(Why::Made)?;
    // Half of this is something, too.
    done.push(Done::Payload);
    livepatch::load(system, payload.as_ref())?;
    control(system, "attach", interface)?;
    done.push(Done::Driver);
    drives(system, interface)?;
    Ok(payload)
}

/// Loads a module of ours, unless it is loaded; then it must be of this file.
fn module(
    system: &System,
    file: &Path,
    name: &'static str,
    done: &mut Vec<Done>,
) -> Result<(), Refusal> {
    if !driver::is_loaded(system, name) {
        load_module(system, file)?;
        done.push(Done::Module(name));
    }
    match driver::likeness(system, name, file) {
        Likeness::Same => Ok(()),
        Likeness::Other => Err(Refusal::new(
            XenCode::Module,
            format!(
                "{name} is loaded from another build than {}; `rmmod {name}` first",
                file.display()
            ),
        )),
        Likeness::Unknown(why) => Err(Refusal::new(
            XenCode::Module,
            format!(
                "{}: {why}; build it again with scripts/xen-install.sh",
                file.display()
            ),
        )),
    }
}

/// Whether the kernel's own word is that the driver runs in Xen.
///
/// # Errors
/// It is another.
pub fn drives(system: &System, interface: &str) -> Result<(), Refusal> {
    let status = Status::read(system)?;
    match status.is_some_and(|status| status.drives(interface)) {
        true => Ok(()),
        false => Err(Refusal::new(
            XenCode::Kernel,
            format!(
                "the kernel took {interface}, and does not say that it is driven inside Xen; \
                 look into `dmesg` and `xl dmesg`"
            ),
        )),
    }
}
