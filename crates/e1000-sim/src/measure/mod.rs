//! Who spends the cycles of a packet ([`profile`]) and the instructions ([`steps`]).

pub mod profile;
pub mod steps;
