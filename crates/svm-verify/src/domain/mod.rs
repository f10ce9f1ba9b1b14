//! The facts about the machine at a program point, and how they are joined where paths
//! meet.
//!
//! # The lattice
//!
//! A [`State`] is a set of facts. Fewer facts describe more machines, so the
//! top has no facts, and a join keeps the facts that both sides state
//! ([`State::join`]). A join never adds a fact and a state has finitely many facts, so
//! every ascending chain is finite and the fixpoint iteration terminates.
//!
//! # Names
//!
//! Facts relate registers to unknown 64-bit numbers. Such a number is named by
//! the instruction that made it: [`Name`] `X` means *the value that
//! instruction X gave when it was last executed*. `mov %rdi,%rax` at X leaves
//! both registers with the name X, and `mov %eax,%ecx` then makes `%ecx` the
//! low half of that number.
//!
//! Why this is sound: along one execution, at one moment, every name whose
//! instruction was executed has exactly one meaning. A fact about X is true when it is
//! made. It can become false in two ways only. Either a register that it mentions is
//! written: then [`State::write`] replaces the fact. Or X is executed again and the name
//! means another number: then [`State::rename`] has dropped every older fact that
//! mentions X. Facts that survive a join hold on both paths, each with its own meaning
//! of the names, and nothing compares meanings of different paths. An instruction that
//! names a number which already has a name ([`State::name`]) replaces the old name in
//! all facts, as both mean that number.
//!
//! A value has a name and a form, independently: the address of a local
//! variable is a *stack* form and, once copied for a check, has a name as well.

mod addresses;
#[expect(
    clippy::manual_range_contains,
    reason = "crates/prove translates comparisons, not ranges"
)]
pub mod bounds;
mod flags;
mod kept;
#[cfg(test)]
mod laws;
mod returns;
mod saved;
mod state;
mod value;

pub use addresses::{Address, Addresses};
pub use flags::Flags;
pub use kept::Kept;
pub use returns::Returns;
pub use saved::Saved;
pub use state::{Again, State};
pub use value::{Bound, Direction, Form, Name, Value};
