//! The cycles of a packet by component ([`profile`]), and the instructions ([`steps`]), or
//! something that happens between two of them ([`strike`]).

pub mod profile;
pub(crate) mod steps;
pub(crate) mod strike;
