//! The machine of those rows whose guests are processes that the hypervisor enters: on one processor, with the stages `bridge`
//! and `notify`, and frames of full size.

use std::collections::HashSet;
use std::time::Duration;

use process_lab::program::Variant;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engines::staged::Staged;
use crate::experiment::apart::apart_on_one;
use crate::guests::crossing::Guests;
use crate::image::files::Files;
use crate::memory::{Machine, Sizes};
use crate::packets::round::Runner;
use crate::paths;
use crate::stages::{Stage, Stages};
use crate::system::{Blueprint, System, SystemError};
use crate::traffic::LONGEST;
use crate::traffic::source::Shape;
use crate::transport::mailbox::Mailbox;
use crate::transport::rendezvous::Limits;

/// The most guests: all have rings, whether they send or not.
pub const GUESTS: u32 = 8;

/// How long guests and hypervisor wait for each other. Nobody spins, because all are on one processor; single steps are slow.
pub const WAIT: Limits = Limits {
    time: Duration::from_secs(120),
    spin: 0,
};

/// What `work` gives in a process of its own, with guests 0 to [`GUESTS`] - 1, which have been started, and a driver whose parameters are
/// `driver_args` (as on the command line of `insmod`; may be empty).
///
/// # Errors
/// [`SystemError`] of the process.
pub fn with_guests<T: Serialize + DeserializeOwned>(
    files: &Files,
    variant: Variant,
    driver_args: &str,
    work: impl for<'s> FnOnce(Guests<'s>, Runner<'s, Staged<'s>>) -> Result<T, SystemError>,
) -> Result<T, SystemError> {
    apart_on_one(|| {
        // Else each switch between two of them could let another process run.
        paths::hurry();
        let machine = Machine::new(Sizes::default())?;
        let shape = Shape::Frames(LONGEST);
        // Before there is anything else that they could have copies of.
        let guests = Guests::start(&machine, GUESTS, shape, WAIT)?;
        let blueprint =
            Blueprint::new(files, variant, &HashSet::new())?.with_driver_args(driver_args);
        let mailbox = Mailbox::new()?;
        let limits = Limits::of_seconds(120);
        let system = System::start(&blueprint, &machine, mailbox.get(), limits)?;
        let stages = Stages::of([Stage::Bridge, Stage::Notify]);
        let mut engine = system.staged(limits, GUESTS, stages)?;
        engine.play_time();
        let runner = system.staged_runner(engine, GUESTS, shape)?;
        paths::declare(system.blueprint());
        work(guests, runner)
    })
}
