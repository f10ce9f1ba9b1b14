//! The cycles of a packet by component ([`profile`]), and the instructions ([`steps`]).

pub mod profile;
pub(crate) mod steps;
