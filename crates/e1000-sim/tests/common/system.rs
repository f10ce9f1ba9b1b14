//! A system with the stock driver, booted: dom0, its card, and what a hypervisor
//! instance is loaded from.

use std::collections::HashSet;

use e1000_sim::image::files::Files;
use e1000_sim::system::{Blueprint, System};
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
    with_blueprint(scheme, upcalls, |blueprint| boot(&blueprint, limits, test));
}

/// The same of a blueprint that is changed: other parameters of the driver, another card.
#[allow(dead_code, reason = "not every test that has this module uses it")]
pub fn with_changed<T>(
    scheme: Scheme,
    change: impl FnOnce(Blueprint<'_>) -> Blueprint<'_>,
    limits: Limits,
    test: impl FnOnce(System<'_>) -> T,
) -> T {
    with_blueprint(scheme, &HashSet::new(), |blueprint| {
        boot(&change(blueprint), limits, test)
    })
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
                boot(&blueprint, limits(), |system| run(&system, *test))
            });
        }
    });
}

/// The scheme's code is for this processor.
fn with_blueprint<T>(
    scheme: Scheme,
    upcalls: &HashSet<String>,
    test: impl FnOnce(Blueprint<'_>) -> T,
) -> T {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let blueprint = Blueprint::new(&files, Variant::here(scheme), upcalls);
    test(blueprint.unwrap_or_else(|error| panic!("{error}")))
}

fn boot<T>(blueprint: &Blueprint<'_>, limits: Limits, test: impl FnOnce(System<'_>) -> T) -> T {
    let done = blueprint.booted(limits, |system| Ok(test(system)));
    done.unwrap_or_else(|error| panic!("{error}"))
}
