//! Read, write and link relocatable ELF objects.
//!
//! ```text
//! file ──input::decompress──> bytes ──read──> Object ──write──> bytes
//!                                       │
//!                                       ├──special──> what kernel metadata says about code
//!                                       └──link─────> bytes at addresses
//! ```
//!
//! [`archive`] takes libraries (`.a`) apart and makes them, [`compression`] packs.
//!
//! [`model`] is the object as data, the only type that clients share; the parsing and
//! writing libraries are not visible. The input is not trusted: the reader checks every
//! index, range and name, so that code with an [`Object`] made by [`read()`] may index
//! with the ids in it.

pub mod append;
pub mod archive;
mod code;
pub mod compression;
pub mod input;
pub mod link;
pub mod model;
pub mod modinfo;
mod read;
mod references;
pub mod reloc;
pub mod special;
mod write;
pub use code::ReaderCode;
pub use model::*;
pub use read::{
    ElfMachine, ReadError, RelocationProblem, SectionProblem, SymbolProblem, judge_header, read,
};
pub use references::{CodeReference, refers_to_code, resolve_biased, resolve_target};
pub use write::{WriteError, write};
