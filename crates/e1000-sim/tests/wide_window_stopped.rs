//! Drivers that are stopped: by the clock anywhere, and with which locks, with the scheme
//! `window`.

use process_lab::program::Scheme;

#[path = "common/stopped.rs"]
mod stopped;

#[test]
fn the_clock_stops_it_and_its_locks_are_reported() {
    stopped::run(Scheme::Window);
}
