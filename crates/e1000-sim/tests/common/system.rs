//! A system with the stock driver, booted: dom0, its card, and what a hypervisor
//! instance is loaded from.

use std::collections::HashSet;

use e1000_sim::image::files::Files;
use e1000_sim::memory::{Machine, Sizes};
use e1000_sim::system::{Blueprint, System};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::{Scheme, Variant};

#[path = "child.rs"]
pub mod child;

use child::in_child;

/// Runs `test` with a system in which the hot routines named in `upcalls` are
/// upcalls.
#[allow(dead_code, reason = "not every test that has this module uses it")]
pub fn with_system(upcalls: &HashSet<String>, limits: Limits, test: impl FnOnce(System<'_>)) {
    with_scheme(Scheme::Stlb, upcalls, limits, test);
}

/// The same with another scheme.
#[allow(dead_code, reason = "not every test that has this module uses it")]
pub fn with_scheme(
    scheme: Scheme,
    upcalls: &HashSet<String>,
    limits: Limits,
    test: impl FnOnce(System<'_>),
) {
    with_blueprint(scheme, upcalls, |blueprint| boot(blueprint, limits, test));
}

/// Each test with a system of its own, in a process of its own, because a process has one
/// hypervisor instance.
#[allow(dead_code, reason = "not every test that has this module uses it")]
pub fn each_alone<T: Copy>(
    scheme: Scheme,
    limits: fn() -> Limits,
    tests: &[(&str, T)],
    run: fn(&System<'_>, T),
) {
    with_blueprint(scheme, &HashSet::new(), |blueprint| {
        for (name, test) in tests {
            in_child(name, || {
                boot(blueprint, limits(), |system| run(&system, *test))
            });
        }
    });
}

/// The scheme's code is for this processor.
fn with_blueprint(scheme: Scheme, upcalls: &HashSet<String>, test: impl FnOnce(&Blueprint<'_>)) {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let blueprint = Blueprint::new(&files, Variant::here(scheme), upcalls);
    test(&blueprint.unwrap_or_else(|error| panic!("{error}")));
}

fn boot(blueprint: &Blueprint<'_>, limits: Limits, test: impl FnOnce(System<'_>)) {
    let machine = Machine::new(Sizes::default()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    let system = System::start(blueprint, &machine, mailbox.get(), limits);
    test(system.unwrap_or_else(|error| panic!("{error}")));
}
