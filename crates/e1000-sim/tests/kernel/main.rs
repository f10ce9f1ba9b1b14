//! The dom0 kernel shim (`crates/e1000-sim/kernel/`) beneath the stock e1000.ko:
//! settings, resets, self tests, packets, reloading, and the bugs it must catch.

mod bugs;
mod clock;
mod cpus;
mod formats;
mod interrupts;
mod leaks;
mod packets;
mod resets;
mod settings;
mod setup;
