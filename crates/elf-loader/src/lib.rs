//! Read, write and link relocatable ELF objects.
pub mod model;
pub use model::*;
