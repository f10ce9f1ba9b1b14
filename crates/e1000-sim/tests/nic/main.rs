//! The 82540EM model, driven as a driver drives the device: registers, rings in
//! memory, frames on a wire. Expectations are computed here, apart from the
//! model.

#![allow(missing_docs, reason = "tests")]

mod card;
mod interrupts;
mod open;
mod parts;
mod random;
mod receive;
mod registers;
mod statistics;
mod transmit;
