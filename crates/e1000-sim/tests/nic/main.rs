//! The 82540EM model, driven as a driver drives the device: registers, rings in
//! memory, frames on a wire. Expectations are computed here, apart from the
//! model.

mod card;
mod interrupts;
mod open;
mod parts;
mod random;
mod rare;
mod receive;
mod registers;
mod statistics;
mod transmit;
