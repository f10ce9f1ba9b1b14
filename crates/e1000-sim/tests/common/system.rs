//! A system with the stock driver, booted: dom0, its card, and what a hypervisor
//! instance is loaded from.

use std::collections::HashSet;

use e1000_sim::image::files::Files;
use e1000_sim::memory::{Machine, Sizes};
use e1000_sim::system::{Blueprint, System};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::{Scheme, Variant};

/// Runs `test` with a system in which the hot routines named in `upcalls` are
/// upcalls.
#[allow(dead_code, reason = "not every test that has this module uses it")]
pub fn with_system(upcalls: &HashSet<String>, limits: Limits, test: impl FnOnce(System<'_>)) {
    with_scheme(Scheme::Stlb, upcalls, limits, test);
}

/// The same with another scheme.
pub fn with_scheme(
    scheme: Scheme,
    upcalls: &HashSet<String>,
    limits: Limits,
    test: impl FnOnce(System<'_>),
) {
    if !Variant::executable().contains(&Variant::plain(scheme)) {
        return;
    }
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let blueprint = Blueprint::new(&files, Variant::plain(scheme), upcalls)
        .unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::new(Sizes::default()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    let system = System::start(&blueprint, &machine, mailbox.get(), limits);
    test(system.unwrap_or_else(|error| panic!("{error}")));
}
