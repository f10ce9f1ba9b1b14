//! The crate's tests on real objects: assembled by the system's `as`, and the
//! stock e1000 module.

mod append;
mod common;
mod hostile;
mod input;
mod linking;
mod reading;
mod round_trip;
mod special;
